//! The scripted model notices what a provider would refuse, and what a test forgot.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

use crate::fake::model::{Model, Plan};

async fn post(model: &Model, messages: Value) -> Value {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let url = format!("{}/chat/completions", model.openai_address());
    let body = json!({ "model": "scripted", "messages": messages });
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.post(url).json(&body).send().await.unwrap().json().await.unwrap()
}

fn faults(model: &Model) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| model.finish())).expect_err("finish panics");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_rewritten_history_an_open_call_and_a_secret_are_noticed() {
    let model = Model::start().await;
    model.forbids("hunter2");
    model.done("one").done("two").done("three");
    let system = json!({ "role": "system", "content": "You are." });
    let user = json!({ "role": "user", "content": "Do it." });
    let call = json!({ "role": "assistant", "content": "", "tool_calls": [
        { "id": "a", "type": "function", "function": { "name": "x", "arguments": "{}" } },
    ] });
    post(&model, json!([system, user])).await;
    post(
        &model,
        json!([system, user, call, { "role": "user", "content": "hunter2" }]),
    )
    .await;
    post(
        &model,
        json!([system, { "role": "user", "content": "Do that." }, { "role": "assistant", "content": "ok" }]),
    )
    .await;
    let faults = faults(&model);
    for fault in [
        "the calls [\"a\"] were not answered before",
        "a request contains the secret \"hunter2\"",
        "a conversation of 3 messages does not extend any earlier one",
    ] {
        assert!(faults.contains(fault), "{faults}");
    }
}

#[tokio::test]
async fn a_script_is_neither_left_over_nor_exhausted() {
    let model = Model::start().await;
    model
        .for_task("Greet")
        .plans(Plan::of(&["greet"]).in_environment("python").verified_by("true"));
    model.for_task("Other").done("never");
    let greet = json!([{ "role": "system", "content": "You are." }, { "role": "user", "content": "Greet." }]);
    let reply = post(&model, greet.clone()).await;
    let plan: Value = serde_json::from_str(reply["choices"][0]["message"]["content"].as_str().unwrap()).unwrap();
    assert_eq!(plan["verification"], json!([{ "command": "true" }]));
    let refusal = post(&model, greet).await;
    assert!(
        refusal["error"]["message"].as_str().unwrap().contains("no step left"),
        "{refusal}"
    );
    let faults = faults(&model);
    assert!(
        faults.contains("no step left for the conversation that begins with \"Greet.\""),
        "{faults}"
    );
    assert!(
        faults.contains("1 steps of the script for \"Other\" were not used"),
        "{faults}"
    );
}
