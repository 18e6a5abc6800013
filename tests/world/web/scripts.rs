//! The API as scripts use it: good answers, and a sentence for each mistake.

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::{ALICE, ends, form_token, opened, problem, with_users};
use crate::world::World;
use crate::world::scripts::{greets, plan};

/// Checks that the document of the API says of an operation what was answered: the status, or that
/// it is a refusal, the kind of the content, and the address.
fn is_described(document: &Value, (method, path): (&str, &str), answer: &Response) {
    let responses = &document["paths"][path][method]["responses"];
    let status = answer.status().as_u16().to_string();
    let described = responses.get(&status).unwrap_or(&responses["default"]);
    let kind = answer.headers()["content-type"].to_str().unwrap();
    let kind = kind.split(';').next().unwrap();
    assert!(
        described["content"][kind].is_object(),
        "{method} {path}: {status} {kind}\n{responses:#}"
    );
    assert_eq!(
        described["headers"]["Location"].is_object(),
        answer.headers().contains_key("location"),
        "{method} {path}: {status}\n{responses:#}"
    );
}

#[tokio::test]
async fn what_does_not_fit_gets_its_status_and_a_sentence() {
    let mut world = World::start().await;
    with_users(&mut world);
    let (program, web) = opened(&world, &["dashboard"]).await;
    let run = "019aa6b2-0000-7000-8000-000000000000";
    for (path, status, words) in [
        ("/api/history?limit=0", 400, "from 1 to 200"),
        ("/api/history?limt=5", 400, "there are limit, before"),
        ("/api/history?before=x", 400, "the id of a run"),
        ("/api/logs?task=nonsense", 400, "github:owner/repo#12"),
        ("/api/logs?limit=5&limit=6", 400, "twice"),
        ("/api/stats?days=0", 400, "from 1 to"),
        ("/api/events?after=-1", 400, "whole number"),
        ("/api/status?x=1", 400, "no parameters"),
        (&format!("/api/runs/{run}"), 404, "no such run"),
        ("/api/runs/..%2f..%2fetc%2fpasswd", 404, "no such run"),
        ("/api/evaluations/x", 404, "no such evaluation"),
        ("/api/nothing", 404, "begins at /"),
        ("/api/tasks", 405, "openapi.json"),
    ] {
        let detail = problem(web.get(path).await, StatusCode::from_u16(status).unwrap()).await;
        assert!(detail.contains(words), "{path}: {detail}");
    }
    let act = format!("/api/runs/{run}/approve");
    for (path, body, status, words) in [
        (act.as_str(), json!({"digest": "xyz"}), 400, "hexadecimal"),
        (&act, json!({"digits": "xyz"}), 400, "does not fit"),
        (&act, json!({}), 404, "no such run"),
        (
            &format!("/api/runs/{run}/deny"),
            json!({"digest": "xyz", "reason": "x"}),
            400,
            "hexadecimal",
        ),
        (
            &format!("/api/runs/{run}/budget"),
            json!({"tokens": "many"}),
            400,
            "500k",
        ),
        (&format!("/api/runs/{run}/dance"), json!({}), 404, "pause, resume"),
        ("/api/tasks", json!({"title": "x"}), 400, "repository"),
        (
            "/api/tasks",
            json!({"repository": "github:acme/widgets", "title": " "}),
            400,
            "`title`",
        ),
        (
            "/api/tasks",
            json!({"repository": "github:acme/other", "title": "x"}),
            422,
            "configuration",
        ),
        (
            "/api/tasks",
            json!({"repository": "acme/widgets", "title": "x"}),
            422,
            "github:owner/repo",
        ),
        (
            "/api/auto-approve",
            json!({"on": true}),
            409,
            "approval.auto_approve.enabled",
        ),
        ("/api/auto-approve", json!({"on": "yes"}), 400, "does not fit"),
    ] {
        let detail = problem(web.post(path, &body).await, StatusCode::from_u16(status).unwrap()).await;
        assert!(detail.contains(words), "{path} {body}: {detail}");
    }
    let post = |path: &str| web.request(Method::POST, path).bearer_auth(ALICE);
    let text = post("/api/tasks").header("content-type", "text/plain").body("{}");
    problem(text.send().await.unwrap(), StatusCode::UNSUPPORTED_MEDIA_TYPE).await;
    let broken = post("/api/tasks")
        .header("content-type", "application/json")
        .body("{\"title\": \"\u{1}");
    problem(broken.send().await.unwrap(), StatusCode::BAD_REQUEST).await;
    let large = post("/api/tasks")
        .header("content-type", "application/json")
        .body("x".repeat(300_000));
    assert_eq!(large.send().await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
    let wrong = web
        .request(Method::DELETE, "/api/status")
        .bearer_auth(ALICE)
        .send()
        .await
        .unwrap();
    problem(wrong, StatusCode::METHOD_NOT_ALLOWED).await;

    let document = web.json("/api/openapi.json").await;
    assert_eq!(document["openapi"], "3.1.0");
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert!(paths.len() >= 15, "{paths:?}");
    for path in ["/api/status", "/api/history", "/api/logs", "/api/events", "/metrics"] {
        let answer = web.get(path).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        is_described(&document, ("get", path), &answer);
    }
    ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn a_budget_is_a_number_or_a_text() {
    let mut world = World::start().await;
    with_users(&mut world);
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    world.model.plans(plan());
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let ended = world.run().await;
    assert_eq!(issue.labels(), ["coding agent waiting"], "{ended:?}\n{}", world.story());
    let (program, web) = opened(&world, &["dashboard"]).await;
    let status = web.json("/api/status").await;
    let run = format!("/api/runs/{}", status["runs"][0]["id"].as_str().unwrap());
    let budget = format!("{run}/budget");
    for (tokens, allowed) in [(json!(500_000), 500_000), (json!("600k"), 600_000)] {
        let told = web.post(&budget, &json!({ "tokens": tokens })).await;
        assert_eq!(told.status(), StatusCode::OK, "{tokens}");
        assert_eq!(web.json(&run).await["budget"]["tokens"], allowed);
    }
    for tokens in [json!(0), json!(-1), json!(1.5), json!(true), json!("")] {
        let told = web.post(&budget, &json!({ "tokens": tokens })).await;
        let detail = problem(told, StatusCode::BAD_REQUEST).await;
        assert!(detail.contains("`tokens` must be a number such as 500000"), "{detail}");
    }
    let document = web.json("/api/openapi.json").await;
    let kinds = document["components"]["schemas"]["Tokens"]["anyOf"].as_array().unwrap();
    let kinds: Vec<&Value> = kinds.iter().map(|kind| &kind["type"]).collect();
    assert_eq!(kinds, ["integer", "string"], "{document:#}");
    ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn bytes_that_fit_nowhere_get_a_sentence_and_stand_in_no_log() {
    let mut world = World::start().await;
    with_users(&mut world);
    let (program, web) = opened(&world, &["dashboard"]).await;
    let post = |path: &str| web.request(Method::POST, path).bearer_auth(ALICE);
    for (name, value) in [
        ("last-event-id", "1e9"),
        ("last-event-id", "18446744073709551615"),
        ("idempotency-key", ""),
    ] {
        let path = if name == "last-event-id" {
            "/api/events"
        } else {
            "/api/tasks"
        };
        let method = if name == "last-event-id" {
            Method::GET
        } else {
            Method::POST
        };
        let request = web.request(method, path).bearer_auth(ALICE).header(name, value);
        let task = json!({"repository": "github:acme/widgets", "title": "x"});
        let response = request.json(&task).send().await.unwrap();
        let detail = problem(response, StatusCode::BAD_REQUEST).await;
        assert!(detail.to_lowercase().contains(name), "{detail}");
    }
    // Bytes that are no text, in a body, in a path and in a query.
    let bytes = post("/api/tasks")
        .header("content-type", "application/json")
        .body(vec![b'{', b'"', 0xff, 0xfe, b'"', b'}']);
    problem(bytes.send().await.unwrap(), StatusCode::BAD_REQUEST).await;
    problem(web.get("/api/runs/%ff%fe").await, StatusCode::BAD_REQUEST).await;
    let nothing = web.json("/api/history?repository=%1b%5b31mforged-line&state=%0a").await;
    assert_eq!(nothing["runs"], json!([]));
    let line = web.get(&format!("/api/{}", "x".repeat(60_000))).await;
    assert!(line.status().is_client_error(), "{}", line.status());
    assert_eq!(web.get("/health").await.status(), StatusCode::OK);
    let nonsense = web.get("/api/logs?task=nonsense-of-somebody").await;
    problem(nonsense, StatusCode::BAD_REQUEST).await;
    ends(program, &world).await;
    // None of it stands in a log as it came.
    for word in ["forged-line", "nonsense-of-somebody", "xxxxxxxxxx"] {
        let found = std::process::Command::new("grep")
            .args(["-rF", word])
            .arg(world.folder().join("logs"))
            .output();
        assert!(found.unwrap().stdout.is_empty(), "{word} is in the logs");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_task_that_is_asked_for_twice_with_one_key_is_one_issue_and_is_worked_on() {
    for is_gitlab in [false, true] {
        let mut world = if is_gitlab {
            World::on_gitlab().await
        } else {
            World::start().await
        };
        with_users(&mut world);
        greets(world.model.plans(plan()));
        let (mut program, web) = opened(&world, &["serve"]).await;
        let host = if is_gitlab { "gitlab" } else { "github" };
        let task = json!({"repository": format!("{host}:ACME/Widgets"), "title": "Greet the reader", "text": "In /close\nEnglish."});
        let ask = || {
            web.request(Method::POST, "/api/tasks")
                .bearer_auth(ALICE)
                .header("idempotency-key", "k-1")
        };
        let document = web.json("/api/openapi.json").await;
        let first = ask().json(&task).send().await.unwrap();
        assert_eq!(first.status(), StatusCode::CREATED);
        is_described(&document, ("post", "/api/tasks"), &first);
        let opened: Value = first.json().await.unwrap();
        let again = ask().json(&task).send().await.unwrap();
        assert_eq!(again.status(), StatusCode::OK);
        is_described(&document, ("post", "/api/tasks"), &again);
        assert_eq!(again.json::<Value>().await.unwrap(), opened);
        let other = ask().json(&json!({"repository": task["repository"], "title": "Another"}));
        let refused = other.send().await.unwrap();
        is_described(&document, ("post", "/api/tasks"), &refused);
        problem(refused, StatusCode::UNPROCESSABLE_ENTITY).await;
        assert_eq!(opened["task"], format!("{host}:acme/widgets#1"));
        assert!(opened["url"].as_str().unwrap().ends_with("/issues/1"), "{opened}");

        let is_done = async {
            super::until("the end of the run", async || {
                let history = web.json("/api/history?state=done").await;
                history["runs"].as_array().unwrap().len() == 1
            })
            .await;
        };
        program.until(&world, is_done).await;
        ends(program, &world).await;
        let (issues, changes) = if is_gitlab {
            (
                world.gitlab.items().len() - world.gitlab.merge_requests().len(),
                world.gitlab.merge_requests().len(),
            )
        } else {
            (
                world.github.items().len() - world.github.pulls().len(),
                world.github.pulls().len(),
            )
        };
        assert_eq!((issues, changes), (1, 1), "{}", world.story());
        let facts = world.journal();
        let started = facts
            .iter()
            .find(|fact| fact["fact"] == "ordered" && fact["command"] == "start");
        assert_eq!(started.unwrap()["by"], "alice");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_page_starts_a_task_and_the_history_is_hidden_not_deleted() {
    let mut world = World::start().await;
    with_users(&mut world);
    greets(world.model.plans(plan()));
    let (mut program, web) = opened(&world, &["serve"]).await;
    let cookie = web.logs_in(ALICE).await.unwrap();
    let page = web.text("/new", &cookie).await;
    assert!(page.contains("github:acme/widgets"), "{page}");
    let token = form_token(&page);
    let key = page
        .split("name=\"key\" value=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let fields = [
        ("form_token", token.as_str()),
        ("key", &key),
        ("repository", "github:acme/widgets"),
        ("title", "<script>alert(1)</script>"),
        ("text", "Hello"),
    ];
    // Sent twice, as impatient people do.
    for _ in 0..2 {
        let sent = web.sends("/tasks", &cookie, &fields).await;
        assert_eq!(sent.status(), StatusCode::SEE_OTHER);
    }
    let history = async || web.json("/api/history").await["runs"].as_array().unwrap().clone();
    let is_done = super::until("the end of the run", async || {
        history().await.iter().any(|run| run["state"] == "done")
    });
    program.until(&world, is_done).await;
    let run = history().await[0]["id"].as_str().unwrap().to_owned();
    for path in ["/".to_owned(), format!("/runs/{run}"), "/statistics".to_owned()] {
        for language in ["en", "ja"] {
            let cookie = format!("{cookie}; coding-agent-language={language}");
            let response = web.page(&path, &cookie).await;
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            let page = response.text().await.unwrap();
            assert!(page.contains(&format!("<html lang=\"{language}\">")), "{path}");
            assert!(!page.contains("<script>alert"), "{path}: {page}");
        }
    }
    let detail = web.json(&format!("/api/runs/{run}")).await;
    assert_eq!(detail["steps"][0]["description"], "greet the reader", "{detail:#}");
    assert!(detail["change"].as_str().unwrap().contains("/pull/"), "{detail:#}");
    let page = web.text(&format!("/runs/{run}"), &cookie).await;
    assert!(page.contains("README.md") && page.contains("+Hello"), "{page}");
    // A fact is counted a moment after the deed.
    let is_counted = async || {
        let metrics = web.get("/metrics").await.text().await.unwrap();
        metrics.contains("coding_agent_runs_total{outcome=\"done\"} 1")
    };
    super::until("the figures", is_counted).await;
    let figures = web.json("/api/stats?days=7").await;
    assert_eq!(figures["ended"]["done"], 1, "{figures:#}");
    assert_eq!(figures["days"][0]["done"], 1, "{figures:#}");
    let metrics = web.get("/metrics").await.text().await.unwrap();
    assert!(
        metrics.contains("coding_agent_runs_total{outcome=\"done\"} 1"),
        "{metrics}"
    );
    for figure in [
        "coding_agent_forge_requests_total{forge=\"github\"} ",
        "coding_agent_forge_requests_left{forge=\"github\",kind=",
        "coding_agent_engine_up 1",
        "coding_agent_containers ",
    ] {
        assert!(metrics.contains(figure), "{figure}\n{metrics}");
    }

    assert_eq!(
        web.post("/api/clear-history", &json!({})).await.status(),
        StatusCode::OK
    );
    assert_eq!(history().await.len(), 0);
    let hidden = web
        .json("/api/history?hidden=true&repository=github:acme/widgets")
        .await;
    assert_eq!(hidden["runs"].as_array().unwrap().len(), 1);
    assert_eq!(web.get(&format!("/api/runs/{run}")).await.status(), StatusCode::OK);
    ends(program, &world).await;
    world.finish().await;
}
