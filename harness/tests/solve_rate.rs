//! Two tasks are measured with a scripted model, from the label to the table: what was measured is
//! not measured again, one bad reply ends nothing, and a dishonest end is found. mini-swe-agent
//! itself is measured with scripts of its own.
#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use coding_agent_harness::fake::model::{Model, Plan, Protocol, Script};
use serde_json::{Value, json};

const CLAMP: &str = "python/clamp";
const INITIALS: &str = "python/initials";
const LAST_PAGE: &str = "python/last_page";
const LEAP_YEAR: &str = "python/leap_year";
/// A mend that the visible test does not tell from a right one, and the right one.
const OF_21: &str = "entries // size + (entries == 21)";
const RIGHT: &str = "-(-entries // size)";
/// The command by which mini-swe-agent hands its result in, as its own prompt says.
const HAND_IN: &str = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";

/// A measurement of its own, whose book is removed in the end.
struct Measured {
    model: String,
}

impl Measured {
    fn new() -> Self {
        Self {
            model: format!("scripted-{}", uuid::Uuid::new_v4()),
        }
    }

    fn run(&self, address: &str, variables: &[(&str, &str)], names: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_solve_rate"));
        command.env_clear().args(names).stdin(Stdio::null());
        for name in ["PATH", "DOCKER_HOST"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("OPENAI_BASE_URL", address)
            .env("OPENAI_MODEL", &self.model)
            .env("WITHOUT_PEER", "1")
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// Measures mini-swe-agent on tasks. The book says that the program and the floor have solved
    /// them, so that neither is started.
    fn run_peer(&self, address: &str, variables: &[(&str, &str)], tasks: &[&str]) -> Output {
        let mut outcomes = String::new();
        for task in tasks {
            for (worker, edits, round) in [("program", Some("auto"), "solved"), ("floor", None, "")] {
                let outcome = json!({
                    "task": task, "grade": 1, "worker": worker,
                    "setting": {
                        "turns": 25, "minutes": 20, "window": null, "plan": false, "edits": edits, "round": round,
                    },
                    "end": "ready", "solved": true, "passes_visible": true, "names_doubts": false,
                    "input": 1, "output": 1, "turns": 1, "seconds": 1.0, "reason": "",
                    "facts": {
                        "ending": "done", "changes_files": true, "unreadable": 0, "circles": 0, "missed_calls": 0,
                        "checks": "passed", "lacks_reply": false, "is_cut": false,
                    },
                });
                outcomes += &outcome.to_string();
                outcomes.push('\n');
            }
        }
        let [book, _] = self.files();
        std::fs::create_dir_all(book.parent().unwrap()).unwrap();
        std::fs::write(book, outcomes).unwrap();
        let with_peer = [("WITHOUT_PEER", ""), ("ROUND", "solved")];
        self.run(address, &[&with_peer[..], variables].concat(), tasks)
    }

    /// Returns mini-swe-agent's outcomes, in the order of the tasks' names.
    fn outcomes_of_peer(&self) -> Vec<Value> {
        let [book, _] = self.files();
        let book = std::fs::read_to_string(book).unwrap();
        let outcomes = book.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        outcomes.filter(|outcome| outcome["worker"] == "peer").collect()
    }

    fn files(&self) -> [PathBuf; 2] {
        let folder = coding_agent_harness::build::folder().unwrap();
        // The test itself lies one folder further down than the programs.
        let folder = folder.parent().unwrap().with_file_name("solve-rate");
        ["jsonl", "json"].map(|end| folder.join(format!("{}.{end}", self.model)))
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        for file in self.files() {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Returns a file of Python that replaces the one in the repository.
fn written(path: &str, content: &str) -> serde_json::Value {
    json!({ "command": format!("cat > {path} <<'END'\n{content}END\n") })
}

fn pages(count: &str) -> String {
    format!(
        "def page_count(entries, size):\n    return {count}\n\n\ndef page(entries, number, size):\n    start = (number - 1) * size\n    return entries[start:start + size]\n"
    )
}

fn clamp() -> String {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/solve_rate/tasks/python/clamp.txtar"
    ));
    let text = text.unwrap();
    text.split("-- mend/")
        .nth(1)
        .unwrap()
        .split_once(" --\n")
        .unwrap()
        .1
        .to_owned()
}

/// Calls mini-swe-agent's only tool.
fn runs<'model>(script: Script<'model>, command: &str) -> Script<'model> {
    script.calls("bash", json!({ "command": command }))
}

/// Returns the texts of the requests for a task.
fn asked(model: &Model, title: &str) -> Vec<String> {
    let requests = model.requests().into_iter();
    requests
        .filter(|request| request.first_user_message().contains(title))
        .map(|request| request.seen)
        .collect()
}

/// Plans, writes one file and says that all is done; its own check passes whatever it wrote.
fn works<'model>(script: Script<'model>, path: &str, content: &str) -> Script<'model> {
    script
        .plans(
            Plan::of(&["mend it"])
                .in_environment("python")
                .verified_by("test -d tests"),
        )
        .calls("workspace/execute_command", written(path, content))
        .done("Mended. The test failed because of one line, fixed.")
}

fn shown(output: &Output) -> (Option<i32>, String, String) {
    (
        output.status.code(),
        String::from_utf8(output.stdout.clone()).unwrap(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    )
}

fn assert_shown(text: &str, wanted: &[&str]) {
    for words in wanted {
        assert!(text.contains(words), "{words:?} is missing:\n{text}");
    }
}

#[tokio::test]
async fn a_model_of_ollama_is_measured_over_its_own_protocol() {
    let measured = Measured::new();
    let model = Model::start().await;
    works(
        model.for_task("clamp() returns the wrong end"),
        "numbers_in_range.py",
        &clamp(),
    )
    .says(&format!("numbers_in_range.py\n```python\n{}```", clamp()));
    let host = model.address();
    let host = host.trim_start_matches("http://");
    let variables = [
        ("ROUND", "one"),
        ("PLAN", "1"),
        ("OLLAMA_HOST", host),
        ("OLLAMA_MODEL", &measured.model),
    ];
    let (code, text, complaints) = shown(&measured.run("http://127.0.0.1:1/v1", &variables, &[CLAMP]));
    assert_eq!(code, Some(0), "{text}{complaints}");
    assert_shown(
        &text,
        &[
            "python/clamp, Program: solved, Ready",
            "python/clamp, Floor: solved, Ready",
        ],
    );
    let asked = model.requests();
    let by_ollama = asked
        .iter()
        .filter(|request| request.protocol == Protocol::Ollama)
        .count();
    // The floor's one question goes to the server's other address, as everybody's clients do.
    assert_eq!(by_ollama, asked.len() - 1, "{text}");
}

#[tokio::test]
async fn two_tasks_are_measured_once_and_a_dishonest_end_is_found() {
    let measured = Measured::new();
    let model = Model::start().await;
    let address = model.openai_address();
    let names = [CLAMP, LAST_PAGE];
    let clamp_file = "numbers_in_range.py";
    // The program mends the one, and the floor gets an error for a reply.
    works(model.for_task("clamp() returns the wrong end"), clamp_file, &clamp()).fails(500, 1);
    works(model.for_task("The last page"), "pages.py", &pages(OF_21))
        .says(&format!("pages.py\n```python\n{}```", pages(RIGHT)));
    let variables = [("ROUND", "before"), ("PLAN", "1")];
    let (code, text, complaints) = shown(&measured.run(&address, &variables, &names));
    assert_eq!(code, Some(1), "{text}{complaints}");
    assert_shown(
        &text,
        &[
            "python/clamp, Program: solved, Ready",
            "python/clamp, Floor: not solved, Failed",
            "python/last_page, Program: not solved, Ready",
            "python/last_page, Floor: solved, Ready",
            "| the program | 1 of 2 (50 %) | 9–91 % | 0 | 0 | 1 |",
            "| the same model, asked once | 1 of 2 (50 %) | 9–91 % | 0 | 1 | 0 |",
            "| 1 | checked, and only the hidden tests fail | python/last_page |",
        ],
    );
    assert!(
        complaints.contains("1 tasks were said to be done and are not"),
        "{complaints}"
    );
    let asked = model.requests().len();

    // The same once more: all of it is in the book.
    let (code, text, _) = shown(&measured.run(&address, &variables, &names));
    assert_eq!((code, model.requests().len()), (Some(1), asked), "{text}");
    assert_shown(
        &text,
        &[
            "| the program | 1 of 2 (50 %) |",
            "| the same model, asked once | 1 of 2 (50 %) |",
        ],
    );

    // Another round asks the program alone, and is held against the one before.
    works(model.for_task("clamp() returns the wrong end"), clamp_file, &clamp());
    works(model.for_task("The last page"), "pages.py", &pages(RIGHT));
    let variables = [("ROUND", "after"), ("PLAN", "1")];
    let (code, text, complaints) = shown(&measured.run(&address, &variables, &names));
    assert_eq!(code, Some(0), "{text}{complaints}");
    let compared = [
        "Round after/auto/plan beside round before/auto/plan: 2 and 1 of 2 tasks solved.",
        "2 tasks: 1 that only the former solved, 0 that only the latter did; by chance as unlike in 100.0 of 100 times, no loss \
         that is significant at 5 %.",
        "- only after/auto/plan: python/last_page",
    ];
    assert_shown(
        &text,
        &[
            "| the program | 2 of 2 (100 %) |",
            "| the same model, asked once | 1 of 2 (50 %) |",
        ],
    );
    assert_shown(&text, &compared);
    // The floor is a question without anything around it.
    assert_eq!(
        model.violations(),
        ["a conversation does not begin with the system prompt"]
    );
    drop(model);

    // For a comparison no model is asked for.
    let (code, text, complaints) = shown(&measured.run(&address, &[("COMPARE", "before,after")], &names));
    assert_eq!((code, complaints.as_str()), (Some(0), ""), "{text}");
    assert_shown(&text, &compared);

    // One that is gone ends the measurement with a sentence, and nothing is written down.
    let (code, _, complaints) = shown(&measured.run(&address, &[("ROUND", "later")], &names));
    assert_eq!(code, Some(1));
    assert!(
        complaints.contains("the model's server at") && complaints.contains("is gone"),
        "{complaints}"
    );
    let [book, _] = measured.files();
    assert!(!std::fs::read_to_string(book).unwrap().contains("\"later\""));
}

#[tokio::test]
async fn mini_swe_agent_is_measured_by_what_it_leaves_behind() {
    let measured = Measured::new();
    let model = Model::start().await;
    // A reply without a call is answered with how one is made.
    let mends = model
        .for_task("clamp() returns the wrong end")
        .says("I mend it.")
        .calls("bash", written("numbers_in_range.py", &clamp()));
    runs(mends, HAND_IN);
    // This one's result is right, and it never hands it in.
    let mut never_ends = model
        .for_task("The last page")
        .calls("bash", written("pages.py", &pages(RIGHT)));
    for _ in 1..25 {
        never_ends = runs(never_ends, "true");
    }
    let words = model.for_task("The year 2000").says("One.").says("Two.").says("Three.");
    words.says("This is not asked for any more.");
    let silent = model.for_task("Two spaces in a name").fails(500, 4);
    silent.says("Nor is this.");
    let tasks = [CLAMP, INITIALS, LAST_PAGE, LEAP_YEAR];
    let (code, text, complaints) = shown(&measured.run_peer(&model.openai_address(), &[], &tasks));
    assert_eq!((code, complaints.as_str()), (Some(0), ""), "{text}");
    assert_shown(
        &text,
        &[
            "python/clamp, Peer: solved, Ready, 3 turns",
            "python/initials, Peer: not solved, Failed, 1 turn,",
            "python/last_page, Peer: solved, Failed, 25 turns",
            "python/leap_year, Peer: not solved, Failed, 3 turns",
            "| mini-swe-agent | 2 of 4 (50 %) | 15–85 % | 0 | 3 | 0 | 0 |",
        ],
    );

    let outcomes = measured.outcomes_of_peer();
    let [clamp, initials, last_page, leap_year] = outcomes.as_slice() else {
        panic!("four outcomes: {outcomes:?}");
    };
    let told = |outcome: &Value| (outcome["facts"]["ending"].clone(), outcome["reason"].clone());
    assert_eq!(told(clamp), (json!("Submitted"), json!("")));
    for (outcome, ending) in [(last_page, "LimitsExceeded"), (leap_year, "RepeatedFormatError")] {
        assert_eq!(told(outcome), (json!(ending), json!(ending)));
    }
    let (ending, reason) = told(initials);
    assert!(ending.to_string().contains("The script fails here"), "{ending}");
    assert_eq!(ending, reason);
    let changed = outcomes.iter().map(|outcome| outcome["facts"]["changes_files"] == true);
    assert_eq!(changed.collect::<Vec<_>>(), [true, false, true, false]);

    // A request that fails is made four times, as the program makes it.
    let counts = ["clamp()", "Two spaces", "The last page", "The year 2000"].map(|title| asked(&model, title).len());
    assert_eq!(counts, [3, 4, 25, 3]);
    // Tokens are those that the server counts, also for replies that could not be read.
    let tokens = |texts: &[String]| -> usize { texts.iter().map(|text| text.len() / 4 + 1).sum() };
    let replies = ["I mend it.", "Calling bash", "Calling bash"].map(str::to_owned);
    assert_eq!(clamp["input"], json!(tokens(&asked(&model, "clamp()"))));
    assert_eq!(clamp["output"], json!(tokens(&replies)));
    assert_eq!(leap_year["input"], json!(tokens(&asked(&model, "The year 2000"))));
    assert_eq!((&initials["input"], &initials["output"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn mini_swe_agent_is_measured_with_a_model_of_ollama() {
    let measured = Measured::new();
    let model = Model::start().await;
    let mends = model
        .for_task("clamp() returns the wrong end")
        .calls("bash", written("numbers_in_range.py", &clamp()));
    runs(mends, HAND_IN);
    // A server without a key, which clients of OpenAI's protocol do not know.
    let host = model.address();
    let variables = [("OLLAMA_HOST", host.as_str()), ("OLLAMA_MODEL", &measured.model)];
    let output = measured.run_peer("http://127.0.0.1:1/v1", &variables, &[CLAMP]);
    let (code, text, complaints) = shown(&output);
    assert_eq!((code, complaints.as_str()), (Some(0), ""), "{text}");
    assert_shown(&text, &["python/clamp, Peer: solved, Ready, 2 turns"]);
    model.finish();
}

#[test]
fn tasks_of_others_are_proven_without_a_model() {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in [
        ("python_programs/twice.py", "def twice(n):\n    return n * 3\n"),
        ("correct_python_programs/twice.py", "def twice(n):\n    return n * 2\n"),
        ("json_testcases/twice.json", "[[2], 4]\n"),
        ("python_programs/half.py", "def half(n):\n    return n\n"),
        ("correct_python_programs/half.py", "def half(n):\n    return n / 4\n"),
        ("json_testcases/half.json", "[[2], 1]\n"),
        ("python_programs/same.py", "def same(n):\n    return n\n"),
        ("correct_python_programs/same.py", "def same(n):\n    return n\n"),
        ("json_testcases/same.json", "[[2], 2]\n"),
    ] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let measured = Measured::new();
    let quixbugs = folder.path().to_str().unwrap();
    let variables = [("PROVE", "1"), ("QUIXBUGS", quixbugs)];
    // Nobody listens there, and nobody has to.
    let output = measured.run("http://127.0.0.1:1/v1", &variables, &["quixbugs/"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        shown,
        "quixbugs/half: its tests fail on the mended program as well\n\
         quixbugs/same: its tests do not notice the fault\n\
         1 of 3 tasks can be solved and are not\n"
    );
    assert_eq!(output.status.code(), Some(0));
}
