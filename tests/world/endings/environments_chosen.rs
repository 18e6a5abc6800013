//! The environment rules: what the plan may say, and what becomes of it.

use insta::assert_snapshot;
use regex::Regex;
use serde_json::json;

use super::{greeting, greets, offered, plan, steady, told};
use crate::fake::model::Plan;
use crate::world::World;

#[tokio::test]
async fn an_unknown_environment_gives_way_to_the_default_and_people_are_told() {
    let world = World::start().await;
    greets(world.model.plans(plan().in_environment("cobol")));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 0
    labels: coding agent done
    -----
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [x] greet the reader

    > ⚠️ The plan selected the environment `cobol`, which is not configured (there are: python); the default `python` is used.

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ☑️ Done, unchecked: http://<address>/acme/widgets/pull/2

    The README greets its reader now.

    Nothing was checked: neither the plan nor the project names a command for it; name one in `planning.verification.test_command`, or in `AGENTS.md` for the planner.

    > ⚠️ The plan selected the environment `cobol`, which is not configured (there are: python); the default `python` is used.

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    assert_snapshot!(offered(&world.github.pulls()[0]), @"
    pull request from coding-agent/1-greet-the-reader into main: Greet the reader
    -----
    The README greets its reader now.

    Nothing was checked: neither the plan nor the project names a command for it; name one in `planning.verification.test_command`, or in `AGENTS.md` for the planner.

    > ⚠️ The plan selected the environment `cobol`, which is not configured (there are: python); the default `python` is used.

    Closes #1

    <sub>3 model turns · <tokens> · <time> · run `<run>`</sub>
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_plan_without_a_readable_environment_gets_the_default() {
    let mut world = World::start().await;
    // One after the other, so that the numbers of the pull requests are known.
    world.configure(|config| config["consumers"] = json!(1));
    let without = world.github.open_issue("Without").label("coding agent");
    greets(world.model.for_task("Title: Without").plans(Plan::of(&["greet"])));
    let malformed = world.github.open_issue("Malformed").label("coding agent");
    let plan = Plan::of(&["greet"]).with("selected_environment", json!(["python"]));
    greets(world.model.for_task("Title: Malformed").plans(plan));

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &without), @"
    exit code: 0
    labels: coding agent done
    -----
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [x] greet

    > ⚠️ The plan selected no environment; the default `python` is used.

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ☑️ Done, unchecked: http://<address>/acme/widgets/pull/3

    The README greets its reader now.

    Nothing was checked: neither the plan nor the project names a command for it; name one in `planning.verification.test_command`, or in `AGENTS.md` for the planner.

    > ⚠️ The plan selected no environment; the default `python` is used.

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    assert_snapshot!(told(&ended, &malformed), @"
    exit code: 0
    labels: coding agent done
    -----
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [x] greet

    > ⚠️ The plan's `selected_environment` could not be read (it is not an object); the default environment `python` is used.

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ☑️ Done, unchecked: http://<address>/acme/widgets/pull/4

    The README greets its reader now.

    Nothing was checked: neither the plan nor the project names a command for it; name one in `planning.verification.test_command`, or in `AGENTS.md` for the planner.

    > ⚠️ The plan's `selected_environment` could not be read (it is not an object); the default environment `python` is used.

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_missing_image_fails_the_task_and_says_how_to_get_it() {
    let mut world = World::start().await;
    // Nothing listens there, so that the image cannot be pulled on any machine.
    world.configure(|config| config["command_executor"]["environments"]["python"] = json!("127.0.0.1:9/missing:1"));
    world.model.plans(plan());
    let issue = greeting(&world);

    let ended = world.run().await;

    let told = told(&ended, &issue);
    // Each version of Docker has words of its own for it.
    let reason = Regex::new(r"is missing: .*connect.*?; ").unwrap();
    assert_snapshot!(reason.replace_all(&told, "is missing: <reason>; "), @"
    exit code: 1
    labels: coding agent failed
    -----
    <details><summary>🛠️ Failed: how it went</summary>

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 1 model turn · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ❌ This could not be done

    The image <address>/missing:1 is missing: <reason>; bring it with `docker pull <address>/missing:1`, or give the environment a `build` section.

    To start a new run, set the label `coding agent` again.

    <sub>1 model turn · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_set_up_command_that_fails_is_told_to_the_model_and_noted() {
    let world = World::start().await;
    let environment = json!({
        "name": "python",
        "reasoning": "It fits.",
        "setup_commands": ["echo no such package >&2; exit 7", "echo ready > /tmp/ready"],
    });
    greets(world.model.plans(plan().with("selected_environment", environment)));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 0
    labels: coding agent done
    -----
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [x] greet the reader

    > ⚠️ The set-up command `echo no such package >&2; exit 7` failed; the work went on without it.

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ☑️ Done, unchecked: http://<address>/acme/widgets/pull/2

    The README greets its reader now.

    Nothing was checked: neither the plan nor the project names a command for it; name one in `planning.verification.test_command`, or in `AGENTS.md` for the planner.

    > ⚠️ The set-up command `echo no such package >&2; exit 7` failed; the work went on without it.

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    let assignment = world.model.requests()[1].first_user_message();
    let (_, report) = assignment.split_once("\nThe plan:").unwrap();
    assert_snapshot!(steady(report), @"

    - task-1: greet the reader


    The program has run the plan's set-up commands:
    - `echo no such package >&2; exit 7`: failed
    no such package
    [exit code 7]
    - `echo ready > /tmp/ready`: done

    The branch `coding-agent/1-greet-the-reader` is checked out. Begin.
    ");
    world.finish().await;
}

#[tokio::test]
async fn without_planning_the_work_begins_at_once_in_the_default_environment() {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({"enabled": false}));
    greets(world.model.script());
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 0
    labels: coding agent done
    -----
    <details><summary>🛠️ Done: how it went</summary>

    <sub>Environment `python` · 2 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ☑️ Done, unchecked: http://<address>/acme/widgets/pull/2

    The README greets its reader now.

    Nothing was checked: there was no plan, and the project names no command for it; name one in `planning.verification.test_command`.

    <sub>2 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    assert_eq!(world.github.pulls()[0].file("README.md").as_deref(), Some("Hello\n"));
    world.finish().await;
}

#[tokio::test]
async fn without_planning_a_model_that_touches_nothing_is_not_done() {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({"enabled": false}));
    world.model.done("All is well.").done("It really is.");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(issue.labels(), ["coding agent failed"], "{ended:?}");
    let comment = issue.comments_of(world.github.bot()).pop().unwrap();
    assert!(comment.contains("has called no tool"), "{comment}");
    let told = world.model.requests()[1].seen.clone();
    assert!(told.contains("`done` did not count: no tool was called"), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn without_planning_a_model_that_was_sent_back_goes_to_work() {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({"enabled": false}));
    world.model.done("All is well.");
    greets(world.model.script());
    let issue = greeting(&world);

    world.run().await;

    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.github.pulls()[0].file("README.md").as_deref(), Some("Hello\n"));
    world.finish().await;
}
