//! Replies of the models of a conversation: their form, and what they use.

use serde_json::{Value, json};

use super::{ALICE, ends, looks_at_the_readme, serves, world};
use crate::fake::slack::Slack;
use crate::web::{opened, until};
use crate::world::facts::{count, until_facts};

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

#[tokio::test]
async fn a_person_gets_an_answer_where_the_chat_model_at_first_only_thinks() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    world.model.thinks_as_vllm();
    let script = world.model.for_task("how far is the moon");
    script.says("").thinking_of("It is far.").says("It is far away.");
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/chat how far is the moon");
    program
        .until(&world, async { drop(slack.until_said("It is far away").await) })
        .await;
    let told = world.model.requests()[1].last_user_message();
    assert!(told.contains("Your reply was empty."), "{told}");
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn what_conversations_use_is_in_the_figures_and_counts_for_the_limit_of_the_day() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    world.configure(|config| {
        config["http"] = json!({ "listen": "127.0.0.1:0" });
        let prices = json!({ "input": 1.0, "output": 1.0 });
        config["budget"] = json!({ "prices": prices, "per_day": { "tokens": 50_000 } });
    });
    let sure = json!({ "route": "CHAT", "confidence": 0.9, "reason": "r", "evidence": [] });
    let script = world.model.for_task("the moon").says(&sure.to_string());
    script.says("It is far away.").counts(50_000);
    looks_at_the_readme(&world);
    let (mut program, web) = opened(&world, &["serve"]).await;
    program.until(&world, slack.until(Slack::has_socket)).await;
    slack.mentions(ALICE, "hm, the moon");
    program
        .until(&world, async { drop(slack.until_said("It is far away").await) })
        .await;
    // The limit is for runs: people are answered beyond it.
    slack.mentions(ALICE, "/analyze why the README is so short");
    program
        .until(&world, async { drop(slack.until_said("nothing in the README").await) })
        .await;

    let called = until_facts(&world, "model_called", 5).await;
    let roles: Vec<&Value> = called.iter().map(|fact| &fact["role"]).collect();
    assert_eq!(roles, ["classifier", "chat", "planner", "planner", "chat"]);
    assert!(
        called
            .iter()
            .all(|fact| fact["model"] == "llm" && fact["run"].is_null()),
        "{called:?}"
    );
    let metrics = async || web.get("/metrics").await.text().await.unwrap();
    let is_counted = async || {
        let metrics = metrics().await;
        metrics.contains("coding_agent_model_requests_total{model=\"llm\",role=\"chat\"} 2")
    };
    until("the figures", is_counted).await;
    let metrics = metrics().await;
    for figure in [
        "coding_agent_model_requests_total{model=\"llm\",role=\"classifier\"} 1",
        "coding_agent_model_tokens_total{kind=\"input\",model=\"llm\",role=\"planner\"} ",
        "coding_agent_model_cost_usd_total{model=\"llm\",role=\"chat\"} 0.05",
    ] {
        assert!(metrics.contains(figure), "{figure}\n{metrics}");
    }
    let figures = world.command(&["stats", "--json"]).await.stdout;
    let figures: Value = serde_json::from_str(&figures).unwrap();
    let used = |asked: &str| figures["tokens_by_model"][asked]["input"].as_u64();
    assert!(used("llm as chat") > Some(50_000), "{figures:#}");
    assert!(used("llm as classifier") > Some(0), "{figures:#}");
    assert!(used("llm as planner") > Some(0), "{figures:#}");
    assert_eq!(figures["tokens_per_run"]["value"], Value::Null);
    let shown = web.json("/api/stats?days=7").await;
    let roles: Vec<&Value> = shown["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|used| &used["role"])
        .collect();
    assert_eq!(roles, ["chat", "classifier", "planner"]);

    let issue = world.github.open_issue("Paint it").label("coding agent");
    let waits = issue.until(|issue| {
        let told = issue.comments_of(world.github.bot()).join("\n");
        told.contains("budget.per_day.tokens")
    });
    program.until(&world, waits).await;
    ends(program, world, &slack).await;
}
