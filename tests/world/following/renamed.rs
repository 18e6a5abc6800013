//! A request of the program's own, whose repository is renamed, is followed on under the name that
//! it has in the store.

use super::{paints, red_pull, world};
use crate::world::facts::facts;

const DONE: &str = "github:acme/widgets#2: done\n";

#[tokio::test]
async fn the_trigger_label_on_a_request_of_a_renamed_repository_begins_no_second_following() {
    let world = world().await;
    let pull = red_pull(&world).await;
    world.github.default_repository().renames_to("gadgets");

    paints(&world, "blue");
    pull.label("coding agent");
    let ended = world.run().await;
    ended.prints(DONE, &world);
    assert_eq!(pull.file("color.txt").as_deref(), Some("blue\n"));

    paints(&world, "green");
    pull.comment("alice", "Green, please.");
    let ended = world.run().await;

    ended.prints(DONE, &world);
    assert_eq!(pull.file("color.txt").as_deref(), Some("green\n"));
    assert_eq!(facts(&world, "followed_up").len(), 1, "{}", world.story());
    world.finish().await;
}
