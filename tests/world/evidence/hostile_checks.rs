//! Checks and set-up commands that harm the container they run in, or spoil what they are compared
//! with.

use serde_json::json;

use super::executes;
use crate::fake::model::Plan;
use crate::world::World;

async fn world() -> World {
    let mut world = World::start().await;
    world.configure(|config| {
        config["planning"] = json!({"verification": {"environment": "fresh"}});
        config["command_executor"]["snapshots"] = json!({ "keep": 0 });
    });
    world
}

fn facts(world: &World, fact: &str) -> usize {
    let journal = world.journal();
    journal.iter().filter(|entry| entry["fact"] == fact).count()
}

#[tokio::test]
async fn a_check_that_kills_its_container_leaves_the_work_as_it_is() {
    let world = world().await;
    let plan = Plan::of(&["greet"])
        .in_environment("python")
        .verified_by("test -f good.txt || kill -9 -1");
    let script = executes(world.model.plans(plan), "echo Hello > greeting.txt").done("Greeted.");
    executes(script, "cat greeting.txt && echo x > good.txt").done("It is good now.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let told = world.model.requests()[3].last_user_message();
    assert!(told.contains("it does not pass yet"), "{told}");
    assert!(
        world.model.requests()[4].last_user_message().contains("Hello"),
        "{}",
        world.story()
    );
    assert_eq!(facts(&world, "environment_started"), 1, "{}", world.story());
    assert_eq!(world.github.pulls()[0].file("greeting.txt").as_deref(), Some("Hello\n"));
    world.finish().await;
}

#[tokio::test]
async fn tests_of_what_was_there_before_that_kill_their_container_excuse_nothing_and_end_nothing() {
    let mut world = world().await;
    world.configure(|config| {
        // For a model that runs nothing, the tests are run before its work as well.
        config["llm"]["edits"] = json!("whole");
        config["llm"]["function_calling"] = json!(false);
        let verification = &mut config["planning"]["verification"];
        verification["max_tries"] = json!(1);
        verification["test_command"] = json!("test -f good.txt || { test -f greeting.txt && exit 1; kill -9 -1; }");
    });
    let plan = Plan::of(&["greet"]).in_environment("python");
    let script = world.model.plans(plan);
    let script = script.says("It greets.\n\ngreeting.txt\n```\nHello\n```");
    script.says("It is good now.\n\ngood.txt\n```\nx\n```");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(facts(&world, "environment_started"), 1, "{}", world.story());
    let told = world.model.requests()[1].first_user_message();
    assert!(!told.contains("fail before the work"), "{told}");
    let pull = &world.github.pulls()[0];
    assert!(!pull.is_draft());
    assert_eq!(pull.file("greeting.txt").as_deref(), Some("Hello\n"));
    world.finish().await;
}

#[tokio::test]
async fn what_cannot_be_deleted_after_a_check_is_no_fault_of_the_work() {
    for environment in ["same", "fresh"] {
        let mut world = world().await;
        world.configure(|config| config["planning"]["verification"]["environment"] = json!(environment));
        // The first try fails, so that the project is brought back for the model and checked again.
        let leaves = "mkdir -p left/in; echo x > left/in/x; chmod 500 left/in left; test -f greeting.txt";
        let plan = Plan::of(&["greet"]).in_environment("python").verified_by(leaves);
        let script = executes(world.model.plans(plan), "echo mine > own.txt").done("Done.");
        executes(script, "echo Hello > greeting.txt").done("Greeted.");
        world.github.open_issue("Greet").label("coding agent");

        let ended = world.run().await;

        assert_eq!(
            ended.stdout,
            "github:acme/widgets#1: done\n",
            "{environment}: {ended:?}\n{}",
            world.story()
        );
        let mut files = world.github.pulls()[0].files();
        files.sort();
        assert_eq!(files, ["README.md", "greeting.txt", "own.txt"], "{environment}");
        world.finish().await;
    }
}

#[tokio::test]
async fn the_model_is_told_which_files_set_up_changed_and_that_it_was_undone() {
    let world = world().await;
    let plan = Plan::of(&["greet"])
        .set_up_by(&["echo rewritten > README.md; echo x > new.txt"])
        .verified_by("true");
    executes(world.model.plans(plan), "echo Hello > greeting.txt").done("Greeted.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let told = world.model.requests()[1].first_user_message();
    let said = "They also changed files of the project, and that was undone, because set-up is no part of the work: `README.md`.";
    assert!(told.contains(said), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn the_limits_of_a_run_hold_for_set_up_in_the_container_for_checks() {
    let mut world = world().await;
    // The plan, a command and the end.
    world.configure(|config| config["max_llm_process_num"] = json!(3));
    let plan = Plan::of(&["greet"])
        .set_up_by(&["echo x > /tmp/installed"])
        .verified_by("cat /tmp/installed");
    executes(world.model.plans(plan), "echo Hello > greeting.txt").done("Greeted.");
    let issue = world.github.open_issue("Greet").label("coding agent");

    world.run().await;

    assert_eq!(issue.labels(), ["coding agent paused"], "{}", world.story());
    assert_eq!(facts(&world, "check_environment_started"), 0, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn set_up_that_the_model_added_makes_no_test_fail_before() {
    let mut world = world().await;
    world.configure(|config| {
        config["planning"]["verification"]["test_command"] = json!("sh test.sh");
    });
    let tests = "if [ -e /opt/venv/spoilt ] || [ -e wrong ]; then echo FAILED; exit 1; fi\n";
    world
        .github
        .default_repository()
        .commit("main", "Test", &[("test.sh", tests)]);
    let plan = Plan::of(&["greet"]).in_environment("python");
    let script = executes(world.model.plans(plan), "echo x > wrong");
    script
        .calls("agent/add_set_up", json!({ "command": "touch /opt/venv/spoilt" }))
        .done("Greeted.")
        .done("It failed before.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
    let pull = &world.github.pulls()[0];
    assert!(
        pull.is_draft() && !pull.text().contains("before the change"),
        "{}",
        pull.text()
    );
    assert_eq!(facts(&world, "verified_before"), 0, "{}", world.story());
    world.finish().await;
}
