//! Requests that lead from a branch which is not theirs alone: nothing is pushed to it, and people
//! are told before anything is paid for.

use super::{FILES, greets};
use crate::fake::gitlab::Access;
use crate::fake::item::Item;
use crate::world::World;
use crate::world::normalized::{last_on_github, last_on_gitlab, told};
use crate::world::scripts::{executes, plan, writes};

const RELEASE: [(&str, &str); 1] = [("VERSION", "1.0\n")];

#[tokio::test]
async fn a_pull_request_that_leads_from_the_default_branch_is_refused() {
    let world = World::start().await;
    let repository = world.github.default_repository();
    repository.commit("release-1.0", "Release 1.0", &RELEASE);
    let tip = repository.commit("main", "Greet", &FILES);
    let pull = repository
        .open_pull_between("Mend the doc test", "main", "release-1.0")
        .by("mallory")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), "github:acme/widgets#1: failed: refused by a policy\n"),
        "{ended:?}\n{}",
        world.story()
    );
    insta::assert_snapshot!(told(&world, &pull.comments_of(world.github.bot()).join("\n")), @"
    ### ❌ This could not be done

    This request leads from `main`, the default branch of the repository, and the program pushes nothing there that people have not merged. Say in an issue what is to be done; the result is then a request to `main`. Or open this request from a branch of its own.

    To start a new run, set the label `coding agent` again.

    <!-- coding-agent:RUN:final -->
    ");
    assert_eq!(pull.labels(), ["coding agent failed"]);
    assert_eq!(repository.git().resolve("refs/heads/main"), Some(tip));
    assert_eq!(repository.branches(), ["main", "release-1.0"]);
    assert!(world.model.requests().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_merge_request_that_leads_from_the_default_branch_is_refused() {
    let world = World::on_gitlab().await;
    let project = world.gitlab.default_project();
    project.commit("production", "Release 1.0", &RELEASE);
    let tip = project.commit("main", "Greet", &FILES);
    let merge = project
        .open_merge_request_between("Mend the pipeline", "main", "production")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), "gitlab:acme/widgets!1: failed: refused by a policy\n"),
        "{ended:?}\n{}",
        world.story()
    );
    let said = last_on_gitlab(&world, &merge);
    assert!(said.contains("the result is then a request to `main`"), "{said}");
    assert_eq!(merge.labels(), ["coding agent failed"]);
    assert_eq!(project.git().resolve("refs/heads/main"), Some(tip));
    assert_eq!(project.branches(), ["main", "production"]);
    assert!(world.model.requests().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn protected_branches_of_github_get_no_commits_and_others_with_rules_do() {
    let world = World::start().await;
    let repository = world.github.default_repository();
    writes(
        world.model.for_task("Greet them").plans(plan()),
        "greet.py",
        "print('hello')\n",
    )
    .done("It says hello now.");
    let release = world.github.open_pull("Release it", "release-2.0", &FILES);
    let work = world.github.open_pull("Integrate it", "develop", &FILES);
    let greeting = world.github.open_pull("Greet them", "greeting", &FILES);
    repository
        .protects("release-2.0")
        .lays_rule_on("develop", "pull_request")
        .lays_rule_on("greeting", "required_signatures");
    let tips = [&release, &work].map(Item::commits);
    for pull in [&release, &work, &greeting] {
        pull.label("coding agent");
    }

    let ended = world.run().await;

    assert_eq!(
        ended.outcomes(),
        [
            "github:acme/widgets#1: failed: refused by a policy",
            "github:acme/widgets#2: failed: refused by a policy",
            "github:acme/widgets#3: done",
        ],
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!([&release, &work].map(Item::commits), tips);
    for (pull, branch) in [(&release, "release-2.0"), (&work, "develop")] {
        let said = last_on_github(&world, pull);
        let why = format!("This request leads from `{branch}`, a protected branch of the repository,");
        let what = format!("and that the work starts from `{branch}`; the result is then a request to `{branch}`.");
        assert!(said.contains(&why) && said.contains(&what), "{said}");
    }
    assert_eq!(greeting.file("greet.py").as_deref(), Some("print('hello')\n"));
    world.finish().await;
}

#[tokio::test]
async fn protected_branches_of_gitlab_get_no_commits_unless_developers_push_to_them() {
    let world = World::on_gitlab().await;
    let project = world.gitlab.default_project();
    project.member(world.gitlab.bot(), Access::Maintainer);
    writes(
        world.model.for_task("Greet them").plans(plan()),
        "greet.py",
        "print('hello')\n",
    )
    .done("It says hello now.");
    let release = world.gitlab.open_merge_request("Release it", "production", &FILES);
    let greeting = world.gitlab.open_merge_request("Greet them", "greeting", &FILES);
    project
        .protects("production", Access::Maintainer)
        .protects("greeting", Access::Developer);
    let tip = release.commits();
    for merge in [&release, &greeting] {
        merge.label("coding agent");
    }

    let ended = world.run().await;

    assert_eq!(
        ended.outcomes(),
        [
            "gitlab:acme/widgets!1: failed: refused by a policy",
            "gitlab:acme/widgets!2: done",
        ],
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(release.commits(), tip);
    let said = last_on_gitlab(&world, &release);
    assert!(
        said.contains("leads from `production`, a protected branch of the repository"),
        "{said}"
    );
    assert_eq!(greeting.file("greet.py").as_deref(), Some("print('hello')\n"));
    world.finish().await;
}

#[tokio::test]
async fn the_programs_own_branch_gets_commits_where_all_branches_are_protected() {
    let world = World::start().await;
    greets(&world.model).done("It says hello now.");
    world.github.default_repository().protects("coding-agent/1-greet");
    world.github.open_issue("Greet").label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.stdout, "github:acme/widgets#1: done\n", "{}", world.story());
    let pull = world.github.pulls().remove(0);
    executes(world.model.plans(plan()), "echo more > more.txt").done("There is more.");
    pull.label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#2: done\n", &world);
    assert_eq!(pull.file("more.txt").as_deref(), Some("more\n"));
    world.finish().await;
}

#[tokio::test]
async fn a_branch_that_is_protected_during_the_work_gets_no_commits() {
    let world = World::start().await;
    greets(&world.model).done("It says hello now.").holds();
    let pull = world
        .github
        .open_pull("Add a greeting", "greeting", &FILES)
        .label("coding agent");
    let repository = world.github.default_repository();
    let tip = pull.commits();

    let mut run = world.spawn(&["run"]);
    run.until(&world, world.model.until_held(1)).await;
    repository.protects("greeting");
    world.model.release();
    let ended = run.ended().await;

    assert_eq!(ended.code, Some(2), "{ended:?}\n{}", world.story());
    assert_eq!(pull.commits(), tip);
    let said = last_on_github(&world, &pull);
    assert!(said.contains("leads from `greeting`, a protected branch"), "{said}");
    assert!(
        said.contains("The work so far is on the branch `coding-agent/1-add-a-greeting-unfinished`."),
        "{said}"
    );
    world.finish().await;
}
