//! A run's knowledge of the runs before it on the same item.

use serde_json::json;

use crate::fake::model::{Plan, Script};
use crate::world::World;
use crate::world::normalized::told;

fn greets<'model>(script: Script<'model>, text: &str) -> Script<'model> {
    script
        .plans(
            Plan::of(&["greet", "look at it"])
                .in_environment("python")
                .verified_by("grep -q Hello README.md"),
        )
        .calls(
            "workspace/write_file",
            json!({"path": "README.md", "content": text, "mode": "overwrite"}),
        )
}

/// Returns what the model was told behind the task's own text.
fn remembered(world: &World, request: usize) -> String {
    let shown = told(world, &world.model.requests()[request].first_user_message());
    let (shown, _) = shown.split_once("\nThe project's files:").unwrap();
    regex::Regex::new(r"and \d+ tokens")
        .unwrap()
        .replace_all(shown, "and N tokens")
        .into_owned()
}

#[tokio::test]
async fn a_second_run_on_an_issue_begins_with_what_the_first_one_did_and_what_was_said_since() {
    let world = World::start().await;
    greets(world.model.script(), "Hello\n").done("The README greets its reader.");
    let issue = world
        .github
        .open_issue("Greet the reader")
        .comment("alice", "Be friendly.")
        .label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());

    issue.comment("alice", "Louder, please.").label("coding agent");
    greets(world.model.script(), "Hello!\n").done("It is louder now.");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    insta::assert_snapshot!(remembered(&world, 3), @r#"
    The task is this issue, github:acme/widgets#1:
    <data-FENCE>
    Title: Greet the reader
    Author: alice



    Comments, oldest first:
    --- alice at TIME:
    Be friendly.
    --- alice at TIME (new):
    Louder, please.
    </data-FENCE>

    Earlier runs on it, oldest first:
    <data-FENCE>
    --- Run that ended at TIME: done
    Its plan:
    - greet
    - look at it
    What it said at its end: The README greets its reader.
    Check `grep -q Hello README.md` passed
    Its result: GITHUB/acme/widgets/pull/2
    It took 3 model turns and N tokens.
    </data-FENCE>
    Go on from what they found and did. Comments marked "new" were written since the last of them ended.
    "#);
    // The worker is told what the planner was.
    let worker = world.model.requests()[4].first_user_message();
    assert!(worker.contains("The README greets its reader.") && worker.contains("(new):\nLouder, please."));
    assert_eq!(world.github.pulls().len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_run_after_a_failed_one_knows_why_it_failed() {
    let world = World::start().await;
    let mut script = greets(world.model.script(), "Hello\n");
    for _ in 0..6 {
        script = script.says("I am done, I think.");
    }
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(3), "{ended:?}\n{}", world.story());

    issue.label("coding agent");
    greets(world.model.script(), "Hello\n").done("Done at last.");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    insta::assert_snapshot!(remembered(&world, 8), @r#"
    The task is this issue, github:acme/widgets#1:
    <data-FENCE>
    Title: Greet the reader
    Author: alice


    </data-FENCE>

    Earlier runs on it, oldest first:
    <data-FENCE>
    --- Run that ended at TIME: failed
    Its plan:
    - greet
    - look at it
    Why it failed: the model's replies could not be read, 5 re-asks included; the last error was: The reply holds no JSON object
    It left its unfinished work on the branch `coding-agent/1-greet-the-reader`
    It took 8 model turns and N tokens.
    </data-FENCE>
    Go on from what they found and did. Comments marked "new" were written since the last of them ended.
    "#);
    world.finish().await;
}

#[tokio::test]
async fn a_second_run_on_a_merge_request_begins_with_what_the_first_one_did() {
    let world = World::on_gitlab().await;
    greets(world.model.script(), "Hello\n").done("It greets.");
    let merge = world
        .gitlab
        .open_merge_request("Add a greeting", "greeting", &[("greet.py", "print('hi')\n")])
        .label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());

    merge.line_comment("alice", "greet.py", 1, "Say hello here, too.");
    merge.label("coding agent");
    greets(world.model.script(), "Hello!\n").done("Here, too.");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    insta::assert_snapshot!(remembered(&world, 3), @r#"
    The task is this change request, gitlab:acme/widgets!1:
    <data-FENCE>
    Title: Add a greeting
    Author: alice
    Branch: greeting into main



    Comments, oldest first:
    --- alice at TIME on greet.py:1 (new):
    Say hello here, too.
    </data-FENCE>

    Earlier runs on it, oldest first:
    <data-FENCE>
    --- Run that ended at TIME: done
    Its plan:
    - greet
    - look at it
    What it said at its end: It greets.
    Check `grep -q Hello README.md` passed
    It worked on the branch `greeting`
    It took 3 model turns and N tokens.
    </data-FENCE>
    Go on from what they found and did. Comments marked "new" were written since the last of them ended.
    "#);
    world.finish().await;
}
