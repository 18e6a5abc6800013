//! Facts as they come: resumed behind any of them, across restarts, and from other processes.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{ALICE, WebClient, ends, opened, with_users};
use crate::world::World;

/// A reader of the events.
pub struct Reader {
    response: reqwest::Response,
    text: String,
}

impl Reader {
    pub async fn of(web: &WebClient, path: &str, last: Option<u64>) -> Self {
        let mut request = web.request(Method::GET, path).bearer_auth(ALICE);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let text = String::new();
        Self { response, text }
    }

    /// Returns the next fact with its number.
    async fn next(&mut self) -> (u64, Value) {
        let waiting = async {
            loop {
                if let Some((event, rest)) = self.text.split_once("\n\n") {
                    let field = |name: &str| {
                        let mut lines = event.lines();
                        lines
                            .find_map(|line| line.strip_prefix(name))
                            .map(|text| text.trim().to_owned())
                    };
                    let found = (field("id:"), field("data:"));
                    let rest = rest.to_owned();
                    self.text = rest;
                    if let (Some(id), Some(data)) = found {
                        return (id.parse().unwrap(), serde_json::from_str(&data).unwrap());
                    }
                    continue;
                }
                let chunk = self.response.chunk().await.unwrap().expect("the stream ended");
                self.text.push_str(&String::from_utf8_lossy(&chunk));
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waiting)
            .await
            .expect("no event")
    }

    /// Returns the next fact with this name.
    pub async fn until_fact(&mut self, name: &str) -> Value {
        loop {
            let (_, fact) = self.next().await;
            if fact["fact"] == name {
                return fact;
            }
        }
    }

    /// Returns the number of the next fact with this command.
    async fn until_ordered(&mut self, command: &str) -> u64 {
        loop {
            let (id, fact) = self.next().await;
            if fact["command"] == command {
                return id;
            }
        }
    }
}

#[tokio::test]
async fn a_reader_goes_on_where_it_was_after_a_restart_and_hears_other_processes() {
    let mut world = World::start().await;
    with_users(&mut world);
    world.configure(|config| config["approval"] = json!({ "auto_approve": { "enabled": true } }));
    let (program, web) = opened(&world, &["dashboard"]).await;
    let mut reader = Reader::of(&web, "/api/events", None).await;
    for _ in 0..2 {
        assert_eq!(
            web.post("/api/clear-history", &json!({})).await.status(),
            StatusCode::OK
        );
    }
    let first = reader.until_ordered("clear-history").await;
    let second = reader.until_ordered("clear-history").await;
    assert!(second > first);
    ends(program, &world).await;

    // While nobody served, another process wrote.
    let ended = world.command(&["auto-approve", "on", "--ttl", "5m"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (program, web) = opened(&world, &["dashboard"]).await;
    let mut reader = Reader::of(&web, "/api/events", Some(first)).await;
    assert_eq!(
        reader.until_ordered("clear-history").await,
        second,
        "behind the last one, and none twice"
    );
    let mut numbers = vec![second];
    loop {
        let (id, fact) = reader.next().await;
        assert!(id > *numbers.last().unwrap());
        numbers.push(id);
        if fact["fact"] == "automatic_approval_started" {
            break;
        }
    }
    // A process beside this one.
    let ended = world.command(&["auto-approve", "off"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    loop {
        let (_, fact) = reader.next().await;
        if fact["fact"] == "automatic_approval_ended" {
            break;
        }
    }
    let status = web.json("/api/status").await;
    assert_eq!(status["automatic_approval"]["enabled"], true);
    assert_eq!(status["automatic_approval"]["until"], Value::Null);

    // Readers that take nothing hold up nobody.
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(Reader::of(&web, "/api/events?after=0", None).await);
    }
    let begun = std::time::Instant::now();
    assert_eq!(
        web.post("/api/clear-history", &json!({})).await.status(),
        StatusCode::OK
    );
    reader.until_ordered("clear-history").await;
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    drop(idle);
    ends(program, &world).await;
    world.finish().await;
}
