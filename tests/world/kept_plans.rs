//! Plans that are made once for the same input, and what a plan says of risk and cost.

use serde_json::{Value, json};

use crate::fake::model::Model;
use crate::world::scripts::{greets, plan};
use crate::world::{Ended, MODEL_KEY, World};

/// The world with a model that is to reply the same to the same.
async fn with_options(options: Value) -> World {
    let mut world = World::start().await;
    world.configure(|config| {
        for (key, value) in options.as_object().unwrap() {
            config["llm"]["openai"][key] = value.clone();
        }
    });
    let folder = world.folder().join("project");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("README.md"), "A program.\n").unwrap();
    world
}

/// Has the same task done in the same folder, which stays as it is.
async fn asks(world: &World) -> Ended {
    let folder = world.folder().join("project");
    let root = folder.to_str().unwrap();
    world
        .command(&["run", "--task", "Greet the reader", "--root", root, "--dry-run"])
        .await
}

async fn is_done(world: &World) {
    let ended = asks(world).await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert!(ended.stdout.contains("+Hello"), "{}", ended.stdout);
}

/// Returns how many of the plans were the same as the one before, and of how many.
async fn reproduction(world: &World) -> (Value, Value) {
    let ended = world.command(&["stats", "--json"]).await;
    let figures: Value = serde_json::from_str(&ended.stdout).unwrap();
    let rate = &figures["plan_reproduction_rate"];
    (rate["value"].clone(), rate["of"].clone())
}

#[tokio::test]
async fn the_same_input_gives_the_same_plan_without_asking_until_a_run_fails() {
    let world = with_options(json!({"temperature": 0, "seed": 7})).await;
    let checked = || plan().verified_by("grep -q Hello README.md");
    greets(world.model.plans(checked()));
    is_done(&world).await;

    // The second run asks for no plan.
    greets(world.model.script());
    is_done(&world).await;
    assert_eq!(reproduction(&world).await, (json!(1.0), json!(1)));
    assert!(world.story().contains("planning.reuse"), "{}", world.story());

    // One that fails takes the plan away with it.
    world.model.fails(400, 1);
    let ended = asks(&world).await;
    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    greets(world.model.plans(checked()));
    is_done(&world).await;

    // Another input is planned for itself.
    std::fs::write(world.folder().join("project/more.txt"), "More.\n").unwrap();
    greets(world.model.plans(checked()));
    is_done(&world).await;
    world.finish().await;
}

#[tokio::test]
async fn without_a_seed_or_the_operators_leave_each_run_is_planned_anew() {
    let world = with_options(json!({"temperature": 0})).await;
    for _ in 0..2 {
        greets(world.model.plans(plan()));
        is_done(&world).await;
    }
    assert_eq!(reproduction(&world).await, (Value::Null, json!(0)));
    world.finish().await;

    let mut world = with_options(json!({"temperature": 0, "seed": 7})).await;
    world.configure(|config| config["planning"]["reuse"] = json!(false));
    for _ in 0..2 {
        greets(world.model.plans(plan()));
        is_done(&world).await;
    }
    // They are compared all the same.
    assert_eq!(reproduction(&world).await, (json!(1.0), json!(1)));
    world.finish().await;
}

#[tokio::test]
async fn a_plan_of_the_model_in_the_planners_place_is_not_kept_as_the_planners_own() {
    let mut world = with_options(json!({})).await;
    let planner = Model::start().await;
    let first = json!({
        "provider": "openai", "base_url": planner.openai_address(), "model": "scripted", "api_key": MODEL_KEY,
        "temperature": 0, "seed": 7, "fallback": "second",
    });
    let second = json!({
        "provider": "openai", "base_url": world.model.openai_address(), "model": "scripted", "api_key": MODEL_KEY,
    });
    world.configure(|config| {
        config["llm"]["models"] = json!({"first": first, "second": second});
        config["llm"]["roles"] = json!({"planner": "first"});
    });
    let checked = || plan().verified_by("grep -q Hello README.md");
    planner.rate_limited(Some(7_200));
    greets(world.model.plans(checked()));
    is_done(&world).await;

    // The planner itself makes its own plan, and that one is kept.
    planner.plans(checked());
    for _ in 0..2 {
        greets(world.model.script());
        is_done(&world).await;
    }
    planner.finish();
    world.finish().await;
}

#[tokio::test]
async fn what_the_planner_says_of_risk_and_cost_is_shown_and_decides_nothing() {
    let world = World::start().await;
    let planned = plan()
        .verified_by("grep -q Hello README.md")
        .with("risk", json!("high: touches README.md"))
        .with("need_approval", json!(true))
        .with("cost_hint", json!({"usd": 3}));
    greets(world.model.plans(planned));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let told = issue.comments_of(world.github.bot()).join("\n");
    for words in [
        "Risk: high: touches",
        "Approval needed: yes",
        "nothing is decided by it",
    ] {
        assert!(told.contains(words), "{words} is not in\n{told}");
    }
    world.finish().await;
}
