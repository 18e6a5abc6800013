//! The guard: nothing of an MCP server is left, however the worker ends.

use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

use crate::world::processes::{mark, until, with_mark};

const AGENT: &str = env!("CARGO_BIN_EXE_coding-agent");

/// A server that listens neither to TERM nor to the end of stdin, and has a child that left its
/// group and its parent.
fn stubborn(mark: &str) -> String {
    format!("trap '' TERM; (setsid sleep {mark} &); while :; do sleep {mark}; done")
}

#[tokio::test]
async fn a_killed_worker_leaves_nothing_behind() {
    let mark = mark();
    // A shell plays the worker: it holds the guard's stdin, and nothing else does.
    let mut worker = Command::new("bash")
        .args([
            "-c",
            r#"coproc "$0" mcp-guard -- sh -c "$1"; read -r _"#,
            AGENT,
            &stubborn(&mark),
        ])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    until(&mark, 2).await;
    worker.kill().await.unwrap();
    until(&mark, 0).await;
}

#[tokio::test]
async fn the_end_of_stdin_ends_the_server_and_what_it_started() {
    let mark = mark();
    let mut guard = Command::new(AGENT)
        .args(["mcp-guard", "--", "sh", "-c", &stubborn(&mark)])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    until(&mark, 2).await;
    drop(guard.stdin.take());
    let status = guard.wait().await.unwrap();
    assert_eq!(status.code(), Some(137));
    assert!(with_mark(&mark).is_empty());
}

#[tokio::test]
async fn a_server_that_ends_by_itself_is_tidied_up_after() {
    let mark = mark();
    let mut guard = Command::new(AGENT)
        .args(["mcp-guard", "--", "sh", "-c"])
        .arg(format!("setsid sleep {mark} & read line; echo \"got $line\"; exit 7"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until(&mark, 1).await;
    let mut stdin = guard.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stdin, b"a line\n")
        .await
        .unwrap();
    let mut said = String::new();
    let mut stdout = BufReader::new(guard.stdout.take().unwrap());
    stdout.read_line(&mut said).await.unwrap();
    assert_eq!(said, "got a line\n");
    assert_eq!(guard.wait().await.unwrap().code(), Some(7));
    assert!(with_mark(&mark).is_empty());
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let mut guard = Command::new(AGENT)
        .args(["mcp-guard", "--", "/no/such/program"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    guard.stderr.take().unwrap().read_to_string(&mut said).await.unwrap();
    assert!(said.contains("/no/such/program cannot be started"), "{said}");
    assert_eq!(guard.wait().await.unwrap().code(), Some(127));
}
