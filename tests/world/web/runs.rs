//! A run as people watch it, pause it, approve it and stop it.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{ALICE, ends, form_token, opened, problem, with_users};
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::facts::{count, until_facts};
use crate::world::scripts::{COMMAND, greets, plan};

#[tokio::test]
async fn a_plan_is_approved_on_its_page_and_the_run_paused_and_stopped_under_the_users_name() {
    let mut world = World::start().await;
    with_users(&mut world);
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({"command": "echo <b>bold</b>"}))
        .holds();
    let issue = world.github.open_issue("Greet the <i>reader</i>").label("coding agent");
    let (mut program, web) = opened(&world, &["serve"]).await;
    let waits = issue.until(|issue| issue.labels() == ["coding agent waiting"]);
    program.until(&world, waits).await;

    let status = web.json("/api/status").await;
    assert_eq!(status["worker_active"], true, "the service itself works");
    let run = status["runs"][0]["id"].as_str().unwrap().to_owned();
    let digest = status["runs"][0]["waits_for"]["digest"].as_str().unwrap().to_owned();
    let cookie = web.logs_in(ALICE).await.unwrap();
    let page = web.page(&format!("/runs/{run}"), &cookie).await.text().await.unwrap();
    assert!(
        page.contains(&digest) && page.contains("approval of its plan"),
        "{page}"
    );
    assert!(!page.contains("<i>reader"), "{page}");
    let token = form_token(&page);
    // A digest that nobody was shown approves nothing.
    let other = web
        .post(&format!("/api/runs/{run}/approve"), &json!({"digest": "0123456789"}))
        .await;
    assert_eq!(other.status(), StatusCode::OK);
    assert_eq!(issue.labels(), ["coding agent waiting"]);
    let fields = [("form_token", token.as_str()), ("digest", digest.as_str())];
    let sent = web.sends(&format!("/runs/{run}/approve"), &cookie, &fields).await;
    assert_eq!(sent.headers()["location"], format!("/runs/{run}?did=approve"));
    program.until(&world, world.model.until_held(1)).await;

    let paused = web.post(&format!("/api/runs/{run}/pause"), &json!({})).await;
    assert_eq!(paused.status(), StatusCode::OK);
    let shown = issue.until(|issue| issue.labels() == ["coding agent paused"]);
    program.until(&world, shown).await;
    let detail = web.json(&format!("/api/runs/{run}")).await;
    assert_eq!(detail["state"], "paused:working", "{detail:#}");
    let log = web.json(&format!("/api/logs?run={run}&limit=500")).await;
    let names: Vec<&str> = log
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|line| line["fact"].as_str())
        .collect();
    assert!(
        names.contains(&"plan_made") && names.contains(&"approval_granted"),
        "{names:?}"
    );
    let page = web.page(&format!("/runs/{run}"), &cookie).await.text().await.unwrap();
    assert!(!page.contains("<b>bold"), "{page}");

    let stopped = web.post(&format!("/api/runs/{run}/stop"), &json!({})).await;
    assert_eq!(stopped.status(), StatusCode::OK);
    let shown = issue.until(|issue| issue.labels() == ["coding agent stopped"]);
    program.until(&world, shown).await;
    super::until("the end in the store", async || {
        web.json(&format!("/api/runs/{run}")).await["state"] == "stopped"
    })
    .await;
    let again = web.post(&format!("/api/runs/{run}/stop"), &json!({})).await;
    problem(again, StatusCode::CONFLICT).await;
    ends(program, &world).await;
    let facts = world.journal();
    let granted = facts.iter().find(|fact| fact["fact"] == "approval_granted").unwrap();
    assert_eq!(granted["approver"], "alice");
    let ordered: Vec<&Value> = facts
        .iter()
        .filter(|fact| fact["fact"] == "ordered")
        .map(|fact| &fact["by"])
        .collect();
    assert!(
        !ordered.is_empty() && ordered.iter().all(|by| **by == "alice"),
        "{ordered:?}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_page_tells_whether_a_decision_counts_also_while_all_runs_are_paused() {
    let mut world = World::start().await;
    with_users(&mut world);
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    greets(world.model.plans(plan()));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let ended = world.run().await;
    assert_eq!(issue.labels(), ["coding agent waiting"], "{ended:?}\n{}", world.story());
    world.all_runs("pause").await;

    let (program, web) = opened(&world, &["dashboard"]).await;
    let status = web.json("/api/status").await;
    let run = status["runs"][0]["id"].as_str().unwrap().to_owned();
    let digest = status["runs"][0]["waits_for"]["digest"].as_str().unwrap().to_owned();
    let cookie = web.logs_in(ALICE).await.unwrap();
    let page = web.text(&format!("/runs/{run}"), &cookie).await;
    let token = form_token(&page);
    let does = async |action: &str, digest: &str| {
        let fields = [("form_token", token.as_str()), ("digest", digest)];
        let sent = web.sends(&format!("/runs/{run}/{action}"), &cookie, &fields).await;
        let place = sent.headers()["location"].to_str().unwrap().to_owned();
        let page = web.text(&place, &cookie).await;
        let notice = page.split("role=\"status\">").nth(1).unwrap();
        notice.split("</p>").next().unwrap().to_owned()
    };
    let refused = does("approve", "0123456789abcdef").await;
    assert!(refused.starts_with("It does not count"), "{refused}");
    let waits = does("resume", "").await;
    assert!(waits.starts_with("It was not resumed"), "{waits}");
    assert_eq!(count(&world, "approval_granted"), 0, "{}", world.story());
    let held = does("approve", &digest).await;
    assert!(held.starts_with("It counts. All runs are paused"), "{held}");
    let paused = does("pause", "").await;
    assert!(!paused.starts_with("It counts"), "{paused}");
    let resumed = does("resume", "").await;
    assert!(resumed.starts_with("It counts. All runs are paused"), "{resumed}");

    assert_eq!(world.run().await.stdout, "", "all runs are paused");
    world.all_runs("resume").await;
    let ended = world.run().await;
    assert_eq!(ended.outcomes(), ["github:acme/widgets#1: done"], "{ended:?}");
    ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn a_denial_counts_against_what_was_looked_at_and_nothing_else() {
    let mut world = World::start().await;
    with_users(&mut world);
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    world.model.allows_restarts();
    let another = Plan::of(&["greet nobody"]).in_environment("python");
    world.model.plans(plan()).plans(another);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let ended = world.run().await;
    assert_eq!(issue.labels(), ["coding agent waiting"], "{ended:?}\n{}", world.story());

    let (program, web) = opened(&world, &["dashboard"]).await;
    let waiting = async || web.json("/api/status").await["runs"][0].clone();
    let digest = async || waiting().await["waits_for"]["digest"].as_str().unwrap().to_owned();
    let run = waiting().await["id"].as_str().unwrap().to_owned();
    let former = digest().await;
    let cookie = web.logs_in(ALICE).await.unwrap();
    let page = web.text(&format!("/runs/{run}"), &cookie).await;
    let named = format!("name=\"digest\" value=\"{former}\"");
    assert_eq!(page.matches(&named).count(), 2, "both forms name it: {page}");
    let token = form_token(&page);
    let denies = async |digest: &str| {
        let fields = [
            ("form_token", token.as_str()),
            ("digest", digest),
            ("reason", "Greet nobody."),
        ];
        let sent = web.sends(&format!("/runs/{run}/deny"), &cookie, &fields).await;
        sent.headers()["location"].to_str().unwrap().to_owned()
    };
    assert_eq!(denies(&former).await, format!("/runs/{run}?did=deny"));
    let ended = world.run().await;
    assert_eq!(issue.labels(), ["coding agent waiting"], "{ended:?}\n{}", world.story());

    let now = digest().await;
    assert_ne!(now, former);
    assert_eq!(denies(&former).await, format!("/runs/{run}?did=deny&came=refused"));
    let act = format!("/api/runs/{run}/deny");
    let answer = web
        .post(&act, &json!({ "digest": former, "reason": "Greet nobody." }))
        .await;
    let answer: Value = answer.json().await.unwrap();
    assert!(
        answer["outcome"].as_str().unwrap().starts_with("it does not count"),
        "{answer}"
    );
    assert_eq!(issue.labels(), ["coding agent waiting"], "{}", world.story());
    assert_eq!(digest().await, now);
    let answer = web
        .post(&act, &json!({ "digest": now, "reason": "Greet nobody." }))
        .await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(issue.labels(), ["coding agent stopped"], "{}", world.story());
    let facts = until_facts(&world, "approval_denied", 2).await;
    assert!(facts[1]["digest"].as_str().unwrap().starts_with(&now), "{facts:?}");
    ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn the_dashboard_alone_shows_the_runs_of_another_process_and_takes_decisions() {
    let mut world = World::start().await;
    with_users(&mut world);
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    greets(world.model.plans(plan()));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let ended = world.run().await;
    assert_eq!(issue.labels(), ["coding agent waiting"], "{ended:?}\n{}", world.story());

    let (program, web) = opened(&world, &["dashboard"]).await;
    let status = web.json("/api/status").await;
    assert_eq!(status["worker_active"], false, "the dashboard only looks");
    let run = status["runs"][0]["id"].as_str().unwrap().to_owned();
    let approved = web.post(&format!("/api/runs/{run}/approve"), &json!({})).await;
    assert_eq!(approved.status(), StatusCode::OK, "{}", world.story());
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", &world);
    let detail = web.json(&format!("/api/runs/{run}")).await;
    assert_eq!(detail["state"], "done");
    assert_eq!(issue.labels(), ["coding agent done"]);
    ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn a_run_whose_record_cannot_be_read_is_shown_as_that_and_left_alone() {
    const UNREADABLE: &str = "cannot be read at `version`";
    let mut world = World::start().await;
    with_users(&mut world);
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    world.model.plans(plan());
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let ended = world.run().await;
    assert_eq!(issue.labels(), ["coding agent waiting"], "{ended:?}\n{}", world.story());
    let asked = until_facts(&world, "approval_requested", 1).await;
    // As a newer version of the program writes it.
    let version = |record: &Value| record["version"].as_u64().unwrap();
    world
        .rewrite_records(|record| record["version"] = json!(version(record) + 1_000))
        .await;

    let (program, web) = opened(&world, &["dashboard"]).await;
    let status = web.json("/api/status").await["runs"][0].clone();
    let reason = status["unreadable"].as_str().unwrap();
    assert!(reason.contains(UNREADABLE), "{status:#}");
    let run = status["id"].as_str().unwrap().to_owned();
    let detail = web.json(&format!("/api/runs/{run}")).await;
    assert_eq!(detail["unreadable"], reason, "{detail:#}");
    assert_eq!(detail["cost_usd"], Value::Null, "{detail:#}");
    let cookie = web.logs_in(ALICE).await.unwrap();
    for path in ["/".to_owned(), format!("/runs/{run}")] {
        let page = web.text(&path, &cookie).await;
        assert!(page.contains(UNREADABLE), "{path}: {page}");
        assert!(!page.contains("There is no plan yet"), "{path}: {page}");
    }
    for (action, details) in [
        ("approve", json!({ "digest": asked[0]["digest"] })),
        ("deny", json!({ "reason": "No." })),
        ("resume", json!({})),
    ] {
        let refused = web.post(&format!("/api/runs/{run}/{action}"), &details).await;
        let detail = problem(refused, StatusCode::CONFLICT).await;
        assert!(detail.contains(UNREADABLE), "{action}: {detail}");
    }
    let told = world.command(&["status"]).await.stdout;
    assert!(told.contains(UNREADABLE), "{told}");
    let told = world.command(&["status", "--json"]).await.stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["runs"][0]["unreadable"], reason, "{told:#}");
    assert_eq!(told["runs"][0]["usage"], Value::Null, "{told:#}");
    assert_eq!(issue.labels(), ["coding agent waiting"], "{}", world.story());

    // Whoever can read it finds it as it was.
    world
        .rewrite_records(|record| record["version"] = json!(version(record) - 1_000))
        .await;
    let detail = web.json(&format!("/api/runs/{run}")).await;
    assert_eq!(detail["unreadable"], Value::Null, "{detail:#}");
    assert_eq!(detail["steps"][0]["description"], "greet the reader", "{detail:#}");
    let stopped = web.post(&format!("/api/runs/{run}/stop"), &json!({})).await;
    assert_eq!(stopped.status(), StatusCode::OK);
    assert_eq!(issue.labels(), ["coding agent stopped"], "{}", world.story());
    ends(program, &world).await;
    world.finish().await;
}
