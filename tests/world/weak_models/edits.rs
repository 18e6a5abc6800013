//! Files that are changed whole: by calls, and by what stands in a text.

use serde_json::json;

use super::{ADDS_WRONGLY, adds_wrongly, sum, writing_whole_files};
use crate::world::World;
use crate::world::facts::count;
use crate::world::scripts::{greets, plan};

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

#[tokio::test]
async fn whole_files_are_read_from_text_and_what_the_tests_say_comes_back() {
    let world = writing_whole_files().await;
    world
        .model
        .says("I look at it first.\n```bash\ncat sums.py\n```")
        .says("The sign is wrong.\n\n**sums.py**\n```python\ndef add(one, other):\n    return other - one\n```\nThat is all.")
        .says("It has to be a sum.\n\nsums.py\n```python\ndef add(one, other):\n    return one + other\n```");
    let issue = adds_wrongly(&world);

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
async fn a_model_that_runs_no_tests_is_told_that_an_earlier_run_may_have_broken_them() {
    let mut world = writing_whole_files().await;
    world.configure(|config| config["planning"]["verification"]["max_rounds"] = json!(0));
    let adds = [("sums.py", "def add(one, other):\n    return one + other\n")];
    world.github.default_repository().commit("main", "Add rightly", &adds);
    world.model.says(&sum("It is faster now.", "one - other"));
    let issue = adds_wrongly(&world);
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);

    world.model.says(&sum("It is a sum again.", "other + one"));
    issue.label("coding agent");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let task = world.model.requests()[1].first_user_message();
    assert!(
        task.contains(
            "\nThe project has the work of an earlier run, and its tests fail with that:\n\n$ python3 -m unittest discover -q -s tests -t .\n"
        ) && task.contains("AssertionError: -1 != 5")
            && task.contains("\nWhat did not fail before that work has to be gone afterwards"),
        "{task}"
    );
    assert!(!world.github.pulls()[0].is_draft(), "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn what_a_test_expects_is_told_at_once_to_a_model_that_runs_none() {
    let world = writing_whole_files().await;
    let replies = ["other - one", "one * other", "one + other"]
        .map(|sum| format!("It has to be {sum}.\n\nsums.py\n```python\ndef add(one, other):\n    return {sum}\n```"));
    let script = world.model.says(&replies[0]);
    script.says(&replies[1]).says(&replies[2]);
    let issue = adds_wrongly(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    let task = requests[0].first_user_message();
    assert!(
        task.contains("\nThe project's tests fail before the work:\n\n$ python3 -m unittest discover -q -s tests -t .\n[exit code 1, expected 0]\n")
            && task.contains("AssertionError: -1 != 5")
            && task.contains(
                "\nWhat the tests expect there:\n\ntests/test_sums.py, lines 7 to 8, of which line 8 failed\n```\n    def test_add(self):\n        \
                 self.assertEqual(add(2, 3), 5)\n```\n\nIf the task is about one of these failures, it has to be gone afterwards"
            ),
        "{task}"
    );
    // It has them before it.
    let told = requests[2].last_user_message();
    assert!(
        told.contains("AssertionError: 6 != 5") && !told.contains("What the tests expect there"),
        "{told}"
    );
    // They are run there once.
    assert_eq!(count(&world, "verified_before"), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_test_is_not_written_by_a_model_that_saw_some_lines_of_it() {
    let world = writing_whole_files().await;
    let weaker = "tests/test_sums.py\n```python\nimport unittest\n\n\nclass Sums(unittest.TestCase):\n    def test_add(self):\n        pass\n```";
    let mended = "sums.py\n```python\ndef add(one, other):\n    return one + other\n```";
    world
        .model
        .says(&format!("The test is wrong.\n\n{weaker}"))
        .says(&format!("Both, then.\n\n{mended}\n\n{weaker}"));
    let issue = adds_wrongly(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    assert_eq!(requests.len(), 2);
    let told = requests[1].last_user_message();
    assert!(
        told.contains(
            "tests/test_sums.py is a test that you have not seen whole, so it stays as it is. Write the file that it tests instead.\n\n\
             This did not count: nothing is changed by it."
        ),
        "{told}"
    );
    let pull = &world.github.pulls()[0];
    assert!(!pull.is_draft(), "{}", pull.text());
    assert_eq!(
        ["sums.py", "tests/test_sums.py"].map(|file| pull.file(file).unwrap_or_default()),
        ["def add(one, other):\n    return one + other\n", ADDS_WRONGLY[2].1]
    );
    world.finish().await;
}

#[tokio::test]
async fn a_file_is_written_whole_only_by_a_model_that_saw_it_whole() {
    let mut world = writing_whole_files().await;
    // A try is not over before the file was printed.
    world.configure(|config| config["planning"]["verification"] = json!({ "max_tries": 2 }));
    let large = "NUMBERS.append(900)\n".repeat(900);
    let sums = "def add(one, other):\n    return one + other\n";
    let names = "FIRST = 1\nLAST = 900\n";
    let data = "{\"number\": 1},\n".repeat(20_000);
    let repository = world.github.default_repository();
    repository.commit(
        "main",
        "Add numbers",
        &[
            ("numbers.py", &large),
            ("names.py", names),
            ("sums.py", sums),
            ("data.json", &data),
        ],
    );
    let renamed = "names.py\n```python\nFIRST = 0\nLAST = 900\n```";
    // Neither was seen: a test by its whole path, and a file of 300 KB.
    let others = "/workspace/project/tests/test_sums.py\n```python\nimport unittest\n```\n\ndata.json\n```\n[]\n```";
    world
        .model
        .says(&format!("It begins at 0.\n\n{renamed}"))
        .says("I look at it.\n\n```bash\ncat names.py\n```")
        .says(&format!("It begins at 0.\n\n{renamed}\n\n{others}"));
    let issue = world.github.open_issue("The first number is 0").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    let told = requests[1].last_user_message();
    assert!(
        told.contains(
            "names.py is there already, and you have not seen it whole: what you have not seen would be lost"
        ),
        "{told}"
    );
    assert_eq!(
        world.github.pulls()[0].file("names.py").as_deref(),
        Some("FIRST = 0\nLAST = 900\n")
    );
    assert_eq!(
        ["tests/test_sums.py", "data.json"].map(|file| world.github.pulls()[0].file(file).unwrap_or_default()),
        [ADDS_WRONGLY[2].1.to_owned(), data]
    );
    world.finish().await;
}

#[tokio::test]
async fn the_line_that_a_missing_import_needs_is_told() {
    let world = writing_whole_files().await;
    world
        .model
        .says(&sum("It has to be a sum.", "operator.add(one, other)"))
        .says("The import was missing.\n\nsums.py\n```python\nimport operator\n\n\ndef add(one, other):\n    return operator.add(one, other)\n```");
    let issue = adds_wrongly(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let told = world.model.requests()[1].last_user_message();
    assert!(
        told.contains(
            "\nAn import may be missing:\n- if `operator` in sums.py is that of the standard library, add the line `import operator` to sums.py, and keep its other imports.\n"
        ),
        "{told}"
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
