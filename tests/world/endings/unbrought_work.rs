//! The work of a run that ends at a moment at which it cannot be brought to the forge, or that nobody
//! works on: people find it on a branch later, or are told where it is.

use std::path::{Path, PathBuf};
use std::process::Command;

use chrono::{TimeDelta, Utc};
use regex::Regex;
use serde_json::json;

use super::{greeting, greets, plan, writes};
use crate::fake::fault::{Disturbance, Fault};
use crate::fake::github::Item;
use crate::world::{Program, World};

/// All that git asks of the repository.
const GIT: &str = "/acme/widgets.git/**";

/// Has the model write a file, and think about what comes next.
async fn has_written(world: &World) -> (Item, Program) {
    let script = writes(world.model.plans(plan()), "README.md", "Hello\n");
    script.done("This is never heard.").holds();
    let issue = greeting(world);
    let mut running = world.spawn(&["run"]);
    running.until(world, world.model.until_held(1)).await;
    (issue, running)
}

/// Stops a run while git does not answer and the API does, and expects that its end waits.
async fn stopped_while_git_is_down(world: &World) -> Item {
    let (issue, running) = has_written(world).await;
    world.github.disturb(Disturbance::of(GIT, Fault::Fails(503)).always());
    issue.comment("alice", "/agent stop");
    waits(world, &issue, running).await;
    issue
}

async fn waits(world: &World, issue: &Item, running: Program) {
    let ended = running.ended().await;
    assert!(ended.stdout.contains("put back until"), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent paused"], "{}", world.story());
    let told = issue.comments_of(world.github.bot());
    assert_eq!(told.len(), 1, "{}", issue.timeline());
    for words in ["The work of the run cannot be brought here yet", "The run has ended."] {
        assert!(told[0].contains(words), "{}", told[0]);
    }
    assert_eq!(world.containers().await, [""; 0]);
}

/// Makes the last attempt due, after a day of them.
async fn a_day_passes(world: &World) {
    let yesterday = Utc::now() - TimeDelta::hours(24);
    world
        .rewrite_records(|record| record["waiting"]["failing"]["since"] = json!(yesterday))
        .await;
    world.make_everything_due().await;
}

/// Makes an attempt due that was due before a weekend in which the program was off.
async fn a_weekend_passes(world: &World) {
    let friday = Utc::now() - TimeDelta::hours(60);
    world
        .rewrite_records(|record| record["waiting"]["failing"] = json!({ "since": friday, "next": friday }))
        .await;
    world.make_everything_due().await;
}

/// Runs the program once more, and expects that it ends the run as stopped.
async fn is_stopped(world: &World) {
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: stopped\n", world);
}

fn expect_the_work_on_a_branch(world: &World, issue: &Item) {
    assert_eq!(issue.labels(), ["coding agent stopped"], "{}", world.story());
    let repository = world.github.default_repository();
    let saved = repository.file("coding-agent/1-greet-the-reader", "README.md");
    assert_eq!(saved.as_deref(), Some("Hello\n"), "{}", world.story());
    let last = issue.comments_of(world.github.bot()).pop().unwrap();
    assert!(
        last.contains("The work so far is on the branch `coding-agent/1-greet-the-reader`."),
        "{last}"
    );
}

/// Expects that people are told of a file, and that the command they are told brings the work.
fn expect_the_work_in_a_file(world: &World, issue: &Item) {
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    let last = issue.comments_of(world.github.bot()).pop().unwrap();
    for words in [
        "The work so far could not be brought to this repository: ",
        "it was tried again and again for 24 hours",
    ] {
        assert!(last.contains(words), "{last}");
    }
    expect_the_work_by_the_command_of(&last, world);
}

/// Expects that the command that people are told brings the work.
fn expect_the_work_by_the_command_of(last: &str, world: &World) {
    let command = Regex::new("with its whole path, `git fetch (\\S+) (\\S+)` brings it into a clone").unwrap();
    let told = command.captures(last).unwrap_or_else(|| panic!("{last}"));
    let bundle = world.folder().join("logs").join(&told[1]);
    let clone = tempfile::tempdir().unwrap();
    let origin = world.github.default_repository().git();
    git(clone.path(), &["clone", "-q", origin.path().to_str().unwrap(), "."]);
    git(clone.path(), &["fetch", "-q", bundle.to_str().unwrap(), &told[2]]);
    assert_eq!(git(clone.path(), &["show", "FETCH_HEAD:README.md"]), "Hello\n");
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.arg("-C").arg(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn an_end_waits_for_git_while_the_api_answers() {
    let world = World::start().await.attentive();
    let issue = stopped_while_git_is_down(&world).await;

    world.github.is_well_again();
    world.make_everything_due().await;
    is_stopped(&world).await;

    expect_the_work_on_a_branch(&world, &issue);
    world.model.release();
    world.finish().await;
}

#[tokio::test]
async fn the_end_of_a_run_whose_label_was_taken_off_waits_for_git_and_says_so() {
    let world = World::start().await;
    let (issue, running) = has_written(&world).await;
    world.github.disturb(Disturbance::of(GIT, Fault::Fails(503)).always());
    issue.unlabel("coding agent processing");
    world.model.release();
    waits(&world, &issue, running).await;

    world.github.is_well_again();
    world.make_everything_due().await;
    is_stopped(&world).await;

    expect_the_work_on_a_branch(&world, &issue);
    world.finish().await;
}

#[tokio::test]
async fn an_end_waits_for_a_day_and_then_tells_which_file_has_the_work() {
    let world = World::start().await.attentive();
    let issue = stopped_while_git_is_down(&world).await;

    a_weekend_passes(&world).await;
    let ended = world.run().await;
    assert!(ended.stdout.contains("put back until"), "{ended:?}\n{}", world.story());

    a_day_passes(&world).await;
    is_stopped(&world).await;

    assert_eq!(issue.labels(), ["coding agent stopped"], "{}", world.story());
    expect_the_work_in_a_file(&world, &issue);
    world.model.release();
    world.finish().await;
}

#[tokio::test]
async fn another_machine_that_cannot_fetch_has_the_work_in_a_file_too() {
    let world = World::start().await;
    let script = writes(world.model.plans(plan()), "README.md", "Hello\n");
    script.refuses("the account is closed").holds();
    let issue = greeting(&world);
    let mut running = world.spawn(&["run"]);
    running.until(&world, world.model.until_held(1)).await;
    world.github.disturb(Disturbance::of(GIT, Fault::Fails(503)).always());
    world.model.release();
    waits(&world, &issue, running).await;
    // As on another machine, which only has the store.
    std::fs::remove_dir_all(world.state_dir().join("mirrors")).unwrap();

    a_day_passes(&world).await;
    let ended = world.run().await;

    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), "github:acme/widgets#1: failed\n"),
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent failed"], "{}", world.story());
    expect_the_work_in_a_file(&world, &issue);
    world.finish().await;
}

#[tokio::test]
async fn the_file_is_written_where_the_program_is_started_in_the_folder_of_its_configuration() {
    let world = World::start().await;
    greets(world.model.plans(plan()));
    let repository = world.github.default_repository();
    repository.rejects_pushes_to("coding-agent/1-greet-the-reader");
    let issue = greeting(&world);

    let ended = world.spawn_in_its_folder(&["run"]).ended().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    let last = issue.comments_of(world.github.bot()).pop().unwrap();
    expect_the_work_by_the_command_of(&last, &world);
    world.finish().await;
}

/// Returns the mirror of the repository.
fn mirror(world: &World) -> PathBuf {
    let mut find = Command::new("find");
    find.arg(world.state_dir().join("mirrors")).args(["-path", "*/info/id"]);
    let found = String::from_utf8(find.output().unwrap().stdout).unwrap();
    assert_eq!(found.lines().count(), 1, "{found}");
    Path::new(found.trim()).ancestors().nth(2).unwrap().to_owned()
}

#[tokio::test]
async fn a_machine_that_has_earlier_work_alone_puts_that_of_the_store_into_the_file() {
    let world = World::start().await.attentive();
    let issue = stopped_while_git_is_down(&world).await;
    // As on a machine that had the run before another one.
    let mirror = mirror(&world);
    std::fs::write(mirror.join("info").join("id"), "another").unwrap();
    let names = git(&mirror, &["for-each-ref", "--format=%(refname)", "refs/coding-agent/"]);
    let is_work = |name: &&str| name.ends_with("/accepted") || name.ends_with("/wip");
    let work: Vec<_> = names.lines().filter(is_work).collect();
    let accepted = work.iter().find(|name| name.ends_with("/accepted")).unwrap();
    let who = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    let (tree, parent) = (format!("{accepted}^^{{tree}}"), format!("{accepted}^"));
    let commit = ["commit-tree", tree.as_str(), "-p", parent.as_str(), "-m", "Earlier"];
    let earlier = git(&mirror, &[&who[..], &commit[..]].concat());
    for name in work {
        git(&mirror, &["update-ref", name, earlier.trim()]);
    }

    a_day_passes(&world).await;
    is_stopped(&world).await;

    expect_the_work_in_a_file(&world, &issue);
    world.model.release();
    world.finish().await;
}

#[tokio::test]
async fn the_work_of_a_run_that_is_stopped_between_two_processes_is_on_a_branch() {
    for is_killed in [false, true] {
        let world = World::start().await.attentive();
        world.model.allows_restarts();
        let (issue, running) = has_written(&world).await;
        if is_killed {
            // What the model has written is in the container alone.
            running.kill().await;
        } else {
            running.signal("TERM");
            let ended = running.ended().await;
            let interrupted = "github:acme/widgets#1: interrupted\n";
            ended.prints(interrupted, &world);
        }
        issue.comment("alice", "/agent stop");

        is_stopped(&world).await;

        expect_the_work_on_a_branch(&world, &issue);
        world.model.release();
        world.finish().await;
    }
}
