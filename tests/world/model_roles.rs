//! Several models, each with roles of its own.

use serde_json::{Value, json};

use crate::fake::model::{Model, Plan};
use crate::world::{MODEL_KEY, World};

const FAR_KEY: &str = "sk-of-the-far-model";

/// Gives the planner another model, which the provider's section does not name.
fn plans_elsewhere(world: &mut World, address: &str) {
    let far = json!({
        "provider": "openai", "base_url": address, "model": "scripted", "api_key": FAR_KEY,
        "temperature": 0.5, "headers": {"X-Team": "agents"}, "extra_body": {"top_p": 0.9},
        "prices": {"input": 1000.0, "output": 1000.0},
    });
    world.configure(|config| {
        config["llm"]["models"] = json!({ "far": far });
        config["llm"]["roles"] = json!({ "planner": "far" });
    });
    world.model.forbids(FAR_KEY);
}

#[tokio::test]
async fn one_model_plans_and_another_works_and_each_is_counted() {
    let mut world = World::start().await;
    let far = Model::start().await;
    far.wants_key(FAR_KEY);
    plans_elsewhere(&mut world, &far.openai_address());
    far.plans(Plan::of(&["greet"]));
    world
        .model
        .calls(
            "workspace/write_file",
            json!({"path": "hello.txt", "content": "Hello\n", "mode": "create"}),
        )
        .done("Greeted.");
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let asked = far.requests();
    assert_eq!((asked.len(), world.model.requests().len()), (1, 2));
    assert_eq!(asked[0].body["temperature"], json!(0.5));
    assert_eq!(asked[0].body["top_p"], json!(0.9));
    assert_eq!(world.model.requests()[0].body.get("top_p"), None);
    let called: Vec<Value> = world
        .journal()
        .into_iter()
        .filter(|entry| entry["fact"] == "model_called")
        .map(|entry| json!([entry["model"], entry["role"]]))
        .collect();
    assert_eq!(
        called,
        [
            json!(["far", "planner"]),
            json!(["llm", "worker"]),
            json!(["llm", "worker"])
        ]
    );
    let told = issue.comments_of(world.github.bot()).join("\n");
    assert!(told.contains("planner far: ") && told.contains("worker: "), "{told}");
    assert!(told.contains(" out, $"), "{told}");
    let status = world.command(&["status", "--json"]).await;
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    let usage = status["runs"][0]["usage"].as_array().unwrap();
    assert_eq!(
        usage
            .iter()
            .map(|entry| json!([entry["model"], entry["role"]]))
            .collect::<Vec<_>>(),
        [json!(["far", "planner"]), json!(["llm", "worker"])]
    );
    assert!(usage.iter().all(|entry| entry["input"].as_u64() > Some(0)), "{usage:?}");
    let status = world.command(&["status"]).await;
    assert!(status.stdout.contains("            planner far: "), "{}", status.stdout);
    far.finish();
    world.finish().await;
}

#[tokio::test]
async fn a_run_ends_at_its_budget_of_dollars_whichever_model_costs_them() {
    let mut world = World::start().await;
    let far = Model::start().await;
    plans_elsewhere(&mut world, &far.openai_address());
    world.configure(|config| config["budget"] = json!({ "cost_usd": 0.5 }));
    far.plans(Plan::of(&["greet"]));
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert!(
        issue.labels().contains(&"coding agent paused".to_owned()),
        "{:?}",
        issue.labels()
    );
    let told = issue.comments_of(world.github.bot()).join("\n");
    assert!(told.contains("budget.cost_usd"), "{told}");
    far.finish();
    world.finish().await;
}

#[tokio::test]
async fn confidential_work_goes_to_the_local_model_in_every_role() {
    let mut world = World::start().await;
    let far = Model::start().await;
    let address = far.openai_address().replace("127.0.0.1", "0.0.0.0");
    plans_elsewhere(&mut world, &address);
    let near = json!({
        "provider": "openai", "base_url": world.model.openai_address(), "model": "scripted",
        "api_key": MODEL_KEY,
    });
    world.configure(|config| {
        config["llm"]["openai"]["base_url"] = json!(address);
        config["llm"]["models"]["near"] = near;
        config["llm"]["roles"]["local_only"] = json!("near");
        config["llm"]["local_only_label"] = json!("confidential");
    });
    let script = world.model.plans(Plan::of(&["greet"]));
    script.done("Nothing to do.").done("Nothing to do.");
    world
        .github
        .open_issue("Greet")
        .label("confidential")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(far.requests().len(), 0);
    assert_eq!(world.model.requests().len(), 3);
    far.finish();
    world.finish().await;
}

#[tokio::test]
async fn the_wall_holds_for_every_role_and_for_what_takes_a_models_place() {
    for role in ["planner", "worker"] {
        let mut world = World::start().await;
        let far = Model::start().await;
        let address = far.openai_address().replace("127.0.0.1", "0.0.0.0");
        plans_elsewhere(&mut world, &address);
        world.configure(|config| {
            config["llm"]["roles"] = json!({ role: "far" });
            config["llm"]["openai"]["fallback"] = json!("far");
            config["llm"]["local_only_label"] = json!("confidential");
        });
        if role == "worker" {
            world.model.plans(Plan::of(&["greet"]));
        }
        world
            .github
            .open_issue("Greet")
            .label("confidential")
            .label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.code, Some(2), "{role}: {ended:?}\n{}", world.story());
        assert_eq!(far.requests().len(), 0, "{role}");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_is_replaced_by_its_fallback() {
    let mut world = World::start().await;
    plans_elsewhere(&mut world, "http://127.0.0.1:1/v1");
    let near = json!({
        "provider": "openai", "base_url": world.model.openai_address(), "model": "scripted",
        "api_key": MODEL_KEY,
    });
    world.configure(|config| {
        config["llm"]["models"]["near"] = near;
        config["llm"]["models"]["far"]["fallback"] = json!("near");
    });
    let script = world.model.plans(Plan::of(&["greet"]));
    script.done("Nothing to do.").done("Nothing to do.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let called: Vec<Value> = world
        .journal()
        .into_iter()
        .filter(|entry| entry["fact"] == "model_called")
        .map(|entry| json!([entry["model"], entry["role"]]))
        .collect();
    let of_worker = json!(["llm", "worker"]);
    assert_eq!(called, [json!(["near", "planner"]), of_worker.clone(), of_worker]);
    world.finish().await;
}

#[tokio::test]
async fn a_fallback_that_cannot_do_the_work_leaves_the_task_waiting_for_its_model() {
    for keys in [json!({ "context_length": 4_096 }), json!({ "model": "missing-model" })] {
        let mut world = World::start().await;
        let far = Model::start().await;
        plans_elsewhere(&mut world, &far.openai_address());
        let mut near = json!({
            "provider": "openai", "base_url": world.model.openai_address(), "model": "scripted",
            "api_key": MODEL_KEY,
        });
        for (key, value) in keys.as_object().unwrap() {
            near[key] = value.clone();
        }
        world.configure(|config| {
            config["llm"]["models"]["near"] = near;
            config["llm"]["models"]["far"]["fallback"] = json!("near");
        });
        far.rate_limited(Some(7_200));
        let issue = world
            .github
            .open_issue("Greet")
            .body(&"Say hello to the reader. ".repeat(1_000))
            .label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.code, Some(1), "{keys}: {ended:?}\n{}", world.story());
        assert_eq!(issue.labels(), ["coding agent paused"], "{keys}");
        let told = issue.comments_of(world.github.bot()).join("\n");
        assert!(told.contains("The model's rate limit is reached"), "{keys}: {told}");
        far.finish();
        world.finish().await;
    }
}

#[tokio::test]
async fn the_summarizer_sums_up_and_the_worker_goes_on() {
    let mut world = World::start().await;
    let far = Model::start().await;
    plans_elsewhere(&mut world, &far.openai_address());
    world.configure(|config| {
        config["llm"]["openai"]["context_length"] = 6_000.into();
        config["llm"]["roles"] = json!({ "summarizer": "far" });
    });
    world.model.has_window(6_000);
    world.model.allows_restarts();
    world.model.plans(Plan::of(&["count"]));
    for turn in 0..5 {
        world.model.calls(
            "workspace/execute_command",
            json!({"command": format!("seq {turn}000 {turn}500")}),
        );
    }
    far.goes_on_for_another();
    far.says("Counted from 0 to 4500; nothing is left.");
    world.model.done("Counted.");
    world.github.open_issue("Count the numbers").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(far.requests().len(), 1);
    let last = world.model.requests().pop().unwrap();
    assert!(last.text().contains("nothing is left"), "the summary is there");
    far.finish();
    world.finish().await;
}

#[tokio::test]
async fn doctor_examines_each_model_and_names_its_roles() {
    let mut world = World::start().await;
    plans_elsewhere(&mut world, "http://127.0.0.1:1/v1");

    let ended = world.command(&["doctor"]).await;

    let lines: Vec<&str> = ended.stdout.lines().filter(|line| line.contains("  model ")).collect();
    let lines = lines.join("\n").replace(&world.model.address(), "MODEL");
    assert!(lines.contains("BAD   model far (planner)"), "{lines}");
    assert!(lines.contains("ok    model llm (worker, summarizer)"), "{lines}");
    world.finish().await;
}
