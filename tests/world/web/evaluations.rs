//! Documents that other programs have evaluated with `coding-agent mcp`, a process beside the
//! dashboard's, are shown like runs: while they run, when they are over, and one by one.

use std::process::Stdio;

use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::Executor;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;

use super::events::Reader;
use super::{ALICE, WebClient, ends, opened, problem, until, with_users};
use crate::world::facts::facts;
use crate::world::{Program, World};

/// A client of `coding-agent mcp`, which has said hello.
pub struct Client {
    program: Program,
    requests: ChildStdin,
}

impl Client {
    pub async fn start(world: &World) -> Self {
        let mut command = world.program();
        command
            .arg("--config")
            .arg(world.writes_its_configuration())
            .arg("mcp")
            .stdin(Stdio::piped());
        let mut program = Program::start(command);
        let requests = program.stdin();
        let mut client = Self { program, requests };
        client
            .sends(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a client", "version": "1"}}}))
            .await;
        client
            .sends(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        client
    }

    async fn sends(&mut self, message: &Value) {
        self.requests
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }

    /// Has a document evaluated under a name.
    pub async fn evaluates(&mut self, name: &str, content: &str) {
        self.evaluates_by(2, name, content).await;
    }

    /// Has a document evaluated by a call with this id.
    async fn evaluates_by(&mut self, id: u64, name: &str, content: &str) {
        let documents = json!({ "documents": [{ "name": name, "content": content }] });
        self.sends(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "evaluate_documents", "arguments": documents}}))
            .await;
    }

    /// Cancels the evaluation.
    pub async fn cancels(&mut self) {
        self.sends(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}))
            .await;
    }

    pub async fn ends(self) {
        let Self { program, requests } = self;
        drop(requests);
        let ended = program.ended().await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }

    /// Ends the server by a signal, as clients do that will not wait.
    async fn ends_by_a_signal(self) {
        let Self { program, requests } = self;
        program.signal("TERM");
        let ended = program.ended().await;
        drop(requests);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

/// Waits until the newest evaluation is in this state, and returns it.
pub async fn evaluation(web: &WebClient, state: &str) -> Value {
    until(&format!("an evaluation that is {state}"), async || {
        web.json("/api/evaluations").await[0]["state"] == state
    })
    .await;
    web.json("/api/evaluations").await[0].clone()
}

#[tokio::test]
async fn an_evaluation_of_another_process_is_shown_while_it_runs_and_when_it_is_over() {
    let mut world = World::start().await;
    with_users(&mut world);
    let judgement = json!({"ready_for_implementation": false, "score": 4.5, "conclusion": "It <b>lacks</b> a test.",
        "blockers": [{"claim": "<script>alert(1)</script>"}]});
    let script = world.model.for_task("Paint the shed.");
    script.says(&judgement.to_string()).holds();
    let (program, web) = opened(&world, &["dashboard"]).await;
    let cookie = web.logs_in(ALICE).await.unwrap();
    assert!(
        web.text("/evaluations", &cookie)
            .await
            .contains("There are no evaluations yet.")
    );

    let mut client = Client::start(&world).await;
    client.evaluates("The <i>shed</i>", "# Plan\n\nPaint the shed.").await;
    let running = evaluation(&web, "running").await;
    assert_eq!(running["name"], "The <i>shed</i>");
    assert_eq!(running["ended_at"], Value::Null);
    let page = web.text("/evaluations", &cookie).await;
    assert!(page.contains("running") && !page.contains("<i>shed"), "{page}");

    world.model.release();
    let over = evaluation(&web, "not passed").await;
    assert_eq!((&over["id"], &over["score"]), (&running["id"], &json!(4.5)));
    client.ends().await;
    let id = over["id"].as_str().unwrap();
    let one = web.json(&format!("/api/evaluations/{id}")).await;
    assert_eq!(one["evaluation"]["blockers"][0]["claim"], "<script>alert(1)</script>");
    for language in ["en", "ja"] {
        let cookie = format!("{cookie}; coding-agent-language={language}");
        let page = web.text(&format!("/evaluations/{id}"), &cookie).await;
        assert!(page.contains("lacks"), "{page}");
        assert!(!page.contains("<script>alert") && !page.contains("<b>lacks"), "{page}");
    }
    problem(web.get("/api/evaluations/none").await, StatusCode::NOT_FOUND).await;
    // Nobody can put one in by HTTP: a side process writes to the store.
    let put = web.post("/api/evaluations", &json!({})).await;
    problem(put, StatusCode::METHOD_NOT_ALLOWED).await;
    ends(program, &world).await;

    // It is in the store: the next server knows it, too.
    let (program, web) = opened(&world, &["dashboard"]).await;
    assert_eq!(web.json("/api/evaluations").await[0]["id"], id);
    ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn evaluations_are_told_as_they_come_and_hidden_with_the_history_when_they_are_over() {
    let mut world = World::start().await;
    with_users(&mut world);
    let judgement = json!({"ready_for_implementation": true, "score": 9, "conclusion": "Good."}).to_string();
    for task in ["Paint the shed.", "Sell the shed."] {
        world.model.for_task(task).says(&judgement).holds();
    }
    world.model.for_task("Burn the shed.").declines("I do not judge that.");
    let (program, web) = opened(&world, &["dashboard"]).await;
    let under_way = async || web.json("/api/status").await["evaluations"].clone();
    assert_eq!(under_way().await, json!([]));
    let mut events = Reader::of(&web, "/api/events", None).await;
    let mut client = Client::start(&world).await;

    client.evaluates("The shed", "Paint the shed.").await;
    let started = events.until_fact("evaluation_started").await;
    assert_eq!(
        (&started["name"], &started["target_score"]),
        (&json!("The shed"), &json!(8.0))
    );
    let running = under_way().await;
    assert_eq!(running[0]["id"], started["id"], "{running}");
    assert_eq!(running[0]["state"], "running", "{running}");
    world.model.release();
    let ended = events.until_fact("evaluation_ended").await;
    for key in ["id", "name", "digest"] {
        assert!(ended[key].is_string() && ended[key] == started[key], "{key}: {ended}");
    }
    assert_eq!((&ended["score"], &ended["passed"]), (&json!(9.0), &json!(true)));
    assert_eq!(under_way().await, json!([]));

    client.evaluates("The fire", "Burn the shed.").await;
    let failed = events.until_fact("evaluation_failed").await;
    assert_eq!(failed["name"], "The fire");
    assert!(
        failed["reason"].as_str().unwrap().contains("the reviewer failed"),
        "{failed}"
    );
    let log = web.json("/api/logs").await;
    let mut names = log.as_array().unwrap().iter().map(|line| &line["fact"]);
    assert!(names.any(|name| name == "evaluation_failed"), "{log:#}");

    client.evaluates("The sale", "Sell the shed.").await;
    events.until_fact("evaluation_started").await;
    let cleared = web.post("/api/clear-history", &json!({})).await;
    assert_eq!(cleared.status(), StatusCode::OK);
    let names = async |path: &str| {
        let listed = web.json(path).await;
        let listed = listed.as_array().unwrap().iter();
        let names: Vec<Value> = listed.map(|one| one["name"].clone()).collect();
        json!(names)
    };
    assert_eq!(names("/api/evaluations").await, json!(["The sale"]));
    world.model.release();
    events.until_fact("evaluation_ended").await;
    assert_eq!(names("/api/evaluations").await, json!(["The sale"]), "it ended later");
    let all = names("/api/evaluations?hidden=true").await;
    assert_eq!(all, json!(["The sale", "The fire", "The shed"]));
    client.ends().await;
    ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn an_evaluation_whose_process_was_killed_is_hidden_with_the_history() {
    let mut world = World::start().await;
    with_users(&mut world);
    let (program, door) = opened(&world, &["dashboard"]).await;
    let killed = "INSERT INTO evaluations (id, begun_at, document) VALUES ('01900000-0000-7000-8000-000000000000',
         CAST(strftime('%s', 'now') AS INTEGER) * 1000000 - 86400000000, '{\"name\": \"The shed\"}')";
    world.sqlite().await.execute(killed).await.unwrap();
    assert_eq!(door.json("/api/evaluations").await[0]["state"], "broken off");

    let cleared = door.post("/api/clear-history", &json!({})).await;

    assert_eq!(cleared.status(), StatusCode::OK);
    assert_eq!(door.json("/api/evaluations").await, json!([]));
    let all = door.json("/api/evaluations?hidden=true").await;
    assert_eq!(all[0]["state"], "broken off", "{all}");
    ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn what_an_evaluation_uses_is_in_the_figures_and_counts_for_the_limit_of_the_day() {
    let mut world = World::start().await;
    world.configure(|config| config["budget"] = json!({ "per_day": { "tokens": 2000 } }));
    let judgement = json!({ "ready_for_implementation": true, "score": 9, "conclusion": "Good." });
    let script = world.model.for_task("Paint the shed.");
    script.says(&judgement.to_string()).counts(5000);
    let mut client = Client::start(&world).await;
    client.evaluates("The shed", "Paint the shed.").await;
    let is_over = async || world.command(&["evaluations"]).await.stdout.contains("passed");
    until("the end of the evaluation", is_over).await;
    client.ends().await;

    let called = facts(&world, "model_called");
    let asked: Vec<[&Value; 2]> = called.iter().map(|fact| [&fact["model"], &fact["role"]]).collect();
    assert_eq!(asked, [["llm", "reviewer"]], "{called:?}");
    let figures = world.command(&["stats", "--json"]).await.stdout;
    let figures: Value = serde_json::from_str(&figures).unwrap();
    assert_eq!(
        figures["tokens_by_model"]["llm as reviewer"]["input"], 5000,
        "{figures:#}"
    );
    world.github.open_issue("Paint the shed").label("coding agent");
    let ended = world.run().await;
    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until "),
        "{ended:?}\n{}",
        world.story()
    );
    world.finish().await;
}

#[tokio::test]
async fn what_a_cancelled_evaluation_was_answered_is_counted() {
    let world = World::start().await;
    let script = world.model.for_task("Paint the shed.");
    let script = script.says("I like it very much.").counts(5000);
    script.says("Nobody hears this.").holds();
    let mut client = Client::start(&world).await;
    client.evaluates("The shed", "Paint the shed.").await;
    world.model.until_held(1).await;
    client.cancels().await;
    let is_over = async || world.command(&["evaluations"]).await.stdout.contains("failed");
    until("the end of the evaluation", is_over).await;
    client.ends().await;

    let called = facts(&world, "model_called");
    let paid: Vec<&Value> = called.iter().map(|fact| &fact["input"]).collect();
    assert_eq!(paid, [5000], "{called:?}");
    world.finish().await;
}

/// Has the reviewer asked a second time, and the client go as `goes` does: what was answered the
/// first time is counted.
async fn is_counted_when<Gone: Future<Output = ()>>(goes: impl FnOnce(Client) -> Gone) {
    let world = World::start().await;
    let script = world.model.for_task("Paint the shed.");
    let script = script.says("I like it very much.").counts(5000);
    script.says("Nobody hears this.").holds();
    let mut client = Client::start(&world).await;
    client.evaluates("The shed", "Paint the shed.").await;
    world.model.until_held(1).await;
    goes(client).await;

    let called = facts(&world, "model_called");
    let paid: Vec<&Value> = called.iter().map(|fact| &fact["input"]).collect();
    assert_eq!(paid, [5000], "{called:?}");
    let told = world.command(&["evaluations"]).await.stdout;
    assert!(told.contains("failed"), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn what_an_evaluation_was_answered_is_counted_when_its_client_closes_the_stream() {
    is_counted_when(Client::ends).await;
}

#[tokio::test]
async fn what_an_evaluation_was_answered_is_counted_when_the_server_is_told_to_end() {
    is_counted_when(Client::ends_by_a_signal).await;
}

#[tokio::test]
async fn an_evaluation_is_recorded_when_its_turn_comes() {
    let world = World::start().await;
    let judgement = json!({ "ready_for_implementation": true, "score": 9, "conclusion": "Good." });
    let mut client = Client::start(&world).await;
    for id in 2..7 {
        let task = format!("Paint shed {id}.");
        world.model.for_task(&task).says(&judgement.to_string()).holds();
        client.evaluates_by(id, &task, &task).await;
    }
    world.model.until_held(4).await;
    let listed = async || {
        let told = world.command(&["evaluations", "--json"]).await.stdout;
        serde_json::from_str::<Vec<Value>>(&told).unwrap()
    };
    assert_eq!(listed().await.len(), 4, "four are made at once");

    for _ in 0..5 {
        world.model.release();
    }
    let are_over = async || listed().await.iter().filter(|one| one["state"] == "passed").count() == 5;
    until("the end of the evaluations", are_over).await;
    client.ends().await;
    world.finish().await;
}
