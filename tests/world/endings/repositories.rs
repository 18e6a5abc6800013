//! Repositories that are not what one expects.

use insta::assert_snapshot;
use serde_json::json;

use super::{executes, greeting, greets, left_on, plan, told, writes};
use crate::fake::fault::{Disturbance, Fault};
use crate::world::World;

#[tokio::test]
async fn an_empty_repository_has_nothing_to_start_from() {
    let world = World::start().await;
    world.github.default_repository().empty();
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent failed
    -----
    ### ❌ This could not be done

    The repository has no commit yet, so there is nothing a pull request could be based on; push a first commit (a README is enough).

    To start a new run, set the label `coding agent` again.

    <!-- coding-agent:<run>:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_default_branch_that_is_not_there_is_named() {
    let world = World::start().await;
    world.github.default_repository().default_branch("trunk");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent failed
    -----
    ### ❌ This could not be done

    The repository's default branch `trunk` does not exist; push it, or choose another one in the repository's settings.

    To start a new run, set the label `coding agent` again.

    <!-- coding-agent:<run>:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn names_and_contents_that_are_no_text_do_not_stand_in_the_way() {
    let world = World::start().await;
    let git = world.github.default_repository().git();
    git.commit_bytes(
        "main",
        "main",
        "Add oddities",
        &[
            (b"caf\xe9.txt", b"latin"),
            (b"with \"quotes\" and\ttab", b"x"),
            (b"logo.png", b"\x89PNG\r\n\x1a\n\0\xff\xfe"),
            ("日本語/読んで.md".as_bytes(), "こんにちは\n".as_bytes()),
        ],
    );
    let script = world
        .model
        .script()
        .calls("repository/list_files", json!({}))
        .calls("repository/read_file", json!({"path": "logo.png"}))
        .calls("repository/search", json!({"pattern": "こんにちは"}))
        .plans(plan());
    let script = script
        .calls("workspace/list_files", json!({"path": "."}))
        .calls("workspace/read_file", json!({"path": "日本語/読んで.md"}));
    greets(executes(
        script,
        "git mv caf*.txt cafe.txt && printf '\\0\\377' > new.bin",
    ));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    let seen: Vec<_> = [1, 2, 3, 5, 6]
        .iter()
        .map(|place| requests[*place].last_user_message())
        .collect();
    assert_snapshot!(seen.join("\n"), @r#"
    {"output":"README.md (10 bytes)\ncaf�.txt (5 bytes)\nlogo.png (11 bytes)\nwith \"quotes\" and\ttab (1 bytes)\n日本語/読んで.md (16 bytes)"}
    {"is_error":true,"output":"not_utf8 415: 'logo.png' is not a text file"}
    {"output":"日本語/読んで.md:1:こんにちは"}
    {"output":"README.md\t10\ncaf�.txt\t5\nlogo.png\t11\nwith \"quotes\" and�tab\t1\n日本語/"}
    {"output":"こんにちは\n"}
    "#);
    let mut files = world.github.pulls()[0].files();
    files.sort();
    assert_eq!(
        files,
        [
            "\"\\346\\227\\245\\346\\234\\254\\350\\252\\236/\\350\\252\\255\\343\\202\\223\\343\\201\\247.md\"",
            "\"with \\\"quotes\\\" and\\ttab\"",
            "README.md",
            "cafe.txt",
            "logo.png",
            "new.bin"
        ]
    );
    world.finish().await;
}

#[tokio::test]
async fn a_file_that_is_no_text_is_not_edited_by_the_file_tools() {
    let world = World::start().await;
    let git = world.github.default_repository().git();
    git.commit_bytes("main", "main", "Add a greeting", &[(b"greeting.txt", b"gr\xfc\xdfe\n")]);
    let script = world.model.plans(plan()).calls(
        "workspace/str_replace",
        json!({"path": "greeting.txt", "old": "e", "new": "E"}),
    );
    let script = executes(
        script,
        "iconv -f latin1 -t utf8 greeting.txt > new && mv new greeting.txt",
    );
    script.done("The greeting is UTF-8 now.");
    greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_snapshot!(world.model.requests()[2].last_user_message(), @r#"{"is_error":true,"output":"not_utf8 415: greeting.txt is no UTF-8 text; use execute_command for it"}"#);
    assert_eq!(world.github.pulls()[0].file("greeting.txt").as_deref(), Some("grüße\n"));
    world.finish().await;
}

#[tokio::test]
async fn what_the_model_may_not_deliver_is_refused_by_policy() {
    let world = World::start().await;
    let script = writes(world.model.plans(plan()), "README.md", "Hello\n");
    let script = executes(
        script,
        "ln -s /etc/passwd outside && git add -A && git commit -qm 'Reach out'",
    );
    // It is told twice, and leaves it as it is.
    script.done("Done.").done("Done.").done("Done.");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 2
    labels: coding agent failed
    -----
    <details><summary>🛠️ Failed: how it went</summary>

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 6 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ❌ This could not be done

    The commits from the container were refused: `outside`: the link points to an absolute path; let it point to a file of the project, or do without it.

    The work so far could not be brought to this repository. Nor could it be put into a file where this program runs; its log says why.

    To start a new run, set the label `coding agent` again.

    <sub>6 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    assert!(world.github.pulls().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn what_is_refused_in_a_commit_is_taken_out_of_it() {
    let world = World::start().await;
    let script = writes(world.model.plans(plan()), "README.md", "Hello\n");
    let script = executes(
        script,
        "ln -s /etc/passwd outside && git add -A && git commit -qm 'Reach out'",
    );
    // To remove it in another commit is not enough.
    let script = executes(
        script.done("Done."),
        "git rm -q outside && git commit -qm 'Stay inside'",
    )
    .done("Done.");
    executes(script, "git reset -q --soft HEAD~2").done("Done.");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let told = world.model.requests()[4].last_user_message();
    assert!(
        told.contains("`outside`: the link points to an absolute path") && told.contains("git reset --soft"),
        "{told}"
    );
    let pull = &world.github.pulls()[0];
    assert_eq!(pull.files(), ["README.md"]);
    assert_eq!(pull.commits().len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn the_work_starts_from_the_branch_that_the_plan_names() {
    let world = World::start().await;
    let widgets = world.github.default_repository();
    widgets.commit("release-1", "Freeze the old words", &[("OLD.md", "Old words\n")]);
    let script = world.model.plans(plan().with("base_branch", "release-1".into()));
    let script = executes(script, "cp OLD.md NEW.md && git log --format=%s -1 && git branch -a");
    script.done("The old words are there again.");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let pull = &world.github.pulls()[0];
    assert_eq!(pull.base(), "release-1");
    assert_eq!(pull.file("NEW.md").as_deref(), Some("Old words\n"));
    assert_eq!(pull.commits().len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_branch_that_the_plan_names_and_nobody_made_gives_way_to_the_default() {
    let world = World::start().await;
    greets(world.model.plans(plan().with("base_branch", "release-9".into())));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(world.github.pulls()[0].base(), "main");
    let note = "The plan starts from the branch `release-9`, which does not exist; `main` is used.";
    assert!(left_on(&issue).contains(note), "{}", left_on(&issue));
    world.finish().await;
}

#[tokio::test]
async fn an_outage_of_a_repository_that_is_called_like_a_refusal_fails_nothing() {
    let mut world = World::start().await;
    world.configure(|config| config["github"]["repositories"] = json!(["acme/redirector"]));
    let issue = world
        .github
        .repository("acme/redirector")
        .open_issue("Greet the reader");
    issue.label("coding agent");
    let is_away = Disturbance::of("GET /acme/redirector.git/info/refs", Fault::Drops).always();
    world.github.disturb(is_away);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert!(!ended.stderr.contains("the address has moved"), "{ended:?}");
    assert_eq!(left_on(&issue), "labels: coding agent\n");
    world.finish().await;
}
