//! `stats`: figures over the runs of an installation.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::web::{ends, opened, with_users};
use crate::world::World;
use crate::world::scripts::{executes, greets, plan};

#[tokio::test]
async fn the_figures_are_those_of_the_runs() {
    let world = World::start().await;
    let ended = world.command(&["stats"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("success rate           no data\n"),
        "{}",
        ended.stdout
    );

    let _issue = world.github.open_issue("Greet the reader").label("coding agent");
    let script = world.model.plans(plan().verified_by("grep -q Hello README.md"));
    greets(executes(script, "true").done("Greeted."));
    world.run().await;

    let ended = world.command(&["stats", "--since", "1d", "--json"]).await;
    let figures: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(figures["ended"]["done"], 1, "{figures:#}");
    assert_eq!(figures["success_rate"]["value"], 1.0);
    assert_eq!(figures["repair_rate"]["value"], 1.0);
    assert_eq!(figures["repair_steps"]["value"], 1.0);
    assert!(figures["tokens_per_run"]["value"]["input"].as_u64().unwrap() > 0);
    assert!(figures["duration_seconds"]["since"].is_string());
    let ended = world.command(&["stats", "--since", "tomorrow"]).await;
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
    world.finish().await;
}

#[tokio::test]
async fn runs_models_and_roles_have_their_cost() {
    let mut world = World::start().await;
    with_users(&mut world);
    world.configure(|config| {
        config["budget"] = json!({ "prices": { "input": 2.0, "output": 10.0, "cached": 0.5 } });
        let mut cloud = config["llm"]["openai"].clone();
        cloud["provider"] = json!("openai");
        cloud["prices"] = json!({ "input": 3.0, "output": 15.0, "cache_write": 3.75 });
        config["llm"]["models"] = json!({ "cloud": cloud });
    });
    world.command(&["stats"]).await;
    let called = |model: &str, role: &str, (input, output): (u64, u64), (cached, cache_written): (u64, u64)| {
        json!({ "fact": "model_called", "turn": 1, "input": input, "output": output, "cached": cached,
            "cache_written": cache_written, "milliseconds": 5, "model": model, "role": role })
    };
    let first = [
        called("llm", "planner", (1_000_000, 100_000), (400_000, 0)),
        called("cloud", "worker", (200_000, 10_000), (0, 100_000)),
    ];
    let second = [called("llm", "worker", (500_000, 0), (0, 0))];
    let begun = Utc::now() - TimeDelta::days(2);
    let mut history = Vec::new();
    for (number, calls) in [(1, &first[..]), (2, &second[..])] {
        let facts = facts_of(&USUAL, number, begun);
        let run = facts[0].1.clone();
        history.extend(calls.iter().map(|fact| (begun, run.clone(), fact.clone())));
        history.extend(facts);
    }
    world.add_history(&history).await;

    let printed = world.command(&["stats", "--json"]).await.stdout;
    let (program, web) = opened(&world, &["dashboard"]).await;
    let served = web.json("/api/stats?days=7").await;
    ends(program, &world).await;
    for figures in [serde_json::from_str(&printed).unwrap(), served] {
        let close = |figure: &Value, expected: f64| {
            let is_close = figure.as_f64().is_some_and(|cost| (cost - expected).abs() < 1e-9);
            assert!(is_close, "{figure} is not {expected}: {figures:#}");
        };
        close(&figures["cost_per_run_usd"]["value"], (2.4 + 0.825 + 1.0) / 2.0);
        assert_eq!(figures["cost_per_run_usd"]["of"], 2);
        let models = &figures["tokens_by_model"];
        close(&models["llm as planner"]["cost_usd"], 2.4);
        close(&models["cloud as worker"]["cost_usd"], 0.825);
        close(&models["llm as worker"]["cost_usd"], 1.0);
        assert_eq!(models["llm as planner"]["input"], 1_000_000);
    }
    let text = world.command(&["stats"]).await.stdout;
    for words in [
        "cost per run           $2.1125  (of 2, data since ",
        "  llm as planner       1000000 in (400000 cached), 100000 out, $2.4000\n",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    world.finish().await;
}

/// The outcome of one run of a made-up history.
struct Past {
    end: &'static str,
    seconds: i64,
    /// The outcomes of the run's check, with a repair between each two.
    checks: &'static [bool],
    refused: &'static [&'static str],
    /// The fingerprint of the planner's input, and the digest of the plan.
    plan: (&'static str, &'static str),
}

const USUAL: Past = Past {
    end: "done",
    seconds: 0,
    checks: &[true],
    refused: &[],
    plan: ("", ""),
};

/// Returns the facts of a run that began at `begun`, oldest first.
fn facts_of(past: &Past, number: u32, begun: DateTime<Utc>) -> Vec<(DateTime<Utc>, String, Value)> {
    let (input, digest) = past.plan;
    let mut facts = vec![
        json!({ "fact": "claimed" }),
        json!({ "fact": "planned", "environment": "python", "subtasks": 1, "input": input, "digest": digest }),
    ];
    for (place, passed) in past.checks.iter().enumerate() {
        if place > 0 {
            facts.push(json!({ "fact": "stage_changed", "from": "verifying", "to": "working" }));
        }
        facts.push(json!({ "fact": "verified", "command": "make test", "exit_code": 0, "passed": passed }));
    }
    let refused = past.refused.iter();
    facts.extend(refused.map(|rule| json!({ "fact": "policy_refused", "rule": rule, "reason": "as tried" })));
    let run = format!("01a00000-0000-7000-8000-{number:012}");
    let ended = json!({ "fact": "stage_changed", "from": "delivering", "to": past.end });
    let at_end = (begun + TimeDelta::seconds(past.seconds), run.clone(), ended);
    let before = facts.into_iter().map(|fact| (begun, run.clone(), fact));
    before.chain([at_end]).collect()
}

/// Returns twenty runs that take 10, 20, ... 200 seconds: 12 are done, 4 failed, 4 were stopped.
fn twenty_runs() -> Vec<Past> {
    const CHECKS: [&[bool]; 6] = [
        &[false],
        &[false, false],
        &[false],
        &[false, true],
        &[false, true],
        &[false, false, true],
    ];
    const REFUSED: [&[&str]; 2] = [&["left_out", "path_escape"], &["left_out", "left_out", "path_escape"]];
    const PLANS: [&str; 5] = ["a", "a", "a", "b", "b"];
    let ends = [("done", 12), ("failed", 4), ("stopped", 4)];
    let ends = ends.iter().flat_map(|(end, count)| std::iter::repeat_n(*end, *count));
    let runs = ends.zip(1..).map(|(end, number)| Past {
        end,
        seconds: number * 10,
        ..USUAL
    });
    let mut runs: Vec<Past> = runs.collect();
    for (run, checks) in runs.iter_mut().zip(CHECKS) {
        run.checks = checks;
    }
    for (run, refused) in runs.iter_mut().skip(10).zip(REFUSED) {
        run.refused = refused;
    }
    for (run, digest) in runs.iter_mut().skip(12).zip(PLANS) {
        run.plan = ("the same input", digest);
    }
    runs
}

#[tokio::test]
async fn a_history_with_known_figures_has_these_figures() {
    let world = World::start().await;
    world.command(&["stats"]).await;
    let now = Utc::now();
    let old = Past {
        end: "failed",
        seconds: 5000,
        refused: &["left_out"],
        checks: &[false],
        plan: ("the same input", "c"),
    };
    let mut history = facts_of(&old, 0, now - TimeDelta::days(60));
    let begun = now - TimeDelta::days(2);
    let runs = twenty_runs();
    history.extend(
        runs.iter()
            .zip(1..)
            .flat_map(|(past, number)| facts_of(past, number, begun)),
    );
    world.add_history(&history).await;

    let figures = |arguments: &'static [&'static str]| {
        let asked = world.command(arguments);
        async move { serde_json::from_str::<Value>(&asked.await.stdout).unwrap() }
    };
    let month = figures(&["stats", "--since", "30d", "--json"]).await;
    let close = |figure: &str, expected: f64, of: u64| {
        let value = month[figure]["value"].as_f64().unwrap();
        assert!((value - expected).abs() < 1e-9, "{figure}: {value} is not {expected}");
        assert_eq!(month[figure]["of"], of, "{figure}");
        assert!(month[figure]["since"].is_string(), "{figure}");
    };
    assert_eq!(month["ended"], json!({ "done": 12, "failed": 4, "stopped": 4 }));
    // F1: success, duration, refusals.
    close("success_rate", 12.0 / 16.0, 16);
    assert_eq!(month["duration_seconds"]["value"], json!({ "p50": 100, "p95": 190 }));
    assert_eq!(month["refusals"]["value"], 5);
    assert_eq!(month["refusals_by_rule"], json!({ "left_out": 3, "path_escape": 2 }));
    // F2: the same plan for the same input, and runs that are done with a check that fails. The
    // first of the five plans is compared with the one of sixty days ago.
    close("plan_reproduction_rate", 3.0 / 5.0, 5);
    close("partial_failure_rate", 3.0 / 12.0, 12);
    // F4: repairs that led to success, and how many steps they took.
    close("repair_rate", 3.0 / 6.0, 6);
    close("repair_steps", 4.0 / 3.0, 3);

    let all = figures(&["stats", "--json"]).await;
    assert_eq!(all["success_rate"]["of"], 17);
    assert_eq!(all["duration_seconds"]["value"], json!({ "p50": 110, "p95": 200 }));
    assert_eq!(
        (&all["refusals"]["value"], &all["repair_rate"]["of"]),
        (&json!(6), &json!(7))
    );
    let text = world.command(&["stats", "--since", "30d"]).await.stdout;
    for words in ["success rate           75.0 %", "repaired               50.0 %"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    world.finish().await;
}
