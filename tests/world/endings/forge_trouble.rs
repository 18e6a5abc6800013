//! A forge that refuses, and one that wants to be left alone.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{executes, greeting, greets, left_on, plan, steady, told, writes};
use crate::fake::fault::{Disturbance, Fault};
use crate::fake::github::{Item, Permission};
use crate::world::facts::count;
use crate::world::{Program, World};

#[tokio::test]
async fn a_refused_token_is_said_and_leaves_the_item_as_it_is() {
    let world = World::start().await;
    world.github.revokes_tokens();
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @r"
    exit code: 1
    labels: coding agent
    ");
    assert_snapshot!(steady(&ended.stderr), @r#"coding-agent: searching acme/widgets for labelled items: GitHub answered 401; it says "Bad credentials": the token is wrong, expired or revoked; make a new one and set github.token (for an App: check github.app)"#);
    world.finish().await;
}

#[tokio::test]
async fn runs_at_work_and_in_the_queue_wait_for_a_good_token() {
    let mut world = World::start().await;
    world.configure(|config| config["consumers"] = json!(1));
    greets(world.model.for_task("Greet the reader").plans(plan())).holds();
    greets(world.model.for_task("Greet the writer").plans(plan()));
    let at_work = greeting(&world);
    let queued = world.github.open_issue("Greet the writer").label("coding agent");
    let mut running = world.spawn(&["run"]);
    running.until(&world, world.model.until_held(1)).await;
    world.github.revokes_tokens();
    world.model.release();

    let ended = running.ended().await;

    let put_back = ended.stdout.matches("put back until").count();
    assert_eq!((ended.code, put_back), (Some(1), 2), "{ended:?}\n{}", world.story());
    let lines = ended.stdout.lines().filter_map(|line| line.split_once(" UTC: "));
    let reasons: Vec<&str> = lines.map(|(_, reason)| reason).collect();
    assert_eq!(reasons.len(), 2, "{ended:?}");
    let status = world.command(&["status"]).await.stdout;
    for reason in &reasons {
        assert!(
            status.contains(&format!("\n            put back: {reason}\n")),
            "{status}"
        );
    }
    let status = world.command(&["status", "--json"]).await.stdout;
    let status: Value = serde_json::from_str(&status).unwrap();
    for run in status["runs"].as_array().unwrap() {
        let told = run["postponed_because"].as_str().unwrap_or_default();
        assert!(reasons.contains(&told), "{run:#}");
    }
    world.github.takes_the_token_again();
    world.make_everything_due().await;
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\ngithub:acme/widgets#2: done\n", &world);
    for issue in [at_work, queued] {
        assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    }
    assert_eq!(world.github.pulls().len(), 2);
    world.finish().await;
}

#[tokio::test]
async fn the_end_of_a_run_waits_for_a_good_token() {
    let world = World::start().await;
    let script = writes(world.model.plans(plan()), "README.md", "Hello\n");
    script.refuses("the account is closed").holds();
    let (issue, running) = held(&world).await;
    world.github.revokes_tokens();
    world.model.release();
    let ended = running.ended().await;
    assert!(ended.stdout.contains("put back until"), "{ended:?}\n{}", world.story());
    let status = world.command(&["status"]).await.stdout;
    assert!(status.contains("\n            put back: "), "{status}");

    world.github.takes_the_token_again();
    world.make_everything_due().await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    assert_eq!(issue.labels(), ["coding agent failed"], "{}", world.story());
    expect_the_work_on_a_branch(&world, &issue);
    world.finish().await;
}

#[tokio::test]
async fn an_end_that_the_forge_refuses_to_show_waits_for_a_day_at_most() {
    for is_taken_later in [true, false] {
        let world = World::start().await.attentive();
        never_says_that_it_is_done(&world);
        let (issue, running) = held(&world).await;
        let refused = Disturbance::of("POST /repos/*/*/issues/*/labels", Fault::Fails(403));
        world.github.disturb(refused.always());
        issue.comment("alice", "/agent stop");
        let ended = running.ended().await;
        assert!(ended.stdout.contains("put back until"), "{ended:?}\n{}", world.story());
        assert_eq!(issue.labels(), ["coding agent processing"], "{}", world.story());

        if is_taken_later {
            world.github.is_well_again();
        } else {
            let yesterday = Utc::now() - TimeDelta::hours(24);
            world
                .rewrite_records(|record| record["waiting"]["failing"]["since"] = json!(yesterday))
                .await;
        }
        world.make_everything_due().await;
        let ended = world.run().await;

        ended.prints("github:acme/widgets#1: stopped\n", &world);
        let shown = if is_taken_later { "stopped" } else { "processing" };
        assert_eq!(issue.labels(), [format!("coding agent {shown}")], "{}", world.story());
        expect_the_work_on_a_branch(&world, &issue);
        world.model.release();
        world.finish().await;
    }
}

#[tokio::test]
async fn a_token_that_may_only_read_is_told_which_right_it_lacks() {
    let world = World::start().await;
    world
        .github
        .default_repository()
        .member(world.github.bot(), Permission::Read);
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(
        (ended.code, left_on(&issue)),
        (Some(1), "labels: coding agent\n".to_owned())
    );
    assert_snapshot!(steady(&ended.stderr), @r#"coding-agent: github:acme/widgets#1: asking whether alice may write to acme/widgets: GitHub answered 403; it says "Must have push access to view collaborator permission.": give the token's account the role Write in acme/widgets: GitHub tells nobody else who may write; a fine-grained token or an App needs the repository permission 'Metadata' (Read-only), a classic token the scope 'repo'"#);
    world.finish().await;
}

#[tokio::test]
async fn gitlab_says_which_right_is_missing_as_well() {
    let world = World::on_gitlab().await;
    let issue = world.gitlab.open_issue("Greet the reader").label("coding agent");

    world.gitlab.scopes(&["read_api"]);
    let may_only_read = world.run().await;
    world.gitlab.revokes_tokens();
    let is_unknown = world.run().await;

    assert_eq!((may_only_read.code, is_unknown.code), (Some(1), Some(1)));
    assert_snapshot!(steady(&may_only_read.stderr), @r#"coding-agent: gitlab:acme/widgets#1: putting the label 'coding agent processing' on acme/widgets#1: GitLab answered 403; it says "insufficient_scope": see that acme/widgets exists, that the token has the scope 'api', and that its user has at least the role Reporter there (Developer for all that the program does)"#);
    assert_snapshot!(steady(&is_unknown.stderr), @r#"coding-agent: searching acme/widgets for labelled items: GitLab answered 401; it says "401 Unauthorized": the token is wrong, expired or revoked; make a new one with the scope 'api' and set gitlab.token"#);
    assert_eq!(issue.labels(), ["coding agent"]);
    assert!(issue.comments_of(world.gitlab.bot()).is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_pull_request_that_is_refused_fails_the_task_and_the_branch_stays() {
    let world = World::start().await;
    greets(world.model.plans(plan()));
    world.github.fails_next("POST /repos/*/*/pulls", 403, 1);
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @r#"
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

    Opening a pull request from coding-agent/1-greet-the-reader in acme/widgets: GitHub answered 403; it says "(a page of HTML)": see that acme/widgets exists and give the token access to it: a fine-grained token or an App needs the repository permission 'Pull requests' (Read and write), a classic token the scope 'repo'.

    The work so far is on the branch `coding-agent/1-greet-the-reader`.

    To start a new run, set the label `coding agent` again.

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    "#);
    let saved = world
        .github
        .default_repository()
        .file("coding-agent/1-greet-the-reader", "README.md");
    assert_eq!(saved.as_deref(), Some("Hello\n"));
    world.finish().await;
}

#[tokio::test]
async fn a_push_that_is_refused_fails_the_task_with_what_the_forge_said() {
    let world = World::start().await;
    greets(world.model.plans(plan()));
    world
        .github
        .default_repository()
        .rejects_pushes_to("coding-agent/1-greet-the-reader");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @r"
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

    Pushing to coding-agent/1-greet-the-reader of `http://<address>/acme/widgets.git`: access refused: GH006: Protected branch update failed, hook declined to update refs/heads/coding-agent/1-greet-the-reader, \[remote rejected] (hook declined); let the token's account push to such branches (branch protection, push rules, hooks).

    The work so far could not be brought to this repository. It is kept where this program runs, in the file `outputs/<run>/work.bundle` below `logs.directory`; with its whole path, `git fetch outputs/<run>/work.bundle refs/coding-agent/<run>/accepted` brings it into a clone of this repository.

    To start a new run, set the label `coding agent` again.

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    assert!(world.github.pulls().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_push_that_trouble_of_the_forge_declines_is_tried_again() {
    let world = World::on_gitlab().await;
    greets(world.model.plans(plan()));
    let git = world.gitlab.default_project().git();
    git.decline_next_push("GitLab: 500 Internal Server Error");
    let issue = world.gitlab.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets#1: done\n", &world);
    assert!(git.path().join("hooks/pre-receive-declined").exists());
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let merge = world.gitlab.merge_request_for(&issue).await;
    assert_eq!(merge.file("README.md").as_deref(), Some("Hello\n"));
    world.finish().await;
}

#[tokio::test]
async fn a_delivery_waits_until_gitlab_takes_writes_again() {
    let world = World::on_gitlab().await;
    greets(world.model.plans(plan())).holds();
    let issue = world.gitlab.open_issue("Greet the reader").label("coding agent");
    let mut running = world.spawn(&["run"]);
    running.until(&world, world.model.until_held(1)).await;
    world.gitlab.begins_maintenance();
    world.model.release();

    let ended = running.ended().await;

    assert!(ended.stdout.contains("put back until"), "{ended:?}\n{}", world.story());
    assert!(world.gitlab.merge_requests().is_empty(), "{}", world.story());
    world.gitlab.ends_maintenance();
    world.make_everything_due().await;
    let ended = world.run().await;
    ended.prints("gitlab:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    assert_eq!(world.gitlab.merge_requests().len(), 1, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_short_secondary_limit_is_waited_for() {
    let world = World::start().await;
    greets(world.model.plans(plan()));
    let issue = greeting(&world);
    world.github.secondary_limited(Duration::from_secs(2));

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

/// What GitHub's GraphQL API answers, with status 200, where something goes wrong on its side.
const WENT_WRONG: &str = r#"{"data":null,"errors":[{"message":"Something went wrong while executing your query. This may be the result of a timeout, or it could be a GitHub bug."}]}"#;

#[tokio::test]
async fn a_fault_on_the_side_of_graphql_is_asked_about_again() {
    let world = World::start().await;
    greets(world.model.plans(plan()));
    world
        .github
        .disturb(Disturbance::of("POST /api/graphql", Fault::Says(WENT_WRONG)));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_fault_of_graphql_that_stays_puts_the_task_back_and_fails_nothing() {
    let world = World::start().await;
    greets(world.model.plans(plan()));
    // A request and its three repeats.
    world
        .github
        .disturb(Disturbance::of("POST /api/graphql", Fault::Says(WENT_WRONG)).times(4));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until "),
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent paused"]);
    world.make_everything_due().await;
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_rate_limit_in_the_middle_parks_the_task_and_nothing_is_done_twice() {
    let world = World::start().await;
    greets(world.model.plans(plan())).holds();
    let (issue, running) = limited_while_the_model_thinks(&world).await;
    world.model.release();
    let ended = running.ended().await;

    assert_eq!(
        (ended.code, ended.stdout.contains("put back until")),
        (Some(1), true),
        "{ended:?}"
    );
    assert!(world.github.pulls().is_empty());

    world.github.rate_limited(5_000, Duration::from_hours(1));
    issue.label("coding agent");
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
    assert_eq!(world.github.pulls().len(), 1);
    world.finish().await;
}

/// Has the program work on an issue until the model holds a reply back.
async fn held(world: &World) -> (Item, Program) {
    let issue = greeting(world);
    let mut running = world.spawn(&["run"]);
    running.until(world, world.model.until_held(1)).await;
    (issue, running)
}

/// Has the model write a file, and think for ever about its last reply.
fn never_says_that_it_is_done(world: &World) {
    let script = writes(world.model.plans(plan()), "README.md", "Hello\n");
    script.done("This is never heard.").holds();
}

/// Uses the forge's allowance up while the model thinks about its next turn, and returns the item
/// and the program.
async fn limited_while_the_model_thinks(world: &World) -> (Item, Program) {
    let at_work = held(world).await;
    world.github.rate_limited(0, Duration::from_hours(1));
    at_work
}

/// Expects the run to wait for the forge without a container, and renews the allowance. The mirror
/// is gone then, as on another machine, which only has the store.
async fn waits_for_the_forge(world: &World, running: Program) {
    let ended = running.ended().await;
    assert!(ended.stdout.contains("put back until"), "{ended:?}\n{}", world.story());
    assert_eq!(world.containers().await, [""; 0]);
    std::fs::remove_dir_all(world.state_dir().join("mirrors")).unwrap();
    world.github.rate_limited(5_000, Duration::from_hours(1));
}

fn expect_the_work_on_a_branch(world: &World, issue: &Item) {
    let repository = world.github.default_repository();
    let saved = repository.file("coding-agent/1-greet-the-reader", "README.md");
    assert_eq!(saved.as_deref(), Some("Hello\n"), "{}", world.story());
    let last = issue.comments_of(world.github.bot()).pop().unwrap();
    assert!(
        last.contains("The work so far is on the branch `coding-agent/1-greet-the-reader`."),
        "{last}"
    );
}

#[tokio::test]
async fn the_work_of_a_run_that_fails_while_the_forge_is_limited_is_handed_over_later() {
    let world = World::start().await;
    let script = writes(world.model.plans(plan()), "README.md", "Hello\n");
    script.refuses("the account is closed").holds();
    let (issue, running) = limited_while_the_model_thinks(&world).await;
    world.model.release();
    waits_for_the_forge(&world, running).await;

    world.make_everything_due().await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    assert_eq!(issue.labels(), ["coding agent failed"]);
    expect_the_work_on_a_branch(&world, &issue);
    world.finish().await;
}

#[tokio::test]
async fn the_work_of_a_run_that_is_stopped_while_the_forge_is_limited_is_handed_over_later() {
    let world = World::start().await;
    never_says_that_it_is_done(&world);
    let (issue, running) = limited_while_the_model_thinks(&world).await;
    let stop = world.spawn(&["stop", "github:acme/widgets#1"]);
    waits_for_the_forge(&world, running).await;
    stop.kill().await;
    assert_eq!(issue.labels(), ["coding agent processing"]);

    world.make_everything_due().await;
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent stopped"], "{}", world.story());
    expect_the_work_on_a_branch(&world, &issue);
    world.model.release();
    world.finish().await;
}

#[tokio::test]
async fn a_stop_that_people_were_told_of_counts_also_when_its_comment_is_deleted() {
    let world = World::start().await.attentive();
    never_says_that_it_is_done(&world);
    let (issue, running) = held(&world).await;
    world.github.limits("POST /repos/*/*/issues/*/labels");
    issue.comment("alice", "/agent stop");
    let order = issue.last_comment();
    let ended = running.ended().await;
    assert!(ended.stdout.contains("put back until"), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent processing"], "{}", world.story());
    order.delete();

    // It is also shown while all runs are paused.
    world.all_runs("pause").await;
    world.make_everything_due().await;
    let ended = world.run().await;

    let told = (Some(0), "github:acme/widgets#1: stopped\n");
    assert_eq!((ended.code, ended.stdout.as_str()), told, "{ended:?}");
    assert_eq!(issue.labels(), ["coding agent stopped"], "{}", world.story());
    expect_the_work_on_a_branch(&world, &issue);
    world.model.release();
    world.finish().await;
}

#[tokio::test]
async fn a_stop_counts_after_a_crash_though_its_comment_is_deleted() {
    let world = World::start().await.attentive();
    never_says_that_it_is_done(&world);
    let (issue, mut running) = held(&world).await;
    world
        .github
        .disturb(Disturbance::of("POST /repos/*/*/issues/*/labels", Fault::Hangs));
    issue.comment("alice", "/agent stop");
    let order = issue.last_comment();
    running.until(&world, world.github.until_one_hangs()).await;
    running.kill().await;
    order.delete();

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: stopped\n", &world);
    assert_eq!(issue.labels(), ["coding agent stopped"], "{}", world.story());
    expect_the_work_on_a_branch(&world, &issue);
    world.model.release();
    world.finish().await;
}

#[tokio::test]
async fn the_denial_of_a_result_is_shown_when_the_forge_takes_comments_again() {
    let world = World::start().await;
    executes(world.model.plans(plan()), "echo brief > AGENTS.md").done("There are rules now.");
    let issue = greeting(&world);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent waiting"], "{}", world.story());
    world.github.takes_no_comment();
    issue.comment("alice", "/agent deny No rules, please.");
    for _ in 0..2 {
        assert_eq!(world.run().await.stdout, "");
        assert_eq!(issue.labels(), ["coding agent waiting"], "{}", world.story());
    }

    // Nobody reads the comment with the denial at this moment.
    world.github.rate_limited(0, Duration::from_hours(1));
    let approved = world.command(&["approve", "github:acme/widgets#1"]).await;
    assert_eq!((approved.code, approved.stdout.as_str()), (Some(1), ""), "{approved:?}");
    let words = "#1: nothing was approved: it has ended already, which is shown on the item at ";
    assert!(approved.stderr.contains(words), "{approved:?}");
    let status = world.command(&["status"]).await;
    assert!(!status.stdout.contains("approval of its result"), "{status:?}");
    world.github.rate_limited(5_000, Duration::from_hours(1));
    world.make_everything_due().await;
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent stopped"], "{}", world.story());
    let said = issue.comments_of(world.github.bot()).pop().unwrap();
    assert!(
        said.contains("The result was not approved: No rules, please."),
        "{said}"
    );
    assert_eq!(count(&world, "approval_denied"), 1, "{}", world.story());
    assert!(world.github.pulls().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_withdrawal_is_shown_when_the_forge_takes_comments_again_and_the_work_does_not_go_on() {
    let mut world = World::start().await;
    world.configure(|config| config["steering"] = json!({ "interval_seconds": 3600 }));
    greets(world.model.plans(plan())).holds();
    let (issue, running) = held(&world).await;
    world.github.takes_no_comment();
    issue.unlabel("coding agent processing");
    world.model.release();
    let ended = running.ended().await;
    assert!(ended.stdout.contains("put back until"), "{ended:?}\n{}", world.story());
    // The forge is left alone for as long as it asks, unless somebody asks for work anew.
    assert_eq!(world.run().await.stdout, "");
    assert_eq!(issue.labels(), [""; 0], "{}", world.story());
    issue.label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(
        issue.labels(),
        ["coding agent", "coding agent stopped"],
        "{}",
        world.story()
    );
    let said = issue.comments_of(world.github.bot()).pop().unwrap();
    assert!(
        said.contains("The run was ended because the label `coding agent processing` was taken off."),
        "{said}"
    );
    assert!(world.github.pulls().is_empty());

    // Whoever asked for the work before that was shown asked for another run, which goes on from the work.
    writes(world.model.plans(plan()), "README.md", "Hello, you\n").done("The README greets its reader now.");
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    world.finish().await;
}
