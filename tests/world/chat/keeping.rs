//! The checks before a message, and the record that is kept of a conversation.

use serde_json::json;

use super::{ALICE, ends, serves, world};
use crate::fake::slack::Slack;
use crate::world::scripts::{greets, plan};

/// A word in what somebody asks for, and nowhere else.
const WORD: &str = "heffalump";

#[tokio::test]
async fn a_conversation_is_forgotten_with_the_task_that_it_asked_for() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    greets(world.model.for_task(WORD).plans(plan()));
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, &format!("/code Greet the {WORD}"));
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    world
        .github
        .items()
        .remove(0)
        .until(|issue| issue.labels() == super::DONE)
        .await;
    program.signal("TERM");
    assert_eq!(program.ended().await.code, Some(0));
    assert!(world.files_with(WORD).contains("coding-agent.db"));

    let ended = world.command(&["forget", "github:acme/widgets#1"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(world.files_with(WORD), "", "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn the_secrets_of_a_command_are_neither_said_nor_kept_nor_sent_to_a_model() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let secret = "a-token-of-the-operations-17";
    world.keeps("ops-token.txt", secret);
    world.configure(|config| {
        let script = "echo it is well with $API_TOKEN";
        config["chat"]["ops"] = json!({
            "status": { "command": ["sh", "-c", script], "env": { "API_TOKEN_file": "ops-token.txt" } },
        });
    });
    world.model.forbids(secret);
    world.model.goes_on_for_another();
    world.model.says("All is well.");
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/ops status");
    program
        .until(&world, async {
            drop(slack.until_said("it is well with [redacted").await);
        })
        .await;
    slack.replies(ALICE, &thread, "/chat and now?");
    program
        .until(&world, async { drop(slack.until_said("All is well.").await) })
        .await;
    assert!(slack.texts().iter().all(|text| !text.contains(secret)));
    assert_eq!(world.files_with(secret), "", "{}", world.story());
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn what_a_command_says_as_it_fails_is_remembered_without_secrets() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let secret = "ghp_zyxwvutsrqponmlkjihgfedcba9876543210";
    let token = world.keeps("leaks.txt", &format!("no access with {secret}\n"));
    world.configure(|config| {
        let script = format!("cat {token} >&2; exit 1");
        config["chat"]["ops"] = json!({ "status": { "command": ["sh", "-c", script] } });
    });
    world.model.forbids(secret);
    world.model.goes_on_for_another();
    world.model.says("It has no access.");
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/ops status");
    program
        .until(&world, async {
            drop(slack.until_said("no access with [redacted").await);
        })
        .await;
    slack.replies(ALICE, &thread, "/chat why?");
    program
        .until(&world, async { drop(slack.until_said("It has no access.").await) })
        .await;
    assert_eq!(world.files_with(secret), "", "{}", world.story());
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_secret_that_is_configured_later_goes_to_no_model_with_what_is_remembered() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let secret = "a-word-of-yesterday-42";
    world.model.goes_on_for_another();
    world.model.says("So it does.").says("With a word.");
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, &format!("/chat the door opens with {secret}"));
    program
        .until(&world, async { drop(slack.until_said("So it does.").await) })
        .await;
    program.signal("TERM");
    assert_eq!(program.ended().await.code, Some(0));

    world.configure(|config| {
        let env = json!({ "DOOR_TOKEN": secret });
        config["chat"]["ops"] = json!({ "door": { "command": ["true"], "env": env } });
    });
    world.model.forbids(secret);
    let mut program = serves(&world, &slack).await;
    slack.replies(ALICE, &thread, "/chat how does it open?");
    program
        .until(&world, async { drop(slack.until_said("With a word.").await) })
        .await;
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_server_that_is_down_is_restarted_before_a_message_and_whoever_asked_is_told() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let (endpoint, log) = (world.model.address(), world.folder().join("restarts"));
    world.configure(|config| {
        config["llm"]["provider"] = json!("ollama");
        config["llm"]["ollama"] =
            json!({ "endpoint": endpoint, "model": "scripted", "context_length": 16_384, "keep_alive": "1h" });
        config["llm"]["health"] = json!({
            "restart_command": ["sh", "-c", format!("echo again >> {}", log.display())],
            "cool_down_seconds": 3_600, "restart_seconds": 5,
        });
    });
    world.model.for_task("question 1").says("answer 1");
    let mut program = serves(&world, &slack).await;
    world.model.is_down(true);
    slack.mentions(ALICE, "/chat question 0");
    program
        .until(&world, async { drop(slack.until_said("no model can be asked").await) })
        .await;
    let restarts = || std::fs::read_to_string(&log).unwrap_or_default().lines().count();
    assert_eq!(restarts(), 1, "{}", world.story());
    // The journal has it without this word.
    let told = |line: &str| line.contains("WARN") && line.contains("its server was restarted");
    world
        .until("the line in the log", || world.story().lines().any(told))
        .await;
    // It comes back by itself, and is loaded with its window before it is asked.
    world.model.is_down(false);
    slack.mentions(ALICE, "/chat question 1");
    program
        .until(&world, async { drop(slack.until_said("answer 1").await) })
        .await;
    assert_eq!(world.model.loaded(), [("scripted".to_owned(), 16_384)].into());
    assert_eq!(restarts(), 1);
    ends(program, world, &slack).await;
}
