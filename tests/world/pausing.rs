//! Runs are set aside and go on where they were: by command, by the trigger, by the pause file.
//! Their other reasons have files of their own.

mod budgets;
mod other_machines;
mod plans;
mod questions;
mod unforced;
mod visits;

use serde_json::{Value, json};

use crate::fake::github::Item;
use crate::fake::model::Plan;
use crate::world::facts::{count, facts};
use crate::world::normalized::last_on_github;
use crate::world::scripts::{COMMAND, executes};
use crate::world::{Program, World};

async fn world() -> World {
    let world = World::start().await.attentive();
    world.model.allows_restarts();
    world
}

fn plan() -> Plan {
    Plan::of(&["paint it", "dry it"])
        .in_environment("python")
        .verified_by("test -f color.txt")
}

/// Makes two files and commits one of them.
const HALF_OF_THE_WORK: &str =
    "echo red > color.txt && git add color.txt && git commit -q -m 'Paint it' && echo wet > state.txt";

/// Starts the program on an issue, and has it wait for the model in the middle of the work.
async fn at_work(world: &World, command: &str) -> (Item, Program) {
    executes(world.model.plans(plan()), HALF_OF_THE_WORK).holds();
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let program = world.spawn(&[command]);
    world.model.until_held(1).await;
    (issue, program)
}

/// Has alice pause what the program works on, and waits for its end.
async fn pauses(world: &World, issue: &Item, program: Program) {
    issue.comment("alice", "/agent pause");
    assert_eq!(
        program.ended().await.stdout,
        "github:acme/widgets#1: paused\n",
        "{}",
        world.story()
    );
}

/// Opens an issue whose run alice has paused in the middle of the work.
async fn paused(world: &World) -> Item {
    let (issue, program) = at_work(world, "run").await;
    pauses(world, &issue, program).await;
    issue
}

#[tokio::test]
async fn a_paused_run_goes_on_where_it_was() {
    let world = world().await;
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .calls("agent/finish_subtask", json!({ "id": "task-1" }))
        .holds();
    let issue = world.github.open_issue("Paint it").label("coding agent");

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    issue.comment("alice", "/agent pause");
    let ended = run.ended().await;

    ended.prints("github:acme/widgets#1: paused\n", &world);
    assert_eq!(issue.labels(), ["coding agent paused"]);
    assert_eq!(world.containers().await, [""; 0]);
    insta::assert_snapshot!(last_on_github(&world, &issue), @"
    ### ⏸️ Paused

    As alice asked. `/agent resume` resumes it where it is, `/agent stop` ends it.

    The work so far is on the branch `coding-agent/1-paint-it`.

    <sub>2 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:set-aside-1 -->
    ");
    let repository = world.github.default_repository();
    assert_eq!(
        repository.file("coding-agent/1-paint-it", "state.txt").as_deref(),
        Some("wet\n"),
        "the work is on a branch where people can see it"
    );

    // It waits, however often cron comes by.
    assert_eq!(world.run().await.stdout, "");
    world
        .model
        .calls("agent/finish_subtask", json!({ "id": "task-1" }))
        .calls(
            COMMAND,
            json!({ "command": "git status --porcelain && git log --format=%s -1" }),
        )
        .done("It is dry.");
    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(count(&world, "planned"), 1);
    let requests = world.model.requests();
    let seen = requests.last().unwrap().last_user_message();
    assert!(seen.contains("?? state.txt") && seen.contains("Paint it"), "{seen}");
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1);
    assert_eq!(pulls[0].files(), ["README.md", "color.txt", "state.txt"]);
    let progress: Vec<_> = issue
        .comments_of(world.github.bot())
        .into_iter()
        .filter(|text| text.contains(":progress"))
        .collect();
    assert_eq!(progress.len(), 1, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_container_that_alone_has_some_of_the_work_stays_while_its_run_is_paused() {
    let world = world().await;
    // As a scaffolder does it, and a model that adds all of it.
    let scaffold = "git init -q app && echo blue > app/color.txt && cd app && git add . && git -c user.name=a \
                    -c user.email=a@example.com commit -qm app && cd .. && git add app";
    executes(world.model.plans(plan()), scaffold)
        .calls("agent/finish_subtask", json!({ "id": "task-1" }))
        .holds();
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    // The pause is shown by the next visit.
    world.github.fails_next("POST /repos/*/*/issues/*/comments", 422, 1);
    pauses(&world, &issue, program).await;
    assert_eq!(world.containers().await.len(), 1, "{}", world.story());
    assert_ne!(issue.labels(), ["coding agent paused"], "{}", world.story());
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent paused"], "{}", world.story());
    assert_eq!(world.containers().await.len(), 1, "{}", world.story());

    let mending = "git rm -rqf --cached app && mv app/color.txt . && rm -rf app";
    world
        .model
        .calls(COMMAND, json!({ "command": mending }))
        .done("It is blue.");
    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let painted = world.github.pulls()[0].file("color.txt");
    assert_eq!(painted.as_deref(), Some("blue\n"));
    world.finish().await;
}

#[tokio::test]
async fn the_trigger_label_lets_a_paused_run_go_on() {
    let world = world().await;
    let issue = paused(&world).await;

    world
        .model
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .done("It is dry.");
    issue.label("coding agent");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn the_trigger_label_lets_a_paused_run_go_on_though_the_program_is_killed_once_it_is_off() {
    let world = world().await;
    let issue = paused(&world).await;
    world.github.hangs("DELETE /repos/*/*/issues/*/labels/*", 0, true);
    issue.label("coding agent");
    let program = world.spawn(&["run"]);
    world.github.until_one_hangs().await;
    program.kill().await;
    world.github.cuts_off();
    assert!(
        !issue.labels().contains(&"coding agent".to_owned()),
        "{}",
        world.story()
    );

    world
        .model
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .done("It is dry.");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn the_trigger_label_lets_a_paused_run_go_on_though_its_repository_was_renamed() {
    let world = world().await;
    let issue = paused(&world).await;
    world.github.default_repository().renames_to("gadgets");

    world
        .model
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .done("It is dry.");
    issue.label("coding agent");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.github.pulls().len(), 1, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn the_command_line_pauses_resumes_and_stops_while_the_service_runs() {
    let world = world().await;
    let (issue, service) = at_work(&world, "serve").await;

    let paused = world.command(&["pause", "github:acme/widgets#1"]).await;
    assert_eq!(
        (paused.code, paused.stdout.as_str()),
        (Some(0), "github:acme/widgets#1: paused:working\n"),
        "{paused:?}"
    );
    issue.until(|issue| issue.labels() == ["coding agent paused"]).await;

    world.model.calls(COMMAND, json!({ "command": "true" })).holds();
    let resumed = world.command(&["resume", "github:acme/widgets#1"]).await;
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    world.model.until_held(2).await;
    assert_eq!(issue.labels(), ["coding agent processing"], "{}", world.story());

    let stopped = world.command(&["stop", "github:acme/widgets#1"]).await;
    assert_eq!(
        (stopped.code, stopped.stdout.as_str()),
        (Some(0), "github:acme/widgets#1: stopped\n"),
        "{stopped:?}"
    );
    issue.until(|issue| issue.labels() == ["coding agent stopped"]).await;
    let again = world.command(&["stop", "github:acme/widgets#1"]).await;
    assert_eq!(again.code, Some(1));
    insta::assert_snapshot!(world.settled(&again.stderr), @"coding-agent: github:acme/widgets#1 has no unfinished run; `coding-agent status` lists the runs there are");
    service.signal("TERM");
    service.ended().await;
    world.finish().await;
}

#[tokio::test]
async fn a_run_nobody_works_on_is_stopped_from_the_command_line_at_once() {
    let world = world().await;
    let issue = paused(&world).await;

    let stopped = world.command(&["stop", "github:acme/widgets#1"]).await;

    assert_eq!(
        (stopped.code, stopped.stdout.as_str()),
        (Some(0), "github:acme/widgets#1: stopped\n"),
        "{stopped:?}"
    );
    assert_eq!(issue.labels(), ["coding agent stopped"]);
    insta::assert_snapshot!(last_on_github(&world, &issue), @"
    ### ⏹️ Stopped

    As the operator asked.

    To start a new run, set the label `coding agent` again.

    <sub>1 model turn · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn the_stop_of_a_paused_run_is_shown_when_the_forge_takes_comments_again_and_counts_without_its_comment() {
    let world = world().await;
    let issue = paused(&world).await;
    world.github.takes_no_comment();
    issue.comment("alice", "/agent stop");
    let order = issue.last_comment();
    assert_eq!(world.run().await.stdout, "");
    order.delete();

    // The forge is left alone for as long as it asks.
    assert_eq!(world.run().await.stdout, "");
    assert_eq!(issue.labels(), ["coding agent paused"], "{}", world.story());
    world.make_everything_due().await;
    assert_eq!(world.run().await.stdout, "github:acme/widgets#1: stopped\n");

    assert_eq!(issue.labels(), ["coding agent stopped"], "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn the_trigger_label_stays_where_the_paused_run_is_stopped_while_a_search_reads_its_item() {
    let world = world().await;
    let issue = paused(&world).await;
    issue.comment("alice", "/agent stop");
    issue.label("coding agent");
    world.github.hangs("GET /repos/*/*/issues/*/events", 0, false);
    let searching = world.spawn(&["run"]);
    world.github.until_one_hangs().await;
    // Another process hears alice meanwhile, and cannot tell people of the end yet.
    world.github.takes_no_comment();
    let visited = world.command(&["resume", "github:acme/widgets#1"]).await;
    assert!(
        visited.stdout.contains("put back until"),
        "{visited:?}\n{}",
        world.story()
    );
    world.github.cuts_off();
    let ended = searching.ended().await;
    ended.prints("", &world);

    world.make_everything_due().await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: stopped\n", &world);
    // It is for the run that alice wants next.
    let labels = ["coding agent", "coding agent stopped"];
    assert_eq!(issue.labels(), labels, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_run_that_is_stopped_before_it_began_leaves_no_label_of_an_earlier_run() {
    let world = world().await;
    let issue = world.github.open_issue("Paint it").label("coding agent done");
    issue.label("coding agent");
    world.all_runs("pause").await;
    assert_eq!(world.run().await.stdout, "");
    assert_eq!(issue.labels(), ["coding agent done", "coding agent processing"]);

    let stopped = world.command(&["stop", "github:acme/widgets#1"]).await;

    assert_eq!(
        (stopped.code, stopped.stdout.as_str()),
        (Some(0), "github:acme/widgets#1: stopped\n"),
        "{stopped:?}"
    );
    assert_eq!(issue.labels(), ["coding agent stopped"], "{}", world.story());
    // The trigger, and the two that were there.
    let taken_off = world.github.count("DELETE /repos/*/*/issues/*/labels/*");
    assert_eq!(taken_off, 3, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn the_pause_file_sets_all_runs_aside_and_its_end_lets_them_go_on() {
    let world = world().await;
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .calls(COMMAND, json!({ "command": "true" }))
        .holds();
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;

    world.all_runs("pause").await;
    assert_eq!(
        run.ended().await.stdout,
        "github:acme/widgets#1: paused\n",
        "{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent paused"]);
    let status = world.command(&["status"]).await.stdout;
    assert!(
        status.contains("\nall runs are paused; `coding-agent resume --all` ends it\n"),
        "{status}"
    );
    let other = world.github.open_issue("Something else").label("coding agent");
    assert_eq!(world.run().await.stdout, "");
    assert_eq!(other.labels(), ["coding agent processing"]);
    assert_eq!(world.run().await.stdout, "");
    let told = other.comments_of(world.github.bot());
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("⏸️ All work is paused by the operator; this begins"),
        "{told:?}"
    );

    world
        .model
        .for_task("Paint it")
        .calls(COMMAND, json!({ "command": "true" }))
        .done("It is dry.");
    world
        .model
        .for_task("Something else")
        .plans(Plan::of(&["nothing"]))
        .done("Nothing to do.")
        .done("Nothing to do.");
    let is_paused = async || {
        let status = world.command(&["status", "--json"]).await.stdout;
        serde_json::from_str::<Value>(&status).unwrap()["paused"] == true
    };
    assert!(is_paused().await);
    world.all_runs("resume").await;
    assert!(!is_paused().await);
    let ended = world.run().await;

    assert_eq!(
        ended.outcomes(),
        ["github:acme/widgets#1: done", "github:acme/widgets#2: done"],
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

/// Opens an issue whose run a pause of all runs has set aside.
async fn paused_with_all(world: &World) -> Item {
    let (issue, program) = at_work(world, "run").await;
    world.all_runs("pause").await;
    assert_eq!(
        program.ended().await.stdout,
        "github:acme/widgets#1: paused\n",
        "{}",
        world.story()
    );
    issue
}

#[tokio::test]
async fn a_persons_pause_outlasts_a_pause_of_all_runs() {
    let world = world().await;
    let issue = paused_with_all(&world).await;
    issue.comment("alice", "/agent pause");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    let answer = last_on_github(&world, &issue);
    assert!(answer.starts_with("It waits already."), "{answer}");

    world.all_runs("resume").await;
    let asked = world.model.requests().len();
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    assert_eq!(world.model.requests().len(), asked, "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent paused"]);

    world
        .model
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .done("It is dry.");
    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    world.finish().await;
}

#[tokio::test]
async fn a_run_that_a_person_resumes_during_a_pause_of_all_runs_goes_on_with_the_others() {
    let world = world().await;
    let issue = paused(&world).await;
    world.all_runs("pause").await;
    // A pause before that is not answered, and counts once.
    world.github.fails_next("POST /repos/*/*/issues/*/comments", 422, 1);
    issue.comment("alice", "/agent pause");
    issue.comment("alice", "/agent resume");
    for _ in 0..2 {
        assert_eq!(world.run().await.stdout, "", "{}", world.story());
    }
    let answer = last_on_github(&world, &issue);
    assert!(answer.starts_with("All work is paused by the operator"), "{answer}");

    world.all_runs("resume").await;
    world
        .model
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .done("It is dry.");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    world.finish().await;
}

#[tokio::test]
async fn a_pause_of_all_runs_and_its_end_are_facts_where_they_changed_something() {
    let world = world().await;
    for command in ["resume", "pause", "pause", "resume", "resume"] {
        world.all_runs(command).await;
    }

    let ordered = facts(&world, "ordered");
    let commands: Vec<_> = ordered.iter().map(|fact| fact["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["pause --all", "resume --all"]);
    // Readers of events have them from the store.
    let query = "SELECT COUNT(*) FROM facts WHERE fact LIKE '%\"ordered\"%'";
    let mut store = world.sqlite().await;
    let stored: i64 = sqlx::query_scalar(query).fetch_one(&mut store).await.unwrap();
    assert_eq!(stored, 2);
    world.finish().await;
}
