//! Plans: their form, their aims, and the slips of a planner.

use serde_json::json;

use crate::fake::model::Request;
use crate::world::World;
use crate::world::facts::facts;
use crate::world::scripts::{greets, plan};

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
