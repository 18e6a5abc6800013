//! A real browser: a person watches a run to its end, stops one, and reads every page, with texts in
//! it that would like to be run.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::json;

use super::{ALICE, Door, ends, opened, with_users};
use crate::world::World;
use crate::world::scripts::{executes, plan, writes};

/// A text that runs where it is taken for markup, in several ways.
const HOSTILE: &str = "<img src=x onerror=\"window.pwned=1\"><script>window.pwned=1</script></pre></details>\
    <svg onload=window.pwned=1><a href=\"javascript:window.pwned=1\">x</a><iframe src=//evil.example></iframe>{{7*7}}";

/// Plays a step of `browser.mjs`.
async fn plays(door: &Door, step: &str, run: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let usual = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges-npm");
    let installed = std::env::var_os("CODING_AGENT_TEST_NODE").map_or_else(usual, PathBuf::from);
    assert!(
        installed.join("node_modules/playwright-core").exists() && Path::new("/usr/bin/chromium").exists(),
        "Chromium, or its driver in {}, is missing: run `make setup`",
        installed.display()
    );
    let mut command = tokio::process::Command::new("node");
    command
        .arg(root.join("tests/world/web/browser.mjs"))
        .env("JUDGES", &installed)
        .envs([
            ("DASHBOARD", door.url.as_str()),
            ("TOKEN", ALICE),
            ("STEP", step),
            ("RUN", run),
        ])
        .kill_on_drop(true);
    let output: Output = command.output().await.unwrap();
    assert!(
        output.status.success(),
        "{step}: {}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
async fn a_person_watches_a_run_to_its_end_and_no_text_is_run() {
    let mut world = World::start().await;
    with_users(&mut world);
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    let hostile = plan().verified_by("grep -q Hello README.md");
    let script = executes(world.model.plans(hostile), &format!("echo '{HOSTILE}'"));
    writes(script, "README.md", &format!("Hello\n{HOSTILE}\n")).done(HOSTILE);
    let issue = world
        .github
        .open_issue(&format!("Greet {HOSTILE}"))
        .body(HOSTILE)
        .label("coding agent");
    let (mut program, door) = opened(&world, &["serve"]).await;
    let waits = issue.until(|issue| issue.labels() == ["coding agent waiting"]);
    program.until(&world, waits).await;
    let status = door.json("/api/status").await;
    let run = status["runs"][0]["id"].as_str().unwrap().to_owned();

    program.until(&world, plays(&door, "watch", &run)).await;
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    program.until(&world, plays(&door, "look", &run)).await;
    ends(program, &world).await;
    let facts = world.journal();
    let granted = facts.iter().find(|fact| fact["fact"] == "approval_granted").unwrap();
    assert_eq!(granted["approver"], "alice");
    world.finish().await;
}

#[tokio::test]
async fn a_person_stops_a_run_with_the_keyboard() {
    let mut world = World::start().await;
    with_users(&mut world);
    let script = world.model.plans(plan());
    executes(script, "true").holds();
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let (mut program, door) = opened(&world, &["serve"]).await;
    program.until(&world, world.model.until_held(1)).await;
    let status = door.json("/api/status").await;
    let run = status["runs"][0]["id"].as_str().unwrap().to_owned();
    program.until(&world, plays(&door, "stop", &run)).await;
    let stopped = issue.until(|issue| issue.labels() == ["coding agent stopped"]);
    program.until(&world, stopped).await;
    ends(program, &world).await;
    world.finish().await;
}
