//! What comes while a message is being answered: other messages, and trouble with the store.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::json;

use super::{ALICE, MALLORY, ends, has_no_socket, posts, serves, world};
use crate::fake::slack::{CHANNEL, Slack, signature};
use crate::store_trouble::tamper;
use crate::web::{opened, problem};
use crate::world::{Program, World};

/// A conversation of one person with the bot.
const DIRECT: &str = "D0000001";
/// Messages of one conversation that may wait.
const MOST_WAITING: usize = 20;
/// What is said of each command that is not on the list.
const NO_COMMAND: &str = "nothing else is ever run";
/// What is said where too much waits.
const FLOOD: &str = "say it again later";

/// A command of the list that ends when it may.
struct Held {
    marks: PathBuf,
    hold: PathBuf,
}

impl Held {
    fn in_world(world: &mut World) -> Self {
        let held = Self {
            marks: world.folder().join("marks"),
            hold: world.folder().join("hold"),
        };
        std::fs::write(&held.hold, "").unwrap();
        let script = format!(
            "echo run >> {}; while [ -e {} ]; do sleep 0.05; done; echo all is well",
            held.marks.display(),
            held.hold.display()
        );
        world.configure(|config| {
            config["chat"]["ops"] =
                json!({ "status": { "command": ["sh", "-c", script], "description": "how it is" } });
        });
        held
    }

    async fn until_it_runs(&self, program: &mut Program, world: &World) {
        let runs = async {
            while !self.marks.exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        program.until(world, runs).await;
    }

    fn may_end(&self) {
        std::fs::remove_file(&self.hold).unwrap();
    }
}

/// Returns how many of the bot's texts have these words.
fn said(slack: &Slack, words: &str) -> usize {
    slack.texts().iter().filter(|text| text.contains(words)).count()
}

/// Has as many messages wait in one conversation as may, behind a command that runs.
async fn fills_up(slack: &Slack, world: &World, program: &mut Program, held: &Held) {
    slack.writes(ALICE, DIRECT, None, "/ops status");
    held.until_it_runs(program, world).await;
    for _ in 1..MOST_WAITING {
        slack.writes(ALICE, DIRECT, None, "/ops other");
    }
    program.until(world, slack.until(Slack::is_heard)).await;
}

#[tokio::test]
async fn what_is_said_in_a_thread_while_its_first_message_is_answered_is_answered_behind_it() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let held = Held::in_world(&mut world);
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/ops status");
    held.until_it_runs(&mut program, &world).await;
    // Nobody speaks to the bot by its name here, nor is there anything yet that it said.
    slack.replies(ALICE, &thread, "/ops other");
    program.until(&world, slack.until(Slack::is_heard)).await;
    held.may_end();
    program
        .until(&world, async { drop(slack.until_said(NO_COMMAND).await) })
        .await;
    let texts = slack.texts();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("all is well"), "{texts:?}");
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_store_that_cannot_be_written_for_a_moment_breaks_no_command_off() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let held = Held::in_world(&mut world);
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/ops status");
    held.until_it_runs(&mut program, &world).await;
    tamper(
        &world,
        "CREATE TRIGGER refusing BEFORE UPDATE ON turns WHEN NEW.name = 'chat'
         BEGIN SELECT RAISE(FAIL, 'the disk is full'); END",
    )
    .await;
    let fails = world.until_logged("the turn at the messengers is not extended yet");
    program.until(&world, fails).await;
    tamper(&world, "DROP TRIGGER refusing").await;
    held.may_end();
    program
        .until(&world, async { drop(slack.until_said("all is well").await) })
        .await;
    assert_eq!(std::fs::read_to_string(&held.marks).unwrap(), "run\n");
    assert_eq!(slack.texts().len(), 1, "{:?}", slack.texts());
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn what_comes_while_too_much_waits_is_not_taken_and_whoever_said_it_is_told() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let held = Held::in_world(&mut world);
    let mut program = serves(&world, &slack).await;
    fills_up(&slack, &world, &mut program, &held).await;
    slack.writes(ALICE, DIRECT, None, "/ops another");
    program
        .until(&world, async { drop(slack.until_said(FLOOD).await) })
        .await;
    held.may_end();
    program
        .until(&world, slack.until(|slack| said(slack, NO_COMMAND) == MOST_WAITING - 1))
        .await;
    // What is said again is taken.
    slack.writes(ALICE, DIRECT, None, "/ops another");
    program
        .until(&world, slack.until(|slack| said(slack, NO_COMMAND) == MOST_WAITING))
        .await;
    assert_eq!(said(&slack, "all is well"), 1, "{:?}", slack.texts());
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn nobody_is_told_that_a_message_was_not_taken_which_waits() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let held = Held::in_world(&mut world);
    let mut program = serves(&world, &slack).await;
    fills_up(&slack, &world, &mut program, &held).await;
    // As where the acknowledgements were lost.
    slack.repeats_all();
    program.until(&world, slack.until(Slack::is_heard)).await;
    held.may_end();
    program
        .until(&world, slack.until(|slack| said(slack, NO_COMMAND) == MOST_WAITING - 1))
        .await;
    assert_eq!(slack.texts().len(), MOST_WAITING, "{:?}", slack.texts());
    assert_eq!(said(&slack, FLOOD), 0);
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn each_delivery_of_slack_is_counted_as_what_became_of_it() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    has_no_socket(&mut world);
    for number in 0..2 {
        let script = world.model.for_task(&format!("question {number}"));
        script.says(&format!("answer {number}"));
    }
    let (mut program, web) = opened(&world, &["serve"]).await;
    let now = chrono::Utc::now().timestamp();
    let tells = async |body: &str| posts(&web, body, now, &signature(body, now)).await;

    let first = slack.mentions_by_request(ALICE, "/chat question 0");
    let elsewhere = slack.mentions_by_request(ALICE, "hello").replace(CHANNEL, "C0000002");
    let stranger = slack.mentions_by_request(MALLORY, "hello");
    for body in [&first, &first, &elsewhere, &stranger] {
        assert_eq!(tells(body).await.status(), StatusCode::OK, "{body}");
    }
    tamper(
        &world,
        "CREATE TRIGGER refusing BEFORE INSERT ON chat_messages BEGIN SELECT RAISE(FAIL, 'the disk is full'); END",
    )
    .await;
    let second = slack.mentions_by_request(ALICE, "/chat question 1");
    problem(tells(&second).await, StatusCode::SERVICE_UNAVAILABLE).await;
    tamper(&world, "DROP TRIGGER refusing").await;
    assert_eq!(tells(&second).await.status(), StatusCode::OK);
    program
        .until(&world, slack.until(|slack| slack.said().len() == 2))
        .await;

    let metrics = web.get("/metrics").await.text().await.unwrap();
    for (outcome, times) in [("taken", 2), ("repeated", 1), ("not of interest", 2), ("failed", 1)] {
        let line = format!("coding_agent_webhook_deliveries_total{{forge=\"slack\",outcome=\"{outcome}\"}} {times}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    crate::web::ends(program, &world).await;
    world.finish().await;
}
