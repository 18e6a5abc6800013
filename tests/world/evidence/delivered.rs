//! The checks see exactly what is delivered: the model's own change, and nothing that set-up or
//! checks left in the project.

use serde_json::json;

use super::{executes, plan as any_plan};
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::facts::facts;

/// Rewrites a file of the project, and leaves a folder and a file that the project does not ignore.
const SET_UP: &str =
    "echo rewritten > lock.json; mkdir -p 'made [here]'; echo x > 'made [here]/x.txt'; echo report > report.txt";

/// Leaves the same kinds of things, spoils what the model made, and commits.
const CHECK: &str = "echo again > lock.json; mkdir -p cache; echo x > cache/x; echo spoilt > own.txt; echo other > report.txt; echo x > \
                     'made [here]/y.txt'; git add -A; git commit -qm Checked; test -f greeting.txt";

async fn world(environment: &str) -> World {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({"verification": {"environment": environment}}));
    let repository = world.github.default_repository();
    repository.commit("main", "Lock", &[("lock.json", "locked\n")]);
    world
}

#[tokio::test]
async fn what_set_up_and_checks_leave_behind_is_in_no_commit() {
    for environment in ["same", "fresh"] {
        let world = world(environment).await;
        let plan = Plan::of(&["greet"]).set_up_by(&[SET_UP]).verified_by(CHECK);
        let script = executes(world.model.plans(plan), "git status --porcelain");
        // Some of it is committed by the model, some is not; one lies beside what the set-up made.
        let script = executes(
            script,
            "echo mine > own.txt && git add -A && git commit -qm Mine && echo mine > 'made [here]/mine.txt'",
        );
        // The first try fails, so that the checks run twice.
        let script = script.done("Done.");
        executes(
            script,
            "git status --porcelain; git log --format=%s; echo Hello > greeting.txt",
        )
        .done("Greeted.");
        world.github.open_issue("Greet").label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.code, Some(0), "{environment}: {ended:?}\n{}", world.story());
        let pull = &world.github.pulls()[0];
        let mut files = pull.files();
        files.sort();
        let expected = [
            "README.md",
            "greeting.txt",
            "lock.json",
            "made [here]/mine.txt",
            "own.txt",
        ];
        assert_eq!(files, expected, "{environment}\n{}", world.story());
        assert_eq!(pull.file("lock.json").as_deref(), Some("locked\n"), "{environment}");
        assert_eq!(pull.file("own.txt").as_deref(), Some("mine\n"), "{environment}");
        assert!(!pull.is_draft(), "{environment}\n{}", pull.text());
        // After the checks the model found its work as it had left it.
        let seen = world.model.requests()[5].last_user_message();
        assert!(
            seen.contains("made [here]/") && seen.contains("Mine\\nLock"),
            "{environment}: {seen}"
        );
        assert!(
            !seen.contains("Checked") && !seen.contains("cache"),
            "{environment}: {seen}"
        );
        let fresh = facts(&world, "check_environment_started").len();
        assert_eq!(fresh, if environment == "fresh" { 2 } else { 0 }, "{}", world.story());
        world.finish().await;
    }
}

#[tokio::test]
async fn files_of_the_set_up_are_in_no_commit_whatever_their_names_are() {
    let world = world("same").await;
    // Git puts all but the last in quotes where it lists them by lines.
    let set_up = r#"echo x > 'say "x".txt'; echo x > 'back\slash.txt'; echo x > "$(printf 'tab\there.txt')"; echo x > "$(printf 'line\nbreak.txt')"; echo x > 'space at the end ';"#;
    let plan = Plan::of(&["greet"])
        .set_up_by(&[set_up])
        .verified_by("test -f greeting.txt");
    let script = executes(
        world.model.plans(plan),
        "ls *slash.txt && git status --porcelain && echo mine > 'back\\slash.txt' && echo Hello > greeting.txt",
    );
    script.done("Greeted.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let seen = world.model.requests()[2].last_user_message();
    assert!(seen.contains("slash.txt") && !seen.contains("??"), "{seen}");
    let pull = &world.github.pulls()[0];
    let mut files = pull.files();
    files.sort();
    // A file that the model changed is the model's; git lists it in quotes here, too.
    assert_eq!(
        files,
        [r#""back\\slash.txt""#, "README.md", "greeting.txt", "lock.json"],
        "{}",
        world.story()
    );
    world.finish().await;
}

#[tokio::test]
async fn what_the_model_puts_there_itself_is_delivered() {
    for environment in ["same", "fresh"] {
        let world = world(environment).await;
        let plan = Plan::of(&["greet"]).set_up_by(&[SET_UP]).verified_by(CHECK);
        let script = executes(world.model.plans(plan), "echo mine > own.txt").done("Done.");
        // A repair puts files where a check and the set-up had left some.
        executes(
            script,
            "mkdir cache; echo mine > cache/x; echo mine > report.txt; echo mine > lock.json; echo Hello > greeting.txt",
        )
        .done("Greeted.");
        world.github.open_issue("Greet").label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.code, Some(0), "{environment}: {ended:?}\n{}", world.story());
        let pull = &world.github.pulls()[0];
        for path in ["own.txt", "cache/x", "report.txt", "lock.json"] {
            assert_eq!(pull.file(path).as_deref(), Some("mine\n"), "{environment}: {path}");
        }
        assert_eq!(pull.file("made [here]/x.txt"), None, "{environment}");
        assert!(!pull.is_draft(), "{environment}\n{}", pull.text());
        world.finish().await;
    }
}

#[tokio::test]
async fn a_program_that_the_model_planted_makes_nothing_pass() {
    let world = world("fresh").await;
    let plan = Plan::of(&["greet"])
        .in_environment("python")
        .verified_by("widget-check");
    let plant = "printf '#!/bin/sh\\nexit 0\\n' > /opt/venv/bin/widget-check; chmod +x /opt/venv/bin/widget-check; \
                 for name in bash sh git coding-agent-executor; do cp /opt/venv/bin/widget-check /opt/venv/bin/$name; done; \
                 printf '[alias]\\n[core]\\n\\thooksPath = /tmp\\n' > ~/.gitconfig; echo Hello > greeting.txt";
    let script = executes(world.model.plans(plan), plant).done("Greeted.");
    script.done("It passes here.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
    let told = world.model.requests()[3].last_user_message();
    for words in ["It passes in the container you work in", "tell_program, add_set_up"] {
        assert!(told.contains(words), "{told}\n{}", world.story());
    }
    let pull = &world.github.pulls()[0];
    assert!(pull.is_draft(), "{}", world.story());
    let said = "- ❌ `widget-check` passed only in the container of the work; in a new one it ended with 127";
    assert!(pull.text().contains(said), "{}", pull.text());
    assert_eq!(pull.file("greeting.txt").as_deref(), Some("Hello\n"));
    world.finish().await;
}

#[tokio::test]
async fn a_set_up_command_that_the_model_adds_is_run_and_shown() {
    let world = world("fresh").await;
    let plan = Plan::of(&["greet"])
        .in_environment("python")
        .verified_by("widget-check");
    let install = "cp greeting.txt /opt/venv/bin/widget-check && chmod +x /opt/venv/bin/widget-check";
    let script = executes(
        world.model.plans(plan),
        &format!("printf '#!/bin/sh\\nexit 0\\n' > greeting.txt; {install}"),
    );
    let script = script.done("Greeted.");
    let script = script.calls("agent/add_set_up", json!({ "command": install }));
    script.done("It needs to be installed.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let pull = &world.github.pulls()[0];
    assert!(!pull.is_draft(), "{}\n{}", pull.text(), world.story());
    assert!(pull.text().contains("- ✅ `widget-check` passed"), "{}", pull.text());
    assert!(pull.text().contains(&format!("`{install}`")), "{}", pull.text());
    world.finish().await;
}

#[tokio::test]
async fn a_slow_set_up_is_not_repeated_and_people_are_told() {
    let mut world = world("fresh").await;
    world.configure(|config| {
        config["planning"]["verification"]["fresh_set_up_seconds"] = json!(0);
        config["command_executor"]["snapshots"] = json!({ "keep": 0 });
    });
    let plan = Plan::of(&["greet"])
        .set_up_by(&["echo x > /tmp/installed"])
        .verified_by("cat /tmp/installed");
    executes(world.model.plans(plan), "echo Hello > greeting.txt").done("Greeted.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let pull = &world.github.pulls()[0];
    assert!(!pull.is_draft(), "{}", pull.text());
    let text = pull.text();
    let said = "The checks ran in the container that the work was done in: its set-up took ";
    let (_, seconds) = text.split_once(said).unwrap_or_else(|| panic!("{text}"));
    let (seconds, _) = seconds.split_once(" s").unwrap_or_else(|| panic!("{text}"));
    assert!(seconds.parse::<u32>().is_ok_and(|seconds| seconds > 0), "{text}");
    assert!(
        facts(&world, "check_environment_started").is_empty(),
        "{}",
        world.story()
    );
    world.finish().await;
}

#[tokio::test]
async fn where_nothing_is_checked_no_container_is_started_for_it() {
    let world = world("fresh").await;
    executes(
        world.model.plans(any_plan().in_environment("python")),
        "echo Hello > greeting.txt",
    )
    .done("Greeted.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert!(
        facts(&world, "check_environment_started").is_empty(),
        "{}",
        world.story()
    );
    world.finish().await;
}
