//! The demo stays alive: what `make demo` shows, and that nothing of it is left.
#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use coding_agent_harness::containers;
use coding_agent_harness::fake::model::{Model, Plan};
use tempfile::TempDir;

const KEY: &str = "sk-demo-key-0123456789";

/// Returns the demo with a temporary folder of its own, and none of the models that the environment
/// names.
fn demo(temporary: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
    command.env_clear().env("TMPDIR", temporary).env("HOME", temporary);
    for name in ["PATH", "DOCKER_HOST"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn temporary() -> TempDir {
    tempfile::Builder::new()
        .prefix("coding-agent-demo-test-")
        .tempdir()
        .unwrap()
}

/// Returns what lies in the temporary folder of a demo.
fn left_in(temporary: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(temporary).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_demo_ends_with_a_pull_request_and_shows_it() {
    let temporary = temporary();
    let output = demo(temporary.path()).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8(output.stderr).unwrap();

    assert_eq!((output.status.code(), complaints.as_str()), (Some(0), ""), "{shown}");
    let story = [
        "recorded replies; set OPENAI_API_KEY",
        "repository/list_files",
        "handbook/look_up changes",
        "workspace/execute_command python3 -m unittest · ",
        " failed",
        "check   python3 -m unittest · passed",
        "forge   opened pull request #2",
        "  mara opened this issue",
        "  jonas commented",
        "  coding-agent-bot opened pull request lanternworks/worktime#2",
        "  coding-agent-bot added the label \"coding agent done\"",
        "Closes #1",
        "+    return (end - begin) % MINUTES_OF_A_DAY",
        "✓ python3 -m unittest  (exit code 0)",
        "Issue to pull request #2 in ",
    ];
    let mut rest = shown.as_str();
    for words in story {
        let place = rest
            .find(words)
            .unwrap_or_else(|| panic!("{words:?} is missing, or not in its place:\n{shown}"));
        rest = &rest[place + words.len()..];
    }
    for unwanted in ["left over", "\u{1b}", "<!--", "(draft)"] {
        assert!(!shown.contains(unwanted), "{unwanted:?} is shown:\n{shown}");
    }
    assert_eq!(left_in(temporary.path()), Vec::<PathBuf>::new());
}

#[test]
fn with_a_reviewer_the_demo_shows_how_a_plan_goes_back_and_what_is_said_of_the_result() {
    let temporary = temporary();
    let output = demo(temporary.path()).env("REVIEW", "1").output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8(output.stderr).unwrap();

    assert_eq!((output.status.code(), complaints.as_str()), (Some(0), ""), "{shown}");
    let story = [
        "plan    1 step, environment python",
        "Reviewing the plan\n",
        "review  plan, round 1: did not pass · 6.0 of 10, blockers: 1",
        "plan    3 steps, environment python",
        "review  plan, round 2: passed · 9.0 of 10",
        "Reviewing the result\n",
        "review  result, round 1: passed · 9.5 of 10",
        "forge   opened pull request #2",
        "Review of the plan",
        "Equal times must stay an error",
        "Review of the result",
        "Midnight itself is tested",
        "Issue to pull request #2 in ",
    ];
    let mut rest = shown.as_str();
    for words in story {
        let place = rest
            .find(words)
            .unwrap_or_else(|| panic!("{words:?} is missing, or not in its place:\n{shown}"));
        rest = &rest[place + words.len()..];
    }
    assert_eq!(left_in(temporary.path()), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_the_demo_and_the_run_of_an_own_model() {
    let model = Model::start().await;
    model.wants_key(KEY);
    model
        .plans(Plan::of(&["think for a long time"]).in_environment("python"))
        .done("This reply never arrives.")
        .holds();
    let temporary = temporary();
    let demo = demo(temporary.path())
        .env("OPENAI_API_KEY", KEY)
        .env("OPENAI_BASE_URL", model.openai_address())
        .env("OPENAI_MODEL", "scripted")
        .spawn()
        .unwrap();
    model.until_held(1).await;
    let folders = left_in(temporary.path());
    let state = folders
        .iter()
        .map(|folder| folder.join("state"))
        .find(|state| state.is_dir());
    let state = state.expect("the program keeps its state there");
    assert_eq!(
        containers::of(&state).await.unwrap().len(),
        1,
        "the model works in a container"
    );

    let id = rustix::process::Pid::from_raw(demo.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = tokio::task::spawn_blocking(|| demo.wait_with_output())
        .await
        .unwrap()
        .unwrap();

    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{shown}");
    assert!(
        shown.contains(&format!("your own: scripted at {}", model.openai_address())),
        "{shown}"
    );
    assert!(
        !shown.contains("left over"),
        "the program removes its container itself:\n{shown}"
    );
    assert_eq!(containers::of(&state).await.unwrap().len(), 0);
    assert_eq!(left_in(temporary.path()), Vec::<PathBuf>::new());
    // Those that the program ended may take a moment to go.
    let begun = Instant::now();
    while !processes(temporary.path()).is_empty() && begun.elapsed() < Duration::from_secs(15) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(processes(temporary.path()), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_not_up_to_it_is_no_success() {
    let model = Model::start().await;
    let mut script = model.script();
    for _ in 0..6 {
        script = script.says("I would rather talk about the weather.");
    }
    let temporary = temporary();
    let demo = demo(temporary.path())
        .env("LMSTUDIO_BASE_URL", model.address())
        .spawn()
        .unwrap();
    let output = tokio::task::spawn_blocking(|| demo.wait_with_output())
        .await
        .unwrap()
        .unwrap();

    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    for words in [
        format!("your own: scripted, LM Studio at {}", model.address()),
        "coding-agent-bot added the label \"coding agent failed\"".to_owned(),
        "No pull request came of it".to_owned(),
        "the model's replies could not be read".to_owned(),
    ] {
        assert!(shown.contains(&words), "{words:?} is missing:\n{shown}");
    }
    assert_eq!(left_in(temporary.path()), Vec::<PathBuf>::new());
}

#[test]
fn without_an_engine_the_demo_says_what_to_do() {
    let temporary = temporary();
    let nowhere = format!("unix://{}/docker.sock", temporary.path().display());
    let output = demo(temporary.path()).env("DOCKER_HOST", nowhere).output().unwrap();
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(complaints.contains("`make setup` starts it"), "{complaints}");
}

/// Returns the command lines that name a folder.
fn processes(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(folder)).collect()
}
