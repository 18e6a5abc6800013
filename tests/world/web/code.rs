//! The code index of the repositories that are worked on, over HTTP.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{BOB, ends, opened, problem, with_users};
use crate::world::World;
use crate::world::scripts::{greets, plan};

#[tokio::test]
async fn places_are_searched_taken_in_and_left_out_over_http() {
    let mut world = World::start().await;
    with_users(&mut world);
    let git = world.github.default_repository().git();
    let source = "def close_adapter(pool):\n    \"\"\"Closes the pooled connections.\"\"\"\n    pool.close()\n";
    git.commit(
        "main",
        "main",
        "Grow",
        &[("net/sessions.py", source), ("old.py", "x = 1\n")],
    );
    let (program, web) = opened(&world, &["dashboard"]).await;
    let question = json!({"repository": "github:acme/widgets", "query": "where are connections closed", "top_k": 3});
    let detail = problem(web.post("/api/search", &question).await, StatusCode::NOT_FOUND).await;
    assert!(detail.contains("the first task on it fetches it"), "{detail}");

    greets(world.model.plans(plan()));
    world.github.open_issue("Greet").label("coding agent");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());

    let found = web.post("/api/search", &question).await;
    assert_eq!(found.status(), StatusCode::OK);
    let found: serde_json::Value = found.json().await.unwrap();
    let chunk = &found["chunks"][0];
    assert_eq!(
        (&chunk["path"], &chunk["span"], &chunk["name"]),
        (&json!("net/sessions.py"), &json!("L1-L3"), &json!("close_adapter")),
        "{found}"
    );
    assert!(chunk["text"].as_str().unwrap().contains("pool.close()") && chunk["score"].is_number());
    let narrowed =
        json!({"repository": "github:acme/widgets", "query": "connections", "filters": {"path_prefix": "docs/"}});
    let answer: serde_json::Value = web.post("/api/search", &narrowed).await.json().await.unwrap();
    assert_eq!(answer, json!({"chunks": []}));

    let prune = json!({"repository": "github:acme/widgets", "paths": ["net"]});
    let answer: serde_json::Value = web.post("/api/prune", &prune).await.json().await.unwrap();
    assert_eq!(answer, json!({"paths": ["net"], "files": 1}));
    let answer: serde_json::Value = web.post("/api/search", &question).await.json().await.unwrap();
    assert!(!answer.to_string().contains("sessions"), "{answer}");
    let ingest =
        json!({"repository": "github:acme/widgets", "diff": {"modified": ["net/sessions.py"], "deleted": ["gone.py"]}});
    let answer: serde_json::Value = web.post("/api/ingest", &ingest).await.json().await.unwrap();
    let expected = json!({"files": [{"path": "net/sessions.py", "places": 1}], "gone": ["gone.py"], "parsed": 0});
    assert_eq!(answer, expected);

    for (path, body, status, words) in [
        (
            "/api/search",
            json!({"repository": "github:acme/widgets", "query": " "}),
            400,
            "`query`",
        ),
        (
            "/api/search",
            json!({"repository": "github:acme/other", "query": "x"}),
            422,
            "configuration",
        ),
        (
            "/api/search",
            json!({"repository": "github:acme/widgets", "query": "x", "branch": "no"}),
            404,
            "no such branch",
        ),
        (
            "/api/prune",
            json!({"repository": "github:acme/widgets", "paths": ["../x"]}),
            400,
            "below the root",
        ),
        (
            "/api/ingest",
            json!({"repository": "github:acme/widgets"}),
            400,
            "no path was named",
        ),
    ] {
        let detail = problem(web.post(path, &body).await, StatusCode::from_u16(status).unwrap()).await;
        assert!(detail.contains(words), "{path} {body}: {detail}");
        // Who may only look gets no code.
        let looked = web
            .request(Method::POST, path)
            .bearer_auth(BOB)
            .json(&body)
            .send()
            .await
            .unwrap();
        problem(looked, StatusCode::FORBIDDEN).await;
    }
    ends(program, &world).await;
    world.finish().await;
}
