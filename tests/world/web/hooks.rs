//! Webhooks: real ones start work at once, and no other does anything.

use std::fmt::Write;
use std::time::{Duration, Instant};

use hmac::{Hmac, Mac};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::{WebClient, ends, opened, problem, with_users};
use crate::world::World;
use crate::world::scripts::{greets, plan};

const SECRET: &str = "a-secret-of-the-webhook";

fn signature(body: &str) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let digest = mac.finalize().into_bytes();
    let hex = digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    format!("sha256={hex}")
}

async fn delivers(web: &WebClient, id: &str, event: &str, signature: Option<&str>, body: &str) -> Response {
    let mut request = web
        .request(Method::POST, "/hooks/github")
        .header("x-github-delivery", id)
        .header("x-github-event", event)
        .header("content-type", "application/json");
    if let Some(signature) = signature {
        request = request.header("x-hub-signature-256", signature);
    }
    request.body(body.to_owned()).send().await.unwrap()
}

/// Returns the event of a label on the issue of this number.
fn labelled(number: u64) -> String {
    json!({"action": "labeled", "label": {"name": "coding agent"}, "issue": {"number": number}}).to_string()
}

async fn outcome(response: Response) -> String {
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    response.json::<Value>().await.unwrap()["outcome"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_label_starts_work_at_once_and_what_is_forged_or_repeated_nothing() {
    let mut world = World::start().await;
    with_users(&mut world);
    world.configure(|config| {
        config["producer"]["interval_seconds"] = json!(3600);
        config["http"]["webhooks"] = json!({ "github": { "secret": SECRET } });
    });
    for title in ["Greet the reader", "Greet the writer"] {
        greets(world.model.for_task(title).plans(plan()));
    }
    let (mut program, web) = opened(&world, &["serve"]).await;
    let searches = || world.github.count("GET /repos/*/*/issues");
    super::until("the first search", async || searches() == 1).await;

    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let first = labelled(1);
    let begun = Instant::now();
    let taken = delivers(&web, "d-1", "issues", Some(&signature(&first)), &first).await;
    // A forge gives up after ten.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(outcome(taken).await, "taken");
    let claimed = issue.until(|issue| issue.labels() == ["coding agent processing"]);
    program.until(&world, claimed).await;
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
    let done = issue.until(|issue| issue.labels() == ["coding agent done"]);
    program.until(&world, done).await;
    assert_eq!(searches(), 2, "{}", world.story());

    let body = labelled(3);
    let good = signature(&body);
    for wrong in [
        None,
        Some(""),
        Some("sha256=00"),
        Some(good[..20].trim_end()),
        Some("sha1=abc"),
    ] {
        let refused = delivers(&web, "d-2", "issues", wrong, &body).await;
        assert!(
            problem(refused, StatusCode::UNAUTHORIZED)
                .await
                .contains("X-Hub-Signature-256")
        );
    }
    let changed = body.replace("labeled", "unlabeled");
    problem(
        delivers(&web, "d-2", "issues", Some(&good), &changed).await,
        StatusCode::UNAUTHORIZED,
    )
    .await;
    let bytes = "no json";
    let malformed = delivers(&web, "d-2", "issues", Some(&signature(bytes)), bytes).await;
    problem(malformed, StatusCode::BAD_REQUEST).await;
    let nameless = delivers(&web, "a b", "issues", Some(&good), &body).await;
    problem(nameless, StatusCode::BAD_REQUEST).await;
    let foreign = web
        .request(Method::POST, "/hooks/gitlab")
        .body("{}")
        .send()
        .await
        .unwrap();
    problem(foreign, StatusCode::NOT_FOUND).await;
    let star = json!({"action": "created"}).to_string();
    let quiet = delivers(&web, "d-0", "star", Some(&signature(&star)), &star).await;
    assert_eq!(outcome(quiet).await, "not of interest");

    for number in 0..100 {
        // Neither id nor event is signed: another one makes it no other delivery.
        let (id, event) = match number % 3 {
            0 => ("d-1".to_owned(), "issues"),
            1 => (format!("d-1-{number}"), "issues"),
            _ => (format!("d-1-{number}"), "issue_comment"),
        };
        let again = delivers(&web, &id, event, Some(&signature(&first)), &first).await;
        assert_eq!(outcome(again).await, "repeated");
    }
    let large = "x".repeat(5 * 1024 * 1024);
    let refused = delivers(&web, "d-3", "issues", Some(&signature(&large)), &large).await;
    problem(refused, StatusCode::PAYLOAD_TOO_LARGE).await;

    // What one of these had set off would have come before it.
    let issue = world.github.open_issue("Greet the writer").label("coding agent");
    let taken = delivers(&web, "d-2", "issues", Some(&good), &body).await;
    assert_eq!(outcome(taken).await, "taken");
    let done = issue.until(|issue| issue.labels() == ["coding agent done"]);
    program.until(&world, done).await;
    assert_eq!(searches(), 3, "only the real delivery has the forge searched");
    let history = web.json("/api/history").await;
    assert_eq!(
        history["runs"].as_array().unwrap().len(),
        2,
        "{history}\n{}",
        world.story()
    );
    let metrics = web.get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains("outcome=\"repeated\"} 100"), "{metrics}");
    ends(program, &world).await;
    world.finish().await;
}
