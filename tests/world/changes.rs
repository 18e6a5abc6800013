//! Pull and merge requests: the work goes on where people began.

mod forks;
mod heads;
mod unfinished;

use serde_json::json;

use crate::fake::github::Permission;
use crate::fake::gitlab::Access;
use crate::fake::model::{Model, Plan, Script};
use crate::world::World;
use crate::world::normalized::told;

const FILES: [(&str, &str); 1] = [("greet.py", "print('hi')\n")];

/// Greets as the reviewers want it.
fn greets(model: &Model) -> Script<'_> {
    model
        .plans(
            Plan::of(&["say hello"])
                .in_environment("python")
                .verified_by("python3 greet.py | grep -qx hello"),
        )
        .calls(
            "workspace/write_file",
            json!({"path": "greet.py", "content": "print('hello')\n", "mode": "overwrite"}),
        )
}

#[tokio::test]
async fn a_pull_request_gets_its_commits_on_its_own_branch() {
    let world = World::start().await;
    world.github.default_repository().member("bob", Permission::Write);
    greets(&world.model).done("It says hello now.");
    let pull = world
        .github
        .open_pull("Add a greeting", "greeting", &FILES)
        .body("A friendly start.")
        .comment("alice", "Please say hello.")
        .comment(world.github.bot(), "An old comment of my own.")
        .line_comment("bob", "greet.py", 1, "This is not hello.")
        .minutes_ago(5)
        .review("bob", "Nearly there.")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    insta::assert_snapshot!(told(&world, &world.model.requests()[0].first_user_message()), @"
    The task is this change request, github:acme/widgets#1:
    <data-FENCE>
    Title: Add a greeting
    Author: alice
    Branch: greeting into main

    A friendly start.

    Comments, oldest first:
    --- bob at TIME on greet.py:1:
    This is not hello.
    --- alice at TIME:
    Please say hello.
    --- bob at TIME:
    Nearly there.
    </data-FENCE>

    The project's files:
    <data-FENCE>
    README.md
    greet.py
    </data-FENCE>

    greet.py:
    <data-FENCE>
    print('hi')
    </data-FENCE>
    ");
    assert_eq!(world.github.pulls().len(), 1);
    assert_eq!(pull.file("greet.py").as_deref(), Some("print('hello')\n"));
    let subjects: Vec<_> = pull.commits().into_iter().map(|commit| commit.message).collect();
    assert_eq!(subjects.len(), 2, "{subjects:?}");
    assert_eq!(world.github.default_repository().branches(), ["greeting", "main"]);
    insta::assert_snapshot!(told(&world, pull.comments_of(world.github.bot()).last().unwrap()), @"
    ### ✅ Done: pushed to `greeting`

    It says hello now.

    **How it was verified**

    - ✅ `python3 greet.py | grep -qx hello` passed

    <sub>3 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    assert_eq!(pull.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_merge_request_gets_its_commits_on_its_own_branch() {
    let world = World::on_gitlab().await;
    world.gitlab.default_project().member("bob", Access::Developer);
    greets(&world.model).done("It says hello now.");
    let merge = world
        .gitlab
        .open_merge_request("Add a greeting", "greeting", &FILES)
        .body("A friendly start.")
        .comment("alice", "Please say hello.")
        .comment(world.gitlab.bot(), "An old comment of my own.")
        .line_comment("bob", "greet.py", 1, "This is not hello.")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    insta::assert_snapshot!(told(&world, &world.model.requests()[0].first_user_message()), @"
    The task is this change request, gitlab:acme/widgets!1:
    <data-FENCE>
    Title: Add a greeting
    Author: alice
    Branch: greeting into main

    A friendly start.

    Comments, oldest first:
    --- alice at TIME:
    Please say hello.
    --- bob at TIME on greet.py:1:
    This is not hello.
    </data-FENCE>

    The project's files:
    <data-FENCE>
    README.md
    greet.py
    </data-FENCE>

    greet.py:
    <data-FENCE>
    print('hi')
    </data-FENCE>
    ");
    assert_eq!(world.gitlab.merge_requests().len(), 1);
    assert_eq!(merge.file("greet.py").as_deref(), Some("print('hello')\n"));
    assert_eq!(merge.commits().len(), 2);
    assert_eq!(world.gitlab.default_project().branches(), ["greeting", "main"]);
    assert_eq!(merge.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_fork_without_permission_is_refused_before_anything_is_paid_for() {
    let mut world = World::start().await;
    world.configure(|config| config["task_sources"] = json!(["github", "gitlab"]));
    let pull = world
        .github
        .open_pull_from_fork("mallory", "Add a greeting", "greeting", &FILES)
        .label("coding agent");
    let merge = world
        .gitlab
        .open_merge_request_from_fork("mallory", "Add a greeting", "greeting", &FILES)
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(2), "{ended:?}\n{}", world.story());
    assert_eq!(
        ended.outcomes(),
        [
            "github:acme/widgets#1: failed: refused by a policy",
            "gitlab:acme/widgets!1: failed: refused by a policy",
        ]
    );
    insta::assert_snapshot!(told(&world, &pull.comments_of(world.github.bot()).join("\n")), @"
    ### ❌ This could not be done

    The branch `greeting` of `GITHUB/mallory/widgets.git` may not be pushed to by this program; let its owner allow edits by maintainers, or open the change from a branch of this repository.

    To start a new run, set the label `coding agent` again.

    <!-- coding-agent:RUN:final -->
    ");
    insta::assert_snapshot!(told(&world, &merge.comments_of(world.gitlab.bot()).join("\n")), @"
    ### ❌ This could not be done

    The branch `greeting` of `GITLAB/mallory/widgets.git` may not be pushed to by this program; let its owner allow edits by maintainers, or open the change from a branch of this repository.

    To start a new run, set the label `coding agent` again.

    <!-- coding-agent:RUN:final -->
    ");
    assert_eq!(pull.labels(), ["coding agent failed"]);
    assert_eq!(merge.labels(), ["coding agent failed"]);
    assert!(world.model.requests().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_fork_that_allows_it_is_pushed_to() {
    let mut world = World::start().await;
    world.configure(|config| config["task_sources"] = json!(["github", "gitlab"]));
    for title in ["On GitHub", "On GitLab"] {
        world
            .model
            .for_task(title)
            .plans(Plan::of(&["say hello"]).in_environment("python"))
            .calls(
                "workspace/write_file",
                json!({"path": "greet.py", "content": "print('hello')\n", "mode": "overwrite"}),
            )
            .done("It says hello now.");
    }
    let pull = world
        .github
        .open_pull_from_fork("carol", "On GitHub", "greeting", &FILES)
        .allows_maintainers()
        .label("coding agent");
    let merge = world
        .gitlab
        .open_merge_request_from_fork("carol", "On GitLab", "greeting", &FILES)
        .allows_collaboration()
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(pull.file("greet.py").as_deref(), Some("print('hello')\n"));
    assert_eq!(merge.file("greet.py").as_deref(), Some("print('hello')\n"));
    assert_eq!(pull.head_repository(), "carol/widgets");
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    assert_eq!(world.gitlab.default_project().branches(), ["main"]);
    world.finish().await;
}

#[tokio::test]
async fn a_branch_that_moved_meanwhile_is_not_overwritten() {
    let world = World::start().await;
    greets(&world.model).done("It says hello now.").holds();
    let pull = world
        .github
        .open_pull("Add a greeting", "greeting", &FILES)
        .label("coding agent");
    let repository = world.github.default_repository();

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let theirs = repository.commit("greeting", "Say it louder", &[("greet.py", "print('HI')\n")]);
    world.model.release();
    let ended = run.ended().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(repository.git().resolve("refs/heads/greeting"), Some(theirs));
    assert_eq!(
        repository.branches(),
        ["coding-agent/1-add-a-greeting-unfinished", "greeting", "main"]
    );
    assert_eq!(
        repository
            .file("coding-agent/1-add-a-greeting-unfinished", "greet.py")
            .as_deref(),
        Some("print('hello')\n")
    );
    insta::assert_snapshot!(told(&world, pull.comments_of(world.github.bot()).last().unwrap()), @"
    ### ❌ This could not be done

    The branch `greeting` got other commits while this was worked on, so nothing was pushed to it and nothing of it was overwritten.

    The work so far is on the branch `coding-agent/1-add-a-greeting-unfinished`.

    To start a new run, set the label `coding agent` again.

    <sub>3 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    assert_eq!(pull.labels(), ["coding agent failed"]);
    world.finish().await;
}

#[tokio::test]
async fn a_branch_that_was_deleted_meanwhile_is_not_made_again() {
    let world = World::on_gitlab().await;
    greets(&world.model).done("It says hello now.").holds();
    let merge = world
        .gitlab
        .open_merge_request("Add a greeting", "greeting", &FILES)
        .label("coding agent");
    let project = world.gitlab.default_project();

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    project.git().delete_reference("refs/heads/greeting");
    world.model.release();
    let ended = run.ended().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(project.branches(), ["coding-agent/1-add-a-greeting-unfinished", "main"]);
    insta::assert_snapshot!(told(&world, merge.comments_of(world.gitlab.bot()).last().unwrap()), @"
    ### ❌ This could not be done

    The branch `greeting` was deleted while this was worked on; restore it to go on with it.

    The work so far is on the branch `coding-agent/1-add-a-greeting-unfinished`.

    To start a new run, set the label `coding agent` again.

    <sub>3 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    world.finish().await;
}
