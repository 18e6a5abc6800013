//! The branch beside a pull/merge request, on which people see unfinished work: it goes when that
//! work was delivered.

use serde_json::json;

use super::{FILES, greets};
use crate::fake::gitlab;
use crate::fake::model::{Answer, Plan};
use crate::world::World;
use crate::world::scripts::COMMAND;

const BESIDE: &str = "coding-agent/1-add-a-greeting-unfinished";

fn attentive(mut world: World) -> World {
    world.configure(|config| config["steering"] = json!({ "interval_seconds": 1 }));
    world.model.allows_restarts();
    world
}

/// A merge request whose run failed after it had written what was asked for.
async fn after_a_failure(world: &World) -> gitlab::Item {
    let script = greets(&world.model);
    (0..6).fold(script, |script, _| script.answers(Answer::says("no json")));
    let merge = world
        .gitlab
        .open_merge_request("Add a greeting", "greeting", &FILES)
        .label("coding agent");
    let ended = world.run().await;
    assert_eq!(
        ended.stdout,
        "gitlab:acme/widgets!1: failed: unreadable replies\n",
        "{}",
        world.story()
    );
    assert_eq!(world.gitlab.default_project().branches(), [BESIDE, "greeting", "main"]);
    merge
}

#[tokio::test]
async fn it_follows_the_work_from_pause_to_pause_and_is_gone_when_that_is_delivered() {
    let world = attentive(World::start().await);
    world
        .model
        .plans(Plan::of(&["say hello"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "echo 1 > one.txt" }))
        .calls(COMMAND, json!({ "command": "echo never" }))
        .holds();
    let pull = world
        .github
        .open_pull("Add a greeting", "greeting", &FILES)
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
    assert_eq!(repository.branches(), [BESIDE, "greeting", "main"]);
    world.model.release();

    world
        .model
        .calls(COMMAND, json!({ "command": "echo 2 > two.txt" }))
        .calls(COMMAND, json!({ "command": "echo never" }))
        .holds();
    pull.comment("alice", "/agent resume");
    let run = world.spawn(&["run"]);
    world.model.until_held(2).await;
    pull.comment("alice", "/agent pause");
    assert_eq!(
        run.ended().await.stdout,
        "github:acme/widgets#1: paused\n",
        "{}",
        world.story()
    );
    assert_eq!(repository.branches(), [BESIDE, "greeting", "main"]);
    assert_eq!(repository.file(BESIDE, "one.txt").as_deref(), Some("1\n"));
    assert_eq!(repository.file(BESIDE, "two.txt").as_deref(), Some("2\n"));
    world.model.release();

    world.model.done("Counted.");
    pull.comment("alice", "/agent resume");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );
    assert_eq!(repository.branches(), ["greeting", "main"]);
    assert_eq!(pull.file("two.txt").as_deref(), Some("2\n"));
    world.finish().await;
}

#[tokio::test]
async fn the_next_run_goes_on_with_it_and_brings_it_to_the_branch_of_the_request() {
    let world = World::on_gitlab().await;
    let merge = after_a_failure(&world).await;
    let asked = world.model.requests().len();

    world
        .model
        .plans(Plan::of(&["say it twice"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "cp greet.py twice.py" }))
        .done("It says hello twice now.");
    merge.label("coding agent");
    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets!1: done\n", &world);
    let task = world.model.requests()[asked + 1].first_user_message();
    let left = format!("\nIt left its unfinished work on the branch `{BESIDE}`\n");
    for words in [
        left.as_str(),
        "\nGo on from what they found and did. The project has the unfinished work of the last of them.",
        "\nprint('hello')\n",
    ] {
        assert!(task.contains(words), "{words}: {task}");
    }
    for path in ["greet.py", "twice.py"] {
        assert_eq!(merge.file(path).as_deref(), Some("print('hello')\n"), "{path}");
    }
    assert_eq!(merge.commits().len(), 3, "{}", world.story());
    assert_eq!(world.gitlab.default_project().branches(), ["greeting", "main"]);
    world.finish().await;
}

#[tokio::test]
async fn what_an_earlier_run_left_goes_when_a_later_one_delivers_the_same() {
    let world = World::on_gitlab().await;
    let merge = after_a_failure(&world).await;

    greets(&world.model).done("It says hello now.");
    merge.label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "gitlab:acme/widgets!1: done\n",
        "{}",
        world.story()
    );

    assert_eq!(world.gitlab.default_project().branches(), ["greeting", "main"]);
    assert_eq!(merge.file("greet.py").as_deref(), Some("print('hello')\n"));
    world.finish().await;
}

#[tokio::test]
async fn what_was_not_delivered_and_what_others_added_stays() {
    let world = World::on_gitlab().await;
    let merge = after_a_failure(&world).await;
    let project = world.gitlab.default_project();
    // The request goes on without it.
    project.commit("greeting", "Say why", &[("why.md", "To be kind.\n")]);
    let asked = world.model.requests().len();

    world
        .model
        .plans(Plan::of(&["say it otherwise"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "echo \"print('good day')\" > greet.py" }))
        .done("It says something else now.");
    merge.label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "gitlab:acme/widgets!1: done\n",
        "{}",
        world.story()
    );
    assert_eq!(project.branches(), [BESIDE, "greeting", "main"]);
    let task = world.model.requests()[asked].first_user_message();
    let said = format!(
        "Go on from what they found and did. The project is without the unfinished work on the branch `{BESIDE}`."
    );
    assert!(task.contains(&said), "{task}");

    let theirs = project.commit(BESIDE, "Say it louder", &[("loud.py", "print('HELLO')\n")]);
    greets(&world.model).done("It says hello now.");
    merge.label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "gitlab:acme/widgets!1: done\n",
        "{}",
        world.story()
    );
    assert_eq!(merge.file("greet.py").as_deref(), Some("print('hello')\n"));
    assert_eq!(project.git().resolve(&format!("refs/heads/{BESIDE}")), Some(theirs));
    world.finish().await;
}
