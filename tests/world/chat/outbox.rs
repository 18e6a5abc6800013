//! What is to be said, where Slack does not take it at once.

use serde_json::json;

use super::{ALICE, serves, world};
use crate::fake::slack::{Fault, Slack};
use crate::world::facts::count;
use crate::world::scripts::{greets, plan};
use crate::world::{Program, World};

/// Ends the program and the world of a test in which Slack refused something.
async fn ends(program: Program, world: World) {
    program.signal("TERM");
    let ended = program.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn what_is_to_be_said_waits_for_a_token_that_is_good_again() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    world.model.for_task("question 0").says("answer 0");
    let mut program = serves(&world, &slack).await;
    slack.fails_next("chat.postMessage", Fault::Refused("token_revoked"));
    slack.mentions(ALICE, "/chat question 0");
    program
        .until(&world, async { drop(slack.until_said("answer 0").await) })
        .await;
    assert_eq!(slack.refused(), ["chat.postMessage: token_revoked"]);
    assert_eq!(count(&world, "warned"), 0, "{}", world.story());
    ends(program, world).await;
}

#[tokio::test]
async fn progress_whose_message_was_deleted_is_said_anew_and_changed_from_then_on() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    greets(world.model.for_task("Greet the reader").plans(plan()));
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/code Greet the reader");
    program
        .until(&world, async { drop(slack.until_said("needs your approval").await) })
        .await;
    let said = slack.said();
    let progress = said.iter().find(|message| message.text.contains("waits for approval"));
    slack.deletes(progress.unwrap());
    let question = said.iter().find(|message| message.text.contains("needs your approval"));
    slack.presses(ALICE, question.unwrap(), 0);
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    let texts = slack.texts();
    let last = texts.iter().filter(|text| text.contains("☑ greet the reader"));
    assert_eq!(last.count(), 1, "{texts:#?}");
    assert_eq!(slack.refused(), ["chat.update: message_not_found"], "once: {texts:#?}");
    assert_eq!(count(&world, "warned"), 0, "{}", world.story());
    ends(program, world).await;
}
