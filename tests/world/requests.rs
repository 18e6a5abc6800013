//! The requests to the forge that one run needs.

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;

#[tokio::test]
async fn a_short_run_looks_at_its_item_three_times_and_fetches_once() {
    let world = World::start().await;
    world
        .model
        .plans(Plan::of(&["greet"]).verified_by("true"))
        .calls(
            "workspace/execute_command",
            json!({ "command": "echo Hello > hello.txt" }),
        )
        .done("Greeted.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = (world.github.requests(), world.github.git_requests());
    let count = |route: &str| world.github.count(route);
    // At the admission, before the plan, and before the delivery.
    assert_eq!(count("GET /repos/*/*/issues/*"), 3, "{requests:?}");
    // For the plan, and for what people said since.
    assert_eq!(count("GET /repos/*/*/issues/*/comments"), 2, "{requests:?}");
    // The end, and one more on a machine that takes longer than five seconds for it.
    assert!(
        matches!(count("PATCH /repos/*/*/issues/comments/*"), 1 | 2),
        "{requests:?}"
    );
    let is_fetch =
        |request: &&crate::fake::traffic::Request| request.path.ends_with("info/refs?service=git-upload-pack");
    assert_eq!(requests.1.iter().filter(is_fetch).count(), 1, "{requests:?}");
    world.finish().await;
}
