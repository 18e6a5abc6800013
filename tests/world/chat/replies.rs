//! Replies of the models of a conversation: their form, and what they use.

use serde_json::json;

use super::{ALICE, ends, looks_at_the_readme, serves, world};
use crate::fake::slack::Slack;
use crate::reading::count;

#[tokio::test]
async fn a_server_that_takes_no_tools_gets_json_from_the_chat_model_and_from_workers() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    world.configure(|config| config["llm"]["function_calling"] = json!("auto"));
    world.model.takes_no_tools();
    let delegated = json!({
        "comment": "The code knows.",
        "command": { "tool": "chat/delegate", "args": { "route": "ANALYZE", "task": "why it is so short" } },
    });
    world.model.for_task("what of the README").says(&delegated.to_string());
    looks_at_the_readme(&world);
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/chat what of the README");
    program
        .until(&world, async { drop(slack.until_said("nothing in the README").await) })
        .await;

    assert_eq!(count(&world, "worker_failed"), 0, "{}", world.story());
    let requests = world.model.requests();
    let offers: Vec<bool> = requests.iter().map(|request| !request.offered.is_empty()).collect();
    // Both were asked with tools once, and the chat model needs none to tell what was found.
    assert_eq!(offers, [true, false, true, false, false, false]);
    for (place, form) in [(0, "To hand over, reply with"), (2, "\n- repository/list_files {")] {
        let (native, json) = (requests[place].system(), requests[place + 1].system());
        assert!(!native.contains(form) && json.contains(form), "{native}\n{json}");
    }
    ends(program, world, &slack).await;
}
