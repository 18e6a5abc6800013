//! A plan waits for a person: what people are told, whose word counts, and what makes it void.

use std::time::Duration;

use serde_json::json;

use crate::fake::github::{Item, Permission};
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::facts::{count, facts};
use crate::world::normalized::{last_on_github, told};
use crate::world::scripts::{COMMAND, greets};

const WAITS: [&str; 1] = ["coding agent waiting"];
const DONE: [&str; 1] = ["coding agent done"];
const STOPPED: [&str; 1] = ["coding agent stopped"];
const TASK: &str = "github:acme/widgets#1";

/// A world in which every plan waits.
async fn world() -> World {
    let mut world = World::start().await;
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    world.model.allows_restarts();
    world
}

fn plan() -> Plan {
    let environment = json!({ "name": "python", "reasoning": "", "setup_commands": ["touch /tmp/set-up"] });
    Plan::of(&["greet the reader in README.md", "say goodbye"])
        .with("selected_environment", environment)
        .verified_by("grep -q Hello README.md")
}

/// Opens an issue whose plan waits.
async fn asked(world: &World, plan: Plan) -> Item {
    world.model.plans(plan);
    let issue = world.github.open_issue("Greet").label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert!(
        ended.stdout.ends_with(": waiting for approval of its plan\n"),
        "{ended:?}"
    );
    assert_eq!(issue.labels(), WAITS, "{}", world.story());
    issue
}

/// Returns the digests that people were asked about.
fn digests(world: &World) -> Vec<String> {
    let asked = facts(world, "approval_requested").into_iter();
    asked.map(|fact| fact["digest"].as_str().unwrap().to_owned()).collect()
}

fn said(world: &World, issue: &Item) -> String {
    told(world, &issue.comments_of(world.github.bot()).join("\n"))
}

#[tokio::test]
async fn a_plan_waits_with_all_that_it_would_do_and_is_carried_out_after_a_word() {
    let world = world().await;
    let issue = asked(&world, plan()).await;

    assert_eq!(world.model.requests().len(), 1);
    assert_eq!(count(&world, "environment_started"), 0, "{}", world.story());
    insta::assert_snapshot!(last_on_github(&world, &issue), @r"
    ### 🔐 The plan needs your approval

    It waits before anything is done, because the configuration has every plan wait (`approval.plan`).

    - greet the reader in README.md
    - 2 steps by the model, then 1 check and the project's tests by the program
    - before it 1 set-up command

    Environment `python`, image `coding-agent-executor-python:latest`. It reaches `pypi.org`, `files.pythonhosted.org`.

    Files of the project that it names: `README.md`.

    The work is done in a container that is thrown away, so it can be undone. What programs send to hosts that they may reach cannot.

    So far: 1 model turn · TOKENS · TIME. Estimated, with all of it: about 175,000 tokens. Limits: 1000 model turns.

    `/agent approve DIGEST` has it carried out, `/agent deny <reason>` has another one made, `/agent stop` ends it.

    <sub>Question `RUN`, digest `DIGEST`, lapses TIME UTC</sub>

    <details><summary>The plan</summary>

    - greet the reader in README.md
    - say goodbye

    Set-up commands:

    ```
    touch /tmp/set-up
    ```

    The program checks the result with:

    ```
    grep -q Hello README.md
    ```

    </details>

    <!-- coding-agent:RUN:set-aside-1 -->
    ");

    // Nothing is asked twice, and a stranger's, a quoted or another word is none.
    issue
        .comment("mallory", "/agent approve")
        .comment("alice", &format!("> /agent approve {}", digests(&world)[0]))
        .comment("alice", "/agent approve 0123456789abcdef")
        .comment("alice", "/agent resume");
    world.runs_to(&issue, WAITS).await;
    assert_eq!(count(&world, "approval_requested"), 1);
    let answers = said(&world, &issue);
    assert!(
        answers.contains("Nothing was approved: that digest is not the one of what waits for approval."),
        "{answers}"
    );
    assert!(answers.contains("It waits for a decision"), "{answers}");

    greets(world.model.script());
    issue.comment("alice", &format!("/agent approve {}", &digests(&world)[0][..8]));
    world.runs_to(&issue, DONE).await;
    let granted = facts(&world, "approval_granted");
    assert_eq!(
        (&granted[0]["approver"], &granted[0]["digest"]),
        (&json!("@alice"), &json!(digests(&world)[0]))
    );
    assert_eq!(count(&world, "planned"), 1);
    let progress = issue.comments_of(world.github.bot());
    assert!(
        progress
            .iter()
            .any(|comment| comment.contains("Plan approved by alice.")),
        "{}",
        world.story()
    );
    world.finish().await;
}

#[tokio::test]
async fn the_question_names_cited_files_and_what_the_plan_is_to_achieve() {
    let world = world().await;
    let goal = json!({
        "main_objective": "Greet",
        "success_criteria": ["The reader is greeted"],
        "constraints": [],
        "context_analysis": "",
    });
    let action = json!({ "task_id": "task-1", "purpose": "", "expected_outcome": "A greeting is there" });
    let plan = Plan::of(&["greet the reader"])
        .in_environment("python")
        .with("goal_understanding", goal)
        .with(
            "action_plan",
            json!({ "execution_order": ["task-1"], "actions": [action] }),
        )
        .with(
            "evidence",
            json!([{ "path": "README.md", "lines": "1", "why": "the title" }]),
        );
    let issue = asked(&world, plan).await;

    let question = last_on_github(&world, &issue);
    for words in [
        "Files of the project that it names: `README.md`.",
        "- Done when: The reader is greeted\n- Expected: A greeting is there",
        "`README.md:1`",
        ": the title",
    ] {
        assert!(question.contains(words), "{words}: {question}");
    }
    world.finish().await;
}

#[tokio::test]
async fn an_approval_while_all_runs_are_paused_counts_when_they_go_on() {
    let world = world().await;
    let issue = asked(&world, plan()).await;
    world.all_runs("pause").await;
    issue.comment("alice", "/agent approve");
    world.runs_to(&issue, WAITS).await;
    assert_eq!(count(&world, "approval_granted"), 1, "{}", world.story());
    assert_eq!(count(&world, "environment_started"), 0, "{}", world.story());
    let answers = said(&world, &issue);
    for words in ["The plan is carried out.", "All work is paused by the operator"] {
        assert!(answers.contains(words), "{words}: {answers}");
    }

    world.all_runs("resume").await;
    greets(world.model.script());
    world.runs_to(&issue, DONE).await;
    assert_eq!(count(&world, "approval_requested"), 1);
    world.finish().await;
}

#[tokio::test]
async fn the_planner_gets_the_reason_of_a_denial_and_a_second_one_ends_the_run() {
    let world = world().await;
    let issue = asked(&world, plan()).await;

    world.model.plans(Plan::of(&["greet nobody"]).in_environment("python"));
    issue.comment("alice", "/agent deny Greet in French, @bob knows.");
    world.runs_to(&issue, WAITS).await;
    let requests = world.model.requests();
    assert_eq!(requests.len(), 2, "{}", world.story());
    let task = requests[1].first_user_message();
    for words in [
        "- task-1: greet the reader in README.md",
        "It was not approved. The reason: Greet in French, @bob knows.",
    ] {
        assert!(task.contains(words), "{words}: {task}");
    }
    let question = last_on_github(&world, &issue);
    assert!(question.contains("greet nobody"), "{question}");
    let denied = facts(&world, "approval_denied");
    assert_eq!(denied[0]["reason"], "Greet in French, @bob knows.");
    assert_ne!(digests(&world)[0], digests(&world)[1]);

    // The question before can be answered no more.
    issue.comment("alice", &format!("/agent approve {}", digests(&world)[0]));
    world.runs_to(&issue, WAITS).await;

    issue.comment("alice", "/agent deny Not like this.");
    world.runs_to(&issue, STOPPED).await;
    insta::assert_snapshot!(last_on_github(&world, &issue), @"
    ### ⏹️ Stopped

    As alice asked.

    The plan was not approved: Not like this.

    To start a new run, set the label `coding agent` again.

    <sub>2 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");

    let before = world.model.requests().len();
    world
        .model
        .plans(Plan::of(&["greet in French"]).in_environment("python"));
    issue.label("coding agent");
    world.runs_to(&issue, WAITS).await;
    let told = world.model.requests()[before].first_user_message();
    assert!(
        told.contains("People did not approve a plan of it: Not like this."),
        "{told}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_plan_that_was_denied_is_sent_back_once_and_then_told_to_be_the_same() {
    let world = world().await;
    let issue = asked(&world, plan()).await;

    world.model.plans(plan()).plans(plan());
    issue.comment("alice", "/agent deny Greet in French.");
    world.runs_to(&issue, WAITS).await;

    let requests = world.model.requests();
    assert_eq!(requests.len(), 3, "{}", world.story());
    let told = requests[2].last_user_message();
    assert!(
        told.contains("This is the plan that was not approved. The reason: Greet in French."),
        "{told}"
    );
    let question = last_on_github(&world, &issue);
    let words = "This is the plan that was denied before: asked for another one, the planner made the same again.";
    assert!(question.contains(words), "{question}");
    assert_eq!(digests(&world)[0], digests(&world)[1]);

    // It may still be approved.
    greets(world.model.script());
    issue.comment("alice", "/agent approve");
    world.runs_to(&issue, DONE).await;
    world.finish().await;
}

#[tokio::test]
async fn a_planner_that_repeats_a_denied_plan_may_make_another_one() {
    let world = world().await;
    let issue = asked(&world, plan()).await;

    world
        .model
        .plans(plan())
        .plans(Plan::of(&["greet in French"]).in_environment("python"));
    issue.comment("alice", "/agent deny Greet in French.");
    world.runs_to(&issue, WAITS).await;

    let question = last_on_github(&world, &issue);
    assert!(
        question.contains("greet in French") && !question.contains("denied before"),
        "{question}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_denial_that_ends_the_run_ends_it_also_where_that_is_shown_later() {
    let world = world().await;
    let issue = asked(&world, plan()).await;
    world.github.takes_no_comment();
    issue.comment("alice", "/agent deny");
    world.runs_to(&issue, WAITS).await;

    // Nobody reads the comment with the denial at this moment.
    world.github.rate_limited(0, Duration::from_hours(1));
    let approved = world.command(&["approve", TASK]).await;
    assert!(!approved.stdout.contains("it goes on"), "{approved:?}");
    world.github.rate_limited(5_000, Duration::from_hours(1));
    world.make_everything_due().await;
    world.runs_to(&issue, STOPPED).await;

    assert_eq!(world.model.requests().len(), 1, "{}", world.story());
    assert_eq!(count(&world, "approval_granted"), 0, "{}", world.story());
    assert_eq!(count(&world, "approval_denied"), 1, "{}", world.story());
    let last = last_on_github(&world, &issue);
    assert!(last.starts_with("### ⏹️ Stopped"), "{last}");
    world.finish().await;
}

#[tokio::test]
async fn a_denial_without_a_reason_ends_the_run_and_the_command_line_decides_as_well() {
    let world = world().await;
    let issue = asked(&world, plan()).await;
    let status = world.command(&["status"]).await;
    let digest = &digests(&world)[0][..16];
    insta::assert_snapshot!(told(&world, &status.stdout), @r"
    no worker is active
    awaiting_approval:preparing github:acme/widgets#1            Greet (0 min ago)
                waits for approval of its plan, by somebody who may write to the repository until TIME UTC; `coding-agent approve github:acme/widgets#1 DIGEST`
    ");
    let status = world.command(&["status", "--json"]).await;
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["runs"][0]["waits_for"]["digest"], digest, "{status}");
    let wrong = world.command(&["approve", TASK, "0123456789abcdef"]).await;
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(1), ""), "{wrong:?}");
    assert!(
        wrong.stderr.contains("#1: nothing was approved: that digest is not"),
        "{wrong:?}"
    );
    let denied = world.command(&["deny", TASK]).await;
    assert_eq!(denied.stdout, "github:acme/widgets#1: stopped\n", "{denied:?}");
    assert_eq!(issue.labels(), STOPPED);

    world.model.plans(plan());
    issue.label("coding agent");
    world.runs_to(&issue, WAITS).await;
    let digest = digests(&world).pop().unwrap();
    greets(world.model.script());
    let right = world.command(&["approve", TASK, &digest]).await;
    assert_eq!(
        right.stdout, "github:acme/widgets#1: it goes on with the next free worker\n",
        "{right:?}"
    );
    world.runs_to(&issue, DONE).await;
    assert_eq!(facts(&world, "approval_granted")[0]["approver"], "the operator");
    world.finish().await;
}

#[tokio::test]
async fn what_changes_while_a_plan_waits_is_asked_anew_and_the_question_before_is_void() {
    let mut world = world().await;
    let issue = asked(&world, plan()).await;
    world.configure(|config| config["command_executor"]["network"] = json!({ "allow": ["example.org"] }));
    issue.comment("alice", &format!("/agent approve {}", digests(&world)[0]));
    world.runs_to(&issue, WAITS).await;

    assert_eq!(count(&world, "approval_granted"), 0, "{}", world.story());
    let answers = said(&world, &issue);
    assert!(
        answers.contains("Nothing was approved: the hosts that may be reached changed since the question was asked."),
        "{answers}"
    );
    let question = last_on_github(&world, &issue);
    assert!(
        question
            .contains("What was asked before is not what would be done now: the hosts that may be reached changed."),
        "{question}"
    );
    assert!(question.contains("`example.org`"), "{question}");

    // A larger budget is another thing to approve, too.
    issue.comment("alice", "/agent budget 500k");
    world.runs_to(&issue, WAITS).await;
    let question = last_on_github(&world, &issue);
    assert!(
        question.contains("the tokens that were allowed besides changed"),
        "{question}"
    );
    assert_eq!(digests(&world).len(), 3);

    greets(world.model.script());
    issue.comment("alice", "/agent approve");
    world.runs_to(&issue, DONE).await;
    world.finish().await;
}

#[tokio::test]
async fn what_changes_after_the_approval_makes_it_void() {
    let mut world = world().await;
    let issue = asked(&world, plan()).await;
    let approved = world.command(&["approve", TASK]).await;
    assert_eq!(approved.code, Some(0), "{approved:?}");
    world.configure(|config| config["budget"] = json!({ "tokens": 1_000_000 }));
    world.runs_to(&issue, WAITS).await;

    let question = last_on_github(&world, &issue);
    assert!(
        question.contains("What was approved before is not what would be done now: the budget changed."),
        "{question}"
    );
    assert_eq!(count(&world, "environment_started"), 0, "{}", world.story());
    // The configuration as it was is what was approved; the question stays open all the same.
    greets(world.model.script());
    issue.comment("alice", "/agent approve");
    world.runs_to(&issue, DONE).await;
    assert_eq!(count(&world, "approval_granted"), 2);
    world.finish().await;
}

#[tokio::test]
async fn a_revised_plan_waits_as_well_and_the_one_before_stays_if_it_is_denied() {
    let world = world().await;
    let issue = asked(&world, plan()).await;
    world
        .model
        .script()
        .calls(COMMAND, json!({ "command": "echo Hello > README.md" }))
        .calls("agent/revise_plan", json!({ "reason": "there is no goodbye" }))
        .plans(Plan::of(&["say goodbye to everybody"]).verified_by("true"));
    issue.comment("alice", "/agent approve");
    world.runs_to(&issue, WAITS).await;
    let question = last_on_github(&world, &issue);
    for words in [
        "The new plan needs your approval",
        "What was approved before is not what would be done now: the plan",
        "say goodbye to everybody",
    ] {
        assert!(question.contains(words), "{words}: {question}");
    }

    world
        .model
        .script()
        .calls(COMMAND, json!({ "command": "git log --oneline; cat README.md" }))
        .calls("agent/revise_plan", json!({ "reason": "still none" }))
        .plans(Plan::of(&["say nothing more"]).verified_by("grep -q Hello README.md"));
    issue.comment("alice", "/agent deny Everybody is too many.");
    world.runs_to(&issue, WAITS).await;
    let requests = world.model.requests();
    let told = requests[4].text();
    assert!(
        told.contains("People did not approve the new plan. The reason: Everybody is too many."),
        "{told}"
    );
    assert!(
        requests[5].last_user_message().contains("Hello"),
        "the work is still there"
    );

    world.model.script().done("Greeted.");
    issue.comment("alice", "/agent approve");
    world.runs_to(&issue, DONE).await;
    assert_eq!(
        world.github.pulls()[0].file("README.md").as_deref(),
        Some("Hello\n"),
        "{}",
        world.story()
    );
    world.finish().await;
}

#[tokio::test]
async fn of_two_approvers_the_first_counts_and_a_denial_before_the_work_goes_on_does_too() {
    let world = world().await;
    world.github.default_repository().member("bob", Permission::Write);
    let issue = asked(&world, plan()).await;
    greets(world.model.script());
    issue
        .comment("alice", "/agent approve")
        .comment("bob", "/agent approve");
    world.runs_to(&issue, DONE).await;
    let granted = facts(&world, "approval_granted");
    assert_eq!(granted.len(), 1, "{}", world.story());
    assert_eq!(granted[0]["approver"], "@alice");
    assert!(
        said(&world, &issue).contains("This is decided already."),
        "{}",
        world.story()
    );

    world.model.plans(plan());
    let other = world.github.open_issue("Greet again").label("coding agent");
    world.runs_to(&other, WAITS).await;
    other.comment("alice", "/agent approve").comment("bob", "/agent deny");
    world.runs_to(&other, STOPPED).await;
    world.finish().await;
}

#[tokio::test]
async fn a_kill_between_question_and_answer_asks_once_and_forgets_no_answer() {
    let world = world().await;
    world.model.plans(plan());
    let issue = world.github.open_issue("Greet").label("coding agent");
    // The question is the first comment: it is written, and nobody hears of it.
    world.github.hangs("POST /repos/*/*/issues/*/comments", 0, true);
    let program = world.spawn(&["run"]);
    world.github.until_one_hangs().await;
    program.kill().await;
    world.github.cuts_off();
    world.runs_to(&issue, WAITS).await;
    assert_eq!(issue.comments_of(world.github.bot()).len(), 1, "{}", world.story());
    assert_eq!(count(&world, "planned"), 1);

    // The approval is read, and the process ends before it can act on it.
    issue.comment("alice", "/agent approve");
    world.github.hangs("POST /repos/*/*/issues/*/comments", 0, true);
    let program = world.spawn(&["run"]);
    world.github.until_one_hangs().await;
    program.kill().await;
    world.github.cuts_off();
    greets(world.model.script());
    world.runs_to(&issue, DONE).await;
    assert_eq!(world.github.pulls().len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_plan_that_may_cost_too_much_waits_and_a_cheap_one_does_not() {
    for (limit, labels) in [(0.01, WAITS), (50.0, DONE)] {
        let mut world = World::start().await;
        world.model.allows_restarts();
        world.configure(|config| {
            config["approval"] = json!({ "cost_limit_usd": limit });
            config["budget"] = json!({ "prices": { "input": 1.0, "output": 5.0 } });
        });
        let script = world.model.plans(plan());
        if labels == DONE {
            greets(script);
        }
        let issue = world.github.open_issue("Greet").label("coding agent");
        world.runs_to(&issue, labels).await;
        if labels == WAITS {
            let question = last_on_github(&world, &issue);
            assert!(
                question.contains("It may cost more than is allowed without asking"),
                "{question}"
            );
        }
        world.finish().await;
    }
}
