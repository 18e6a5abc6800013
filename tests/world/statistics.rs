//! `stats`: figures over the runs of an installation.

use serde_json::Value;

use crate::world::World;
use crate::world::scripts::{executes, greets, plan};

#[tokio::test]
async fn the_figures_are_those_of_the_runs() {
    let world = World::start().await;
    let ended = world.command(&["stats"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("success rate           no data\n"),
        "{}",
        ended.stdout
    );

    let _issue = world.github.open_issue("Greet the reader").label("coding agent");
    let script = world.model.plans(plan().verified_by("grep -q Hello README.md"));
    greets(executes(script, "true").done("Greeted."));
    world.run().await;

    let ended = world.command(&["stats", "--since", "1d", "--json"]).await;
    let figures: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(figures["ended"]["done"], 1, "{figures:#}");
    assert_eq!(figures["success_rate"]["value"], 1.0);
    assert_eq!(figures["repair_rate"]["value"], 1.0);
    assert_eq!(figures["repair_steps"]["value"], 1.0);
    assert!(figures["tokens_per_run"]["value"]["input"].as_u64().unwrap() > 0);
    assert!(figures["duration_seconds"]["since"].is_string());
    let ended = world.command(&["stats", "--since", "tomorrow"]).await;
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
    world.finish().await;
}
