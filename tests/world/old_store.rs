//! A store that the program of version 0.1.0 wrote is read by this one, and each of its runs, one
//! in every state, comes to its end.
//!
//! `tests/data/store-0.1.0.sql` is what that program left. What lies outside of the store (the
//! item, its comments, the mirror, the container) is made anew: this program is led to the same
//! place, and its store is then exchanged for the old one.

use std::path::PathBuf;
use std::process::Command;

use chrono::Utc;
use futures_util::future::join_all;
use serde_json::json;
use sqlx::{AssertSqlSafe, SqlitePool};

use crate::fake::github::Item;
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::processes::{self, mark};
use crate::world::scripts::COMMAND;

const OLD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/store-0.1.0.sql");
/// Replies without a plan that end a run.
const FAILS: usize = 6;
const WORK: &str = "echo one > one.txt && git add one.txt && git commit -q -m 'Say one' && echo two > two.txt";

/// Where a run was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Queued,
    Planning,
    Preparing,
    Working,
    AwaitingAnswer,
    Verifying,
    AwaitingApproval,
    Delivering,
    PausedPlanning,
    PausedPreparing,
    PausedWorking,
    PausedVerifying,
    PausedDelivering,
    Done,
    Stopped,
    Failed,
}

impl Left {
    fn is_paused(self) -> bool {
        matches!(
            self,
            Self::PausedPlanning
                | Self::PausedPreparing
                | Self::PausedWorking
                | Self::PausedVerifying
                | Self::PausedDelivering
        )
    }
}

#[tokio::test]
async fn runs_that_have_just_begun_are_finished() {
    finish_all(&[Left::Queued, Left::Planning, Left::Preparing]).await;
}

#[tokio::test]
async fn runs_at_work_are_finished() {
    finish_all(&[Left::Working, Left::Verifying, Left::Delivering]).await;
}

#[tokio::test]
async fn runs_that_wait_for_people_are_finished() {
    finish_all(&[Left::AwaitingAnswer, Left::AwaitingApproval]).await;
}

#[tokio::test]
async fn runs_that_were_paused_are_finished() {
    finish_all(&[Left::PausedPlanning, Left::PausedPreparing, Left::PausedWorking]).await;
}

#[tokio::test]
async fn runs_that_were_paused_over_a_result_are_finished() {
    finish_all(&[Left::PausedVerifying, Left::PausedDelivering]).await;
}

#[tokio::test]
async fn runs_that_are_over_are_known_to_the_next() {
    finish_all(&[Left::Done, Left::Stopped, Left::Failed]).await;
}

async fn finish_all(lefts: &[Left]) {
    join_all(lefts.iter().map(|left| finish(*left))).await;
}

async fn finish(left: Left) {
    let mut world = World::start().await;
    world.configure(|config| config["steering"] = json!({ "interval_seconds": 1 }));
    world.model.allows_restarts();
    let issue = leave(&world, left).await;
    exchange_store(&world, &issue, left).await;
    world.model.release();
    world.model.goes_on_for_another();
    say_the_rest(&world, left);
    match left {
        Left::AwaitingAnswer => _ = issue.comment("alice", "Up."),
        Left::AwaitingApproval => _ = issue.comment("alice", "/agent approve"),
        left if left.is_paused() => _ = issue.comment("alice", "/agent resume"),
        Left::Done | Left::Stopped | Left::Failed => _ = issue.label("coding agent"),
        _ => {}
    }

    let mut ended = world.run().await;
    if left == Left::AwaitingApproval && issue.labels() == ["coding agent waiting"] {
        // Other commits than those that were asked about make the question void.
        issue.comment("alice", "/agent approve");
        ended = world.run().await;
    }

    let story = || format!("{left:?}: {ended:?}\n{}", world.story());
    assert_eq!(ended.stdout, "github:acme/widgets#1: done\n", "{}", story());
    assert_eq!(issue.labels(), ["coding agent done"], "{}", story());
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", story());
    for (file, text) in [("one.txt", "one\n"), ("two.txt", "two\n")] {
        assert_eq!(pulls[0].file(file).as_deref(), Some(text), "{}", story());
    }
    world.finish().await;
}

/// Has the program work on an issue until its run is in the state, and ends it there.
async fn leave(world: &World, left: Left) -> Item {
    // Unique in its digits, and short: a command that is run again is waited for.
    // It has to last until the program has heard of a pause.
    let seconds = if matches!(left, Left::PausedPreparing) { 8 } else { 2 };
    let nap = format!("{seconds}.{}", mark().replace('.', ""));
    write_script(world, left, &nap);
    match left {
        Left::Delivering => world.github.hangs("POST /repos/*/*/pulls", 0, false),
        Left::Queued => world.github.hangs("DELETE /repos/*/*/issues/*/labels/*", 0, true),
        _ => {}
    }
    let issue = world.github.open_issue("Count to two").label("coding agent");
    let program = world.spawn(&["run"]);
    match left {
        Left::Queued | Left::Delivering => world.github.until_one_hangs().await,
        Left::Preparing | Left::PausedPreparing | Left::Verifying | Left::PausedVerifying | Left::PausedDelivering => {
            processes::until_some(&nap).await;
        }
        Left::Planning | Left::PausedPlanning | Left::Working | Left::PausedWorking | Left::Stopped => {
            world.model.until_held(1).await;
        }
        _ => {}
    }
    match left {
        left if left.is_paused() => {
            issue.comment("alice", "/agent pause");
            program.ended().await;
        }
        Left::Stopped => {
            issue.comment("alice", "/agent stop");
            program.ended().await;
        }
        Left::Done | Left::Failed | Left::AwaitingAnswer | Left::AwaitingApproval => {
            program.ended().await;
        }
        _ => program.kill().await,
    }
    processes::until(&nap, 0).await;
    world.github.cuts_off();
    issue
}

/// The model's steps until the run is left.
fn write_script(world: &World, left: Left, nap: &str) {
    let plan = Plan::of(&["count"]).in_environment("python");
    let plan = match left {
        Left::Verifying | Left::PausedDelivering => plan.verified_by(&format!("sleep {nap}")),
        // A pause is acted on between two commands.
        Left::PausedVerifying => plan
            .verified_by(&format!("sleep {nap}"))
            .verified_by("grep -q two two.txt"),
        Left::Preparing | Left::PausedPreparing => plan.with(
            "selected_environment",
            json!({ "name": "python", "reasoning": "", "setup_commands": [format!("sleep {nap}"), "true"] }),
        ),
        _ => plan.verified_by("grep -q two two.txt"),
    };
    let script = world.model.script();
    let work = json!({ "command": WORK });
    _ = match left {
        Left::Queued => script,
        Left::Planning | Left::PausedPlanning => script.plans(plan).holds(),
        Left::Failed => (0..FAILS).fold(script, |script, _| script.says("no plan")),
        Left::Preparing | Left::PausedPreparing => script.plans(plan),
        Left::Working | Left::PausedWorking | Left::Stopped => {
            script.plans(plan).calls(COMMAND, work).done("Counted.").holds()
        }
        Left::AwaitingAnswer => script
            .plans(plan)
            .calls(COMMAND, work)
            .calls("agent/ask_people", json!({ "question": "Up or down?" })),
        Left::AwaitingApproval => {
            let command = format!("{WORK} && echo 'script: [env]' > .gitlab-ci.yml");
            let work = json!({ "command": command });
            script.plans(plan).calls(COMMAND, work).done("Counted.")
        }
        Left::Verifying | Left::PausedVerifying | Left::PausedDelivering | Left::Delivering | Left::Done => {
            script.plans(plan).calls(COMMAND, work).done("Counted.")
        }
    };
}

/// The model's steps from there to the end.
fn say_the_rest(world: &World, left: Left) {
    let plan = Plan::of(&["count"]).in_environment("python").verified_by("true");
    let script = world.model.script();
    let work = json!({ "command": format!("test -f two.txt || ({WORK})") });
    _ = match left {
        Left::Queued | Left::Planning | Left::PausedPlanning => {
            script.plans(plan).calls(COMMAND, work).done("Counted.")
        }
        Left::Done | Left::Stopped | Left::Failed => {
            let more = json!({ "command": format!("(test -f two.txt || ({WORK})) && echo three > three.txt") });
            script.plans(plan).calls(COMMAND, more).done("Counted.")
        }
        Left::Preparing | Left::PausedPreparing => script.calls(COMMAND, work).done("Counted."),
        Left::Working | Left::AwaitingAnswer | Left::PausedWorking => script.done("Counted."),
        Left::Verifying
        | Left::PausedVerifying
        | Left::AwaitingApproval
        | Left::Delivering
        | Left::PausedDelivering => script,
    };
}

/// Puts the old store in the place of this program's, with what the world has made anew.
async fn exchange_store(world: &World, issue: &Item, left: Left) {
    let file = world.state_dir().join("coding-agent.db");
    let open = async || {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file);
        SqlitePool::connect_with(options.create_if_missing(true)).await.unwrap()
    };
    let pool = open().await;
    let run: String = sqlx::query_scalar("SELECT id FROM runs")
        .fetch_one(&pool)
        .await
        .unwrap();
    pool.close().await;
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", file.display()));
    }
    // A program of that version claimed nothing on the forge.
    let git = world.github.default_repository().git();
    for (claim, _) in git.messages_below("refs/coding-agent/") {
        git.delete_reference(&claim);
    }
    let old = std::fs::read_to_string(OLD).unwrap();
    let (schema, rows) = old.split_once("-- left: ").unwrap();
    let own = format!("{left:?}\n");
    let rows = rows
        .split("-- left: ")
        .find_map(|rows| rows.strip_prefix(&own))
        .unwrap();
    let rows = filled(world, issue, &run, rows).await;
    let pool = open().await;
    for statements in [schema, &rows] {
        let done = sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&pool).await;
        done.unwrap_or_else(|error| panic!("{left:?}: {error}\n{statements}"));
    }
    pool.close().await;
}

/// Fills in what the world gives.
async fn filled(world: &World, issue: &Item, run: &str, rows: &str) -> String {
    let now = Utc::now();
    let container = world.containers().await.pop().map(|name| {
        let name = name.trim_start_matches('/').to_owned();
        printed("docker", &["inspect", "--format", "{{.Id}}", &name])
    });
    let repository = world.github.default_repository();
    let shown = repository
        .git()
        .resolve("coding-agent/1-count-to-two")
        .unwrap_or_default();
    let accepted = mirror(world).map(|mirror| {
        let reference = format!("refs/coding-agent/{run}/accepted");
        let mirror = format!("--git-dir={}", mirror.display());
        printed("git", &[&mirror, "rev-parse", "--verify", "--quiet", &reference])
    });
    let known = [
        ("{RUN}", run.to_owned()),
        ("{BASE}", repository.git().resolve("main").unwrap()),
        ("{SHOWN}", shown.clone()),
        // What was delivered is not kept besides.
        ("{ACCEPTED}", accepted.filter(|id| !id.is_empty()).unwrap_or(shown)),
        ("{CONTAINER}", container.unwrap_or_default()),
        ("{FORGE}", world.github.url().to_owned()),
        ("{NOW}", now.to_rfc3339()),
        ("{NOW MICROS}", now.timestamp_micros().to_string()),
    ];
    let mut rows = rows.to_owned();
    for comment in issue.comments() {
        let marker = comment.body.split("<!-- coding-agent:").nth(1);
        let name = marker.and_then(|marker| marker.split(" -->").next()?.split_once(':'));
        match name {
            Some((_, name)) => rows = rows.replace(&format!("{{COMMENT {name}}}"), &comment.id.to_string()),
            None => rows = rows.replace("{HEARD}", &comment.id.to_string()),
        }
    }
    known.iter().fold(rows, |rows, (name, value)| rows.replace(name, value))
}

fn mirror(world: &World) -> Option<PathBuf> {
    let mirrors = world.state_dir().join("mirrors");
    let found = printed("find", &[mirrors.to_str()?, "-name", "widgets.git"]);
    (!found.is_empty()).then(|| found.into())
}

fn printed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
