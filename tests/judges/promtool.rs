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
