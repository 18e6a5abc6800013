//! Approvals: only what people approve is pushed, and only what they say after the question counts.

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::facts::facts;
use crate::world::normalized::told;
use crate::world::painting::{held, plan, write};
use crate::world::scripts::COMMAND;

const WAITS: [&str; 1] = ["coding agent waiting"];

/// Has the model run a command and say that it is done.
fn works(world: &World, command: &str) {
    let plan = Plan::of(&["do it"]).in_environment("python").verified_by("true");
    let script = world.model.plans(plan);
    script
        .calls("workspace/execute_command", json!({ "command": command }))
        .done("Done.");
}

#[tokio::test]
async fn many_harmless_files_hide_no_pipeline_and_what_is_not_shown_is_counted() {
    let world = World::start().await;
    works(
        &world,
        "for n in $(seq 10 34); do mkdir -p a/$n && echo hi > a/$n/AGENTS.md; done && seq 5000 > a/big.txt && \
         echo 'job: {script: [env]}' > .gitlab-ci.yml && echo x > z.txt",
    );
    let issue = world.github.open_issue("Write rules").label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), WAITS);

    let question = issue.comments_of(world.github.bot()).pop().unwrap();
    let told = told(&world, &question);
    let reasons: Vec<_> = told.lines().filter(|line| line.starts_with("- ")).collect();
    assert!(reasons[0].starts_with("- `.gitlab-ci.yml` is changed"), "{told}");
    assert_eq!(reasons.len(), 21);
    assert_eq!(reasons[20], "- and 6 more protected files");
    assert!(told.contains("+job: {script: [env]}"), "its hunks come first: {told}");
    assert!(told.contains("An approval pushes 1 commit to the branch"), "{told}");
    assert!(told.contains("5,027 changed lines in 28 files"), "{told}");
    assert!(told.contains("**The difference is cut:** "), "{told}");
    assert!(!question.lines().any(|line| line.starts_with("index ")), "{question}");

    let requested = facts(&world, "approval_requested");
    let digest = requested[0]["digest"].as_str().unwrap().to_owned();
    assert!(
        question.contains(&format!("`/agent approve {}`", &digest[..16])),
        "{question}"
    );
    issue.comment("alice", &format!("/agent approve {}", &digest[..8].to_uppercase()));
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let granted = facts(&world, "approval_granted");
    assert_eq!(granted[0]["approver"], "@alice");
    assert_eq!(
        (&granted[0]["id"], &granted[0]["digest"]),
        (&requested[0]["id"], &requested[0]["digest"])
    );
    world.finish().await;
}

#[tokio::test]
async fn only_a_plain_word_of_somebody_who_may_write_approves() {
    let world = World::on_gitlab().await;
    works(&world, "echo 'script: [env]' > .gitlab-ci.yml");
    let issue = world.gitlab.open_issue("Build it").label("coding agent");
    world.run().await;
    assert_eq!(issue.labels(), WAITS);

    let digest = facts(&world, "approval_requested")[0]["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    issue
        .comment("mallory", &format!("/agent approve {digest}"))
        .comment("alice", &format!("> /agent approve {digest}\n\nI do not know."))
        .comment("alice", &format!("```\n/agent approve {digest}\n```"))
        .comment("alice", "/agent approve it, please")
        .comment("alice", "/agent approve 0123456789abcdef")
        .comment("alice", &format!("/agent approve {}", &digest[..7]));
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), WAITS);
    assert_eq!(world.gitlab.default_project().branches(), ["main"]);
    let answers = told(&world, &issue.comments_of(world.gitlab.bot()).join("\n"));
    assert!(
        answers.contains("`/agent approve it, please` approves nothing: write `/agent approve`, or"),
        "{answers}"
    );
    assert!(
        answers.contains("Nothing was approved: that digest is not the one of what waits for approval."),
        "{answers}"
    );
    assert_eq!(facts(&world, "approval_granted"), [json!(null); 0]);

    issue.comment("alice", "/agent approve");
    world.run().await;
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_word_from_before_the_question_approves_nothing() {
    let world = World::start().await;
    works(&world, "echo rules > AGENTS.md");
    let issue = world.github.open_issue("Write rules").label("coding agent");
    // The second comment of the run is the question.
    world.github.hangs("POST /repos/*/*/issues/*/comments", 1, false);
    let program = world.spawn(&["run"]);
    world.github.until_one_hangs().await;
    issue.comment("alice", "/agent approve");
    // The question is put again, and so after those words.
    world.github.cuts_off();
    program.ended().await;
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), WAITS, "{}", world.story());
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    let said = told(&world, &issue.comments_of(world.github.bot()).join("\n"));
    let refusal = "Nothing was approved: it is not certain that this was said after the question was asked.";
    assert!(said.contains(refusal), "{said}");

    issue.comment("alice", "/agent approve");
    world.run().await;
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn the_command_line_approves_with_and_without_the_digest() {
    let world = World::start().await;
    works(&world, "echo rules > AGENTS.md");
    let issue = world.github.open_issue("Write rules").label("coding agent");
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: waiting for approval of its result\n", &world);
    assert_eq!(issue.labels(), WAITS);

    let task = "github:acme/widgets#1";
    let wrong = world.command(&["approve", task, "0123456789abcdef"]).await;
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(1), ""), "{wrong:?}");
    let refusal =
        "#1: nothing was approved: that digest is not the one of what waits for approval; `coding-agent status`";
    assert!(wrong.stderr.contains(refusal), "{wrong:?}");
    let unusable = world.command(&["approve", task, "now"]).await;
    assert_eq!(unusable.code, Some(64), "{unusable:?}");
    let digest = facts(&world, "approval_requested")[0]["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    let right = world.command(&["approve", task, &digest]).await;
    assert_eq!(
        right.stdout, "github:acme/widgets#1: it goes on with the next free worker\n",
        "{right:?}"
    );
    world.run().await;
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    assert_eq!(facts(&world, "approval_granted")[0]["approver"], "the operator");
    world.finish().await;
}

#[tokio::test]
async fn a_denial_that_names_another_result_ends_no_run() {
    let world = World::start().await;
    works(&world, "echo rules > AGENTS.md");
    let issue = world.github.open_issue("Write rules").label("coding agent");
    world.run().await;
    assert_eq!(issue.labels(), WAITS);

    let task = "github:acme/widgets#1";
    let wrong = world.command(&["deny", task, "0123456789abcdef Not like this."]).await;
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(1), ""), "{wrong:?}");
    let refusal =
        "#1: nothing was denied: that digest is not the one of what waits for approval; `coding-agent status`";
    assert!(wrong.stderr.contains(refusal), "{wrong:?}");
    assert_eq!(issue.labels(), WAITS, "{}", world.story());
    let digest = facts(&world, "approval_requested")[0]["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    let right = world
        .command(&["deny", task, &format!("{} Not like this.", &digest[..16])])
        .await;
    assert_eq!(right.stdout, "github:acme/widgets#1: stopped\n", "{right:?}");
    let denied = facts(&world, "approval_denied");
    assert_eq!(denied.len(), 1, "{denied:?}");
    assert_eq!(denied[0]["reason"], "Not like this.");
    world.finish().await;
}

#[tokio::test]
async fn the_reason_of_a_denial_is_told_and_remembered() {
    let world = World::on_gitlab().await;
    works(&world, "echo 'script: [env]' > .gitlab-ci.yml");
    let issue = world.gitlab.open_issue("Build it").label("coding agent");
    world.run().await;
    issue.comment("alice", "/agent deny We build elsewhere, @bob knows.");
    world.run().await;

    insta::assert_snapshot!(told(&world, issue.comments_of(world.gitlab.bot()).last().unwrap()), @"
    ### ⏹️ Stopped

    As alice asked.

    The result was not approved: We build elsewhere, @~bob knows.

    To start a new run, set the label `coding agent` again.

    <sub>3 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    let denied = facts(&world, "approval_denied");
    assert_eq!(
        (&denied[0]["approver"], &denied[0]["reason"]),
        (&json!("@alice"), &json!("We build elsewhere, @bob knows."))
    );
    assert_eq!(world.gitlab.default_project().branches(), ["main"]);

    let before = world.model.requests().len();
    works(&world, "echo hi > hi.txt");
    issue.label("coding agent");
    world.run().await;
    let told = world.model.requests()[before].first_user_message();
    assert!(
        told.contains("People did not approve its result: We build elsewhere"),
        "{told}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_decision_on_a_run_that_asks_for_none_fails_and_says_what_the_run_does() {
    let world = World::start().await.attentive();
    world.model.allows_restarts();
    world.model.plans(plan()).calls(COMMAND, write("red")).holds();
    let (issue, run) = held(&world).await;
    let task = "github:acme/widgets#1";
    let refused = async |command: &str, why: &str| {
        let refused = world.command(&[command, task]).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    };

    refused(
        "approve",
        "#1: nothing was approved: it is at work (working); `coding-agent status` shows",
    )
    .await;
    refused(
        "deny",
        "#1: nothing was denied: it is at work (working); `coding-agent status` shows",
    )
    .await;
    issue.comment("alice", "/agent pause");
    let ended = run.ended().await;
    assert_eq!(ended.stdout, "github:acme/widgets#1: paused\n", "{}", world.story());
    let paused = "#1: nothing was approved: it is paused and does not wait for approval; \
                  `coding-agent resume github:acme/widgets#1` resumes it";
    refused("approve", paused).await;
    assert_eq!(issue.labels(), ["coding agent paused"], "{}", world.story());

    let stopped = world.command(&["stop", task]).await;
    assert_eq!(stopped.code, Some(0), "{stopped:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent stopped"], "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_decision_during_a_pause_of_all_runs_is_noted_and_is_no_failure() {
    let world = World::start().await;
    works(&world, "echo rules > AGENTS.md");
    let issue = world.github.open_issue("Write rules").label("coding agent");
    world.run().await;
    assert_eq!(issue.labels(), WAITS);
    let task = "github:acme/widgets#1";
    world.all_runs("pause").await;

    for _ in 0..2 {
        let noted = world.command(&["approve", task]).await;
        assert_eq!(
            (noted.code, noted.stdout.as_str()),
            (
                Some(0),
                "github:acme/widgets#1: it counts, and the run goes on when the pause ends\n"
            ),
            "{noted:?}"
        );
    }
    world.all_runs("resume").await;
    world.run().await;
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    world.finish().await;
}
