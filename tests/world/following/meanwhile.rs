//! Changes that people make to a pull/merge request while a round works on it, or waits: each has
//! an end that a comment tells.

use serde_json::json;

use super::{COMMAND, paints, red_merge_request, red_pull, said};
use crate::fake::board::Board;
use crate::fake::item::Item;
use crate::fake::model::Plan;
use crate::world::people::says;
use crate::world::{Program, World};

const BRANCH: &str = "coding-agent/1-paint-it";

fn attentive(mut world: World) -> World {
    world.configure(|config| {
        config["follow_up"] = json!({ "debounce_seconds": 0 });
        config["steering"] = json!({ "interval_seconds": 1 });
    });
    world.model.allows_restarts();
    world
}

/// Has a round begin that paints it blue, and the model wait before it says that it is done.
async fn round_at_work<S: Board>(world: &World, change: &Item<S>) -> Program {
    paints(world, "blue").holds();
    change.comment("alice", "Blue, please.");
    let mut run = world.spawn(&["run"]);
    run.until(world, world.model.until_held(1)).await;
    run
}

#[tokio::test]
async fn a_branch_that_is_force_pushed_is_not_overwritten() {
    let world = attentive(World::start().await);
    let pull = red_pull(&world).await;
    let repository = world.github.default_repository();
    let run = round_at_work(&world, &pull).await;

    let main = repository.git().resolve("refs/heads/main").unwrap();
    repository.git().set_reference(&format!("refs/heads/{BRANCH}"), &main);
    let theirs = repository.commit(BRANCH, "Paint it anew", &[("color.txt", "white\n")]);
    world.model.release();
    let ended = run.ended().await;

    ended.prints("github:acme/widgets#2: failed\n", &world);
    assert_eq!(repository.git().resolve(&format!("refs/heads/{BRANCH}")), Some(theirs));
    assert_eq!(
        repository
            .file("coding-agent/2-paint-it-unfinished", "color.txt")
            .as_deref(),
        Some("blue\n")
    );
    assert_eq!(pull.labels(), ["coding agent failed"]);
    let comments = pull.comments_of(world.github.bot());
    insta::assert_snapshot!(said(&world, &comments.join("\n=====\n")), @"
    ### ❌ This could not be done

    The branch `coding-agent/1-paint-it` got other commits while this was worked on, so nothing was pushed to it and nothing of it was overwritten.

    The work so far is on the branch `coding-agent/2-paint-it-unfinished`.

    To start a new run, set the label `coding agent` again.

    <sub>3 model turns · TOKENS · TIME</sub>
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_branch_that_is_deleted_is_not_made_again() {
    let world = attentive(World::on_gitlab().await);
    let merge = red_merge_request(&world).await;
    let project = world.gitlab.default_project();
    let run = round_at_work(&world, &merge).await;

    project.git().delete_reference(&format!("refs/heads/{BRANCH}"));
    world.model.release();
    let ended = run.ended().await;

    ended.prints("gitlab:acme/widgets!1: failed\n", &world);
    assert_eq!(project.branches(), ["coding-agent/1-paint-it-unfinished", "main"]);
    let comments = merge.comments_of(world.gitlab.bot());
    insta::assert_snapshot!(said(&world, &comments.join("\n=====\n")), @"
    ### ❌ This could not be done

    The branch `coding-agent/1-paint-it` was deleted while this was worked on; restore it to go on with it.

    The work so far is on the branch `coding-agent/1-paint-it-unfinished`.

    To start a new run, set the label `coding agent` again.

    <sub>3 model turns · TOKENS · TIME</sub>
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_pull_request_that_is_merged_needs_no_more_work() {
    let world = attentive(World::start().await);
    let pull = red_pull(&world).await;
    let run = round_at_work(&world, &pull).await;

    pull.merges();
    let ended = run.ended().await;

    ended.prints("github:acme/widgets#2: stopped\n", &world);
    assert_eq!(pull.labels(), ["coding agent stopped"]);
    let comments = pull.comments_of(world.github.bot());
    insta::assert_snapshot!(said(&world, &comments.join("\n=====\n")), @"
    ### ⏹️ Stopped

    The run was ended because this request was merged.

    Nothing of its work was pushed.

    Further work needs a new issue with the label `coding agent`.

    <sub>2 model turns · TOKENS · TIME</sub>
    ");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_merge_request_that_is_closed_needs_no_more_work() {
    let world = attentive(World::on_gitlab().await);
    let merge = red_merge_request(&world).await;
    let run = round_at_work(&world, &merge).await;

    merge.close();
    let ended = run.ended().await;

    ended.prints("gitlab:acme/widgets!1: stopped\n", &world);
    assert_eq!(merge.labels(), ["coding agent stopped"]);
    let comments = merge.comments_of(world.gitlab.bot());
    insta::assert_snapshot!(said(&world, &comments.join("\n=====\n")), @"
    ### ⏹️ Stopped

    The run was ended because this request was closed.

    Nothing of its work was pushed.

    To start a new run, reopen this and set the label `coding agent` again.

    <sub>2 model turns · TOKENS · TIME</sub>
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_paused_run_whose_merge_request_was_merged_ends() {
    let world = attentive(World::on_gitlab().await);
    let merge = red_merge_request(&world).await;
    let run = round_at_work(&world, &merge).await;
    merge.comment("alice", "/agent pause");
    assert_eq!(
        run.ended().await.stdout,
        "gitlab:acme/widgets!1: paused\n",
        "{}",
        world.story()
    );

    merge.merges();
    assert_eq!(
        world.run().await.stdout,
        "gitlab:acme/widgets!1: stopped\n",
        "{}",
        world.story()
    );

    assert_eq!(merge.labels(), ["coding agent stopped"]);
    let last = merge.comments_of(world.gitlab.bot()).pop().unwrap();
    insta::assert_snapshot!(said(&world, &last), @"
    ### ⏹️ Stopped

    The run was ended because this request was merged.

    The work so far is on the branch `coding-agent/1-paint-it-unfinished`.

    Further work needs a new issue with the label `coding agent`.

    <sub>2 model turns · TOKENS · TIME</sub>
    ");
    world.model.release();
    world.finish().await;
}

#[tokio::test]
async fn a_paused_run_whose_branch_was_force_pushed_costs_the_model_nothing_more() {
    let world = attentive(World::start().await);
    world
        .model
        .plans(Plan::of(&["paint it"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "echo blue > color.txt" }))
        .calls(COMMAND, json!({ "command": "true" }))
        .holds();
    let pull = world
        .github
        .open_pull("Paint it", "paint", &[("wall.txt", "a wall\n")])
        .label("coding agent");
    let repository = world.github.default_repository();
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    pull.comment("alice", "/agent pause");
    assert_eq!(
        run.ended().await.stdout,
        "github:acme/widgets#1: paused\n",
        "{}",
        world.story()
    );
    world.model.release();

    let main = repository.git().resolve("refs/heads/main").unwrap();
    repository.git().set_reference("refs/heads/paint", &main);
    let theirs = repository.commit("paint", "Build another wall", &[("wall.txt", "brick\n")]);
    let asked = world.model.requests().len();
    pull.comment("alice", "/agent resume");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    assert_eq!(world.model.requests().len(), asked, "the model is not asked in vain");
    assert_eq!(repository.git().resolve("refs/heads/paint"), Some(theirs));
    let last = pull.comments_of(world.github.bot()).pop().unwrap();
    insta::assert_snapshot!(said(&world, &last), @"
    ### ❌ This could not be done

    The branch `paint` got other commits while this was worked on, so nothing was pushed to it and nothing of it was overwritten.

    The work so far is on the branch `coding-agent/1-paint-it-unfinished`.

    To start a new run, set the label `coding agent` again.

    <sub>2 model turns · TOKENS · TIME</sub>
    ");
    world.finish().await;
}

#[tokio::test]
async fn what_is_said_while_a_round_is_planned_is_part_of_it_when_planning_begins_anew() {
    let world = attentive(World::start().await);
    let pull = red_pull(&world).await;
    world
        .model
        .calls("repository/list_files", json!({}))
        .holds()
        .rate_limited(Some(7_200));
    pull.comment("alice", "Blue, please.");
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    says(&world, &pull, "alice", "And no brush strokes.").await;
    world.model.release();
    let ended = run.ended().await;
    assert!(
        ended.stdout.starts_with("github:acme/widgets#2: put back until"),
        "{ended:?}\n{}",
        world.story()
    );

    let asked = world.model.requests().len();
    paints(&world, "blue");
    world.make_everything_due().await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#2: done\n", &world);
    let task = world.model.requests()[asked].first_user_message();
    for words in ["Blue, please.", "And no brush strokes."] {
        assert_eq!(task.matches(words).count(), 1, "{task}");
    }
    world.finish().await;
}
