//! Runs whose reviewer also works, and gives one reply at a time.

use std::time::Duration;

use serde_json::json;

use super::{Team, good_plan, judged};
use crate::world::facts::count;
use crate::world::scripts::{greets, writes};

#[tokio::test]
async fn a_review_that_waits_for_its_turn_is_not_late() {
    let review = json!({ "plan": { "enabled": true, "on_unready": "fail" }, "timeout_seconds": 2 });
    let mut team = Team::start(review).await;
    team.world.configure(|config| {
        config["llm"]["models"]["critic"]["parallel_requests"] = json!(1);
        config["llm"]["roles"]["worker"] = json!("critic");
    });
    team.planner.for_task("Greet").plans(good_plan());
    team.planner.for_task("Bow").plans(good_plan()).holds();
    let passes = judged(true, 9.0, "Good.");
    // Three reviews of two seconds and the pauses between them would be over before.
    writes(team.reviewer.for_task("Greet").says(&passes), "README.md", "Hello\n")
        .slow(Duration::from_secs(15))
        .done("Greeted.");
    greets(team.reviewer.for_task("Bow").says(&passes));
    for title in ["Greet the reader", "Bow to the reader"] {
        team.world.github.open_issue(title).label("coding agent");
    }

    let program = team.world.spawn(&["run"]);
    team.reviewer.until(|requests| requests.len() == 2).await;
    team.planner.until_held(1).await;
    team.planner.release();
    let ended = program.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", team.world.story());
    assert_eq!(count(&team.world, "review_missing"), 0, "{}", team.world.story());
    // Nobody was asked twice: two reviews, and two turns of each worker.
    assert_eq!(team.reviewer.requests().len(), 6, "{}", team.reviewer.dump());
    team.finish().await;
}
