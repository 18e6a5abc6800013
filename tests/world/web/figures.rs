//! Figures for Prometheus of what no run tells people.

use serde_json::json;

use super::{WebClient, ends, opened, until, with_users};
use crate::fake::fault::{Disturbance, Fault};
use crate::world::World;

const GOOD: &str = "coding_agent_forge_searches_total{forge=\"github\",outcome=\"ok\"}";
const INCOMPLETE: &str = "coding_agent_forge_searches_total{forge=\"github\",outcome=\"incomplete\"}";
const FAILED: &str = "coding_agent_forge_searches_total{forge=\"github\",outcome=\"failed\"}";
const LAST_GOOD: &str = "coding_agent_forge_last_good_search_timestamp_seconds{forge=\"github\"}";

/// Returns the value of a figure, if there is one.
async fn figure(web: &WebClient, name: &str) -> Option<u64> {
    let text = web.get("/metrics").await.text().await.unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().parse().ok()
}

#[tokio::test]
async fn a_forge_that_refuses_the_token_shows_in_the_figures() {
    let mut world = World::start().await;
    with_users(&mut world);
    world.configure(|config| config["github"]["trigger"] = json!({ "mention": true }));
    let begun = chrono::Utc::now().timestamp();
    let (program, web) = opened(&world, &["serve"]).await;
    until("a good search", async || figure(&web, GOOD).await >= Some(1)).await;
    // An item that cannot be dealt with is none that cannot be found.
    let history = Disturbance::of("GET /repos/*/*/issues/*/events", Fault::Fails(403));
    world.github.disturb(history.always());
    world.github.open_issue("Greet").label("coding agent");
    until("an item left", async || figure(&web, INCOMPLETE).await >= Some(1)).await;
    assert_eq!(figure(&web, FAILED).await, Some(0));
    // Nor is a fault of the store one of the forge.
    world.break_memory_of_start_requests().await;
    let later = figure(&web, INCOMPLETE).await.map(|count| count + 2);
    until("two more searches", async || figure(&web, INCOMPLETE).await >= later).await;
    assert_eq!(figure(&web, FAILED).await, Some(0));

    world.github.revokes_tokens();
    until("a search that fails", async || figure(&web, FAILED).await >= Some(1)).await;
    let before = [figure(&web, INCOMPLETE).await, figure(&web, LAST_GOOD).await];
    assert!(before[1] >= u64::try_from(begun).ok(), "{before:?}");
    until("more of them", async || figure(&web, FAILED).await >= Some(3)).await;

    let after = [figure(&web, INCOMPLETE).await, figure(&web, LAST_GOOD).await];
    assert_eq!(after, before, "a search that failed counts as a good one");
    // The process itself is well.
    assert_eq!(web.get("/ready").await.status(), reqwest::StatusCode::OK);
    ends(program, &world).await;
    world.finish().await;
}
