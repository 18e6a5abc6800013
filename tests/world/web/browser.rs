//! A real browser: a person watches a run to its end, stops one, and reads every page, with texts in
//! it that would like to be run.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::json;

use super::evaluations::{Client, evaluation};
use super::{ALICE, WebClient, ends, opened, until, with_users};
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::scripts::{executes, plan, writes};

/// A text that runs where it is taken for markup, in several ways.
const HOSTILE: &str = "<img src=x onerror=\"window.pwned=1\"><script>window.pwned=1</script></pre></details>\
    <svg onload=window.pwned=1><a href=\"javascript:window.pwned=1\">x</a><iframe src=//evil.example></iframe>{{7*7}}";

/// Plays a step of `browser.mjs` with these variables more. Where `SCREENSHOTS` names a folder,
/// those who look keep what they see there.
async fn plays(web: &WebClient, step: &str, run: &str, more: &[(&str, &str)]) {
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
            ("DASHBOARD", web.url.as_str()),
            ("TOKEN", ALICE),
            ("STEP", step),
            ("RUN", run),
        ])
        .envs(more.iter().copied())
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
    let goal = json!({
        "main_objective": HOSTILE, "success_criteria": [HOSTILE], "constraints": [HOSTILE], "context_analysis": HOSTILE,
    });
    let hostile = Plan::of(&[HOSTILE])
        .in_environment("python")
        .verified_by("grep -q Hello README.md");
    let hostile = hostile.with("goal_understanding", goal).with("comment", json!(HOSTILE));
    let task = world.model.for_task("Greet");
    let script = executes(task.plans(hostile), &format!("echo '{HOSTILE}'"));
    writes(script, "README.md", &format!("Hello\n{HOSTILE}\n")).done(HOSTILE);
    let issue = world
        .github
        .open_issue(&format!("Greet {HOSTILE}"))
        .body(HOSTILE)
        .label("coding agent");
    let (mut program, web) = opened(&world, &["serve"]).await;
    let waits = issue.until(|issue| issue.labels() == ["coding agent waiting"]);
    program.until(&world, waits).await;
    let status = web.json("/api/status").await;
    let run = status["runs"][0]["id"].as_str().unwrap().to_owned();

    program.until(&world, plays(&web, "watch", &run, &[])).await;
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let judgement = json!({ "ready_for_implementation": false, "score": 1, "conclusion": HOSTILE,
        "blockers": [{ "claim": HOSTILE }] });
    world.model.for_task("A hostile document").says(&judgement.to_string());
    let mut client = Client::start(&world).await;
    client.evaluates(HOSTILE, "A hostile document").await;
    evaluation(&web, "not passed").await;
    client.ends().await;
    program
        .until(&world, plays(&web, "look", &run, &[("SCREENSHOTS", "")]))
        .await;
    program.until(&world, plays(&web, "tidy", &run, &[])).await;
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
    let (mut program, web) = opened(&world, &["serve"]).await;
    program.until(&world, world.model.until_held(1)).await;
    let status = web.json("/api/status").await;
    let run = status["runs"][0]["id"].as_str().unwrap().to_owned();
    program.until(&world, plays(&web, "stop", &run, &[])).await;
    let stopped = issue.until(|issue| issue.labels() == ["coding agent stopped"]);
    program.until(&world, stopped).await;
    ends(program, &world).await;
    world.finish().await;
}

/// A day with something of everything, which is what the pictures in `docs/images` show.
#[tokio::test]
async fn a_day_at_work_reads_well_in_both_languages_and_widths() {
    let mut world = World::start().await;
    with_users(&mut world);
    // The pictures show where it is, and should not show whose machine took them.
    let executor = world.folder().join("coding-agent-executor");
    std::os::unix::fs::symlink(crate::world::executor(), &executor).unwrap();
    world.configure(|config| {
        config["command_executor"]["executor_path"] = json!(executor);
        config["approval"] = json!({ "plan": true, "auto_approve": { "enabled": true } });
        config["budget"] = json!({ "tokens": 200_000, "cost_usd": 2.0, "prices": { "input": 3.0, "output": 15.0 } });
    });
    let steps = [
        "Read how entries are parsed",
        "Round times of a shift to minutes",
        "Describe it in the README",
    ];
    let goal = json!({
        "main_objective": "Times of a shift are rounded to whole minutes", "constraints": [], "context_analysis": "",
        "success_criteria": ["A shift from 22:00:31 to 06:00:29 has 480 minutes"],
    });
    let plan = || {
        let plan = Plan::of(&steps)
            .in_environment("python")
            .verified_by("grep -q minutes README.md");
        plan.with("goal_understanding", goal.clone())
    };
    let first = world.model.for_task("Round the times").plans(plan());
    let first = executes(first, "cat README.md");
    let text = "# widgets\n\nTimes of a shift are rounded to whole minutes.\n";
    writes(first, "README.md", text).done("Times are rounded to whole minutes; the README says so.");
    let second = world.model.for_task("Night shifts").plans(plan());
    let second = executes(second, "true").because("I look at how the entries of a night are read.");
    executes(second, "cat README.md").holds();
    world.model.for_task("Export").plans(plan());

    let (mut program, web) = opened(&world, &["serve"]).await;
    let waits = async |title: &str| {
        let issue = world.github.open_issue(title).label("coding agent");
        issue.until(|issue| issue.labels() == ["coding agent waiting"]).await;
        let status = web.json("/api/status").await;
        let runs = status["runs"].as_array().unwrap();
        let run = runs.iter().find(|run| run["title"] == title).unwrap();
        (issue, run["id"].as_str().unwrap().to_owned())
    };
    let approves = async |run: &str| {
        let approved = web.post(&format!("/api/runs/{run}/approve"), &json!({})).await;
        assert!(approved.status().is_success());
    };
    let day = async {
        let (issue, done) = waits("Round the times of a shift to minutes").await;
        approves(&done).await;
        issue.until(|issue| issue.labels() == ["coding agent done"]).await;
        let (_, works) = waits("Night shifts are split at midnight").await;
        approves(&works).await;
        world.model.until_held(1).await;
        let (_, waiting) = waits("Export the hours of a month as CSV").await;
        for (name, score) in [("Plan for the export", 8.5), ("Plan for the archive", 5.0)] {
            let judgement = json!({ "ready_for_implementation": score > 8.0, "score": score, "conclusion": "It is complete, \
                and each step can be checked.", "recommendations": ["Name the encoding of the file"] });
            world.model.for_task(name).says(&judgement.to_string());
            let mut client = Client::start(&world).await;
            client.evaluates(name, &format!("# {name}")).await;
            evaluation(&web, if score > 8.0 { "passed" } else { "not passed" }).await;
            client.ends().await;
        }
        plays(&web, "look", &done, &[("WAITING", &waiting)]).await;
        for run in [works, waiting] {
            let stopped = web.post(&format!("/api/runs/{run}/stop"), &json!({})).await;
            assert!(stopped.status().is_success());
            until("the end of the run", async || {
                web.json(&format!("/api/runs/{run}")).await["state"] == "stopped"
            })
            .await;
        }
    };
    program.until(&world, day).await;
    ends(program, &world).await;
    world.finish().await;
}
