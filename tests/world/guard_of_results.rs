//! Results that are not delivered without a person's word: those with secrets in any commit, or
//! with changes of protected files.

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::normalized::told;

/// Returns a made-up token, put together here so that no scanner takes this file for a leak.
fn token() -> String {
    format!("ghp_{}", "Ab3dEf6hIj9lMn2pQr5t".repeat(2)[..36].to_owned())
}

/// Has the model run these commands and say that it is done.
fn works(world: &World, commands: &[&str]) {
    let plan = Plan::of(&["do it"]).in_environment("python").verified_by("true");
    let mut script = world.model.plans(plan);
    for command in commands {
        script = script.calls("workspace/execute_command", json!({"command": command}));
    }
    script.done("Done.");
}

#[tokio::test]
async fn a_change_of_a_protected_file_waits_for_a_word_and_is_delivered_after_it() {
    let world = World::start().await;
    works(
        &world,
        &["mkdir -p .github/workflows && echo 'on: push' > .github/workflows/ci.yml && echo Hello > hello.txt"],
    );
    let issue = world.github.open_issue("Build it on each push").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent waiting"]);
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    assert!(world.github.pulls().is_empty());
    insta::assert_snapshot!(told(&world, issue.comments_of(world.github.bot()).last().unwrap()), @"
    ### 🔐 It needs your approval

    The work is done, and nothing of it was pushed, because:

    - `.github/workflows/ci.yml` is changed, which `git.protected_paths` names

    An approval pushes 1 commit to the branch `coding-agent/1-build-it-on-each-push`: 2 changed lines in 2 files, also what is not shown here. The branch can be deleted again; what the forge runs because of the push cannot be undone.

    It was made and checked in the environment `python`.

    `/agent approve DIGEST` delivers it as it is, `/agent deny <reason>` ends it.

    <sub>Question `RUN`, digest `DIGEST`, lapses TIME UTC</sub>

    <details><summary>What would be pushed</summary>

    ```
    diff --git a/.github/workflows/ci.yml b/.github/workflows/ci.yml
    new file mode 100644
    --- /dev/null
    +++ b/.github/workflows/ci.yml
    @@ -0,0 +1 @@
    +on: push
    diff --git a/hello.txt b/hello.txt
    new file mode 100644
    --- /dev/null
    +++ b/hello.txt
    @@ -0,0 +1 @@
    +Hello
    ```

    </details>

    <sub>3 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:set-aside-1 -->
    ");

    let refused = world
        .journal()
        .into_iter()
        .filter(|entry| entry["fact"] == "policy_refused");
    let refused: Vec<_> = refused
        .map(|entry| (entry["rule"].clone(), entry["reason"].clone()))
        .collect();
    assert_eq!(
        refused,
        [(
            json!("protected_path"),
            json!(
                "not pushed without a person's word: `.github/workflows/ci.yml` is changed, which `git.protected_paths` names"
            )
        )]
    );

    // A stranger's word counts for nothing.
    issue.comment("mallory", "/agent approve");
    world.run().await;
    assert_eq!(issue.labels(), ["coding agent waiting"]);

    issue.comment("alice", "/agent approve");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let answers = issue.comments_of(world.github.bot()).join("\n");
    assert!(
        answers.contains("Approved: it is delivered as it was shown."),
        "{answers}"
    );
    let pull = &world.github.pulls()[0];
    assert_eq!(pull.file(".github/workflows/ci.yml").as_deref(), Some("on: push\n"));
    assert_eq!(world.model.requests().len(), 3, "nothing was worked on twice");
    world.finish().await;
}

#[tokio::test]
async fn a_denied_result_is_pushed_nowhere() {
    let world = World::on_gitlab().await;
    works(&world, &["echo 'script: [env]' > .gitlab-ci.yml"]);
    let issue = world.gitlab.open_issue("Build it").label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent waiting"]);

    issue.comment("alice", "/agent deny We build elsewhere.");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent stopped"]);
    assert_eq!(world.gitlab.default_project().branches(), ["main"]);
    // One file was refused, also where it was judged for the question and for the branch.
    let stats = world.command(&["stats", "--json"]).await;
    let stats: serde_json::Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!(
        stats["refusals_by_rule"],
        json!({ "protected_path": 1 }),
        "{}",
        world.story()
    );
    world.finish().await;
}

#[tokio::test]
async fn a_secret_is_found_in_every_commit_of_a_result_and_told_without_its_value() {
    let world = World::start().await;
    let token = token();
    works(
        &world,
        &[
            &format!(
                "printf 'a = 1\\nkey = \"%s\"\\n' {token} > settings.py && git add -A && git commit -qm 'Add settings'"
            ),
            &format!("printf 'a = 1\\n' > settings.py && git commit -qam 'Take {token} out again'"),
        ],
    );
    let issue = world.github.open_issue("Add settings").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent waiting"]);
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    insta::assert_snapshot!(told(&world, issue.comments_of(world.github.bot()).last().unwrap()), @"
    ### 🔐 It needs your approval

    The work is done, and nothing of it was pushed, because:

    - a commit message holds what looks like a secret (github-token)
    - `settings.py`, line 2, holds what looks like a secret (github-token)

    An approval pushes 2 commits to the branch `coding-agent/1-add-settings`: 1 changed line in 1 file, also what is not shown here. The branch can be deleted again; what the forge runs because of the push cannot be undone.

    It was made and checked in the environment `python`.

    `/agent approve DIGEST` delivers it as it is, `/agent deny <reason>` ends it.

    <sub>Question `RUN`, digest `DIGEST`, lapses TIME UTC</sub>

    <details><summary>What would be pushed</summary>

    ```
    diff --git a/settings.py b/settings.py
    new file mode 100644
    --- /dev/null
    +++ b/settings.py
    @@ -0,0 +1 @@
    +a = 1
    ```

    </details>

    <sub>4 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:set-aside-1 -->
    ");
    assert!(!issue.timeline().contains(&token));
    // Not even when it is ended: its work would be shown on a branch else.
    issue.comment("alice", "/agent stop");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent stopped"]);
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    world.finish().await;
}

#[tokio::test]
async fn a_secret_that_was_there_before_is_no_news() {
    let world = World::start().await;
    world
        .github
        .default_repository()
        .commit("main", "Begin", &[("old.py", &format!("key = '{}'\nb = 2\n", token()))]);
    works(&world, &["git mv old.py new.py && sed -i 's/b = 2/b = 3/' new.py"]);
    let issue = world.github.open_issue("Rename it").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_thousand_secrets_that_were_there_before_hide_no_new_one() {
    let world = World::start().await;
    let old = format!("{}\n", token()).repeat(1_001);
    world
        .github
        .default_repository()
        .commit("main", "Begin", &[("keys.txt", &old)]);
    let new = token().replace('A', "Z");
    works(
        &world,
        &[&format!("echo more >> keys.txt && echo 'key = \"{new}\"' > new.py")],
    );
    let issue = world.github.open_issue("Add a key").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent waiting"], "{}", world.story());
    let told = told(&world, issue.comments_of(world.github.bot()).last().unwrap());
    let reasons: Vec<_> = told.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(
        reasons,
        ["- `new.py`, line 1, holds what looks like a secret (github-token)"]
    );
    assert!(!issue.timeline().contains(&new));
    world.finish().await;
}

#[tokio::test]
async fn a_secret_in_the_name_of_a_file_is_found_and_an_old_name_is_no_news() {
    let world = World::start().await;
    let old = format!("old/{}.txt", token().to_uppercase().replace("GHP_", "ghp_"));
    world
        .github
        .default_repository()
        .commit("main", "Begin", &[(&old, "x\n")]);
    works(
        &world,
        &[&format!(
            "echo more > old/more.txt && mkdir {token} && mv README.md {token}/ && git add -A && git commit -qm Move && \
             git mv {token} docs && git commit -qm 'Move on'",
            token = token()
        )],
    );
    let issue = world.github.open_issue("Sort the files").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent waiting"]);
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    let told = told(&world, issue.comments_of(world.github.bot()).last().unwrap());
    let reasons: Vec<_> = told.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(
        reasons,
        ["- the name of a file or folder holds what looks like a secret (github-token)"]
    );
    assert!(!issue.timeline().contains(&token()));
    world.finish().await;
}

#[tokio::test]
async fn unfinished_work_with_a_secret_is_not_shown_on_a_branch() {
    let world = World::start().await;
    let plan = Plan::of(&["do it"]).in_environment("python").verified_by("true");
    world
        .model
        .plans(plan)
        .calls(
            "workspace/execute_command",
            json!({"command": format!("echo 'key={}' > .env", token())}),
        )
        .calls("agent/ask_people", json!({"question": "Is this right?"}));
    let issue = world.github.open_issue("Add a key").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent waiting"]);
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    assert!(
        issue.timeline().contains("is not shown on a branch"),
        "{}",
        issue.timeline()
    );
    world.finish().await;
}

#[tokio::test]
async fn any_folder_of_settings_waits_for_a_word_and_ordinary_notes_do_not() {
    for (command, label) in [
        ("mkdir -p .Tool && echo run > .Tool/hook", "coding agent waiting"),
        (
            "mkdir -p .changeset && echo note > .changeset/a.md",
            "coding agent done",
        ),
        (
            "mkdir -p .pages && echo x > .pages/index.md && echo y > .gitignore",
            "coding agent done",
        ),
    ] {
        let mut world = World::start().await;
        world.configure(|config| config["git"] = json!({"unprotected_paths": ["/.pages", "/.changeset"]}));
        works(&world, &[command]);
        let issue = world.github.open_issue("Do it").label("coding agent");
        let ended = world.run().await;
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        assert_eq!(issue.labels(), [label], "{command}");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_secret_in_a_file_of_utf_16_waits_for_a_word() {
    let world = World::start().await;
    let program = format!("open('a.txt', 'wb').write('key = {}'.encode('utf-16'))", token());
    works(&world, &[&format!("python3 -c \"{program}\"")]);
    let issue = world.github.open_issue("Keep notes").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent waiting"]);
    let told = issue.comments_of(world.github.bot()).pop().unwrap();
    assert!(
        told.contains("`a.txt`, line 1, holds what looks like a secret (github-token)"),
        "{told}"
    );
    world.finish().await;
}

#[tokio::test]
async fn nothing_is_protected_where_the_configuration_says_so() {
    let mut world = World::start().await;
    world.configure(|config| config["git"] = json!({"protected_paths": []}));
    works(&world, &["echo Hi > AGENTS.md"]);
    let issue = world.github.open_issue("Write rules").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}
