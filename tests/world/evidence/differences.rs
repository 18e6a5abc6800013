//! Findings in the difference besides what was asked for: the model is told once, and people in any
//! case.

use insta::assert_snapshot;

use super::{ADD, PROJECT, TEST, executes, node, plan, writes};
use crate::world::normalized::told;

#[tokio::test]
async fn a_placeholder_is_named_to_the_model_which_fills_it_in() {
    let world = node().await;
    let unfinished =
        format!("{ADD}export const subtract = () => {{\n  throw new Error('not implemented'); // TODO\n}};\n");
    let finished = format!("{ADD}export const subtract = (one, other) => one - other;\n");
    let script = writes(world.model.plans(plan()), "add.mjs", &unfinished).done("It subtracts.");
    writes(script, "add.mjs", &finished).done("It really subtracts.");
    world.github.open_issue("Subtract").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_snapshot!(world.model.requests()[3].last_user_message(), @"
    The program looked at what you changed and found what a reviewer will ask about:
    - add.mjs:3: a placeholder is left: throw new Error('not implemented'); // TODO

    If one of these is a shortcut, do it properly: finish what is unfinished, bring tests back as strict as they were. What the task asks for may stay. Then finish again and say why; what stays is named in the pull request.
    ");
    let pull = &world.github.pulls()[0];
    assert!(!pull.is_draft(), "{}", world.story());
    assert_snapshot!(told(&world, &pull.text()), @"
    It really subtracts.

    Nothing was checked: neither the plan nor the project names a command for it; name one in `planning.verification.test_command`, or in `AGENTS.md` for the planner.

    Closes #1

    <sub>5 model turns · TOKENS · TIME · run `RUN`</sub>
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_placeholder_that_stays_is_for_the_reviewer_to_judge() {
    let world = node().await;
    let unfinished = format!("{ADD}// TODO: subtract, too `@all`\n");
    writes(world.model.plans(plan()), "add.mjs", &unfinished)
        .done("It adds.")
        .done("The rest is for another issue.");
    world.github.open_issue("Add").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    // Asked once, and not again.
    assert_eq!(world.model.requests().len(), 4, "{}", world.story());
    let pull = &world.github.pulls()[0];
    assert!(!pull.is_draft(), "{}", world.story());
    assert_snapshot!(told(&world, &pull.text()), @"
    The rest is for another issue.

    Nothing was checked: neither the plan nor the project names a command for it; name one in `planning.verification.test_command`, or in `AGENTS.md` for the planner.

    **What a reviewer should look at**

    - `add.mjs:2`: a placeholder is left: `` // TODO: subtract, too `@all` ``

    Closes #1

    <sub>4 model turns · TOKENS · TIME · run `RUN`</sub>
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_test_that_stays_deleted_makes_a_draft() {
    let world = node().await;
    world.github.default_repository().commit("main", "Add", &PROJECT);
    let script = executes(
        world.model.plans(plan()),
        "git rm -q test/add.test.mjs && git commit -q -m 'Take the test away' && echo >> add.mjs && mkdir -p test && touch test/.keep",
    );
    script.done("All tests pass now.").done("The test was in the way.");
    let issue = world.github.open_issue("Make the tests pass").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
    let pull = &world.github.pulls()[0];
    assert!(pull.is_draft(), "{}", world.story());
    assert_snapshot!(told(&world, &pull.text()), @"
    The test was in the way.

    **How it was verified**

    - ✅ `npm test` passed

    **What a reviewer should look at**

    - `test/add.test.mjs`: a test was deleted: `adds`

    Closes #1

    <sub>4 model turns · TOKENS · TIME · run `RUN`</sub>
    ");
    let last = issue.comments().pop().unwrap().body;
    assert!(
        last.starts_with("### ⚠️ Done, but tests were deleted or skipped: "),
        "{last}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_test_that_is_skipped_is_named_and_brought_back() {
    let world = node().await;
    world.github.default_repository().commit("main", "Add", &PROJECT);
    let skipped = TEST.replace("test('adds'", "test.skip('adds'");
    let script = writes(world.model.plans(plan()), "test/add.test.mjs", &skipped);
    let script = writes(script, "add.mjs", &format!("{ADD}\n")).done("All tests pass now.");
    writes(script, "test/add.test.mjs", TEST).done("All tests pass, and all are run.");
    world.github.open_issue("Make the tests pass").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let question = world.model.requests()[4].last_user_message();
    assert!(
        question.contains("- test/add.test.mjs:5: a test is skipped: test.skip('adds', () => {\n"),
        "{question}"
    );
    let pull = &world.github.pulls()[0];
    assert!(!pull.is_draft() && !pull.text().contains("reviewer"), "{}", pull.text());
    world.finish().await;
}
