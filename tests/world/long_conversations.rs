//! A conversation that outgrows the model's window.

use std::ops::Range;

use serde_json::json;

use crate::fake::model::{Plan, Script};
use crate::marks::{PIECE, long_token};
use crate::world::World;
use crate::world::scripts::{greets, plan};

/// Files of a project, each of which is longer than what a model is shown of it at once.
const TEXTS: [&str; 6] = ["one.txt", "two.txt", "three.txt", "four.txt", "five.txt", "six.txt"];

/// Starts a world with these files, and a model with a window of so many tokens.
async fn with_long_texts(window: u64) -> World {
    let mut world = World::start().await;
    world.configure(|config| config["llm"]["openai"]["context_length"] = window.into());
    world.model.has_window(window);
    let text = "A line of words that has nothing to do with the task.\n".repeat(200);
    let files = TEXTS.map(|path| (path, text.as_str()));
    world.github.default_repository().commit("main", "Add texts", &files);
    world
}

/// Starts a world in which five outputs take the conversation near the model's window.
async fn near_the_window(is_native: bool) -> World {
    let mut world = World::start().await;
    world.configure(|config| {
        config["llm"]["function_calling"] = json!(is_native);
        config["llm"]["openai"]["context_length"] = json!(6_000);
    });
    world.model.has_window(6_000);
    world.model.allows_restarts();
    world.model.plans(Plan::of(&["count"]));
    // About 800 tokens each: eight of them would fill the window. JSON has a byte more in a line.
    let last = if is_native { 650 } else { 500 };
    for turn in 0..5 {
        world.model.calls(
            "workspace/execute_command",
            json!({"command": format!("seq {turn}000 {turn}{last}")}),
        );
    }
    world
}

#[tokio::test]
async fn a_conversation_that_nears_the_window_gives_way_to_a_summary_and_goes_on() {
    let world = near_the_window(false).await;
    world
        .model
        .says("Counted from 0 to 4500; the file is still to be written.");
    world
        .model
        .calls(
            "workspace/write_file",
            json!({"path": "count.txt", "content": "4500\n", "mode": "create"}),
        )
        .done("Counted.");
    let issue = world.github.open_issue("Count the numbers").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let compacted: Vec<_> = world
        .journal()
        .into_iter()
        .filter(|entry| entry["fact"] == "compacted")
        .collect();
    assert_eq!(compacted.len(), 1, "{}", world.story());
    let requests = world.model.requests();
    let last = requests.last().unwrap();
    assert!(
        last.first_user_message().contains("Count the numbers"),
        "the task stays word for word"
    );
    assert!(last.text().contains("Counted from 0 to 4500"), "the summary is there");
    assert!(!last.text().contains("seq 0000"), "what it replaces is gone");
    assert!(last.text().contains("count.txt"), "the newest turn is there");
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_summary_that_does_not_come_destroys_nothing() {
    without_a_summary(false, |script| script.says(" ")).await;
    without_a_summary(false, |script| script.says("What was decided: to cou").cut()).await;
    without_a_summary(false, |script| script.done("All is done.")).await;
    without_a_summary(false, goes_on).await;
    without_a_summary(true, goes_on).await;
}

fn goes_on(script: Script<'_>) -> Script<'_> {
    let script = script.calls("workspace/execute_command", json!({"command": "ls"}));
    script.because("Let me look at the tests next.")
}

/// Has `no_summary` replied to the first request for a summary, and expects the run to go on with
/// all that was said.
async fn without_a_summary(is_native: bool, no_summary: impl Fn(Script<'_>) -> Script<'_>) {
    let world = near_the_window(is_native).await;
    no_summary(world.model.script())
        .calls(
            "workspace/write_file",
            json!({"path": "count.txt", "content": "4500\n", "mode": "create"}),
        )
        .says("Counted from 0 to 4500, and written down.")
        .done("Counted.");
    world.github.open_issue("Count the numbers").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let requests = world.model.requests();
    // Behind the summary that was none everything is there still; the next one takes the place of
    // the older part.
    assert!(requests[7].text().contains("seq 0000"), "{}", world.model.dump());
    assert!(!requests[9].text().contains("seq 0000"), "{}", world.model.dump());
    assert!(
        requests[9].text().contains("Counted from 0 to 4500"),
        "{}",
        world.model.dump()
    );
    world.finish().await;
}

#[tokio::test]
async fn a_summary_that_would_fill_a_small_window_is_cut_in_the_middle() {
    let world = near_the_window(false).await;
    world.model.forbids(PIECE);
    let numbers = |range: Range<u32>| range.map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
    let (before, after) = (numbers(0..2_000), numbers(2_000..2_400));
    // Of the token the end would stay, by which nobody recognises it.
    let summary = format!(
        "Counted from 0 to 4500: {before} {} {after} and nothing is left.",
        long_token()
    );
    world.model.says(&summary).done("Counted.");
    world.github.open_issue("Count the numbers").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let last = world.model.requests().pop().unwrap();
    let summary = last.first_user_message();
    for part in ["Counted from 0 to 4500", " left out", "and nothing is left."] {
        assert!(summary.contains(part), "{summary}");
    }
    // A fifth of the window, at four bytes a token, behind the task.
    assert!(summary.len() < 4_800 + 2_000, "{} bytes", summary.len());
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_goes_round_in_circles_is_told_and_then_stopped() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["planning"] = json!({ "replanning": { "max_revisions": 0 }, "verification": { "max_tries": 1 } });
    });
    world.model.allows_restarts();
    world.model.plans(Plan::of(&["try"]));
    for _ in 0..6 {
        world
            .model
            .calls("workspace/execute_command", json!({"command": "cat missing.txt"}));
    }
    let issue = world.github.open_issue("Try again").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let told: Vec<_> = requests
        .iter()
        .map(|request| request.text().contains("You repeated the same calls"))
        .collect();
    assert_eq!(told, [false, false, false, false, true, true, true]);
    let last = issue.comments_of(world.github.bot()).pop().unwrap();
    let remedy = "went round in circles and was told so, in vain; a larger model may do better, or a task that names";
    assert!(last.contains(remedy), "{last}");
    let call = "Its last call: `execute_command cat missing.txt`, of which came: `cat: missing.txt: No such file";
    assert!(last.contains(call), "{last}");
    assert_eq!(issue.labels(), ["coding agent failed"]);
    world.finish().await;
}

#[tokio::test]
async fn many_large_outputs_of_one_reply_leave_room_for_the_rest() {
    let mut world = World::start().await;
    world.configure(|config| config["llm"]["openai"]["context_length"] = 16_000.into());
    world.model.has_window(16_000);
    let long = || ("workspace/execute_command", json!({"command": "seq 1 9999"}));
    world
        .model
        .plans(Plan::of(&["count"]))
        .calls_all([long(), long(), long(), long(), long(), long(), long(), long()])
        .done("Counted.");
    let issue = world.github.open_issue("Count the numbers").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let results = world.model.requests().pop().unwrap().last_user_message();
    assert_eq!(results.matches(" left out").count(), 8);
    // A quarter of the window, at four bytes a token, and the JSON around it.
    assert!(results.len() < 24_000, "{} bytes", results.len());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_planner_that_reads_one_file_after_the_other_is_asked_for_the_plan_while_there_is_room() {
    let world = with_long_texts(5_000).await;
    // Five of them fill the window. What is read too much is refused, five times at most.
    let script = TEXTS.iter().fold(world.model.script(), |script, path| {
        script.calls("repository/read_file", json!({"path": path}))
    });
    greets(script.plans(plan()));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let asked = world.model.requests()[TEXTS.len()].last_user_message();
    assert!(
        asked.contains("Your context window is nearly full; reply with the plan now"),
        "{asked}"
    );
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn what_a_planner_reads_at_once_leaves_room_for_the_plan() {
    let world = with_long_texts(4_096).await;
    let read = |path: &'static str| ("repository/read_file", json!({"path": path}));
    greets(world.model.script().calls_all(TEXTS.map(read)).plans(plan()));
    let issue = world
        .github
        .open_issue("Greet the reader")
        .body(&"Say hello. ".repeat(200))
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let seen = world.model.requests()[1].last_user_message();
    assert_eq!(seen.matches(" left out").count(), TEXTS.len(), "{seen}");
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_planner_whose_task_fills_most_of_the_window_looks_once() {
    let world = with_long_texts(6_000).await;
    let read = json!({"path": TEXTS[0]});
    greets(world.model.script().calls("repository/read_file", read).plans(plan()));
    // A character has three bytes and is a token: the prompt takes two thirds of the window.
    let long = "読者に挨拶をすること。".repeat(500);
    let issue = world
        .github
        .open_issue("Greet the reader")
        .body(&long)
        .comment("alice", &long)
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let seen = world.model.requests()[1].last_user_message();
    for part in ["A line of words", " left out"] {
        assert!(seen.contains(part), "{seen}");
    }
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}
