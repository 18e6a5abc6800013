//! The project's own tests are run, whether the plan names them or not.

use insta::assert_snapshot;
use serde_json::json;

use super::{ADD, PROJECT, TEST, executes, node, plan, writes};
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::normalized::told;
use crate::world::processes::{self, mark};

#[tokio::test]
async fn a_test_that_the_model_breaks_it_is_told_of_with_its_place_and_mends() {
    let world = node().await;
    world.github.default_repository().commit("main", "Add", &PROJECT);
    let script = writes(
        world.model.plans(plan()),
        "add.mjs",
        &ADD.replace("one + other", "one - other"),
    );
    let script = script.done("It adds faster now.");
    writes(script, "add.mjs", &ADD.replace("one + other", "other + one")).done("It adds as it should.");
    let issue = world.github.open_issue("Add faster").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let digest = world.model.requests()[3].last_user_message();
    let head: Vec<&str> = digest.lines().take(7).collect();
    assert_snapshot!(head.join("\n"), @"
    The program checked the result, and it does not pass yet:

    $ npm test
    [exit code 1, expected 0]
    First failures:
    - test/add.test.mjs:5 adds: Expected values to be strictly equal:
    The end of the output:
    ");
    // Of a small project it was shown all files.
    assert!(!digest.contains("What the tests expect there"), "{digest}");
    let pull = &world.github.pulls()[0];
    assert!(!pull.is_draft(), "{}", world.story());
    assert_snapshot!(told(&world, &pull.text()), @"
    It adds as it should.

    **How it was verified**

    - ✅ `npm test` passed

    Closes #1

    <sub>5 model turns · TOKENS · TIME · run `RUN`</sub>
    ");
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn the_lines_of_a_test_that_was_not_shown_are_in_the_report() {
    let world = node().await;
    let guides: Vec<(String, String)> = (1..=12)
        .map(|number| (format!("docs/{number}.md"), format!("Guide {number}.\n")))
        .collect();
    let guides = guides.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let files: Vec<(&str, &str)> = PROJECT.into_iter().chain(guides).collect();
    world.github.default_repository().commit("main", "Add", &files);
    let script = writes(
        world.model.plans(plan()),
        "add.mjs",
        &ADD.replace("one + other", "one - other"),
    );
    writes(script.done("It adds faster now."), "add.mjs", ADD).done("It adds as it did.");
    let issue = world.github.open_issue("Add faster").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let digest = world.model.requests()[3].last_user_message();
    let (_, lines) = digest.split_once("\nWhat the tests expect there:\n\n").unwrap();
    assert!(
        lines.starts_with("test/add.test.mjs, lines 5 to 7, ")
            && lines.contains(">\ntest('adds', () => {\n  assert.strictEqual(add(1, 2), 3);\n});\n</data-")
            && lines.ends_with("Fix it, then finish again. Do not weaken the checks."),
        "{digest}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_test_that_failed_before_the_change_is_said_and_stops_nothing() {
    let mut world = World::on_gitlab().await;
    world.configure(|config| {
        config["planning"] = json!({"verification": {"test_command": "python -m unittest -v"}});
    });
    let tests = "import unittest\n\nclass Widgets(unittest.TestCase):\n    def test_old(self):\n        self.assertEqual(1, 2)\n\n    \
                 def test_new(self):\n        open('greeting.txt').close()\n";
    world
        .gitlab
        .default_project()
        .commit("main", "Add", &[("test_widgets.py", tests), ("greeting.txt", "Hi\n")]);
    let script = world.model.plans(Plan::of(&["greet"]).in_environment("python"));
    // First it breaks a second test, which is its own fault; and what it has not committed must
    // come back.
    let script = executes(
        script,
        "rm greeting.txt && echo Hello > README.md && echo kept > untracked.txt",
    )
    .done("Greeted.");
    executes(script, "echo Hello > greeting.txt")
        .done("The greeting is back.")
        .done("Greeted, and the greeting is back.");
    let issue = world.gitlab.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets#1: done\n", &world);
    let digest = world.model.requests()[3].last_user_message();
    let head: Vec<&str> = digest.lines().take(7).collect();
    assert_snapshot!(head.join("\n"), @"
    The program checked the result, and it does not pass yet:

    $ python -m unittest -v
    [exit code 1, expected 0]
    First failures:
    - test_widgets.py:8 test_new (test_widgets.Widgets.test_new): FileNotFoundError: [Errno 2] No such file or directory: 'greeting.txt'
    What else fails (1) failed before your change already.
    ");
    let asked = world.model.requests()[5].last_user_message();
    assert!(
        asked.starts_with(
            "These checks failed before you changed anything, and still fail:\n\n$ python -m unittest -v\n"
        ) && asked.ends_with("If none belongs to the task, finish again; they are named in the pull request."),
        "{asked}"
    );
    let merge = &world.gitlab.merge_requests()[0];
    assert!(!merge.is_draft(), "{}", world.story());
    let text = told(&world, &merge.text());
    let (how, said) = text.split_once("<details>").unwrap();
    assert_snapshot!(how, @"
    Greeted, and the greeting is back.

    **How it was verified**

    - ⚠️ `python -m unittest -v` ended with 1, as it did before the change
    ");
    assert!(
        said.contains("FAIL: test_old") && !said.contains("FAIL: test_new"),
        "{said}"
    );
    for (path, content) in [
        ("README.md", "Hello\n"),
        ("untracked.txt", "kept\n"),
        ("greeting.txt", "Hello\n"),
    ] {
        assert_eq!(merge.file(path).as_deref(), Some(content), "{path}");
    }
    let before = world
        .journal()
        .into_iter()
        .filter(|entry| entry["fact"] == "verified_before")
        .count();
    assert_eq!(before, 1, "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn finished_work_does_not_fail_because_no_reply_about_old_failures_can_be_read() {
    let outcomes = [(false, "done"), (true, "failed: unreadable replies")];
    for (goes_on, outcome) in outcomes {
        let mut world = World::on_gitlab().await;
        world.configure(|config| {
            config["planning"] = json!({"verification": {"test_command": "python -m unittest -v"}});
        });
        let tests = "import unittest\n\nclass Widgets(unittest.TestCase):\n    def test_old(self):\n        self.assertEqual(1, 2)\n";
        world
            .gitlab
            .default_project()
            .commit("main", "Add", &[("test_widgets.py", tests)]);
        let plan = Plan::of(&["greet"])
            .in_environment("python")
            .verified_by("grep -q Hello README.md");
        let mut script = executes(world.model.plans(plan), "echo Hello > README.md").done("Greeted.");
        if goes_on {
            // What it has begun then is not finished.
            script = executes(script, "echo half > half.txt");
        }
        for _ in 0..6 {
            script = script.says("That test has nothing to do with the greeting.");
        }
        let issue = world.gitlab.open_issue("Greet").label("coding agent");

        let ended = world.run().await;

        ended.prints(&format!("gitlab:acme/widgets#1: {outcome}\n"), &world);
        assert_eq!(world.model.requests().len(), 9 + usize::from(goes_on));
        if !goes_on {
            assert_eq!(issue.labels(), ["coding agent done"]);
            let merge = &world.gitlab.merge_requests()[0];
            assert!(!merge.is_draft(), "{}", world.story());
            let text = merge.text();
            assert!(
                text.contains("Greeted.")
                    && text.contains("- ✅ `grep -q Hello README.md` passed")
                    && text.contains("- ⚠️ `python -m unittest -v` ended with 1, as it did before the change"),
                "{text}"
            );
        }
        world.finish().await;
    }
}

#[tokio::test]
async fn what_runs_the_tests_and_is_not_there_is_said_and_stops_nothing() {
    let world = World::start().await;
    let files = [("Cargo.toml", "[package]\n"), ("tests/test_a.py", "import pytest\n")];
    world.github.default_repository().commit("main", "Add", &files);
    let script = world.model.plans(
        Plan::of(&["greet"])
            .in_environment("python")
            .verified_by("grep -q Hello README.md"),
    );
    executes(script, "echo Hello > README.md").done("Greeted.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let pull = &world.github.pulls()[0];
    assert!(!pull.is_draft(), "{}", world.story());
    assert_snapshot!(told(&world, &pull.text()), @"
    Greeted.

    **How it was verified**

    - ✅ `grep -q Hello README.md` passed
    - ⚠️ `cargo test` could not be started here (it ended with 127), so it tested nothing
    - ⚠️ `python -m pytest -q` could not be started here (it ended with 1), so it tested nothing

    Closes #1

    <sub>3 model turns · TOKENS · TIME · run `RUN`</sub>
    ");
    world.finish().await;
}

#[tokio::test]
async fn tests_that_are_named_and_cannot_be_run_are_no_pass() {
    let world = World::start().await;
    let plan = Plan::of(&["greet"])
        .in_environment("python")
        .with("test_command", json!("no-such-runner --all"));
    executes(world.model.plans(plan), "echo Hello > README.md")
        .done("Greeted.")
        .done("There is no such runner.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
    let pull = &world.github.pulls()[0];
    assert!(pull.is_draft(), "{}", world.story());
    assert!(
        pull.text()
            .contains("- ❌ `no-such-runner --all` ended with 127 instead of 0"),
        "{}",
        pull.text()
    );
    world.finish().await;
}

#[tokio::test]
async fn a_process_that_is_killed_while_the_work_is_set_aside_loses_nothing() {
    let mut world = World::start().await;
    world.model.repeats_answers();
    let nap = format!("8.{}", mark().replace('.', ""));
    // Fails before and after; the nap before is the one to be killed in.
    let command = format!("test -f greeting.txt || sleep {nap}; echo 'a.py:1: broken'; exit 1");
    world.configure(|config| config["planning"] = json!({"verification": {"test_command": command}}));
    let plan = Plan::of(&["greet"])
        .in_environment("python")
        .verified_by("echo checked >> /tmp/checked");
    let script = world.model.plans(plan);
    let script = executes(
        script,
        "echo staged > staged.txt && git add staged.txt && echo Hello > greeting.txt",
    );
    script.done("Greeted.").done("It is no test of the greeting.");
    world.github.open_issue("Greet").label("coding agent");

    let program = world.spawn(&["run"]);
    processes::until_some(&nap).await;
    program.kill().await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let pull = &world.github.pulls()[0];
    assert_eq!(
        pull.file("greeting.txt").as_deref(),
        Some("Hello\n"),
        "{}",
        world.story()
    );
    assert_eq!(pull.file("staged.txt").as_deref(), Some("staged\n"));
    assert!(!pull.is_draft(), "{}", pull.text());
    // The check that had passed was not run again.
    let facts = |command: &str| {
        let is_so = |entry: &serde_json::Value| entry["fact"] == "verified" && entry["command"] == command;
        world.journal().iter().filter(|entry| is_so(entry)).count()
    };
    assert_eq!(facts("echo checked >> /tmp/checked"), 1, "{}", world.story());
    assert_eq!(world.model.requests().len(), 4);
    world.finish().await;
}

#[tokio::test]
async fn a_new_project_is_tested_by_what_the_model_wrote() {
    let world = node().await;
    let script = world.model.plans(plan());
    let script = PROJECT
        .iter()
        .fold(script, |script, (path, content)| writes(script, path, content));
    script.done("There are widgets now.");
    world.github.open_issue("Begin").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let text = world.github.pulls()[0].text();
    assert!(text.contains("- ✅ `npm test` passed"), "{text}");
    assert_eq!(TEST.lines().count(), 7);
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_wrote_the_first_tests_and_cannot_install_a_runner_hears_how_they_are_run() {
    let world = World::start().await;
    let script = world.model.plans(Plan::of(&["test"]).in_environment("python"));
    let tests = "import unittest\n\nclass Reader(unittest.TestCase):\n    def test_it(self):\n        \
                 open('README.md').close()\n";
    let script = writes(script, "test_reader.py", tests);
    let install =
        "pip install --retries 0 --disable-pip-version-check --index-url https://packages.example/simple pytest";
    executes(script, install).done("The README is tested.");
    world.github.open_issue("Test the README").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let told = world.model.requests()[3].last_user_message();
    assert!(
        told.ends_with("The project's tests are run with `python3 -m unittest discover -q`, where that is installed."),
        "{told}"
    );
    let text = world.github.pulls()[0].text();
    assert!(text.contains("- ✅ `python3 -m unittest discover -q` passed"), "{text}");
    world.finish().await;
}
