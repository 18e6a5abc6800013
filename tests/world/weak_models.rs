//! Models that are not good at this: what they are told, and when it ends.

use serde_json::json;

use crate::fake::model::{Plan, Request};
use crate::reading::{count, facts, last_on_github};
use crate::world::World;
use crate::world::scripts::{COMMAND, executes, greets, plan, writes};

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
    greets(script);
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
            && facts.contains("?? draft.txt"),
        "{facts}"
    );
    world.finish().await;
}

#[tokio::test]
async fn after_two_misses_the_whole_file_is_proposed() {
    let world = World::start().await;
    let misses = |old: &str| json!({ "path": "README.md", "old": old, "new": "Hello" });
    let script = world
        .model
        .plans(plan())
        .calls("workspace/str_replace", misses("# Gadgets"))
        .calls("workspace/str_replace", misses("Gadgets"));
    greets(script);
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let told = requests[2].last_user_message();
    assert!(
        told.contains("The closest lines, with their numbers:\\n1: # widgets"),
        "{told}"
    );
    let told = requests[3].last_user_message();
    assert!(
        told.contains("Write the whole file with write_file, mode overwrite, instead. It is now:\\n# widgets"),
        "{told}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_only_writes_whole_files_has_fewer_tools() {
    let mut world = World::start().await;
    world.configure(|config| config["llm"]["edits"] = json!("whole"));
    world
        .model
        .plans(plan())
        .calls(
            "workspace/write_file",
            json!({ "path": "README.md", "content": "Hello\n" }),
        )
        .calls(
            "workspace/str_replace",
            json!({ "path": "README.md", "old": "Hello", "new": "Bye" }),
        )
        .calls("write_file", json!({ "path": "new.md", "content": "New\n" }))
        .done("Greeted.");
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let system = requests[1].system();
    assert!(
        system.contains("- write_file {path, content}: Write a whole text file, in place of what it held.")
            && !system.contains("str_replace")
            && !system.contains("undo_edit"),
        "{system}"
    );
    let told = requests[3].last_user_message();
    assert!(told.contains("there is no tool workspace/str_replace"), "{told}");
    let pull = &world.github.pulls()[0];
    assert_eq!(pull.file("README.md").as_deref(), Some("Hello\n"));
    assert_eq!(pull.file("new.md").as_deref(), Some("New\n"));
    world.finish().await;
}

#[tokio::test]
async fn the_file_that_the_task_names_is_in_the_first_requests() {
    let world = World::start().await;
    let long = "x".repeat(100_000);
    world.github.default_repository().commit(
        "main",
        "Code",
        &[
            ("src/shapes.py", "def area(side):\n    return side + side\n"),
            ("src/data.txt", &long),
            ("src/other.py", "unrelated = 1\n"),
        ],
    );
    let script = world.model.plans(plan());
    writes(script, "src/shapes.py", "def area(side):\n    return side * side\n").done("Mended.");
    let issue = world
        .github
        .open_issue("The area in shapes.py is wrong; see src/data.txt");
    issue.label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    for request in &world.model.requests()[..2] {
        let task = request.first_user_message();
        assert!(
            task.contains("\nsrc/shapes.py:\n<data-") && task.contains("    return side + side\n</data-"),
            "{task}"
        );
        assert!(!task.contains("unrelated = 1") && !task.contains("xxxx"), "{task}");
    }
    world.finish().await;
}

#[tokio::test]
async fn the_operators_own_system_prompt_is_used() {
    let mut world = World::start().await;
    let file = world.folder().join("prompt.txt");
    std::fs::write(
        &file,
        "Work in {{ environment }}, reply in JSON.{% for tool in tools %} {{ tool.name }}{% endfor %}\n",
    )
    .unwrap();
    world.configure(|config| config["llm"]["system_prompt_file"] = json!(file));
    greets(world.model.plans(plan()));
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let system = world.model.requests()[1].system();
    assert!(system.starts_with("Work in python, reply in JSON. bash "), "{system}");
    world.finish().await;
}

#[tokio::test]
async fn a_system_prompt_that_cannot_be_filled_in_ends_the_program_at_the_start() {
    let mut world = World::start().await;
    let file = world.folder().join("prompt.txt");
    std::fs::write(&file, "{{ rulez }}").unwrap();
    world.configure(|config| config["llm"]["system_prompt_file"] = json!(file));

    let ended = world.run().await;

    assert_eq!(ended.code, Some(78), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("there is no variable `rulez`; did you mean `rules`?"),
        "{ended:?}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_model_may_plan_and_work_in_the_form_of_hermes() {
    let world = World::start().await;
    let look = json!({ "thought": "look", "tool_calls": [{ "name": "read_file", "parameters": { "path": "README.md" } }], "final_answer": "" });
    let write = json!({
        "thought": "write",
        "tool_calls": [
            { "name": "write_file", "parameters": { "path": "./README.md", "content": "Hello\n", "mode": "overwrite" } },
            { "name": "workspace/read_file", "parameters": { "path": "README.md" } },
        ],
    });
    let answer = json!({ "thought": "", "tool_calls": [], "final_answer": "The README greets." });
    let script = world.model.says(&look.to_string()).plans(plan());
    script.says(&write.to_string()).says(&answer.to_string());
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(world.github.pulls()[0].file("README.md").as_deref(), Some("Hello\n"));
    world.finish().await;
}

#[tokio::test]
async fn the_plans_aims_reach_the_worker_and_people_and_are_checked_where_they_are_commands() {
    let world = World::start().await;
    let goal = json!({
        "main_objective": "greet",
        "success_criteria": ["The reader feels welcome", "`grep -q Hello README.md`"],
        "constraints": ["No emoji"],
    });
    let action = json!({ "execution_order": ["task-1"], "actions": [{ "task_id": "task-1", "expected_outcome": "The README\ngreets" }] });
    greets(
        world
            .model
            .plans(plan().with("goal_understanding", goal).with("action_plan", action)),
    );
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let task = world.model.requests()[1].first_user_message();
    assert!(
        task.contains(
            "- task-1: greet the reader (expected: The README greets)\n\nIt is done when:\n- The reader feels welcome\n\
             - `grep -q Hello README.md`\nConstraints:\n- No emoji\n\nThe program will check the result with:\n\
             - `grep -q Hello README.md` (exit code 0)\n"
        ),
        "{task}"
    );
    let comments = issue.comments_of(world.github.bot());
    assert!(
        comments[0].contains("What the plan is to achieve")
            && comments[0].contains("Done when: The reader feels welcome"),
        "{}",
        comments[0]
    );
    let checked: Vec<_> = facts(&world, "verified")
        .into_iter()
        .map(|fact| fact["command"].clone())
        .collect();
    assert_eq!(checked, ["grep -q Hello README.md"]);
    world.finish().await;
}

#[tokio::test]
async fn the_planners_slips_are_taken_as_meant_too() {
    let world = World::start().await;
    let git = world.github.default_repository();
    git.commit("main", "Code", &[("src/shapes.py", "one\ntwo\n")]);
    let script = world
        .model
        .calls("repository/read_file", json!({ "path": "shape.py" }))
        .calls("repository/list_files", json!({ "path": "lib" }))
        .calls(
            "read_file",
            json!({ "file_path": "workspace/project/src/shapes.py", "view_range": [0, -1] }),
        )
        .plans(plan());
    greets(script);
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let told: Vec<String> = requests[1..4].iter().map(Request::last_user_message).collect();
    assert!(
        told[0].contains("there is no file 'shape.py'; did you mean 'src/shapes.py'?"),
        "{told:?}"
    );
    assert!(
        told[1].contains("there are no files below 'lib'; there are the folders src"),
        "{told:?}"
    );
    assert!(told[2].contains("\"output\":\"one\\ntwo\""), "{told:?}");
    world.finish().await;
}
