//! Programs that answer questions: good ones, and those that flood, hang, fork and write binary.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use coding_agent::secret::Redactor;
use coding_agent::tool::program::{Program, ProgramError};
use tempfile::TempDir;

use crate::world::processes::{mark, with_mark};

const AGENT: &str = env!("CARGO_BIN_EXE_coding-agent");

/// Long enough for a program that answers, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

fn program(folder: &TempDir, script: &str, timeout: Duration) -> Program {
    let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let env = BTreeMap::from([("REVIEWER_KEY".to_owned(), "of-the-reviewer".into())]);
    Program::new(command, env, timeout, Path::new(AGENT), folder.path())
}

async fn answer(script: &str, timeout: Duration) -> Result<String, ProgramError> {
    let folder = TempDir::new().unwrap();
    let question = Redactor::new(&[]).clean("Is it ready?\nSay yes or no.");
    let answer = program(&folder, script, timeout).answer(&question).await;
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "its folder is removed: {left:?}");
    answer
}

#[tokio::test]
async fn the_question_comes_on_stdin_and_the_answer_on_stdout() {
    let answer = answer("cat; echo; echo said aside >&2; ls -A | wc -l; pwd; env", PATIENCE)
        .await
        .unwrap();
    let lines: Vec<&str> = answer.lines().collect();
    assert_eq!(lines[..3], ["Is it ready?", "Say yes or no.", "0"], "an empty folder");
    assert!(lines[3].ends_with("/work"), "of its own: {lines:?}");
    let variables: Vec<&str> = lines[4..]
        .iter()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    assert!(variables.contains(&"REVIEWER_KEY"));
    for variable in &variables {
        // The shell sets the others itself.
        let is_known = ["REVIEWER_KEY", "PWD", "OLDPWD", "SHLVL", "_"].contains(variable);
        assert!(is_known, "{variables:?}");
    }
}

#[tokio::test]
async fn what_is_no_answer_has_a_reason() {
    let folder = TempDir::new().unwrap();
    let question = Redactor::new(&[]).clean("?");
    let nowhere = Program::new(
        vec!["/no/such/reviewer".to_owned()],
        BTreeMap::new(),
        PATIENCE,
        Path::new(AGENT),
        folder.path(),
    );
    let error = nowhere.answer(&question).await.unwrap_err();
    assert!(matches!(error, ProgramError::NotFound { .. }), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("/no/such/reviewer cannot be started: No such file"),
        "{error}"
    );

    let error = answer("echo no credits left >&2; exit 3", PATIENCE).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "/bin/sh ended with exit status: 3; it said last: no credits left"
    );

    let error = answer("head -c 1000 /dev/urandom; printf '\\377'", PATIENCE)
        .await
        .unwrap_err();
    assert!(matches!(error, ProgramError::NotText { .. }), "{error}");

    let error = answer("yes yes", PATIENCE).await.unwrap_err();
    assert!(matches!(error, ProgramError::TooLong { .. }), "{error}");

    assert_eq!(
        answer("yes aside | head -c 3000000 >&2; echo fine", PATIENCE)
            .await
            .unwrap(),
        "fine\n"
    );
}

#[tokio::test]
async fn one_that_hangs_is_ended_with_everything_it_started() {
    let mark = mark();
    for script in [
        format!("exec sleep {mark}"),
        format!("trap '' TERM; while :; do sleep {mark} & setsid sleep {mark} & sleep 0.1; done"),
        format!("(setsid sleep {mark} &); exec 1>&-; sleep {mark}"),
    ] {
        let begun = Instant::now();
        let folder = TempDir::new().unwrap();
        let question = Redactor::new(&[]).clean("?");
        let command = ["/bin/bash", "-c", &script].map(str::to_owned).to_vec();
        let hanging = Program::new(
            command,
            BTreeMap::new(),
            Duration::from_secs(2),
            Path::new(AGENT),
            folder.path(),
        );
        let error = hanging.answer(&question).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "/bin/bash did not answer within 2 s and was ended",
            "{script}"
        );
        assert!(begun.elapsed() < PATIENCE, "{script}");
        assert_eq!(with_mark(&mark), [0; 0], "{script}");
    }
}

#[tokio::test]
async fn what_it_leaves_behind_is_ended_when_it_has_answered() {
    let mark = mark();
    let script = format!("(setsid sleep {mark} &); echo done");
    assert_eq!(answer(&script, PATIENCE).await.unwrap(), "done\n");
    assert_eq!(with_mark(&mark), [0; 0]);
}
