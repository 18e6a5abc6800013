//! A wrong configuration is told whole, before anything is touched.

use insta::assert_snapshot;
use serde_json::json;

use super::{greeting, steady};
use crate::world::World;

#[tokio::test]
async fn every_fault_is_named_and_nothing_is_touched() {
    let mut world = World::start().await;
    greeting(&world);
    world.configure(|config| {
        config["consumer"] = json!(2);
        config["github"]["token"] = json!("");
        config["llm"]["provider"] = json!("openay");
        config["command_executor"]["default_environment"] = json!("cobol");
        config["max_llm_process_num"] = json!(0);
    });

    for command in ["run", "serve", "produce", "consume"] {
        let ended = world.command(&[command]).await;
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(78), ""),
            "{command}: {ended:?}"
        );
        if command == "run" {
            let folder = world.folder().to_str().unwrap();
            assert_snapshot!(steady(&ended.stderr.replace(folder, "<folder>")), @r"
    coding-agent: <folder>/config.yaml:3:5: command_executor.default_environment: 'cobol' is not among the environments; write one of python
    coding-agent: <folder>/config.yaml:10:3: consumer: unknown key; did you mean `consumers`?
    coding-agent: <folder>/config.yaml:17:5: github.token: is missing; give `token`, `token_file` or `app`, or take github out of task_sources
    coding-agent: <folder>/config.yaml:33:5: llm.provider: must be one of ollama, lmstudio, openai, anthropic, not the text 'openay'
    coding-agent: <folder>/config.yaml:35:3: max_llm_process_num: must be at least 1
    ");
        }
    }

    assert!(world.github.requests().is_empty());
    assert!(!world.state_dir().exists() && !world.folder().join("logs").exists());
    world.finish().await;
}

#[tokio::test]
async fn without_a_source_of_tasks_there_is_nothing_to_run() {
    let mut world = World::start().await;
    world.configure(|config| config["task_sources"] = json!([]));
    let ended = world.run().await;
    assert_eq!(ended.code, Some(78));
    assert_snapshot!(ended.stderr, @"coding-agent: task_sources: no source of tasks is named; write `task_sources: [github]` or `[gitlab]` and fill in that section");
    assert!(!world.state_dir().exists());
    world.finish().await;
}
