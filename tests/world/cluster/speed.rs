//! How long things take in a cluster: prints figures, which are compared by people.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::facts::facts;

const CALLS: usize = 200;

fn time(fact: &Value) -> DateTime<Utc> {
    fact["at"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "its figures are what it is for")]
async fn a_call_over_the_kept_stream_and_the_first_command_after_the_plan() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["command_executor"]["resources"] = json!({ "cpu_limit": 1.0, "memory_limit": "1g" });
    });
    let service = world.spawn(&["serve"]);
    let mut issues = Vec::new();
    // Before the first run the network is tried, which is not done again for hours.
    for calls in [1, CALLS] {
        let script = world.model.plans(Plan::of(&["look"]).in_environment("python"));
        let script = (0..calls).fold(script, |script, number| {
            script.calls(
                "workspace/execute_command",
                json!({ "command": format!("true {number}") }),
            )
        });
        script.done("Looked.");
        let issue = world.github.open_issue("Look").label("coding agent");
        world
            .until("the issue to be done", || issue.labels() == ["coding agent done"])
            .await;
        issues.push(issue);
    }
    service.signal("TERM");
    service.ended().await;

    let (planned, called) = (facts(&world, "planned"), facts(&world, "tool_called"));
    let mut took: Vec<u64> = called[1..]
        .iter()
        .map(|call| call["milliseconds"].as_u64().unwrap())
        .collect();
    assert_eq!((planned.len(), took.len()), (2, CALLS), "{}", world.story());
    took.sort_unstable();
    let first = time(&called[1]) - time(&planned[1]);
    let started = &facts(&world, "environment_started")[1]["milliseconds"];
    println!(
        "FIGURE from the plan to the first command's result: {} ms; the pod itself: {started} ms",
        first.num_milliseconds()
    );
    println!(
        "FIGURE a command over the kept stream: median {} ms, p95 {} ms",
        took[CALLS / 2],
        took[CALLS * 95 / 100]
    );
    world.finish().await;
}
