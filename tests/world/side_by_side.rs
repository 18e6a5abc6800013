//! Several processes on one state folder, several runs at once, and people who change labels
//! meanwhile.

use std::collections::BTreeMap;

use serde_json::json;

use crate::fake::github::Item;
use crate::fake::model::{Answer, Model, Plan, Request, Said};
use crate::world::World;

/// Has the model write one file, named after the issue.
fn write_one_file(request: &Request) -> Answer {
    let turns = request
        .messages
        .iter()
        .filter(|said| matches!(said, Said::Assistant(..)))
        .count();
    if turns > 0 {
        return Answer::done("Written.");
    }
    let task = request.first_user_message();
    let number = task
        .split('#')
        .nth(1)
        .and_then(|rest| rest.split(':').next())
        .unwrap_or("none");
    let args = json!({ "path": format!("{number}.txt"), "content": number, "mode": "create" });
    Answer::calls("workspace/write_file", args)
}

/// A world whose model writes one file for each issue, with this many issues.
async fn world_with_issues(count: usize, consumers: usize) -> (World, Vec<Item>) {
    let mut world = World::with(Model::answering(write_one_file).await).await;
    world.configure(|config| {
        config["consumers"] = json!(consumers);
        config["planning"] = json!({ "enabled": false });
    });
    let issues = (0..count)
        .map(|_| world.github.open_issue("Write").label("coding agent"))
        .collect();
    (world, issues)
}

fn expect_each_once(world: &World, issues: &[Item]) {
    for issue in issues {
        let number = issue.number();
        assert_eq!(issue.labels(), ["coding agent done"], "{}", issue.timeline());
        let pulls: Vec<_> = world
            .github
            .pulls()
            .into_iter()
            .filter(|pull| pull.mentions(issue))
            .collect();
        assert_eq!(pulls.len(), 1, "{}", issue.timeline());
        assert_eq!(pulls[0].file(&format!("{number}.txt")), Some(number.to_string()));
        assert_eq!(pulls[0].commits().len(), 1, "{}", issue.timeline());
        assert_eq!(issue.comments().len(), 2, "{}", issue.timeline());
    }
    let mut claims = BTreeMap::new();
    for entry in world.journal().iter().filter(|entry| entry["fact"] == "claimed") {
        *claims.entry(entry["task"].to_string()).or_insert(0) += 1;
    }
    assert_eq!(claims.len(), issues.len(), "{claims:?}");
    assert!(claims.values().all(|count| *count == 1), "{claims:?}");
}

async fn until_all_are_done(world: &World, issues: &[Item]) {
    for issue in issues {
        issue.until(|issue| issue.labels() == ["coding agent done"]).await;
    }
    // The label is set a moment before the end is saved.
    let is_put_down = |entry: &&serde_json::Value| entry["fact"] == "put_down";
    world
        .until("all runs to end", || {
            world.journal().iter().filter(is_put_down).count() == issues.len()
        })
        .await;
}

#[tokio::test]
async fn a_second_run_on_one_state_folder_ends_at_once_and_says_so_in_the_log() {
    let world = World::start().await;
    world
        .model
        .plans(Plan::of(&["nothing"]).in_environment("python"))
        .holds()
        .done("Nothing had to be done.")
        .done("Nothing had to be done.");
    let issue = world.github.open_issue("Do nothing").label("coding agent");

    let first = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let second = world.run().await;
    world.model.release();
    let first = first.ended().await;

    let expected = format!(
        "another run is active on {}; nothing was done",
        world.state_dir().display()
    );
    // What cron's job prints, cron mails.
    assert_eq!((second.code, second.stdout + &second.stderr), (Some(0), String::new()));
    assert!(world.story().contains(&expected), "{}", world.story());
    assert_eq!(first.stdout, "github:acme/widgets#1: done\n", "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn two_services_share_twenty_issues() {
    let (world, issues) = world_with_issues(20, 2).await;

    let services = [world.spawn(&["serve"]), world.spawn(&["serve"])];
    until_all_are_done(&world, &issues).await;
    for service in services {
        service.signal("TERM");
        assert_eq!(service.ended().await.code, Some(0));
    }

    expect_each_once(&world, &issues);
    world.finish().await;
}

#[tokio::test]
async fn one_process_finds_and_another_works() {
    let (world, issues) = world_with_issues(2, 2).await;

    let finder = world.spawn(&["produce"]);
    for issue in &issues {
        issue.until(|issue| issue.labels() == ["coding agent processing"]).await;
    }
    let worker = world.spawn(&["consume"]);
    until_all_are_done(&world, &issues).await;
    for program in [finder, worker] {
        program.signal("TERM");
        assert_eq!(program.ended().await.code, Some(0));
    }

    expect_each_once(&world, &issues);
    world.finish().await;
}

#[tokio::test]
async fn five_consumers_work_on_eight_issues_at_once() {
    let (world, issues) = world_with_issues(8, 5).await;

    let ended = world.run().await;

    let all: Vec<String> = (1..=8)
        .map(|number| format!("github:acme/widgets#{number}: done"))
        .collect();
    assert_eq!(ended.outcomes(), all, "{ended:?}\n{}", world.story());
    expect_each_once(&world, &issues);
    world.finish().await;
}

#[tokio::test]
async fn a_trigger_that_is_put_on_again_during_the_run_starts_no_second_one() {
    for command in ["run", "serve"] {
        let world = World::start().await;
        world
            .model
            .plans(Plan::of(&["write"]).in_environment("python"))
            .calls(
                "workspace/write_file",
                json!({"path": "1.txt", "content": "1", "mode": "create"}),
            )
            .holds()
            .done("Written.");
        let issue = world.github.open_issue("Write").label("coding agent");

        let program = world.spawn(&[command]);
        world.model.until_held(1).await;
        issue.label("coding agent").unlabel("coding agent processing");
        if command == "serve" {
            issue.until(|issue| issue.labels() == ["coding agent processing"]).await;
        }
        world.model.release();
        until_all_are_done(&world, std::slice::from_ref(&issue)).await;
        if command == "serve" {
            program.signal("TERM");
        }
        assert_eq!(program.ended().await.code, Some(0), "{}", world.story());

        assert_eq!(world.github.pulls().len(), 1);
        assert_eq!(world.run().await.stdout, "");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_trigger_that_crosses_the_end_of_the_run_starts_another_one() {
    let world = World::start().await;
    let plan = Plan::of(&["look"]).in_environment("python");
    world
        .model
        .plans(plan.clone())
        .done("Looked.")
        .holds()
        .done("Looked.")
        .plans(plan)
        .done("Looked again.")
        .done("Looked again.");
    let issue = world.github.open_issue("Look").label("coding agent");

    let programs = [world.spawn(&["produce"]), world.spawn(&["consume"])];
    world.model.until_held(1).await;
    world.github.hangs("POST /repos/*/*/issues/*/labels", 0, false);
    issue.label("coding agent");
    world.github.until_one_hangs().await;
    world.model.release();
    until_all_are_done(&world, std::slice::from_ref(&issue)).await;
    world.github.cuts_off();

    let ends = |world: &World| world.journal().iter().filter(|entry| entry["ending"] == "done").count();
    world.until("the second end", || ends(&world) == 2).await;
    for program in programs {
        program.signal("TERM");
        assert_eq!(program.ended().await.code, Some(0));
    }
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn taking_the_processing_label_off_stops_the_run() {
    let world = World::start().await;
    world
        .model
        .plans(Plan::of(&["write"]).in_environment("python"))
        .calls(
            "workspace/write_file",
            json!({"path": "1.txt", "content": "1", "mode": "create"}),
        )
        .done("Written.")
        .holds();
    let issue = world.github.open_issue("Write").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    issue.unlabel("coding agent processing");
    world.model.release();
    let ended = program.ended().await;

    assert_eq!(ended.stdout, "github:acme/widgets#1: stopped\n", "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent stopped"]);
    assert!(world.github.pulls().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn an_issue_that_is_triggered_again_goes_on_with_its_open_pull_request() {
    let world = World::start().await;
    for word in ["first", "second", "third"] {
        world
            .model
            .plans(Plan::of(&["write"]).in_environment("python"))
            .calls(
                "workspace/execute_command",
                json!({ "command": format!("ls; echo {word} > {word}.txt") }),
            )
            .done("Written.");
    }
    let issue = world.github.open_issue("Write").label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );

    issue.comment("alice", "One more, please.").label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );

    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", world.story());
    assert_eq!(pulls[0].files(), ["README.md", "first.txt", "second.txt"]);
    assert_eq!(issue.labels(), ["coding agent done"]);
    let last_word = issue.comments().last().unwrap().body.clone();
    assert!(last_word.contains("/acme/widgets/pull/2"), "{last_word}");

    pulls[0].close();
    issue.label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );

    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 2, "{}", world.story());
    assert_eq!(pulls[1].head(), "coding-agent/1-write-2");
    assert_eq!(pulls[1].files(), ["README.md", "third.txt"]);
    world.finish().await;
}
