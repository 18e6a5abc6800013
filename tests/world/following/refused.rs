//! What the forge refuses for a while is done by a later poll, and nothing of what people said is
//! lost until then.

use super::{paints, red_pull, said, world};
use crate::world::facts::count;

#[tokio::test]
async fn a_stop_that_cannot_be_answered_yet_ends_the_following_all_the_same() {
    let world = world().await;
    let pull = red_pull(&world).await;
    pull.comment("alice", "/agent stop");
    world
        .github
        .fails_next("POST /repos/acme/widgets/issues/2/comments", 403, 1);
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    let bot = world.github.bot();
    assert_eq!(pull.comments_of(bot), [""; 0], "{}", world.story());

    pull.comment("alice", "Red it stays.");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());

    let comments = pull.comments_of(bot);
    assert_eq!(comments.len(), 1, "{}", pull.timeline());
    let told = said(&world, &comments[0]);
    assert!(told.starts_with("### ⏹️ Stopped"), "{told}");
    pull.comment("alice", "Blue, please.");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn remarks_with_which_no_round_could_begin_are_read_again() {
    let world = world().await;
    let pull = red_pull(&world).await;
    pull.comment("alice", "Blue, please.");
    // One that has been quiet for some minutes is read once.
    pull.alter(|item| item.updated -= chrono::TimeDelta::hours(1));
    world
        .github
        .fails_next("POST /repos/acme/widgets/issues/2/labels", 403, 1);
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    assert_eq!(pull.labels(), [""; 0]);

    paints(&world, "blue");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#2: done\n", &world);
    assert_eq!(pull.file("color.txt").as_deref(), Some("blue\n"));
    world.finish().await;
}

#[tokio::test]
async fn what_was_ignored_stays_so_where_somebody_elses_right_cannot_be_asked() {
    let world = world().await;
    let pull = red_pull(&world).await;
    pull.comment("trudy", "Hm.");
    let first = pull.last_comment();
    pull.comment("mallory", "Make it pink.");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    assert_eq!(count(&world, "ignored"), 2, "{}", world.story());

    first.edit("Hm, hm.");
    world
        .github
        .fails_next("GET /repos/acme/widgets/collaborators/trudy/permission", 403, 1);
    for _ in 0..2 {
        assert_eq!(world.run().await.stdout, "", "{}", world.story());
    }

    // The edited one alone is new.
    assert_eq!(count(&world, "ignored"), 3, "{}", world.story());
    world.finish().await;
}
