//! Places that a model of embeddings puts in order, and what becomes of them when it is away.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Json, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};

use super::{greeting, grown};
use crate::world::World;
use crate::world::scripts::{greets, plan};

/// A server to which a text means the more the closer it is to `part_7`.
#[derive(Clone, Default)]
struct Embeddings(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    requests: Vec<Value>,
    is_broken: bool,
}

impl Embeddings {
    async fn start(&self) -> String {
        let router = Router::new()
            .route("/v1/embeddings", post(answer))
            .with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    fn requests(&self) -> Vec<Value> {
        self.0.lock().unwrap().requests.clone()
    }
}

async fn answer(State(server): State<Embeddings>, Json(body): Json<Value>) -> Response {
    let mut seen = server.0.lock().unwrap();
    seen.requests.push(body.clone());
    if seen.is_broken {
        return (StatusCode::INTERNAL_SERVER_ERROR, "no").into_response();
    }
    let texts = body["input"].as_array().unwrap().iter().enumerate();
    let data = texts.map(|(index, text)| {
        let text = text.as_str().unwrap();
        let is_near = index == 0 || text.contains("part_7");
        json!({"object": "embedding", "index": index, "embedding": if is_near { [1.0, 0.0] } else { [0.0, 1.0] }})
    });
    Json(json!({"object": "list", "data": data.collect::<Vec<_>>()})).into_response()
}

#[tokio::test]
async fn the_best_places_by_words_are_reordered_by_meaning_and_stay_where_nobody_answers() {
    let mut world = World::start().await;
    let server = Embeddings::default();
    let address = server.start().await;
    world.configure(|config| {
        config["llm"]["models"]["vectors"] = json!({"provider": "openai", "base_url": address, "model": "e5"});
        config["index"] = json!({"embeddings": "vectors"});
    });
    grown(&world);
    // Its words fit all thirty parts alike.
    let question = "part returns x";
    greets(world.model.script().plans(plan()));
    world.github.open_issue(question).label("coding agent");

    assert_eq!(world.run().await.code, Some(0), "{}", world.story());

    let places = |text: String| text.split("fit the words of the task best").nth(1).unwrap().to_owned();
    let first = places(world.model.requests()[0].first_user_message());
    let begins = first.lines().find(|line| line.contains(".py:")).unwrap();
    assert!(begins.starts_with("net/part_7.py:"), "{first}");
    let sent = server.requests();
    assert_eq!(sent[0]["model"], "e5");
    let texts = sent[0]["input"].as_array().unwrap();
    assert!(texts[0].as_str().unwrap().starts_with(question), "{}", texts[0]);
    assert!(texts.len() > 10 && texts.len() <= 51, "{}", texts.len());

    server.0.lock().unwrap().is_broken = true;
    greets(world.model.script().plans(plan()));
    let before = world.model.requests().len();
    let issue = greeting(&world);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let first = places(world.model.requests()[before].first_user_message());
    assert!(first.contains("net/sessions.py:5-7"), "{first}");
    assert!(server.requests().len() > sent.len());
    world.finish().await;
}
