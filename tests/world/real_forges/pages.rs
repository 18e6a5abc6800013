//! Lists of more than a page, and full pages that grew while their tag says that nothing has
//! changed.

use crate::fake::fault::Quirk;
use crate::world::World;
use crate::world::scripts::{greets, plan};

const EVENTS: &str = "GET /repos/*/*/issues/1/events";

#[tokio::test]
async fn who_put_the_label_on_is_seen_behind_a_full_page_of_events() {
    let world = World::start().await;
    world.github.behaves(Quirk::TagsIgnoreLinks);
    let issue = world.github.open_issue("Greet the reader");
    for number in 0..99 {
        issue.label(&format!("kind {number}"));
    }
    // Somebody without rights puts it on, which is the hundredth event.
    issue.label_by("mallory", "coding agent");
    greets(world.model.plans(plan()));

    let service = world.spawn(&["serve"]);
    issue
        .until(|issue| !issue.labels().contains(&"coding agent".to_owned()))
        .await;
    issue.label("coding agent");
    issue
        .until(|issue| issue.labels().contains(&"coding agent done".to_owned()))
        .await;
    service.signal("TERM");
    service.ended().await;

    let asked = world.github.requests();
    let asked: Vec<_> = asked.iter().filter(|request| request.is(EVENTS)).collect();
    let confirmed = asked.windows(2).any(|pair| {
        let is_second = pair[1].path.ends_with("&page=2");
        pair[0].status == Some(304) && is_second && pair[1].status == Some(200)
    });
    assert!(confirmed, "{asked:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_label_on_the_second_page_is_not_made_again() {
    let world = World::start().await;
    let issue = world.github.open_issue("Greet the reader");
    for number in 0..100 {
        let name = format!("kind {number}");
        issue.label(&name).unlabel(&name);
    }
    for name in ["coding agent processing", "coding agent done"] {
        issue.label(name).unlabel(name);
    }
    issue.label("coding agent");
    greets(world.model.plans(plan()));

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(world.github.count("POST /repos/*/*/labels"), 0, "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}
