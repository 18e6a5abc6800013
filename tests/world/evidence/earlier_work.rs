//! What earlier runs broke is the program's own fault: tests are compared with the commit before
//! all of its work. The tests pass on `main`, and nothing is repaired.

use serde_json::json;

use super::{ADD, PROJECT, executes, node, plan, writes};
use crate::fake::github::Item;
use crate::world::World;
use crate::world::facts::facts;
use crate::world::normalized::last_on_github;

const BROKEN: &str = "- ❌ `npm test` ended with 1 instead of 0";
const BROKEN_BEFORE: &str = "- ⚠️ `npm test` ended with 1, as it did before the change";

async fn world(environment: &str) -> World {
    let mut world = node().await;
    world.configure(|config| {
        config["planning"] = json!({ "verification": { "environment": environment, "max_rounds": 0 } });
        config["follow_up"] = json!({ "debounce_seconds": 0 });
    });
    world.github.default_repository().commit("main", "Add", &PROJECT);
    world
}

/// What adds as the test does not expect it.
fn subtracting() -> String {
    ADD.replace("one + other", "one - other")
}

/// Has the next run write a file, and say that it is done.
fn next_writes(world: &World, path: &str, content: &str) {
    writes(world.model.plans(plan()), path, content).done("It is as you wish.");
}

/// Has a run on an issue write a file, and returns the issue and the request that was opened.
async fn first(world: &World, content: &str, outcome: &str) -> (Item, Item) {
    next_writes(world, "add.mjs", content);
    let issue = world.github.open_issue("Add faster").label("coding agent");
    let ended = world.run().await;
    ended.prints(&format!("github:acme/widgets#1: {outcome}\n"), world);
    (issue, world.github.pulls().remove(0))
}

#[tokio::test]
async fn tests_that_unfinished_work_broke_did_not_fail_before() {
    for (environment, changes_something) in [("fresh", true), ("same", true), ("fresh", false)] {
        let world = world(environment).await;
        writes(world.model.plans(plan()), "add.mjs", &subtracting()).refuses("the account is closed");
        let issue = world.github.open_issue("Add faster").label("coding agent");
        world.run().await;
        assert_eq!(issue.labels(), ["coding agent failed"], "{}", world.story());
        if changes_something {
            next_writes(&world, "README.md", "It adds fast.\n");
        } else {
            world.model.plans(plan()).done("It is fast already.");
        }
        issue.label("coding agent");

        let ended = world.run().await;

        ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
        let pull = world.github.pulls().remove(0);
        assert!(
            pull.is_draft() && pull.text().contains(BROKEN),
            "{environment}, {changes_something}: {}",
            pull.text()
        );
        let before = facts(&world, "verified_before");
        let before: Vec<_> = before.iter().map(|fact| &fact["exit_code"]).collect();
        assert_eq!(before, [&json!(0)], "{}", world.story());
        world.finish().await;
    }
}

#[tokio::test]
async fn tests_that_unfinished_work_on_a_request_of_others_broke_did_not_fail_before() {
    let world = world("fresh").await;
    writes(world.model.plans(plan()), "add.mjs", &subtracting()).refuses("the account is closed");
    let pull = world
        .github
        .open_pull("Add faster", "faster", &[("fast.md", "Fast.\n")])
        .label("coding agent");
    world.run().await;
    assert_eq!(pull.labels(), ["coding agent failed"], "{}", world.story());
    next_writes(&world, "README.md", "It adds fast.\n");
    pull.label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
    assert_eq!(pull.file("add.mjs"), Some(subtracting()), "{}", world.story());
    let said = last_on_github(&world, &pull);
    assert!(
        said.starts_with("### ⚠️ Pushed to `faster`, but the checks do not pass") && said.contains(BROKEN),
        "{said}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_request_stays_a_draft_while_tests_fail_that_an_earlier_run_broke() {
    let world = world("fresh").await;
    let (issue, pull) = first(&world, &subtracting(), "done, but not verified").await;
    assert!(pull.is_draft(), "{}", world.story());

    next_writes(&world, "README.md", "It adds fast.\n");
    pull.comment("alice", "Say so in the README.");
    let ended = world.run().await;
    ended.prints("github:acme/widgets#2: done, but not verified\n", &world);
    assert!(pull.is_draft(), "{}", pull.timeline());
    let said = last_on_github(&world, &pull);
    assert!(
        said.starts_with("### ⚠️ Pushed to `coding-agent/1-add-faster`, but the checks do not pass")
            && said.contains(BROKEN),
        "{said}"
    );

    // The label does not make it ready, either, wherever it is put on.
    for (item, task) in [(&issue, 1), (&pull, 2)] {
        next_writes(&world, "README.md", &format!("It adds fast, says {task}.\n"));
        item.label("coding agent");
        let ended = world.run().await;
        ended.prints(&format!("github:acme/widgets#{task}: done, but not verified\n"), &world);
        assert!(pull.is_draft() && pull.text().contains(BROKEN), "{}", pull.timeline());
    }

    next_writes(&world, "add.mjs", &ADD.replace("one + other", "other + one"));
    pull.comment("alice", "And the sum?");
    let ended = world.run().await;
    ended.prints("github:acme/widgets#2: done\n", &world);
    assert!(!pull.is_draft(), "{}", pull.timeline());
    world.finish().await;
}

#[tokio::test]
async fn a_request_stays_a_draft_while_a_test_is_missing_that_an_earlier_run_deleted() {
    let world = world("fresh").await;
    let script = world.model.plans(plan());
    executes(
        script,
        "git rm -q test/add.test.mjs && mkdir -p test && touch test/.keep",
    )
    .done("All tests pass.");
    let issue = world.github.open_issue("Make the tests pass").label("coding agent");
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
    let pull = world.github.pulls().remove(0);

    next_writes(&world, "README.md", "All tests pass.\n");
    issue.label("coding agent");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
    let text = pull.text();
    assert!(
        pull.is_draft() && text.contains("- `test/add.test.mjs`: a test was deleted: `adds`"),
        "{text}"
    );
    world.finish().await;
}

#[tokio::test]
async fn of_tests_that_fail_on_main_only_those_count_that_an_earlier_run_had_mended() {
    for (mended, outcome) in [(true, "done, but not verified"), (false, "done")] {
        let world = world("fresh").await;
        let broken = subtracting();
        let repository = world.github.default_repository();
        repository.commit("main", "Subtract", &[("add.mjs", &broken)]);
        let content = if mended { ADD.to_owned() } else { format!("{broken}\n") };
        let (_, pull) = first(&world, &content, "done").await;
        assert!(!pull.is_draft(), "{}", world.story());

        next_writes(&world, "add.mjs", &format!("{broken}\n\n"));
        pull.comment("alice", "More room, please.");
        let ended = world.run().await;

        ended.prints(&format!("github:acme/widgets#2: {outcome}\n"), &world);
        let said = last_on_github(&world, &pull);
        let expected = if mended { BROKEN } else { BROKEN_BEFORE };
        assert!(pull.is_draft() == mended && said.contains(expected), "{said}");
        world.finish().await;
    }
}

#[tokio::test]
async fn tests_that_fail_on_a_request_of_others_are_not_the_programs_fault() {
    let world = world("fresh").await;
    next_writes(&world, "README.md", "It adds fast.\n");
    let pull = world
        .github
        .open_pull("Add faster", "faster", &[("add.mjs", &subtracting())])
        .label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let said = last_on_github(&world, &pull);
    assert!(
        said.starts_with("### ✅ Done: pushed to `faster`") && said.contains(BROKEN_BEFORE),
        "{said}"
    );
    world.finish().await;
}
