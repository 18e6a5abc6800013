//! Limits are the program's, and what was done within them is not lost.

use insta::assert_snapshot;
use serde_json::json;

use super::{executes, greeting, plan, told, writes};
use crate::world::World;

const BRANCH: &str = "coding-agent/1-greet-the-reader";

#[tokio::test]
async fn after_the_last_turn_the_work_so_far_is_pushed() {
    let mut world = World::start().await;
    world.configure(|config| config["max_llm_process_num"] = json!(3));
    let script = writes(world.model.plans(plan()), "README.md", "Hello\n");
    executes(script, "cat README.md");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent paused
    -----
    ### 🛠️ Paused

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ⏸️ Paused: a limit is reached

    The limit of 3 model turns is reached before the task was done (max_llm_process_num).

    `/agent budget 500k` lets it go on with at most 500,000 more tokens, the label `coding agent` with the limits as they are; either way all limits count anew. `/agent stop` ends it.

    The work so far is on the branch `coding-agent/1-greet-the-reader`.

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:set-aside-1 -->
    ");
    assert!(world.github.pulls().is_empty());
    let saved = world.github.default_repository().file(BRANCH, "README.md");
    assert_eq!(saved.as_deref(), Some("Hello\n"));

    // Asked for again, it goes on from there.
    world.configure(|config| config["max_llm_process_num"] = json!(100));
    world.model.allows_restarts();
    executes(world.model.script(), "grep Hello README.md").done("It was all there.");
    issue.label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let pull = &world.github.pulls()[0];
    assert_eq!(
        (pull.head().as_str(), pull.file("README.md").as_deref()),
        (BRANCH, Some("Hello\n"))
    );
    world.finish().await;
}

#[tokio::test]
async fn a_used_up_budget_pauses_the_run_and_the_work_so_far_is_pushed() {
    let mut world = World::start().await;
    world.configure(|config| config["budget"] = json!({"tokens": 20_000}));
    writes(world.model.plans(plan()), "README.md", "Hello\n").counts(30_000);
    let issue = greeting(&world);

    let ended = world.run().await;

    let told = told(&ended, &issue);
    let used = regex::Regex::new(r"\(\d+ used;").unwrap();
    assert_snapshot!(used.replace(&told, "(<n> used;"), @"
    exit code: 1
    labels: coding agent paused
    -----
    ### 🛠️ Paused

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 2 model turns · <tokens> · <time> · run `<run>`</sub>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ⏸️ Paused: a limit is reached

    The budget of 20000 tokens is used up (<n> used; budget.tokens).

    `/agent budget 500k` lets it go on with at most 500,000 more tokens, the label `coding agent` with the limits as they are; either way all limits count anew. `/agent stop` ends it.

    The work so far is on the branch `coding-agent/1-greet-the-reader`.

    <sub>2 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:set-aside-1 -->
    ");
    let saved = world.github.default_repository().file(BRANCH, "README.md");
    assert_eq!(saved.as_deref(), Some("Hello\n"));
    world.finish().await;
}

#[tokio::test]
async fn a_limit_before_any_work_leaves_no_branch() {
    let mut world = World::start().await;
    world.configure(|config| config["max_llm_process_num"] = json!(1));
    world.model.plans(plan());
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent paused
    -----
    ### 🛠️ Paused

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 1 model turn · <tokens> · <time> · run `<run>`</sub>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ⏸️ Paused: a limit is reached

    The limit of 1 model turn is reached before the task was done (max_llm_process_num).

    `/agent budget 500k` lets it go on with at most 500,000 more tokens, the label `coding agent` with the limits as they are; either way all limits count anew. `/agent stop` ends it.

    <sub>1 model turn · <tokens> · <time></sub>

    <!-- coding-agent:<run>:set-aside-1 -->
    ");
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    world.finish().await;
}
