//! A budget that is used up: the run waits for a person, or all runs for the next day.

use serde_json::json;

use super::{COMMAND, HALF_OF_THE_WORK, last_on_github, paused, pauses, plan, world};

#[tokio::test]
async fn a_used_up_budget_pauses_the_run_and_more_of_it_lets_it_go_on() {
    let mut world = world().await;
    world.configure(|config| config["budget"] = json!({ "tokens": 1000 }));
    world
        .model
        .plans(plan())
        .counts(400)
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .counts(700);
    let issue = world.github.open_issue("Paint it").label("coding agent");

    let ended = world.run().await;

    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), "github:acme/widgets#1: paused: a limit is reached\n"),
        "{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent paused"]);
    insta::assert_snapshot!(last_on_github(&world, &issue), @"
    ### ⏸️ Paused: a limit is reached

    The budget of 1000 tokens is used up (1282 used; budget.tokens).

    `/agent budget 500k` lets it go on with at most 500,000 more tokens, the label `coding agent` with the limits as they are; either way all limits count anew. `/agent stop` ends it.

    The work so far is on the branch `coding-agent/1-paint-it`.

    <sub>2 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:set-aside-1 -->
    ");
    issue.comment("alice", "/agent resume");
    assert_eq!(world.run().await.stdout, "");
    insta::assert_snapshot!(last_on_github(&world, &issue), @"
    A limit is reached: `/agent budget 500k` lets it go on with at most 500,000 more tokens, the trigger label with the limits as they are. Either way all limits count anew.

    <!-- coding-agent:RUN:reply-comment-N -->
    ");

    let told = world.command(&["budget", "github:acme/widgets#1", "lots"]).await;
    assert_eq!(told.code, Some(64), "{told:?}");
    let told = world.command(&["budget", "github:acme/widgets#1", "100k"]).await;
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "github:acme/widgets#1: it goes on with the next free worker\n"),
        "{told:?}"
    );
    world.model.done("It is dry.");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(world.github.pulls()[0].files(), ["README.md", "color.txt", "state.txt"]);
    world.finish().await;
}

#[tokio::test]
async fn a_used_up_budget_of_dollars_pauses_the_run_and_says_what_it_cost() {
    let mut world = world().await;
    // Half of what the model reads comes from its cache.
    world.configure(|config| {
        config["budget"] = json!({
            "cost_usd": 1.5,
            "prices": { "input": 2000.0, "cached": 1000.0, "output": 0.0 },
        });
    });
    world
        .model
        .plans(plan())
        .counts(400)
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .counts(700);
    let issue = world.github.open_issue("Paint it").label("coding agent");

    let ended = world.run().await;

    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), "github:acme/widgets#1: paused: a limit is reached\n"),
        "{}",
        world.story()
    );
    insta::assert_snapshot!(last_on_github(&world, &issue), @"
    ### ⏸️ Paused: a limit is reached

    The budget of `$1.50` is used up (`$1.65` spent; budget.cost_usd).

    `/agent budget 500k` lets it go on with at most 500,000 more tokens, the label `coding agent` with the limits as they are; either way all limits count anew. `/agent stop` ends it.

    The work so far is on the branch `coding-agent/1-paint-it`.

    <sub>2 model turns · TOKENS · $1.65 · TIME</sub>

    <!-- coding-agent:RUN:set-aside-1 -->
    ");
    assert_eq!(issue.labels(), ["coding agent paused"]);
    world.finish().await;
}

#[tokio::test]
async fn a_used_up_budget_of_minutes_pauses_the_run_and_waiting_costs_none() {
    let mut world = world().await;
    world.configure(|config| config["budget"] = json!({ "minutes": 30 }));
    let issue = paused(&world).await;
    // A part of half an hour was worked, and long ago the run was set aside.
    world
        .rewrite_records(|record| {
            record["worked"]["worked_seconds"] = json!(20 * 60);
            record["planned"]["started_at"] = json!("2026-01-01T00:00:00Z");
        })
        .await;
    world.model.calls(COMMAND, json!({ "command": "true" })).holds();
    issue.comment("alice", "/agent resume");
    let run = world.spawn(&["run"]);
    world.model.until_held(2).await;
    pauses(&world, &issue, run).await;
    world
        .rewrite_records(|record| record["worked"]["worked_seconds"] = json!(30 * 60))
        .await;

    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), "github:acme/widgets#1: paused: a limit is reached\n"),
        "{}",
        world.story()
    );
    insta::assert_snapshot!(last_on_github(&world, &issue), @"
    ### ⏸️ Paused: a limit is reached

    The budget of 30 minutes is used up (budget.minutes).

    `/agent budget 500k` lets it go on with at most 500,000 more tokens, the label `coding agent` with the limits as they are; either way all limits count anew. `/agent stop` ends it.

    <sub>1 model turn · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:set-aside-3 -->
    ");

    // What is allowed during a pause of all runs counts when that ends.
    world.all_runs("pause").await;
    issue.comment("alice", "/agent budget 500k");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    let answer = last_on_github(&world, &issue);
    assert!(answer.contains("All work is paused by the operator"), "{answer}");
    world.all_runs("resume").await;
    world
        .model
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .done("It is dry.");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    world.finish().await;
}

#[tokio::test]
async fn the_days_budget_makes_the_next_run_wait_for_the_next_day() {
    let mut world = world().await;
    world.configure(|config| config["budget"] = json!({ "per_day": { "tokens": 2000 } }));
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .done("It is dry.")
        .counts(5000);
    world.github.open_issue("Paint it").label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );

    let other = world.github.open_issue("Paint the other").label("coding agent");
    let ended = world.run().await;

    let tomorrow = (chrono::Utc::now().date_naive() + chrono::Days::new(1)).format("%Y-%m-%d 00:00 UTC");
    let told =
        format!("github:acme/widgets#3: put back until {tomorrow}: the 2000 tokens that all runs may use in a day");
    assert!(ended.stdout.starts_with(&told), "{ended:?}\n{}", world.story());
    assert_eq!(other.labels(), ["coding agent paused"]);
    let comments = other.comments_of(world.github.bot());
    assert!(
        matches!(&comments[..], [waits] if waits.starts_with("### ⏳ Waiting until") && waits.contains("budget.per_day.tokens")),
        "{comments:?}"
    );
    world.finish().await;
}
