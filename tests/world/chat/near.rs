//! Which models get what is said in a conversation: those elsewhere get nothing of what is to stay
//! near.

use serde_json::json;

use super::{ALICE, ends, serves, world};
use crate::fake::model::Model;
use crate::fake::slack::Slack;
use crate::world::{MODEL_KEY, World};

/// A word that no model elsewhere may read.
const WORD: &str = "heffalump";

/// Has a far model, which is returned, talk with people and sort what they say. The world's own
/// model looks at repositories, and takes every place where only near ones are asked.
async fn with_a_far_chat(slack: &Slack) -> (World, Model) {
    let mut world = world(slack).await;
    let far = Model::start().await;
    let model = |address: &str| {
        json!({ "provider": "openai", "base_url": address, "api_key": MODEL_KEY, "model": "scripted" })
    };
    let address = far.openai_address().replace("127.0.0.1", "0.0.0.0");
    let models = json!({ "far": model(&address), "near": model(&world.model.openai_address()) });
    world.configure(|config| {
        config["llm"]["models"] = models;
        config["llm"]["roles"] = json!({ "chat": "far", "classifier": "far", "local_only": "near" });
    });
    far.forbids(WORD);
    // Conversations move from the one to the other.
    for either in [&world.model, &far] {
        either.allows_restarts();
        either.goes_on_for_another();
    }
    (world, far)
}

/// Returns the classifier's answer that a message is talk.
fn is_talk() -> String {
    json!({ "route": "CHAT", "confidence": 0.9, "reason": "r", "evidence": [] }).to_string()
}

#[tokio::test]
async fn what_is_said_behind_local_stays_near_and_is_forgotten_at_cloud() {
    let slack = Slack::start().await;
    let (world, far) = with_a_far_chat(&slack).await;
    world.model.says(&is_talk()).says("It sleeps well.");
    far.says("I know of none.");
    let mut program = serves(&world, &slack).await;

    // The message that says so is sorted and answered near itself.
    let thread = slack.mentions(ALICE, &format!("/local\nthe {WORD} sleeps in the cellar"));
    program
        .until(&world, async { drop(slack.until_said("It sleeps well.").await) })
        .await;
    slack.replies(ALICE, &thread, "/cloud");
    program
        .until(&world, async {
            drop(slack.until_said("What was said here before is forgotten").await);
        })
        .await;
    slack.replies(ALICE, &thread, "/chat what sleeps there?");
    program
        .until(&world, async { drop(slack.until_said("I know of none.").await) })
        .await;
    assert_eq!((world.model.requests().len(), far.requests().len()), (2, 1));
    let messages = far.requests()[0].messages.len();
    assert_eq!(messages, 2, "the system prompt and the question alone");
    // Nothing was kept back meanwhile, so nothing is forgotten.
    slack.replies(ALICE, &thread, "/cloud");
    program
        .until(
            &world,
            slack.until(|slack| slack.texts().iter().any(|text| text == "Models elsewhere may be asked again.")),
        )
        .await;
    far.finish();
    ends(program, world, &slack).await;
}
