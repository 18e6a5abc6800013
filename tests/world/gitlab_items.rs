//! Issues on a GitLab of one's own.

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::normalized::told;

fn greeting() -> Plan {
    Plan::of(&["greet the reader"])
        .in_environment("python")
        .verified_by("grep -q Hello README.md")
}

#[tokio::test]
async fn an_issue_becomes_a_merge_request() {
    let world = World::on_gitlab().await;
    world
        .model
        .plans(greeting())
        .calls(
            "workspace/write_file",
            json!({"path": "README.md", "content": "Hello\n", "mode": "overwrite"}),
        )
        .done("The README greets its reader now.");
    let issue = world
        .gitlab
        .open_issue("Greet the reader")
        .body("Say hello.")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(ended.stdout, "gitlab:acme/widgets#1: done\n");
    let merge = &world.gitlab.merge_requests()[0];
    assert_eq!(merge.file("README.md").as_deref(), Some("Hello\n"));
    assert!(!merge.is_draft() && merge.mentions(&issue));
    insta::assert_snapshot!(told(&world, &issue.timeline()), @r#"
    acme/widgets#1 Greet the reader (open)
      alice opened this issue
        | Say hello.
      alice added the label "coding agent"
      coding-agent-bot added the label "coding agent processing"
      coding-agent-bot removed the label "coding agent"
      coding-agent-bot commented (edited since)
        | <details><summary>🛠️ Done: how it went</summary>
        |
        | Planned.
        |
        | - [x] greet the reader
        |
        | <sub>Environment `python` · 3 model turns · TOKENS · TIME · run `RUN`</sub>
        |
        | </details>
        |
        | <!-- coding-agent:RUN:progress -->
      coding-agent-bot opened merge request acme/widgets!1 "Greet the reader"
      coding-agent-bot edited the comment of coding-agent-bot
      coding-agent-bot commented
        | ### ✅ Done: GITLAB/acme/widgets/-/merge_requests/1
        |
        | The README greets its reader now.
        |
        | **How it was verified**
        |
        | - ✅ `grep -q Hello README.md` passed
        |
        | <sub>3 model turns · TOKENS · TIME</sub>
        |
        | <!-- coding-agent:RUN:final -->
      coding-agent-bot added the label "coding agent done"
      coding-agent-bot removed the label "coding agent processing"
    "#);
    insta::assert_snapshot!(told(&world, &merge.timeline()), @"
    acme/widgets!1 Greet the reader (open)
      coding-agent-bot opened this merge request: coding-agent/1-greet-the-reader -> main
        | The README greets its reader now.
        |
        | **How it was verified**
        |
        | - ✅ `grep -q Hello README.md` passed
        |
        | Closes #1
        |
        | <sub>3 model turns · TOKENS · TIME · run `RUN`</sub>
    ");
    let first_progress = &issue.comments_of(world.gitlab.bot())[0];
    let earlier = &issue.comments()[0].earlier[0];
    assert_ne!(first_progress, earlier);
    insta::assert_snapshot!(told(&world, earlier), @"
    ### 🛠️ Preparing the environment

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 1 model turn · TOKENS · TIME · run `RUN`<br>Comments are read before the next step. To stop it, write `/agent stop` or remove the label `coding agent processing`; `/agent help` tells more.</sub>

    <!-- coding-agent:RUN:progress -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn what_does_not_pass_becomes_a_draft_that_says_so() {
    let mut world = World::on_gitlab().await;
    world.configure(|config| config["planning"] = json!({"verification": {"max_rounds": 0}}));
    world
        .model
        .plans(greeting().verified_by("echo 'found ``` nothing'; false"))
        .calls(
            "workspace/write_file",
            json!({"path": "README.md", "content": "Hello\n", "mode": "overwrite"}),
        )
        .done("Greeted. Fixes #1, closes #2.\n/close\ncc @all <!-- ");
    let issue = world.gitlab.open_issue("Greet the reader").label("coding agent");
    let other = world.gitlab.open_issue("Another one");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    let merge = &world.gitlab.merge_requests()[0];
    assert!(merge.is_draft() && issue.is_open() && other.is_open());
    insta::assert_snapshot!(told(&world, &merge.text()), @r#"
    Greeted. Fixes #~1, closes #~2.
    \/close
    cc @~all &lt;!--

    **How it was verified**

    - ✅ `grep -q Hello README.md` passed
    - ❌ ````echo 'found ``` nothing'; false```` ended with 1 instead of 0

    <details><summary>What the failing check said</summary>

    ````
    $ echo 'found ``` nothing'; false
    found ``` nothing
    [exit code 1]
    ````

    </details>

    Closes #1

    <sub>3 model turns · TOKENS · TIME · run `RUN`</sub>
    "#);
    insta::assert_snapshot!(told(&world, issue.comments_of(world.gitlab.bot()).last().unwrap()), @r#"
    ### ⚠️ Done, but the checks do not pass: GITLAB/acme/widgets/-/merge_requests/1 is a draft

    Greeted. Fixes #~1, closes #~2.
    \/close
    cc @~all &lt;!--

    **How it was verified**

    - ✅ `grep -q Hello README.md` passed
    - ❌ ````echo 'found ``` nothing'; false```` ended with 1 instead of 0

    <sub>3 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    "#);
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_group_with_subgroups_is_served_whole() {
    let mut world = World::on_gitlab().await;
    world.configure(|config| {
        config["gitlab"]["projects"] = json!(["acme/*"]);
        config["planning"] = json!({"enabled": false});
    });
    let deep = world.gitlab.project("acme/tools/deep.down/widgets-2");
    let attic = world.gitlab.project("acme/attic").archived();
    let foreign = world
        .gitlab
        .project("other/widgets")
        .open_issue("Not ours")
        .label("coding agent");
    let forgotten = attic.open_issue("Dusty").label("coding agent");
    let closed = deep.open_issue("Closed").label("coding agent").close();
    let issue = deep.open_issue("Greet").label("coding agent");
    world
        .model
        .calls(
            "workspace/write_file",
            json!({"path": "GREETING", "content": "Hello\n", "mode": "create"}),
        )
        .done("Greeted.");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let merges = world.gitlab.merge_requests();
    assert_eq!(merges.len(), 1, "{}", world.story());
    assert_eq!(
        (merges[0].project(), merges[0].file("GREETING").as_deref()),
        ("acme/tools/deep.down/widgets-2", Some("Hello\n"))
    );
    assert_eq!(issue.labels(), ["coding agent done"]);
    for left_alone in [foreign, forgotten, closed] {
        assert_eq!(left_alone.labels(), ["coding agent"]);
    }
    world.finish().await;
}
