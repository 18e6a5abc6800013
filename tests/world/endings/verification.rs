//! The program decides whether the work is done.

use insta::assert_snapshot;
use serde_json::json;

use super::{executes, greeting, greets, offered, plan, steady, told, writes};
use crate::world::World;

#[tokio::test]
async fn what_verification_finds_the_model_may_repair() {
    let world = World::start().await;
    let script = world
        .model
        .plans(plan().verified_by("grep -q Hello README.md || { echo no greeting; exit 4; }"));
    let script = writes(script, "README.md", "Goodbye\n").done("It is polite now.");
    greets(script);
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 0
    labels: coding agent done
    -----
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [x] greet the reader

    <sub>Environment `python` · 5 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ✅ Done: http://<address>/acme/widgets/pull/2

    The README greets its reader now.

    **How it was verified**

    - ✅ `grep -q Hello README.md || { echo no greeting; exit 4; }` passed

    <sub>5 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    assert_snapshot!(offered(&world.github.pulls()[0]), @"
    pull request from coding-agent/1-greet-the-reader into main: Greet the reader
    -----
    The README greets its reader now.

    **How it was verified**

    - ✅ `grep -q Hello README.md || { echo no greeting; exit 4; }` passed

    Closes #1

    <sub>5 model turns · <tokens> · <time> · run `<run>`</sub>
    ");
    assert_snapshot!(steady(&world.model.requests()[3].last_user_message()), @r"
    The program checked the result, and it does not pass yet:

    $ grep -q Hello README.md || { echo no greeting; exit 4; }
    [exit code 4, expected 0]
    no greeting
    [exit code 4]

    Fix it, then finish again. Do not weaken the checks.
    ");
    world.finish().await;
}

#[tokio::test]
async fn what_stays_unverified_becomes_a_draft_that_says_so() {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({"verification": {"max_rounds": 1}}));
    let checked = plan()
        .verified_by("test -s README.md")
        .verified_by("echo '``` no greeting'; exit 4");
    let script = writes(world.model.plans(checked), "README.md", "Goodbye\n");
    script.done("It is polite now.").done("It is as polite as can be.");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent done
    -----
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 4 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ⚠️ Done, but the checks do not pass: http://<address>/acme/widgets/pull/2 is a draft

    It is as polite as can be.

    **How it was verified**

    - ✅ `test -s README.md` passed
    - ❌ ````echo '``` no greeting'; exit 4```` ended with 4 instead of 0

    The last try to repair it changed nothing of the failure, so there was no other.

    <sub>4 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    assert_snapshot!(offered(&world.github.pulls()[0]), @"
    draft from coding-agent/1-greet-the-reader into main: Greet the reader
    -----
    It is as polite as can be.

    **How it was verified**

    - ✅ `test -s README.md` passed
    - ❌ ````echo '``` no greeting'; exit 4```` ended with 4 instead of 0

    The last try to repair it changed nothing of the failure, so there was no other.

    <details><summary>What the failing check said</summary>

    ````
    $ echo '``` no greeting'; exit 4
    ``` no greeting
    [exit code 4]
    ````

    </details>

    Closes #1

    <sub>4 model turns · <tokens> · <time> · run `<run>`</sub>
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_check_that_does_not_end_is_no_pass() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["planning"] = json!({"verification": {"max_rounds": 0}});
        // It bounds what the program itself runs in the container as well.
        config["command_executor"]["timeout_seconds"] = json!(10);
    });
    greets(world.model.plans(plan().verified_by("sleep 600")));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent done
    -----
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ⚠️ Done, but the checks do not pass: http://<address>/acme/widgets/pull/2 is a draft

    The README greets its reader now.

    **How it was verified**

    - ❌ `sleep 600` was ended after 10 s (`command_executor.timeout_seconds`)

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    assert!(world.github.pulls()[0].is_draft());
    world.finish().await;
}

#[tokio::test]
async fn where_checks_are_switched_off_nobody_is_told_that_there_were_none() {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({"verification": {"enabled": false}}));
    greets(world.model.plans(plan().verified_by("false")));
    greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_snapshot!(offered(&world.github.pulls()[0]), @"
    pull request from coding-agent/1-greet-the-reader into main: Greet the reader
    -----
    The README greets its reader now.

    Nothing was checked: checks are switched off (`planning.verification.enabled`).

    Closes #1

    <sub>3 model turns · <tokens> · <time> · run `<run>`</sub>
    ");
    world.finish().await;
}

#[tokio::test]
async fn no_change_at_all_is_a_legitimate_end() {
    let world = World::start().await;
    let script = executes(world.model.plans(plan().verified_by("true")), "cat README.md");
    script.done("The README greets its reader already.");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 0
    labels: coding agent done
    -----
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ☑️ Nothing was changed

    The model says:

    The README greets its reader already.

    **How it was verified**

    - ✅ `true` passed

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    assert!(world.github.pulls().is_empty());
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_has_begun_nothing_is_asked_once_more_and_its_words_are_told_as_its_own() {
    let world = World::start().await;
    let script = world.model.plans(plan());
    let script = script.calls("workspace/read_file", json!({ "path": "README.md" }));
    script
        .done("I made the README greet its reader, and added a test.")
        .done("Nothing more has to be done.");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(world.model.requests()[3].last_user_message(), @"`done` did not count: nothing was changed in the project. Do what the plan asks for. If no change is needed, as where only a question is asked, finish again and say why.");
    assert_snapshot!(told(&ended, &issue), @"
    exit code: 0
    labels: coding agent done
    -----
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 4 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ☑️ Nothing was changed

    The model says:

    I made the README greet its reader, and added a test.

    Nothing more has to be done.

    Nothing was checked: nothing was changed, and the plan names no command for it.

    <sub>4 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    assert!(world.github.pulls().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_begins_when_it_is_asked_once_more_is_done_by_what_it_did() {
    let world = World::start().await;
    greets(world.model.plans(plan()).done("I made the README greet its reader."));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let comments = issue.comments_of(world.github.bot());
    assert!(comments[0].contains("- [x] greet the reader"), "{}", comments[0]);
    let last = &comments[1];
    assert!(last.starts_with("### ☑️ Done, unchecked: http"), "{last}");
    assert!(last.contains("\n\nThe README greets its reader now.\n"), "{last}");
    assert!(!last.contains("I made"), "{last}");
    assert_eq!(world.github.pulls()[0].file("README.md").as_deref(), Some("Hello\n"));
    world.finish().await;
}
