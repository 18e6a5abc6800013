//! Programs that write below an own pull/merge request are heard only where the operator named
//! them; and a reviewer who only requests changes is heard on both forges.

use serde_json::json;

use super::{paints, patient, red_merge_request, red_pull, task, world};
use crate::fake::github::Permission;
use crate::fake::gitlab::Access;
use crate::world::World;

fn ignored(world: &World) -> Vec<String> {
    let journal = world.journal();
    let ignored = journal.iter().filter(|entry| entry["fact"] == "ignored");
    ignored
        .map(|entry| {
            format!(
                "{}: {}",
                entry["author"].as_str().unwrap(),
                entry["reason"].as_str().unwrap()
            )
        })
        .collect()
}

#[tokio::test]
async fn a_bot_with_write_access_begins_no_round_unless_it_is_named() {
    let mut world = world().await;
    let pull = red_pull(&world).await;
    let repository = world.github.default_repository();
    repository.member("coverage[bot]", Permission::Write);
    pull.comment("coverage[bot]", "Coverage fell by 3 %.");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    assert_eq!(
        ignored(&world),
        [format!(
            "coverage[bot]: the comment comment-{} is of a bot that is not among the allowed_users",
            pull.comments().pop().unwrap().id
        )]
    );

    world.configure(|config| config["github"]["allowed_users"] = json!(["Coverage[bot]"]));
    pull.comment("coverage[bot]", "Coverage fell by 5 %.");
    paints(&world, "blue");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#2: done\n",
        "{}",
        world.story()
    );
    let task = task(&world, 1);
    assert!(task.contains("by 5 %") && !task.contains("by 3 %"), "{task}");
    world.finish().await;
}

#[tokio::test]
async fn the_account_of_a_projects_token_is_a_bot() {
    let world = patient(World::on_gitlab().await, 0);
    let merge = red_merge_request(&world).await;
    let bot = "project_7_bot_0123abcd";
    world.gitlab.default_project().member(bot, Access::Maintainer);
    merge.comment(bot, "Coverage fell by 3 %.");

    assert_eq!(world.run().await.stdout, "", "{}", world.story());

    assert_eq!(ignored(&world).len(), 1, "{:?}", ignored(&world));
    world.finish().await;
}

#[tokio::test]
async fn a_reviewer_who_requests_changes_without_a_word_is_heard() {
    let world = patient(World::on_gitlab().await, 0);
    let merge = red_merge_request(&world).await;
    merge.requests_changes("mallory").requests_changes("alice");
    paints(&world, "blue");

    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets!1: done\n", &world);
    let task = task(&world, 1);
    assert_eq!(task.matches("I request changes.").count(), 1, "{task}");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    world.finish().await;
}
