//! A model server that is wrong, gone, slow to come back or too small.

use insta::assert_snapshot;
use regex::Regex;
use serde_json::{Value, json};

use super::{greeting, greets, left_on, plan, told, writes};
use crate::marks::{PIECE, long_token};
use crate::world::World;
use crate::world::facts::facts;

#[tokio::test]
async fn trouble_that_passes_is_noticed_by_nobody() {
    let world = World::start().await;
    let script = world.model.fails(500, 2).plans(plan()).breaks_off();
    let script = writes(script, "README.md", "Hello\n").rate_limited(Some(1));
    script.done("The README greets its reader now.");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 0
    labels: coding agent done
    -----
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [x] greet the reader

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ☑️ Done, unchecked: http://<address>/acme/widgets/pull/2

    The README greets its reader now.

    Nothing was checked: neither the plan nor the project names a command for it; name one in `planning.verification.test_command`, or in `AGENTS.md` for the planner.

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_refused_key_fails_the_task_and_is_not_shown() {
    let world = World::start().await;
    world.model.wants_key("another");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @r"
    exit code: 1
    labels: coding agent failed
    -----
    ### ❌ This could not be done

    The openai server at `http://<address>/v1` answered 401 Unauthorized to a request for 'scripted': Incorrect API key provided: Bearer \*\*\*; check llm.openai.api_key and what the key may do.

    To start a new run, set the label `coding agent` again.

    <!-- coding-agent:<run>:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_model_the_server_does_not_have_fails_the_task() {
    let mut world = World::start().await;
    world.configure(|config| config["llm"]["openai"]["model"] = json!("missing-model"));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent failed
    -----
    ### ❌ This could not be done

    The openai server at `http://<address>/v1` answered 404 Not Found to a request for 'missing-model': model 'missing-model' not found; choose a model the server has in llm.openai.model (`http://<address>/v1/models` lists them).

    To start a new run, set the label `coding agent` again.

    <!-- coding-agent:<run>:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_refuses_the_task_ends_it_and_is_not_asked_again() {
    let world = World::start().await;
    world.model.declines("I cannot help with that.");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent failed
    -----
    ### ❌ This could not be done

    The model 'scripted' at `http://<address>/v1` refused to reply, or a filter of its provider did: I cannot help with that; word the task otherwise, or choose another model.

    To start a new run, set the label `coding agent` again.

    <!-- coding-agent:<run>:final -->
    ");
    assert_eq!(world.model.requests().len(), 1);
    let called = facts(&world, "model_called");
    assert_eq!(called.len(), 1, "it is paid all the same");
    assert!(called[0]["input"].as_u64() > Some(0), "{called:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_server_that_is_down_keeps_the_task_waiting_until_it_is_back() {
    let mut world = World::start().await;
    let address = world.model.openai_address();
    world.configure(|config| config["llm"]["openai"]["base_url"] = json!("http://127.0.0.1:9/v1"));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent paused
    -----
    ### ⏳ Waiting until <time>

    The model at `http://<address>/v1` cannot be reached: Connection refused (os error 111) (tried four times); start its server, or check llm.openai.base_url.

    Then it goes on by itself, and reads what was written here meanwhile. Put the label `coding agent` on to have it go on at once.

    <sub>0 model turns · <tokens> · <time> · run `<run>`</sub>

    <!-- coding-agent:<run>:progress -->
    ");
    let waiting = only_run(&world).await;
    assert_eq!(waiting["state"], "planning");
    assert!(waiting["not_before"].is_string(), "{waiting}");

    // Not due yet: the next round leaves it alone.
    assert_eq!(world.run().await.stdout, "");

    // The server is back, and nobody wants to wait for the clock.
    world.configure(|config| config["llm"]["openai"]["base_url"] = json!(address));
    greets(world.model.plans(plan()));
    issue.label("coding agent");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{}", world.story());
    assert_eq!(only_run(&world).await["run"], waiting["run"], "it is the same run");
    assert_snapshot!(left_on(&issue), @"
    labels: coding agent done
    -----
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [x] greet the reader

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ☑️ Done, unchecked: http://<address>/acme/widgets/pull/2

    The README greets its reader now.

    Nothing was checked: neither the plan nor the project names a command for it; name one in `planning.verification.test_command`, or in `AGENTS.md` for the planner.

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    assert_eq!(world.github.pulls().len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_rate_limit_with_a_known_end_parks_the_task_until_then() {
    let world = World::start().await;
    world.model.plans(plan()).rate_limited(Some(7_200));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent paused
    -----
    ### ⏳ Waiting until <time>

    The model's rate limit is reached until <time>.

    Then it goes on by itself, and reads what was written here meanwhile. Put the label `coding agent` on to have it go on at once.

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 1 model turn · <tokens> · <time> · run `<run>`</sub>

    <!-- coding-agent:<run>:progress -->
    ");
    let waiting = only_run(&world).await;
    let until: chrono::DateTime<chrono::Utc> = serde_json::from_value(waiting["not_before"].clone()).unwrap();
    let minutes = (until - chrono::Utc::now()).num_minutes();
    assert!((115..=120).contains(&minutes), "{waiting}");

    // What was done so far is not asked for again.
    greets(world.model.script());
    issue.label("coding agent");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_prompt_that_the_server_cut_ends_the_run_instead_of_going_on_blind() {
    let world = World::start().await;
    world.model.plans(plan()).counts(90);
    let issue = greeting(&world).rewrite(&"Say hello to the reader. ".repeat(400));

    let ended = world.run().await;

    assert_snapshot!(about(&told(&ended, &issue)), @"
    exit code: 1
    labels: coding agent failed
    -----
    ### ❌ This could not be done

    The prompt was truncated: about <n> tokens were sent, the server counted 90; start the server with a larger window, or lower llm.openai.context_length to the one it has.

    To start a new run, set the label `coding agent` again.

    <!-- coding-agent:<run>:final -->
    ");
    world.finish().await;
}

/// Leaves out how long the prompt was.
fn about(told: &str) -> String {
    Regex::new(r"about \d+ tokens")
        .unwrap()
        .replace_all(told, "about <n> tokens")
        .into_owned()
}

#[tokio::test]
async fn a_prompt_that_the_server_finds_too_long_fails_the_task() {
    let world = World::start().await;
    world.model.too_long();
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(about(&told(&ended, &issue)), @"
    exit code: 1
    labels: coding agent failed
    -----
    ### ❌ This could not be done

    The conversation needs about <n> tokens, and the server's window has 4096 although 128000 are configured; start the server with a larger window, or lower llm.openai.context_length to the one it has.

    To start a new run, set the label `coding agent` again.

    <!-- coding-agent:<run>:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_reply_that_is_cut_where_the_window_is_full_is_asked_for_again() {
    let mut world = World::start().await;
    world.configure(|config| config["llm"]["openai"]["context_length"] = json!(4_096));
    world.model.has_window(4_096);
    // With the prompt before it, about as long as the window.
    let filling = (0..2_600)
        .map(|number: u32| number.to_string())
        .collect::<Vec<_>>()
        .join(" ");
    // Of the token the end would stay in the quotation, by which nobody recognises it.
    let (token, end) = (long_token(), "and so on, ".repeat(9));
    world.model.forbids(PIECE);
    let planned = format!(r#"{{"phase": "planning", "comment": "{filling}{token} {end}"#);
    let step = format!(r#"{{"comment": "Writing", "tool": "bash", "args": {{"command": "echo {filling}"#);
    let script = world.model.says(&planned).cut().plans(plan());
    greets(script.says(&step).cut());
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    for (place, begins) in [(1, r#"{"phase": "planning""#), (3, r#"{"comment": "Writing""#)] {
        let asked = requests[place].last_user_message();
        let quoted = format!("Your last reply was too long to be kept whole:\n{begins}");
        assert!(asked.contains(&quoted), "{asked}");
        assert!(asked.contains("The reply was cut at the length limit"), "{asked}");
        assert_eq!(asked.matches(" left out").count(), 1, "{asked}");
    }
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_conversation_that_outgrows_a_small_window_ends_before_it_is_sent() {
    let mut world = World::start().await;
    world.configure(|config| config["llm"]["openai"]["context_length"] = json!(4_096));
    world.model.has_window(4_096);
    let script = writes(world.model.plans(plan()), "README.md", "Hello\n");
    // The newest reply stays as it is, so no summary can help.
    writes(script, "words.txt", &"word ".repeat(4_000));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(about(&told(&ended, &issue)), @"
    exit code: 1
    labels: coding agent failed
    -----
    <details><summary>🛠️ Failed: how it went</summary>

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ❌ This could not be done

    The conversation needs about <n> tokens and the model's window has room for 4096; split the task, lower max_tokens if it is set, or use a model with a larger window and say so in its context_length.

    The work so far is on the branch `coding-agent/1-greet-the-reader`.

    To start a new run, set the label `coding agent` again.

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    world.finish().await;
}

/// Returns the one run that `status` shows.
async fn only_run(world: &World) -> Value {
    let status = world.command(&["status", "--json"]).await;
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    let runs = status["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1, "{status}");
    runs[0].clone()
}
