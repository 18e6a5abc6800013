//! Repositories with submodules: the model is told of them, and has their files where that is
//! allowed.

use serde_json::json;

use crate::credentials::becomes_an_app;
use crate::fake::github::Permission;
use crate::world::World;
use crate::world::scripts::{executes, plan};

/// Makes `acme/lib`, and puts it into `acme/widgets` at an address; returns the commits of the
/// library, the one that is used first.
fn with_library(world: &World, url: &str) -> [String; 2] {
    let library = world.github.repository("acme/lib");
    let used = library.commit("main", "Answer", &[("lib.h", "#define ANSWER 42\n")]);
    let newer = library.commit("main", "Ask again", &[("lib.h", "#define ANSWER 43\n")]);
    let modules = format!("[submodule \"the lib\"]\n\tpath = vendor/lib\n\turl = {url}\n");
    let git = world.github.default_repository().git();
    git.commit("main", "main", "Say where it is", &[(".gitmodules", &modules)]);
    git.link("main", "vendor/lib", &used);
    [used, newer]
}

#[tokio::test]
async fn the_model_is_told_that_their_folders_are_empty() {
    let world = World::start().await;
    with_library(&world, "../lib.git");
    let script = executes(
        world.model.plans(plan()),
        "ls -A vendor/lib | wc -l; git status --porcelain; echo greet > greeting",
    );
    script.done("Greeted.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let requests = world.model.requests();
    let told = requests[0].last_user_message();
    assert!(
        told.contains("vendor/lib (../lib.git): its folder is empty: `git.submodules` is `none`\n"),
        "{told}"
    );
    let shown = requests[2].last_user_message();
    assert!(shown.contains(r#"output":"0\n"#) || shown.contains("0\n"), "{shown}");
    let diff = world.github.pulls()[0].diff();
    assert_eq!(diff.matches("diff --git").count(), 1, "{diff}");
    world.finish().await;
}

#[tokio::test]
async fn files_of_those_on_the_same_forge_are_there() {
    let mut world = World::start().await;
    world.configure(|config| config["git"] = json!({ "submodules": "same_forge" }));
    with_library(&world, "git@127.0.0.1:acme/lib.git");
    let planned = plan().verified_by("grep -q 'ANSWER 42' vendor/lib/lib.h");
    let script = executes(
        world.model.plans(planned),
        "cat vendor/lib/lib.h; git status --porcelain; echo greet > greeting; echo mine > vendor/lib/mine",
    );
    script.done("Greeted.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let requests = world.model.requests();
    let told = requests[0].last_user_message();
    assert!(
        told.contains("vendor/lib (git@127.0.0.1:acme/lib.git): its files are there\n"),
        "{told}"
    );
    let shown = requests[2].last_user_message();
    assert!(shown.contains("#define ANSWER 42"), "{shown}");
    let pull = &world.github.pulls()[0];
    let diff = pull.diff();
    assert_eq!(diff.matches("diff --git").count(), 1, "{diff}");
    assert!(!pull.is_draft(), "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn an_app_reads_a_private_one_where_it_is_installed() {
    for is_installed in [true, false] {
        let mut world = World::start().await;
        world.configure(|config| config["git"] = json!({ "submodules": "same_forge" }));
        with_library(&world, "../lib.git");
        becomes_an_app(&mut world);
        if !is_installed {
            let library = world.github.repository("acme/lib");
            library.member("coding-agent[bot]", Permission::None);
        }
        executes(world.model.plans(plan()), "echo greet > greeting").done("Greeted.");
        world.github.open_issue("Greet").label("coding agent");

        let ended = world.run().await;

        ended.prints("github:acme/widgets#1: done\n", &world);
        let told = world.model.requests()[0].last_user_message();
        let expected = if is_installed {
            "vendor/lib (../lib.git): its files are there\n"
        } else {
            "install the GitHub App on acme/lib"
        };
        assert!(told.contains(expected), "{told}");
        world.finish().await;
    }
}

#[tokio::test]
async fn another_commit_of_one_is_refused_however_often_it_is_offered() {
    let mut world = World::start().await;
    world.configure(|config| config["git"] = json!({ "submodules": "same_forge" }));
    let [_, newer] = with_library(&world, "../lib.git");
    let script = executes(
        world.model.plans(plan()),
        &format!("git update-index --cacheinfo 160000,{newer},vendor/lib && git commit -qm Update"),
    );
    script.done("Updated.").done("Updated.").done("Updated.");
    let issue = world.github.open_issue("Update the library").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed: refused by a policy\n", &world);
    let told = world.model.requests()[3].last_user_message();
    assert!(
        told.contains("`vendor/lib`: submodules may not be added or changed"),
        "{told}"
    );
    let said = issue.comments_of(world.github.bot()).join("\n");
    assert!(said.contains("submodules may not be added or changed"), "{said}");
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    world.finish().await;
}

#[tokio::test]
async fn another_commit_of_one_is_put_back_by_a_model_that_is_told() {
    let mut world = World::start().await;
    world.configure(|config| config["git"] = json!({ "submodules": "same_forge" }));
    let [used, newer] = with_library(&world, "../lib.git");
    let use_commit = |commit: &str| format!("git update-index --cacheinfo 160000,{commit},vendor/lib");
    let script = executes(
        world.model.plans(plan()),
        &format!("echo greet > greeting && {}", use_commit(&newer)),
    );
    executes(script.done("Updated."), &use_commit(&used)).done("Greeted.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let diff = world.github.pulls()[0].diff();
    assert_eq!(diff.matches("diff --git").count(), 1, "{diff}");
    world.finish().await;
}

#[tokio::test]
async fn on_gitlab_they_are_found_across_subgroups_by_a_relative_address() {
    let mut world = World::on_gitlab().await;
    world.configure(|config| {
        config["git"] = json!({ "submodules": "same_forge" });
        config["gitlab"]["projects"] = json!(["acme/tools/widgets"]);
    });
    let library = world.gitlab.project("acme/libs/deep/answers");
    let used = library.commit("main", "Answer", &[("lib.h", "#define ANSWER 42\n")]);
    let project = world.gitlab.project("acme/tools/widgets");
    let modules = "[submodule \"answers\"]\n\tpath = vendor/answers\n\turl = ../../libs/deep/answers.git\n";
    let git = project.git();
    git.commit("main", "main", "Say where it is", &[(".gitmodules", modules)]);
    git.link("main", "vendor/answers", &used);
    let planned = plan().verified_by("grep -q 'ANSWER 42' vendor/answers/lib.h");
    executes(world.model.plans(planned), "echo greet > greeting").done("Greeted.");
    project.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("gitlab:acme/tools/widgets#1: done\n", &world);
    let told = world.model.requests()[0].last_user_message();
    assert!(
        told.contains("vendor/answers (../../libs/deep/answers.git): its files are there\n"),
        "{told}"
    );
    let merge = &world.gitlab.merge_requests()[0];
    assert_eq!(merge.diff().matches("diff --git").count(), 1, "{}", merge.diff());
    assert!(!merge.title().starts_with("Draft:"), "{}", world.story());
    world.finish().await;
}
