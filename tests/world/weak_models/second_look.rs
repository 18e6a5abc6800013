//! The task, which a model that says done is shown once more.

use serde_json::json;

use super::{sum, writing_whole_files};
use crate::fake::github::Item;
use crate::world::World;
use crate::world::facts::count;
use crate::world::scripts::{greets, plan};

/// The answer of a server that does not serve an account.
const NOT_FOR_YOU: &str = r#"{"error":{"message":"The account has no credit left"}}"#;

/// An issue that asks for two things, of which the visible test holds one.
fn asking_for_two_things(world: &World) -> Item {
    world
        .github
        .open_issue("The sum of two numbers is wrong")
        .body("`add(2, 3)` in `sums.py` should be 5. With one number alone it should return that number.\n\nThanks!")
        .label("coding agent")
}

#[tokio::test]
async fn a_model_that_says_done_is_shown_once_more_what_the_task_asks_for() {
    let world = writing_whole_files().await;
    world
        .model
        .says("The sign was wrong.\n\nsums.py\n```python\ndef add(one, other):\n    return one + other\n```")
        .says("One number counts, too.\n\nsums.py\n```python\ndef add(one, other=0):\n    return one + other\n```");
    let issue = asking_for_two_things(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(count(&world, "asked_twice"), 1);
    let requests = world.model.requests();
    assert_eq!(requests.len(), 2);
    let told = requests[1].last_user_message();
    assert!(
        told.contains("\n\nNo check fails. Before this is delivered, hold it against the task once more.")
            && told.contains(
                ">\n1. The sum of two numbers is wrong\n2. `add(2, 3)` in `sums.py` should be 5.\n\
                 3. With one number alone it should return that number.\n</data-"
            )
            && told.contains(">\nsums.py +1 -1\n</data-"),
        "{told}"
    );
    let pull = &world.github.pulls()[0];
    assert_eq!(
        pull.file("sums.py").as_deref(),
        Some("def add(one, other=0):\n    return one + other\n")
    );
    let text = pull.text();
    assert!(
        text.contains("The sign was wrong.") && text.contains("One number counts, too."),
        "{text}"
    );
    world.finish().await;
}

#[tokio::test]
async fn what_was_finished_stays_so_when_the_second_look_changes_nothing() {
    let world = writing_whole_files().await;
    let reply = "The sign was wrong.\n\nsums.py\n```python\ndef add(one, other):\n    return one + other\n```";
    world
        .model
        .says(reply)
        .says(&reply.replace("The sign was", "Nothing is"));
    let issue = asking_for_two_things(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!((world.model.requests().len(), count(&world, "asked_twice")), (2, 1));
    let text = world.github.pulls()[0].text();
    assert!(
        text.contains("The sign was wrong.") && !text.contains("Nothing is wrong."),
        "{text}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_part_of_the_task_that_no_test_mentions_is_named_in_the_pull_request() {
    for (of_nothing, is_named) in [("`None`", true), ("5, too", false)] {
        let mut world = writing_whole_files().await;
        world.configure(|config| config["planning"]["verification"] = json!({ "ask_twice": "never" }));
        world
            .model
            .says("The sign was wrong.\n\nsums.py\n```python\ndef add(one, other):\n    return one + other\n```");
        let task = format!("`add(2, 3)` in `sums.py` is -1 instead of 5. For no numbers it should be {of_nothing}.");
        let issue = world.github.open_issue("The sum is wrong").body(&task);
        let issue = issue.label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        assert_eq!(issue.labels(), ["coding agent done"]);
        let text = world.github.pulls()[0].text();
        let named = "**What no test mentions**\n\nThat tests pass does not show that these parts of the task were done: no test has what is \
                     named in brackets, or, where nothing is, a word of the part.\n\n- For no numbers it should be `None`. (`None`)\n";
        assert_eq!(text.contains(named), is_named, "{text}");
        assert_eq!(text.contains("What no test mentions"), is_named, "{text}");
        world.finish().await;
    }
}

#[tokio::test]
async fn finished_work_does_not_fail_because_no_reply_to_the_second_look_can_be_read() {
    let world = writing_whole_files().await;
    let mut script = world
        .model
        .says("The sign was wrong.\n\nsums.py\n```python\ndef add(one, other):\n    return one + other\n```");
    for number in 0..6 {
        script = script.says(&format!("```python\nprint({number})\n```"));
    }
    let issue = asking_for_two_things(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let pull = &world.github.pulls()[0];
    assert!(
        !pull.is_draft() && pull.text().contains("The sign was wrong."),
        "{}",
        pull.text()
    );
    world.finish().await;
}

#[tokio::test]
async fn finished_work_is_delivered_where_the_model_cannot_be_asked_for_a_second_look() {
    const WINDOW: u64 = 16_384;
    for refused in [Some(401), Some(402), None] {
        let mut world = writing_whole_files().await;
        world.configure(|config| config["llm"]["openai"]["context_length"] = json!(WINDOW));
        let script = world.model.says(&sum("The sign was wrong.", "one + other"));
        match refused {
            Some(status) => script.refuses_with(status, NOT_FOR_YOU),
            // Behind what the server counts there is no room for the question.
            None => script.counts(WINDOW),
        };
        let issue = asking_for_two_things(&world);

        let ended = world.run().await;

        assert_eq!(ended.code, Some(0), "{refused:?}: {ended:?}\n{}", world.story());
        assert_eq!(issue.labels(), ["coding agent done"]);
        let requests = world.model.requests().len();
        assert_eq!(
            (requests, count(&world, "asked_twice")),
            (1 + usize::from(refused.is_some()), 1)
        );
        let pull = &world.github.pulls()[0];
        assert!(
            !pull.is_draft() && pull.text().contains("The sign was wrong."),
            "{}",
            pull.text()
        );
        world.finish().await;
    }
}

#[tokio::test]
async fn a_kill_during_the_second_look_loses_nothing_of_what_was_finished() {
    let world = writing_whole_files().await;
    world.model.allows_restarts();
    world
        .model
        .says(&sum("The sign was wrong.", "one + other"))
        .says("Nothing is missing.")
        .holds();
    let issue = asking_for_two_things(&world);

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    // The journal is written beside the work, and a line of it may be lost with the process.
    world
        .until("the second look", || count(&world, "asked_twice") == 1)
        .await;
    run.kill().await;
    world.model.release();
    world.model.refuses_with(402, NOT_FOR_YOU);
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!((world.model.requests().len(), count(&world, "asked_twice")), (3, 1));
    let text = world.github.pulls()[0].text();
    assert!(text.contains("The sign was wrong."), "{text}");
    world.finish().await;
}

#[tokio::test]
async fn the_configuration_says_who_looks_twice() {
    let mut world = writing_whole_files().await;
    world.configure(|config| config["planning"]["verification"] = json!({ "ask_twice": "never" }));
    world
        .model
        .says("The sign was wrong.\n\nsums.py\n```python\ndef add(one, other):\n    return one + other\n```");
    let issue = asking_for_two_things(&world);
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!((world.model.requests().len(), count(&world, "asked_twice")), (1, 0));
    world.finish().await;

    for (criteria, requests) in [(json!([]), 4), (json!(["The reader feels welcome"]), 3)] {
        let mut world = World::start().await;
        world.configure(|config| config["planning"] = json!({ "verification": { "ask_twice": "always" } }));
        let script = greets(
            world
                .model
                .plans(plan().with("goal_understanding", json!({ "success_criteria": criteria }))),
        );
        if requests == 4 {
            script.done("Nothing is missing.");
        }
        let issue = world
            .github
            .open_issue("Greet the reader")
            .body("- The README should greet the reader.\n- Nothing else should be in it.\n")
            .label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        assert_eq!(issue.labels(), ["coding agent done"]);
        assert_eq!(world.model.requests().len(), requests, "{}", world.story());
        let text = world.github.pulls()[0].text();
        assert!(text.contains("The README greets its reader now."), "{text}");
        world.finish().await;
    }
}
