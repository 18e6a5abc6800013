//! Calls that fail, or do the same again and again: what is told, and when the run ends.

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::facts::count;
use crate::world::normalized::last_on_github;
use crate::world::people::says;
use crate::world::scripts::{COMMAND, executes, greets, plan};

const READ: &str = "workspace/read_file";

#[tokio::test]
async fn a_model_whose_calls_all_fail_is_told_then_plans_anew_and_then_the_run_fails() {
    let world = World::start().await;
    // The plan is asked for in a copy of the conversation.
    world.model.allows_restarts();
    let fails = |from: usize, to: usize| {
        let calls = (from..to).map(|number| match number % 3 {
            0 => (READ, json!({ "path": format!("missing-{number}.md") })),
            1 => (READ, json!({ "path": "README.md", "lines": number })),
            _ => ("workspace/open_file", json!({ "path": format!("README-{number}.md") })),
        });
        for (tool, args) in calls {
            world.model.calls(tool, args);
        }
    };
    world.model.plans(plan());
    fails(0, 16);
    world.model.plans(Plan::of(&["greet the reader in another way"]));
    fails(16, 24);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent failed"]);
    let told = world.model.requests()[9].last_user_message();
    assert!(
        told.contains("None of your last 8 tool calls could be carried out")
            && told.contains("- read_file {path, view_range?: [integer]}"),
        "{told}"
    );
    assert_eq!(count(&world, "replanned"), 1);
    insta::assert_snapshot!(last_on_github(&world, &issue), @"
    ### ❌ This could not be done

    24 tool calls in a row could not be carried out, though the model was told what is wrong and the plan was made anew; a larger model may do better, or an item that names the files to change (planning.circuit_breaker.tool_failures has the limit).

    To start a new run, set the label `coding agent` again.

    <sub>26 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_command_that_ran_is_no_failed_call_and_the_limit_is_configured() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["planning"] = json!({ "circuit_breaker": { "tool_failures": 2 }, "replanning": { "max_revisions": 0 } });
    });
    let mut script = world.model.plans(plan());
    for number in 0..6 {
        script = script.calls(COMMAND, json!({ "command": format!("exit {}", number + 1) }));
    }
    for number in 0..5 {
        script = script.calls(READ, json!({ "path": format!("missing-{number}.md") }));
    }
    script.calls(READ, json!({ "path": "nowhere.md" }));
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    let told: Vec<bool> = world
        .model
        .requests()
        .iter()
        .map(|request| request.text().contains("None of your last 2 tool calls"))
        .collect();
    assert_eq!(told.iter().position(|told| *told), Some(9), "{told:?}");
    world.finish().await;
}

#[tokio::test]
async fn refusals_of_the_network_end_no_run_and_say_what_there_is_instead() {
    let world = World::start().await;
    world.github.default_repository().commit(
        "main",
        "Tests",
        &[
            ("setup.cfg", "[tool:pytest]\n"),
            ("tests/test_a.py", "import pytest\n\ndef test_a():\n    pass\n"),
        ],
    );
    let install = |package: &str| {
        let command = format!(
            "pip install --retries 0 --disable-pip-version-check --index-url https://packages.example/simple {package}"
        );
        json!({ "command": command })
    };
    let script = world
        .model
        .plans(plan())
        .calls(COMMAND, install("pytest"))
        .calls(COMMAND, install("pytest-cov"))
        .calls(COMMAND, install("pytest-xdist"))
        .calls(COMMAND, install("tox"));
    greets(script);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(count(&world, "policy_refused"), 4, "{}", world.story());
    let requests = world.model.requests();
    let told = requests[2].last_user_message();
    assert!(
        told.contains(
            "The network refused this and will refuse it again: do the task without it. Installed are: python3 pip "
        ) && told.contains("setuptools")
            && told.ends_with("The project's tests are run with `python -m pytest -q`, where that is installed."),
        "{told}"
    );
    let often = requests.last().unwrap().text().matches("Installed are:").count();
    assert_eq!(often, 1, "it is said once");
    world.finish().await;
}

#[tokio::test]
async fn a_loop_is_broken_by_a_fresh_start_from_the_facts() {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({ "replanning": { "max_revisions": 0 } }));
    world.model.allows_restarts();
    let mut script = executes(world.model.plans(plan()), "echo new > draft.txt");
    for _ in 0..3 {
        script = executes(script, "sed -i s/nobody/reader/ README.md");
    }
    script.says("It greets now.\n\nREADME.md\n```\nHello\n```");
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(count(&world, "conversation_restarted"), 1);
    let requests = world.model.requests();
    let told = requests[2].last_user_message();
    assert!(told.contains("[changed: new draft.txt +1]\\n[exit code 0]"), "{told}");
    let told = requests[3].last_user_message();
    assert!(
        told.contains("\"output\":\"[no file changed]\\n[exit code 0]"),
        "{told}"
    );
    let anew = &requests[5];
    assert!(!anew.text().contains("{\"output\":"), "{}", anew.text());
    let facts = anew.last_user_message();
    assert!(
        facts.contains(
            "- execute_command sed -i s/nobody/reader/ README.md (3 times): [no file changed] [exit code 0]\n"
        ) && facts.contains("- execute_command echo new > draft.txt: [changed: new draft.txt +1] [exit code 0]\n")
            && facts.contains("?? draft.txt")
            && facts.ends_with(
                "Do something else than what was tried. Reply with each file that has to change, whole: a line with its path, then its \
                 content between two lines ```."
            ),
        "{facts}"
    );
    world.finish().await;
}

#[tokio::test]
async fn what_people_wrote_outlives_a_fresh_start() {
    let mut world = World::start().await.attentive();
    world.configure(|config| config["planning"] = json!({ "replanning": { "max_revisions": 0 } }));
    world.model.allows_restarts();
    let mut script = executes(world.model.plans(plan()), "echo Hello > README.md").holds();
    for _ in 0..3 {
        script = executes(script, "sed -i s/nobody/reader/ README.md");
    }
    script.says("It greets now.\n\nREADME.md\n```\nHello, Alice\n```");
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    says(&world, &issue, "alice", "By my name, please.").await;
    world.model.release();
    let ended = run.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(count(&world, "conversation_restarted"), 1);
    let requests = world.model.requests();
    let anew = requests[5].last_user_message();
    assert_eq!(anew.matches("By my name, please.").count(), 1, "{anew}");
    world.finish().await;
}
