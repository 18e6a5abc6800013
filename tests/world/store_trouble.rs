//! Runs whose store cannot be written or read, or says that somebody else has them.

use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::Executor;

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::databases::Database;
use crate::world::people::says;
use crate::world::scripts::executes;

/// Refuses the first message that is added from now on. What a sequence has counted stays counted
/// when a transaction is given up; SQLite has nothing of the kind.
const REFUSES_ONE_MESSAGE: &str = "
    CREATE SEQUENCE tries;
    CREATE FUNCTION refuse_the_first() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('tries') = 1 THEN
                RAISE EXCEPTION 'the disk is full' USING ERRCODE = '53100';
            END IF;
            RETURN NEW;
        END
    $$;
    CREATE TRIGGER refusing BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION refuse_the_first()";

/// Does something to the store behind the program's back.
pub async fn tamper(world: &World, statement: &'static str) {
    world.sqlite().await.execute(statement).await.unwrap();
}

#[tokio::test]
async fn a_store_that_cannot_be_written_costs_neither_work_nor_money() {
    let world = World::start().await;
    world.model.allows_restarts();
    world
        .model
        .plans(Plan::of(&["greet"]))
        .calls(
            "workspace/execute_command",
            json!({ "command": "echo Hello > hello.txt" }),
        )
        .done("Never saved.")
        .holds();
    let issue = world.github.open_issue("Greet").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    tamper(
        &world,
        "CREATE TRIGGER refusing BEFORE INSERT ON messages BEGIN SELECT RAISE(FAIL, 'the disk is full'); END",
    )
    .await;
    world.model.release();

    let ended = program.ended().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(
        ended.stdout,
        "github:acme/widgets#1: put down, because the store cannot be written or read\n"
    );
    assert_eq!(world.model.requests().len(), 3, "{}", world.model.dump());
    // It holds what the store does not.
    assert_eq!(world.containers().await.len(), 1);

    tamper(&world, "DROP TRIGGER refusing").await;
    tamper(&world, "UPDATE runs SET not_before = NULL").await;
    world.model.done("Greeted.");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let pulls = world.github.pulls();
    assert_eq!(
        pulls[0].file("hello.txt").as_deref(),
        Some("Hello\n"),
        "{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent done"]);
    let journal = world.journal();
    let started = journal
        .iter()
        .filter(|entry| entry["fact"] == "environment_started")
        .count();
    assert_eq!(started, 1, "the container was not taken over");
    world.finish().await;
}

#[tokio::test]
async fn a_turn_that_could_not_be_saved_at_once_is_saved_later_with_the_words_before_it() {
    let database = Database::start();
    let mut world = World::start().await.attentive();
    let address = database.schema();
    world.configure(|config| config["store"] = json!({ "url": address }));
    let script = executes(world.model.plans(Plan::of(&["greet"])), "echo Hello > hello.txt").holds();
    executes(script, "true").holds();
    let issue = world.github.open_issue("Greet").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    says(&world, &issue, "alice", "In the morning, too.").await;
    world.model.release();
    world.model.until_held(2).await;
    Database::ask(&address, REFUSES_ONE_MESSAGE);
    world.model.release();

    let ended = program.ended().await;

    ended.prints(
        "github:acme/widgets#1: put down, because the store cannot be written or read\n",
        &world,
    );
    Database::ask(&address, "UPDATE runs SET not_before = NULL");
    world.model.done("Greeted.");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    // The conversation goes on where it was, or the model of the tests complains.
    assert_eq!(requests.len(), 4, "{}", world.model.dump());
    let told = requests[3].text();
    assert!(told.contains("In the morning, too."), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn an_end_that_could_not_be_noted_before_it_is_shown_is_shown_later() {
    let world = World::start().await;
    let script = executes(world.model.plans(Plan::of(&["greet"])), "echo Hello > hello.txt");
    script.refuses("the account is closed").holds();
    let issue = world.github.open_issue("Greet").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    // The store refuses what is noted before the last comment, and would take the end itself.
    tamper(
        &world,
        "CREATE TRIGGER refusing BEFORE UPDATE ON runs WHEN NEW.record LIKE '%:final\"%' AND NEW.finished_at IS NULL
            BEGIN SELECT RAISE(FAIL, 'the disk is full'); END",
    )
    .await;
    world.model.release();

    let ended = program.ended().await;

    ended.prints(
        "github:acme/widgets#1: put down, because the store cannot be written or read\n",
        &world,
    );
    assert_eq!(issue.labels(), ["coding agent processing"]);
    tamper(&world, "DROP TRIGGER refusing").await;
    tamper(&world, "UPDATE runs SET not_before = NULL").await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    assert_eq!(issue.labels(), ["coding agent failed"], "{}", world.story());
    let last = issue.comments_of(world.github.bot()).pop().unwrap();
    assert!(last.contains("This could not be done"), "{last}");
    world.finish().await;
}

#[tokio::test]
async fn a_run_whose_record_cannot_be_read_ends_where_people_see_it() {
    let world = World::start().await;
    world.model.plans(Plan::of(&["greet"])).done("Never read.").holds();
    let issue = world.github.open_issue("Greet").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    program.kill().await;
    world.model.release();
    tamper(&world, r#"UPDATE runs SET record = '{"turns": "many"}'"#).await;

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent failed"], "{}", world.story());
    let comments = issue.comments();
    let last = &comments.last().unwrap().body;
    assert!(
        last.contains("What was saved of the run") && last.contains("cannot be read"),
        "{last}"
    );
    assert!(world.github.pulls().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_run_that_somebody_else_has_is_let_go_while_the_model_thinks() {
    let world = World::start().await;
    world.model.plans(Plan::of(&["greet"])).done("Never heard.").holds();
    let issue = world.github.open_issue("Greet").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let (comments, containers) = (issue.comments().len(), world.containers().await);
    tamper(
        &world,
        "UPDATE runs SET lease_token = '11111111-1111-4111-8111-111111111111', lease_host = 'elsewhere',
                lease_worker = '0198c0de-0000-7000-8000-000000000000', lease_expires_at = 9000000000000000",
    )
    .await;
    let taken = Instant::now();

    let ended = program.ended().await;

    // The model never answers: what ends it is the heartbeat.
    assert!(taken.elapsed() < Duration::from_mins(2), "{:?}", taken.elapsed());
    ended.prints("github:acme/widgets#1: given up to another worker\n", &world);
    assert_eq!(world.containers().await, containers);
    assert_eq!(issue.comments().len(), comments);
    assert_eq!(issue.labels(), ["coding agent processing"]);
    world.model.release();
    // The other one has ended it; its container is swept.
    tamper(
        &world,
        "UPDATE runs SET state = 'done', finished_at = 1, lease_token = NULL",
    )
    .await;
    assert_eq!(world.run().await.code, Some(0));
    world.finish().await;
}
