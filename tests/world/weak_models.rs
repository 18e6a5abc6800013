//! Models that are not good at this: what they are told, and when it ends.

use serde_json::json;

use crate::fake::github::Item;
use crate::fake::model::{Plan, Request};
use crate::reading::{count, facts, last_on_github};
use crate::world::World;
use crate::world::scripts::{COMMAND, executes, greets, plan, writes};

const READ: &str = "workspace/read_file";

#[tokio::test]
async fn a_model_whose_calls_all_fail_is_told_then_plans_anew_and_then_the_run_fails() {
    let world = World::start().await;
    // The plan is asked for in a copy of the conversation.
    world.model.allows_restarts();
    let fails = |from: usize, to: usize| {
        let calls = (from..to).map(|number| match number % 3 {
            0 => (READ, json!({ "path": format!("missing-{number}.md") })),
            1 => (READ, json!({ "path": "README.md", "lines": number })),
            _ => ("workspace/open_file", json!({ "path": format!("README-{number}.md") })),
        });
        for (tool, args) in calls {
            world.model.calls(tool, args);
        }
    };
    world.model.plans(plan());
    fails(0, 16);
    world.model.plans(Plan::of(&["greet the reader in another way"]));
    fails(16, 24);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent failed"]);
    let told = world.model.requests()[9].last_user_message();
    assert!(
        told.contains("None of your last 8 tool calls could be carried out")
            && told.contains("- read_file {path, view_range?: [integer]}"),
        "{told}"
    );
    assert_eq!(count(&world, "replanned"), 1);
    insta::assert_snapshot!(last_on_github(&world, &issue), @"
    ### ❌ This could not be done

    24 tool calls in a row could not be carried out, though the model was told what is wrong and the plan was made anew; a larger model may do better, or an item that names the files to change (planning.circuit_breaker.tool_failures has the limit).

    To start a new run, set the label `coding agent` again.

    <sub>26 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_command_that_ran_is_no_failed_call_and_the_limit_is_configured() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["planning"] = json!({ "circuit_breaker": { "tool_failures": 2 }, "replanning": { "max_revisions": 0 } });
    });
    let mut script = world.model.plans(plan());
    for number in 0..6 {
        script = script.calls(COMMAND, json!({ "command": format!("exit {}", number + 1) }));
    }
    for number in 0..5 {
        script = script.calls(READ, json!({ "path": format!("missing-{number}.md") }));
    }
    script.calls(READ, json!({ "path": "nowhere.md" }));
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    let told: Vec<bool> = world
        .model
        .requests()
        .iter()
        .map(|request| request.text().contains("None of your last 2 tool calls"))
        .collect();
    assert_eq!(told.iter().position(|told| *told), Some(9), "{told:?}");
    world.finish().await;
}

#[tokio::test]
async fn refusals_of_the_network_end_no_run_and_say_what_there_is_instead() {
    let world = World::start().await;
    world.github.default_repository().commit(
        "main",
        "Tests",
        &[
            ("setup.cfg", "[tool:pytest]\n"),
            ("tests/test_a.py", "import pytest\n\ndef test_a():\n    pass\n"),
        ],
    );
    let install = |package: &str| {
        let command = format!(
            "pip install --retries 0 --disable-pip-version-check --index-url https://packages.example/simple {package}"
        );
        json!({ "command": command })
    };
    let script = world
        .model
        .plans(plan())
        .calls(COMMAND, install("pytest"))
        .calls(COMMAND, install("pytest-cov"))
        .calls(COMMAND, install("pytest-xdist"))
        .calls(COMMAND, install("tox"));
    greets(script);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(count(&world, "policy_refused"), 4, "{}", world.story());
    let requests = world.model.requests();
    let told = requests[2].last_user_message();
    assert!(
        told.contains(
            "The network refused this and will refuse it again: do the task without it. Installed are: python3 pip "
        ) && told.contains("setuptools")
            && told.ends_with("The project's tests are run with `python -m pytest -q`, where that is installed."),
        "{told}"
    );
    let often = requests.last().unwrap().text().matches("Installed are:").count();
    assert_eq!(often, 1, "it is said once");
    world.finish().await;
}

#[tokio::test]
async fn a_loop_is_broken_by_a_fresh_start_from_the_facts() {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({ "replanning": { "max_revisions": 0 } }));
    world.model.allows_restarts();
    let mut script = executes(world.model.plans(plan()), "echo new > draft.txt");
    for _ in 0..3 {
        script = executes(script, "sed -i s/nobody/reader/ README.md");
    }
    script.says("It greets now.\n\nREADME.md\n```\nHello\n```");
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(count(&world, "conversation_restarted"), 1);
    let requests = world.model.requests();
    let told = requests[2].last_user_message();
    assert!(told.contains("[changed: new draft.txt +1]\\n[exit code 0]"), "{told}");
    let told = requests[3].last_user_message();
    assert!(
        told.contains("\"output\":\"[no file changed]\\n[exit code 0]"),
        "{told}"
    );
    let anew = &requests[5];
    assert!(!anew.text().contains("{\"output\":"), "{}", anew.text());
    let facts = anew.last_user_message();
    assert!(
        facts.contains(
            "- execute_command sed -i s/nobody/reader/ README.md (3 times): [no file changed] [exit code 0]\n"
        ) && facts.contains("- execute_command echo new > draft.txt: [changed: new draft.txt +1] [exit code 0]\n")
            && facts.contains("?? draft.txt")
            && facts.ends_with(
                "Do something else than what was tried. Reply with each file that has to change, whole: a line with its path, then its \
                 content between two lines ```."
            ),
        "{facts}"
    );
    world.finish().await;
}

#[tokio::test]
async fn after_two_misses_the_whole_file_is_proposed() {
    let world = World::start().await;
    let misses = |old: &str| json!({ "path": "README.md", "old": old, "new": "Hello" });
    let script = world
        .model
        .plans(plan())
        .calls("workspace/str_replace", misses("# Gadgets"))
        .calls("workspace/str_replace", misses("Gadgets"));
    greets(script);
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let told = requests[2].last_user_message();
    assert!(
        told.contains("The closest lines, with their numbers:\\n1: # widgets"),
        "{told}"
    );
    let told = requests[3].last_user_message();
    assert!(
        told.contains("Write the whole file with write_file, mode overwrite, instead. It is now:\\n# widgets"),
        "{told}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_model_with_native_calls_that_only_writes_whole_files_has_fewer_tools() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["llm"]["edits"] = json!("whole");
        config["llm"]["function_calling"] = json!(true);
    });
    world
        .model
        .plans(plan())
        .calls(
            "workspace/write_file",
            json!({ "path": "README.md", "content": "Hello\n" }),
        )
        .calls("workspace/write_file", json!({ "path": "new.md", "content": "New\n" }))
        .done("Greeted.");
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let offered = requests[1].offered.join(" ");
    assert!(
        offered.contains("write_file") && !offered.contains("str_replace") && !offered.contains("undo_edit"),
        "{offered}"
    );
    let pull = &world.github.pulls()[0];
    assert_eq!(pull.file("README.md").as_deref(), Some("Hello\n"));
    assert_eq!(pull.file("new.md").as_deref(), Some("New\n"));
    world.finish().await;
}

/// A project in Python whose only test fails, since it adds wrongly.
const ADDS_WRONGLY: [(&str, &str); 3] = [
    ("sums.py", "def add(one, other):\n    return one - other\n"),
    ("tests/__init__.py", ""),
    (
        "tests/test_sums.py",
        "import unittest\n\nfrom sums import add\n\n\nclass Sums(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n",
    ),
];

/// Returns a world whose model writes whole files as text, without a plan.
async fn writing_whole_files() -> World {
    let mut world = World::start().await;
    world.configure(|config| {
        config["llm"]["edits"] = json!("whole");
        config["llm"]["function_calling"] = json!(false);
        config["llm"]["openai"]["temperature"] = json!(0.0);
        config["planning"]["enabled"] = json!(false);
    });
    world.github.default_repository().commit("main", "Add", &ADDS_WRONGLY);
    world
}

#[tokio::test]
async fn whole_files_are_read_from_text_and_what_the_tests_say_comes_back() {
    let world = writing_whole_files().await;
    world
        .model
        .says("I look at it first.\n```bash\ncat sums.py\n```")
        .says("The sign is wrong.\n\n**sums.py**\n```python\ndef add(one, other):\n    return other - one\n```\nThat is all.")
        .says("It has to be a sum.\n\nsums.py\n```python\ndef add(one, other):\n    return one + other\n```");
    let issue = world
        .github
        .open_issue("add(2, 3) in sums.py is wrong")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    let system = requests[0].system();
    assert!(
        system.contains("a line with its path, then its content between two lines ```")
            && !system.contains("str_replace"),
        "{system}"
    );
    let task = requests[0].first_user_message();
    assert!(task.contains("return one - other"), "{task}");
    let output = requests[1].last_user_message();
    assert!(
        output.starts_with("bash cat sums.py:\ndef add(one, other):\n"),
        "{output}"
    );
    let told = requests[2].last_user_message();
    assert!(
        told.contains("These checks failed before you changed anything, and still fail:")
            && told.contains("$ python3 -m unittest discover -q -s tests -t .")
            && told.contains("AssertionError: 1 != 5"),
        "{told}"
    );
    let pull = &world.github.pulls()[0];
    assert!(!pull.is_draft());
    assert_eq!(
        pull.file("sums.py").as_deref(),
        Some("def add(one, other):\n    return one + other\n")
    );
    assert!(pull.text().contains("It has to be a sum."), "{}", pull.text());
    world.finish().await;
}

#[tokio::test]
async fn what_a_test_expects_is_shown_once_to_a_model_that_never_saw_the_test() {
    let world = writing_whole_files().await;
    let replies = ["other - one", "one * other", "one + other"]
        .map(|sum| format!("It has to be {sum}.\n\nsums.py\n```python\ndef add(one, other):\n    return {sum}\n```"));
    let script = world.model.says(&replies[0]);
    script.says(&replies[1]).says(&replies[2]);
    let issue = world
        .github
        .open_issue("add(2, 3) in sums.py is wrong")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    let told = requests[1].last_user_message();
    assert!(
        told.contains(
            "\nWhat the tests expect there:\n\ntests/test_sums.py, lines 7 to 8, of which line 8 failed\n```\n    def test_add(self):\n        \
             self.assertEqual(add(2, 3), 5)\n```\n\nIf the task is about one of these failures"
        ),
        "{told}"
    );
    // It has them before it.
    let told = requests[2].last_user_message();
    assert!(
        told.contains("AssertionError: 6 != 5") && !told.contains("What the tests expect there"),
        "{told}"
    );
    world.finish().await;
}

/// An issue that asks for two things, of which the visible test holds one.
fn asking_for_two_things(world: &World) -> Item {
    world
        .github
        .open_issue("The sum of two numbers is wrong")
        .body("`add(2, 3)` in `sums.py` should be 5. With one number alone it should return that number.\n\nThanks!")
        .label("coding agent")
}

#[tokio::test]
async fn a_model_that_says_done_is_shown_once_more_what_the_task_asks_for() {
    let world = writing_whole_files().await;
    world
        .model
        .says("The sign was wrong.\n\nsums.py\n```python\ndef add(one, other):\n    return one + other\n```")
        .says("One number counts, too.\n\nsums.py\n```python\ndef add(one, other=0):\n    return one + other\n```");
    let issue = asking_for_two_things(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(count(&world, "asked_twice"), 1);
    let requests = world.model.requests();
    assert_eq!(requests.len(), 2);
    let told = requests[1].last_user_message();
    assert!(
        told.contains("\n\nNo check fails. Before this is delivered, hold it against the task once more.")
            && told.contains(
                ">\n1. The sum of two numbers is wrong\n2. `add(2, 3)` in `sums.py` should be 5.\n\
                 3. With one number alone it should return that number.\n</data-"
            )
            && told.contains(">\nsums.py +1 -1\n</data-"),
        "{told}"
    );
    let pull = &world.github.pulls()[0];
    assert_eq!(
        pull.file("sums.py").as_deref(),
        Some("def add(one, other=0):\n    return one + other\n")
    );
    let text = pull.text();
    assert!(
        text.contains("The sign was wrong.") && text.contains("One number counts, too."),
        "{text}"
    );
    world.finish().await;
}

#[tokio::test]
async fn what_was_finished_stays_so_when_the_second_look_changes_nothing() {
    let world = writing_whole_files().await;
    let reply = "The sign was wrong.\n\nsums.py\n```python\ndef add(one, other):\n    return one + other\n```";
    world
        .model
        .says(reply)
        .says(&reply.replace("The sign was", "Nothing is"));
    let issue = asking_for_two_things(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!((world.model.requests().len(), count(&world, "asked_twice")), (2, 1));
    let text = world.github.pulls()[0].text();
    assert!(
        text.contains("The sign was wrong.") && !text.contains("Nothing is wrong."),
        "{text}"
    );
    world.finish().await;
}

#[tokio::test]
async fn finished_work_does_not_fail_because_no_reply_to_the_second_look_can_be_read() {
    let world = writing_whole_files().await;
    let mut script = world
        .model
        .says("The sign was wrong.\n\nsums.py\n```python\ndef add(one, other):\n    return one + other\n```");
    for number in 0..6 {
        script = script.says(&format!("```python\nprint({number})\n```"));
    }
    let issue = asking_for_two_things(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let pull = &world.github.pulls()[0];
    assert!(
        !pull.is_draft() && pull.text().contains("The sign was wrong."),
        "{}",
        pull.text()
    );
    world.finish().await;
}

#[tokio::test]
async fn the_configuration_says_who_looks_twice() {
    let mut world = writing_whole_files().await;
    world.configure(|config| config["planning"]["verification"] = json!({ "ask_twice": "never" }));
    world
        .model
        .says("The sign was wrong.\n\nsums.py\n```python\ndef add(one, other):\n    return one + other\n```");
    let issue = asking_for_two_things(&world);
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!((world.model.requests().len(), count(&world, "asked_twice")), (1, 0));
    world.finish().await;

    for (criteria, requests) in [(json!([]), 4), (json!(["The reader feels welcome"]), 3)] {
        let mut world = World::start().await;
        world.configure(|config| config["planning"] = json!({ "verification": { "ask_twice": "always" } }));
        let script = greets(
            world
                .model
                .plans(plan().with("goal_understanding", json!({ "success_criteria": criteria }))),
        );
        if requests == 4 {
            script.done("Nothing is missing.");
        }
        let issue = world
            .github
            .open_issue("Greet the reader")
            .body("- The README should greet the reader.\n- Nothing else should be in it.\n")
            .label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        assert_eq!(issue.labels(), ["coding agent done"]);
        assert_eq!(world.model.requests().len(), requests, "{}", world.story());
        let text = world.github.pulls()[0].text();
        assert!(text.contains("The README greets its reader now."), "{text}");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_reply_that_changes_nothing_does_not_count_and_the_next_one_is_asked_for_warmly() {
    let world = writing_whole_files().await;
    let same = "Mended.\n\nsums.py\n```python\ndef add(one, other):\n    return one - other\n```";
    world
        .model
        .says(same)
        .says(same)
        .says("```python\nprint('added')\n```")
        .says("```python\ndef add(one, other):\n    return one + other\n```");
    let issue = world
        .github
        .open_issue("add(2, 3) in sums.py is wrong")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    let told = requests[1].last_user_message();
    assert!(
        told.contains("This did not count: what you wrote is what was there before"),
        "{told}"
    );
    let temperatures: Vec<_> = requests
        .iter()
        .map(|request| request.body["temperature"].as_f64())
        .collect();
    assert_eq!(temperatures, [Some(0.0), Some(0.0), Some(0.8), Some(0.0)]);
    let told = requests[3].last_user_message();
    assert!(
        told.contains("The block that begins with `print('added')` names no file: its path must be the line above it."),
        "{told}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_never_changes_anything_fails_and_is_not_done() {
    let world = writing_whole_files().await;
    let reply = |number: usize| {
        format!("Try {number}.\n\nsums.py\n```python\ndef add(one, other):\n    return one - other\n```")
    };
    let mut script = world.model.says(&reply(1));
    for number in 2..=4 {
        script = script.says(&reply(number));
    }
    let issue = world
        .github
        .open_issue("add(2, 3) in sums.py is wrong")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent failed"]);
    let last = last_on_github(&world, &issue);
    assert!(
        last.contains("The model wrote the same files again and again"),
        "{last}"
    );
    world.finish().await;
}

#[tokio::test]
async fn that_nothing_has_to_change_counts_when_it_is_said_twice_and_no_test_fails() {
    let world = writing_whole_files().await;
    let mended = ADDS_WRONGLY[0].1.replace('-', "+");
    world
        .github
        .default_repository()
        .commit("main", "Mend", &[("sums.py", &mended)]);
    world.model.says("It is right as it is.").says("It is a sum.");
    let issue = world
        .github
        .open_issue("Is add(2, 3) in sums.py right?")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert!(world.github.pulls().is_empty());
    let told = world.model.requests()[1].last_user_message();
    assert!(told.starts_with("This did not count: you wrote no file."), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn that_nothing_has_to_change_does_not_count_while_tests_fail() {
    let world = writing_whole_files().await;
    let script = world.model.says("It is right as it is.").says("It is a sum.");
    script.says("It is right, really.");
    let issue = world
        .github
        .open_issue("add(2, 3) in sums.py is wrong")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent failed"]);
    let last = last_on_github(&world, &issue);
    assert!(
        last.contains("The model changed nothing, and the project's tests fail as before"),
        "{last}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_function_alone_takes_the_place_of_its_namesake() {
    let world = writing_whole_files().await;
    let two = format!(
        "LIMIT = 9\n\n\ndef less(one, other):\n    return one - other\n\n\n{}",
        ADDS_WRONGLY[0].1
    );
    world.github.default_repository().commit(
        "main",
        "Less",
        &[("lib/sums.py", &two), ("sums.py", "from lib.sums import add\n")],
    );
    world
        .model
        .says("The sign is wrong.\n\n```python\ndef add(one, other):\n    return one + other\n```");
    world
        .github
        .open_issue("add(2, 3) in lib/sums.py is wrong")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let pull = &world.github.pulls()[0];
    let expected = two.replace(
        "add(one, other):\n    return one - other",
        "add(one, other):\n    return one + other",
    );
    assert_eq!(pull.file("lib/sums.py").as_deref(), Some(expected.as_str()));
    world.finish().await;
}

#[tokio::test]
async fn the_file_that_the_task_names_is_in_the_first_requests() {
    let world = World::start().await;
    let long = "x".repeat(100_000);
    world.github.default_repository().commit(
        "main",
        "Code",
        &[
            ("src/shapes.py", "def area(side):\n    return side + side\n"),
            ("src/data.txt", &long),
            ("src/other.py", "unrelated = 1\n"),
        ],
    );
    let script = world.model.plans(plan());
    writes(script, "src/shapes.py", "def area(side):\n    return side * side\n").done("Mended.");
    let issue = world
        .github
        .open_issue("The area in shapes.py is wrong; see src/data.txt");
    issue.label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    for request in &world.model.requests()[..2] {
        let task = request.first_user_message();
        assert!(
            task.contains("\nsrc/shapes.py:\n<data-") && task.contains("    return side + side\n</data-"),
            "{task}"
        );
        assert!(!task.contains("unrelated = 1") && !task.contains("xxxx"), "{task}");
    }
    world.finish().await;
}

#[tokio::test]
async fn the_operators_own_system_prompt_is_used() {
    let mut world = World::start().await;
    let file = world.folder().join("prompt.txt");
    std::fs::write(
        &file,
        "Work in {{ environment }}, reply in JSON.{% for tool in tools %} {{ tool.name }}{% endfor %}\n",
    )
    .unwrap();
    world.configure(|config| config["llm"]["system_prompt_file"] = json!(file));
    greets(world.model.plans(plan()));
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let system = world.model.requests()[1].system();
    assert!(system.starts_with("Work in python, reply in JSON. bash "), "{system}");
    world.finish().await;
}

#[tokio::test]
async fn a_system_prompt_that_cannot_be_filled_in_ends_the_program_at_the_start() {
    let mut world = World::start().await;
    let file = world.folder().join("prompt.txt");
    std::fs::write(&file, "{{ rulez }}").unwrap();
    world.configure(|config| config["llm"]["system_prompt_file"] = json!(file));

    let ended = world.run().await;

    assert_eq!(ended.code, Some(78), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("there is no variable `rulez`; did you mean `rules`?"),
        "{ended:?}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_model_may_plan_and_work_in_the_form_of_hermes() {
    let world = World::start().await;
    let look = json!({ "thought": "look", "tool_calls": [{ "name": "read_file", "parameters": { "path": "README.md" } }], "final_answer": "" });
    let write = json!({
        "thought": "write",
        "tool_calls": [
            { "name": "write_file", "parameters": { "path": "./README.md", "content": "Hello\n", "mode": "overwrite" } },
            { "name": "workspace/read_file", "parameters": { "path": "README.md" } },
        ],
    });
    let answer = json!({ "thought": "", "tool_calls": [], "final_answer": "The README greets." });
    let script = world.model.says(&look.to_string()).plans(plan());
    script.says(&write.to_string()).says(&answer.to_string());
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(world.github.pulls()[0].file("README.md").as_deref(), Some("Hello\n"));
    world.finish().await;
}

#[tokio::test]
async fn the_plans_aims_reach_the_worker_and_people_and_are_checked_where_they_are_commands() {
    let world = World::start().await;
    let goal = json!({
        "main_objective": "greet",
        "success_criteria": ["The reader feels welcome", "`grep -q Hello README.md`"],
        "constraints": ["No emoji"],
    });
    let action = json!({ "execution_order": ["task-1"], "actions": [{ "task_id": "task-1", "expected_outcome": "The README\ngreets" }] });
    greets(
        world
            .model
            .plans(plan().with("goal_understanding", goal).with("action_plan", action)),
    );
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let task = world.model.requests()[1].first_user_message();
    assert!(
        task.contains(
            "- task-1: greet the reader (expected: The README greets)\n\nIt is done when:\n- The reader feels welcome\n\
             - `grep -q Hello README.md`\nConstraints:\n- No emoji\n\nThe program will check the result with:\n\
             - `grep -q Hello README.md` (exit code 0)\n"
        ),
        "{task}"
    );
    let comments = issue.comments_of(world.github.bot());
    assert!(
        comments[0].contains("What the plan is to achieve")
            && comments[0].contains("Done when: The reader feels welcome"),
        "{}",
        comments[0]
    );
    let checked: Vec<_> = facts(&world, "verified")
        .into_iter()
        .map(|fact| fact["command"].clone())
        .collect();
    assert_eq!(checked, ["grep -q Hello README.md"]);
    world.finish().await;
}

#[tokio::test]
async fn the_planners_slips_are_taken_as_meant_too() {
    let world = World::start().await;
    let git = world.github.default_repository();
    git.commit("main", "Code", &[("src/shapes.py", "one\ntwo\n")]);
    let script = world
        .model
        .calls("repository/read_file", json!({ "path": "shape.py" }))
        .calls("repository/list_files", json!({ "path": "lib" }))
        .calls(
            "read_file",
            json!({ "file_path": "workspace/project/src/shapes.py", "view_range": [0, -1] }),
        )
        .plans(plan());
    greets(script);
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let told: Vec<String> = requests[1..4].iter().map(Request::last_user_message).collect();
    assert!(
        told[0].contains("there is no file 'shape.py'; did you mean 'src/shapes.py'?"),
        "{told:?}"
    );
    assert!(
        told[1].contains("there are no files below 'lib'; there are the folders src"),
        "{told:?}"
    );
    assert!(told[2].contains("\"output\":\"one\\ntwo\""), "{told:?}");
    world.finish().await;
}
