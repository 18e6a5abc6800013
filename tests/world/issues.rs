//! From a label on an issue to a pull request.

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;

#[tokio::test]
async fn an_issue_becomes_a_pull_request() {
    let world = World::start().await;
    world
        .model
        .plans(
            Plan::of(&["greet the reader"])
                .in_environment("python")
                .verified_by("grep -q Hello README.md"),
        )
        .calls(
            "workspace/write_file",
            json!({"path": "README.md", "content": "Hello\n", "mode": "overwrite"}),
        )
        .done("The README greets its reader now.");
    let issue = world
        .github
        .open_issue("Greet the reader")
        .body("Say hello.")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", world.story());
    assert_eq!(pulls[0].file("README.md").as_deref(), Some("Hello\n"));
    assert_eq!(
        (pulls[0].title(), pulls[0].head()),
        (issue.title(), "coding-agent/1-greet-the-reader".to_owned())
    );
    assert!(!pulls[0].is_draft() && pulls[0].mentions(&issue));
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}
