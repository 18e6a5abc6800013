//! The contents of the first requests: files that the task names, and the system prompt.

use serde_json::json;

use crate::world::World;
use crate::world::scripts::{greets, plan, writes};

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
