//! A network policy that nobody keeps.

use super::{is_done, runs};
use crate::world::World;
use crate::world::clusters::{Mended, control};

#[tokio::test]
async fn where_policies_do_not_hold_no_run_starts_and_the_reason_is_told() {
    let world = World::start().await;
    let _mended = Mended::when_dropped();
    world.model.allows_restarts();
    let (script, issue) = runs(&world, &["echo in"]);
    script.done("Was in.");
    control(&["policies", "off"]).await;

    let ended = world.run().await;
    let doctor = world.command(&["doctor"]).await;
    control(&["policies", "on"]).await;

    assert_eq!(issue.labels(), ["coding agent paused"], "{ended:?}\n{}", world.story());
    let comment = issue.comments().pop().unwrap().body;
    for words in [
        "its network policies do not hold",
        "the API server",
        "another pod",
        "install a network plugin that keeps them",
    ] {
        assert!(comment.contains(words), "{words} is not in {comment}");
    }
    assert!(doctor.stdout.contains("BAD   network"), "{doctor:?}");
    assert_eq!(world.containers().await, [""; 0]);

    issue.label("coding agent");
    is_done(&world, &issue).await;
    world.finish().await;
}
