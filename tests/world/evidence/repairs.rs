//! The model may try to mend what fails, but not for ever.

use serde_json::json;

use super::executes;
use crate::fake::model::Plan;
use crate::world::World;

fn plan() -> Plan {
    Plan::of(&["greet"]).in_environment("python")
}

#[tokio::test]
async fn the_same_failure_twice_ends_the_repair_early() {
    let world = World::start().await;
    // The address and the time differ, and say nothing.
    let check = "echo \"at $(date +%H:%M:%S.%N): 0x$(date +%N) is no greeting\"; exit 3";
    let script = executes(world.model.plans(plan().verified_by(check)), "echo Hello > README.md");
    script.done("Greeted.").done("It cannot be better.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
    // The plan, the work, `done`, and one more after the digest.
    assert_eq!(world.model.requests().len(), 4, "{}", world.story());
    let pull = &world.github.pulls()[0];
    assert!(pull.is_draft(), "{}", world.story());
    let text = pull.text();
    assert!(
        text.contains("The last try to repair it changed nothing of the failure, so there was no other."),
        "{text}"
    );
    world.finish().await;
}

#[tokio::test]
async fn each_failure_is_tried_twice_and_no_more() {
    let world = World::start().await;
    let check = "cat README.md; grep -q Hello README.md";
    let mut script = world.model.plans(plan().verified_by(check));
    for word in ["Hi", "Hey", "Hiya"] {
        script = executes(script, &format!("echo {word} > README.md")).done("Greeted.");
    }
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
    assert_eq!(world.model.requests().len(), 7, "{}", world.story());
    let pull = &world.github.pulls()[0];
    assert!(pull.is_draft(), "{}", world.story());
    assert!(
        pull.text().contains("2 tries to repair it did not help."),
        "{}",
        pull.text()
    );
    world.finish().await;
}

#[tokio::test]
async fn the_third_failure_trips_the_breaker() {
    let world = World::start().await;
    let mut checked = plan();
    for number in 1..=3 {
        checked = checked.verified_by(&format!("echo check {number}; ! grep -q {number} README.md"));
    }
    let mut script = world.model.plans(checked);
    // Each repair breaks the next check.
    for number in 1..=3 {
        script = executes(script, &format!("echo {number} > README.md")).done("Greeted.");
    }
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
    assert_eq!(world.model.requests().len(), 7, "{}", world.story());
    let pull = &world.github.pulls()[0];
    assert!(pull.is_draft(), "{}", world.story());
    let text = pull.text();
    assert!(text.contains("This is failure number 3 of this run"), "{text}");
    world.finish().await;
}

#[tokio::test]
async fn no_more_is_tried_than_the_configuration_allows() {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({"verification": {"max_failures": 1}}));
    executes(
        world.model.plans(plan().verified_by("exit 3")),
        "echo Hello > README.md",
    )
    .done("Greeted.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
    assert_eq!(world.model.requests().len(), 3, "{}", world.story());
    assert!(world.github.pulls()[0].is_draft(), "{}", world.story());
    world.finish().await;
}
