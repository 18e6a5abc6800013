//! Poisoned set-ups: what another branch, or an earlier model, leaves in a set-up is in no other
//! run.

use serde_json::json;

use super::{COMMAND, were_set_up, world};
use crate::fake::model::{Model, Plan, Request};
use crate::world::World;

/// Shows the file in which each set-up leaves a trace.
const LOOK: &str = "cat node_modules/x 2>/dev/null || echo none";

/// Scripts one run that is set up by `command` on a branch, looks at the trace and writes `file`.
fn script(model: &Model, command: &str, branch: Option<&str>, file: &str) {
    let plan = Plan::of(&["write"]).set_up_by(&[command]);
    let plan = match branch {
        Some(branch) => plan.with("base_branch", branch.into()),
        None => plan,
    };
    model
        .plans(plan)
        .calls(COMMAND, json!({ "command": LOOK }))
        .calls("workspace/write_file", json!({ "path": file, "content": "A line.\n" }))
        .done("Wrote it.");
}

/// Returns what the model was told of the trace by the last run.
fn trace(world: &World) -> String {
    let requests = world.model.requests();
    let told = requests.iter().rev().map(Request::last_user_message);
    told.into_iter()
        .find(|text| {
            ["clean\\n", "poisoned\\n", "none\\n"]
                .iter()
                .any(|trace| text.contains(trace))
        })
        .unwrap_or_default()
}

fn sets_up(trace: &str) -> String {
    format!("mkdir -p node_modules\necho {trace} > node_modules/x\n")
}

#[tokio::test]
async fn a_branch_that_the_plan_names_sets_up_no_run_of_the_default_branch() {
    let world = world(10).await;
    let widgets = world.github.default_repository();
    widgets.commit("main", "Set up", &[("setup.sh", &sets_up("clean"))]);
    widgets.commit("other", "Set up otherwise", &[("setup.sh", &sets_up("poisoned"))]);
    for (file, branch) in [("a.txt", Some("other")), ("b.txt", None), ("c.txt", None)] {
        script(&world.model, "sh setup.sh", branch, file);
        widgets.open_issue(&format!("Write {file}")).label("coding agent");
        world.runs_without_fault().await;
    }
    assert_eq!(were_set_up(&world), [false, false, true], "{}", world.story());
    assert!(trace(&world).contains("clean"), "{}", trace(&world));
    assert_eq!(world.images().await.len(), 1, "{}", world.story());
    world.finish().await;
}

/// The wrapper is a script of the project, and in none of the lists of dependencies.
#[tokio::test]
async fn a_change_request_sets_up_no_other_run() {
    let world = world(10).await;
    let widgets = world.github.default_repository();
    let project = |trace| [("gradlew", sets_up(trace)), ("build.gradle", String::new())];
    let files = project("clean");
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    widgets.commit("main", "Build", &files);
    let [(path, text), _] = project("poisoned");
    script(&world.model, "sh ./gradlew dependencies", None, "a.txt");
    widgets
        .open_pull("Write a.txt", "feature", &[(path, &text)])
        .label("coding agent");
    world.runs_without_fault().await;
    assert_eq!(world.images().await, Vec::<String>::new());

    script(&world.model, "sh ./gradlew dependencies", None, "b.txt");
    widgets.open_issue("Write b.txt").label("coding agent");
    world.runs_without_fault().await;
    assert_eq!(were_set_up(&world), [false, false], "{}", world.story());
    assert!(trace(&world).contains("clean"), "{}", trace(&world));

    // Nor does it begin with what another run left.
    script(&world.model, "sh ./gradlew dependencies", None, "c.txt");
    widgets
        .open_pull("Write c.txt", "later", &[("later.txt", "x\n")])
        .label("coding agent");
    world.runs_without_fault().await;
    assert_eq!(were_set_up(&world), [false; 3], "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_set_up_that_grew_too_large_is_not_kept_and_the_journal_says_so() {
    let mut world = world(10).await;
    world.configure(|config| {
        config["command_executor"]["snapshots"]["max_bytes"] = json!(50_000_000);
    });
    script(
        &world.model,
        "head -c 60000000 /dev/zero > /workspace/filled",
        None,
        "a.txt",
    );
    world.github.open_issue("Write a.txt").label("coding agent");
    world.runs_without_fault().await;
    assert_eq!(world.images().await, Vec::<String>::new());
    let journal = world.journal();
    let said: Vec<_> = journal
        .iter()
        .filter(|line| line["fact"] == "set_up_not_kept")
        .collect();
    assert_eq!(said.len(), 1, "{}", world.story());
    assert!(
        said[0]["bytes"].as_u64().is_some_and(|bytes| bytes > 60_000_000),
        "{said:?}"
    );
    assert_eq!(said[0]["max_bytes"], 50_000_000);
    world.finish().await;
}
