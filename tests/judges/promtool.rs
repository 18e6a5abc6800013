//! Prometheus' own tool reads the figures, and plays the alert rules that are shipped.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::openapi::{Served, TOKEN};

fn promtool() -> PathBuf {
    let usual = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("promtool/usr/bin/promtool");
    let tool = std::env::var_os("CODING_AGENT_TEST_PROMTOOL").map_or_else(usual, PathBuf::from);
    assert!(tool.exists(), "{} is missing: run `make setup`", tool.display());
    tool
}

#[test]
fn the_alert_rules_are_good_and_fire_when_they_should() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/prometheus");
    let output = Command::new(promtool())
        .args(["test", "rules", "alerts_test.yaml"])
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Each question of the dashboard for Grafana as a rule, which the tool reads, and each name in it
/// and in the alerts as one that the program has.
#[test]
fn the_dashboard_for_grafana_asks_for_what_there_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/prometheus");
    let dashboard = std::fs::read_to_string(folder.join("grafana.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let questions: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(questions.len() >= 10, "{questions:?}");
    let rules = questions.iter().enumerate();
    let rules: Vec<_> = rules
        .map(|(number, question)| serde_json::json!({ "record": format!("panel:{number}"), "expr": question }))
        .collect();
    let rules = serde_json::json!({ "groups": [{ "name": "panels", "rules": rules }] });
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(rules.to_string().as_bytes()).unwrap();
    let output = Command::new(promtool())
        .args(["check", "rules"])
        .arg(file.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");

    let program = [
        include_str!("../../src/web/metrics.rs"),
        include_str!("../../src/web/metrics/forges.rs"),
    ]
    .concat();
    let alerts = std::fs::read_to_string(folder.join("alerts.yaml")).unwrap();
    for text in questions.into_iter().chain([alerts.as_str()]) {
        for after in text.split("coding_agent_").skip(1) {
            let end = after.find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
            let name = after[..end.unwrap_or(after.len())].trim_end_matches("_bucket");
            assert!(program.contains(&format!("\"coding_agent_{name}\"")), "{name}");
        }
    }
}

#[tokio::test]
async fn the_figures_keep_to_the_conventions() {
    let served = Served::with("metrics: true");
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = || client.get(format!("{}/metrics", served.url)).bearer_auth(TOKEN).send();
    let response = ask().await.unwrap();
    assert_eq!(
        response.headers()["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let text = response.text().await.unwrap();
    let mut child = Command::new(promtool())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
}
