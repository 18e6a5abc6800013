//! A run whose unfinished work is on its branch goes on where no push may be forced: what comes
//! later stands on top of it.

use futures_util::future::join_all;
use regex::Regex;
use serde_json::json;

use super::{COMMAND, HALF_OF_THE_WORK, last_on_github, pauses, plan, world};
use crate::fake::bare::Commit;
use crate::fake::github::Item;
use crate::fake::model::Model;
use crate::world::World;
use crate::world::facts::facts;

const BRANCH: &str = "coding-agent/1-paint-it";
const PUSH: &str = "POST /acme/widgets.git/git-receive-pack";

/// Has the model execute a command, and wait in the middle of the work.
fn works(world: &World, command: &str) {
    world
        .model
        .calls(COMMAND, json!({ "command": command }))
        .calls("agent/finish_subtask", json!({ "id": "task-1" }))
        .holds();
}

/// Has the model go on, and come to an end.
fn dries(world: &World) {
    world
        .model
        .calls(COMMAND, json!({ "command": "echo dry > state.txt" }))
        .done("It is dry.");
}

/// Opens an issue whose run alice has paused after some of the work.
async fn paused_after_work(world: &World) -> Item {
    world.model.plans(plan());
    works(world, HALF_OF_THE_WORK);
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    pauses(world, &issue, program).await;
    let shown = world.github.default_repository().file(BRANCH, "state.txt");
    assert_eq!(shown.as_deref(), Some("wet\n"), "{}", world.story());
    issue
}

fn subjects(commits: &[Commit]) -> Vec<&str> {
    let messages = commits.iter().map(|commit| commit.message.as_str());
    messages
        .map(|message| message.lines().next().unwrap_or_default())
        .collect()
}

/// Expects one pull request with the result, above the commit that was unfinished.
fn expect_the_result(world: &World) {
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", world.story());
    assert_eq!(pulls[0].files(), ["README.md", "color.txt", "state.txt"]);
    assert_eq!(pulls[0].file("state.txt").as_deref(), Some("dry\n"));
    assert_eq!(
        subjects(&pulls[0].commits()),
        ["Paint it", "Work in progress", "Paint it"],
        "{}",
        world.story()
    );
}

#[tokio::test]
async fn a_pull_request_has_the_result_above_its_unfinished_commit() {
    let world = world().await;
    let repository = world.github.default_repository().rejects_forced_pushes();
    let issue = paused_after_work(&world).await;

    dries(&world);
    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    expect_the_result(&world);
    let tip = repository.git().resolve(&format!("refs/heads/{BRANCH}"));
    let pushed = facts(&world, "pushed").pop().unwrap();
    assert_eq!(pushed["commit"].as_str(), tip.as_deref());
    world.finish().await;
}

#[tokio::test]
async fn what_a_reviewer_cites_is_linked_at_the_commit_above_the_unfinished_one() {
    let mut world = world().await;
    let reviewer = Model::start().await;
    let address = reviewer.openai_address();
    world.configure(|config| {
        let critic =
            json!({"provider": "openai", "base_url": address, "model": "scripted", "api_key": "sk-of-a-critic"});
        config["llm"]["models"] = json!({ "critic": critic });
        config["llm"]["roles"] = json!({ "reviewer": "critic" });
        config["review"] = json!({ "result": { "enabled": true, "max_rounds": 1, "on_unready": "draft" } });
    });
    let repository = world.github.default_repository().rejects_forced_pushes();
    let issue = paused_after_work(&world).await;
    dries(&world);
    let blocked = json!({
        "ready_for_implementation": false, "score": 5, "conclusion": "It may be wet.",
        "blockers": [{"claim": "Nobody has touched it", "evidence": ["state.txt:1"]}],
    });
    reviewer.says(&blocked.to_string());
    issue.comment("alice", "/agent resume");
    world.run().await;

    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    expect_the_result(&world);
    let git = repository.git();
    let tip = git.resolve(&format!("refs/heads/{BRANCH}")).unwrap();
    let links = Regex::new("/blob/([0-9a-f]{40})/").unwrap();
    for text in [
        issue.comments_of(world.github.bot()).concat(),
        world.github.pulls()[0].text(),
    ] {
        assert!(text.contains(&format!("/blob/{tip}/state.txt#L1")), "{text}");
        for link in links.captures_iter(&text) {
            assert!(git.resolve(&link[1]).is_some(), "{}: {text}", &link[0]);
        }
    }
    reviewer.finish();
    world.finish().await;
}

#[tokio::test]
async fn a_merge_request_has_the_result_above_what_each_pause_showed() {
    let world = World::on_gitlab().await.attentive();
    world.model.allows_restarts();
    let project = world.gitlab.default_project().rejects_forced_pushes();
    world.model.plans(plan());
    works(&world, HALF_OF_THE_WORK);
    let issue = world.gitlab.open_issue("Paint it").label("coding agent");
    for (pause, shown) in [(1, "wet\n"), (2, "damp\n")] {
        let program = world.spawn(&["run"]);
        world.model.until_held(pause).await;
        issue.comment("alice", "/agent pause");
        let ended = program.ended().await;
        ended.prints("gitlab:acme/widgets#1: paused\n", &world);
        let found = project.file(BRANCH, "state.txt");
        assert_eq!(found.as_deref(), Some(shown), "{}", world.story());
        if pause == 1 {
            works(&world, "echo damp > state.txt");
        } else {
            dries(&world);
        }
        issue.comment("alice", "/agent resume");
    }

    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets#1: done\n", &world);
    let merges = world.gitlab.merge_requests();
    assert_eq!(merges.len(), 1, "{}", world.story());
    assert_eq!(merges[0].files(), ["README.md", "color.txt", "state.txt"]);
    assert_eq!(merges[0].file("state.txt").as_deref(), Some("dry\n"));
    assert_eq!(
        subjects(&merges[0].commits()),
        ["Paint it", "Work in progress", "Work in progress", "Paint it"],
        "{}",
        world.story()
    );
    world.finish().await;
}

#[tokio::test]
async fn the_work_of_a_run_that_is_stopped_stands_above_what_was_shown_of_it() {
    let world = world().await;
    let repository = world.github.default_repository();
    repository.git().deny_non_fast_forwards();
    let issue = paused_after_work(&world).await;
    works(&world, "echo dry > state.txt");
    issue.comment("alice", "/agent resume");
    let program = world.spawn(&["run"]);
    world.model.until_held(2).await;

    issue.comment("alice", "/agent stop");
    let ended = program.ended().await;

    ended.prints("github:acme/widgets#1: stopped\n", &world);
    let found = repository.file(BRANCH, "state.txt");
    assert_eq!(found.as_deref(), Some("dry\n"), "{}", world.story());
    assert_eq!(repository.branches(), [BRANCH, "main"]);
    let told = last_on_github(&world, &issue);
    assert!(
        told.contains("The work so far is on the branch `coding-agent/1-paint-it`."),
        "{told}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_kill_around_the_pushes_of_the_result_changes_nothing() {
    // After the claim on the item come the push that is refused, and the one that is not.
    join_all([(1, true), (2, false), (2, true)].map(|(spared, is_done)| killed(spared, is_done))).await;
}

/// Kills the program at a push of the result, before or after the forge has done it.
async fn killed(spared: usize, is_done: bool) {
    let world = world().await;
    world.github.default_repository().rejects_forced_pushes();
    let issue = paused_after_work(&world).await;
    dries(&world);
    world.github.hangs(PUSH, spared, is_done);
    issue.comment("alice", "/agent resume");
    let program = world.spawn(&["run"]);
    world.github.until_one_hangs().await;
    program.kill().await;
    world.github.cuts_off();

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    expect_the_result(&world);
    world.finish().await;
}
