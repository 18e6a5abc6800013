//! The program itself: an issue with the label on a fake forge, and whatever becomes of it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent_harness::history::git;
use coding_agent_harness::installation::{self, Installation};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::fake::github::{GitHub, Item};
use crate::outcome::{End, Outcome, Worker};
use crate::server::Server;
use crate::task::{Files, Task};

/// The longest time that one task may take. Its budget ends it earlier.
const PATIENCE: Duration = Duration::from_mins(40);
/// The most that one task may take, of the program and of the peer.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub turns: u32,
    pub minutes: u32,
}

/// The label that says that all is done.
const DONE: &str = "coding agent done";

/// Words of a pull request that tell that something is open, or was not proven.
const DOUBTS: [&str; 5] = ["not checked", "could not be", "not verified", "fails", "failed"];

pub async fn work(server: &Server, bench: &Bench, task: &Task, limits: Limits) -> anyhow::Result<Outcome> {
    let github = GitHub::start().await;
    let name = format!("solve/{}", task.name.replace('/', "-"));
    let repository = github.repository(&name);
    let files: Vec<(&str, &str)> = task
        .files
        .iter()
        .map(|(path, content)| (path.as_str(), content.as_str()))
        .collect();
    repository.commit("main", "All of it", &files);
    let mut installation = Installation::new("solve-rate")?;
    installation.configure(configuration(server, task, limits, &github, &name)?)?;
    let issue = repository.open_issue(&task.title);
    issue.body(&task.body).label("coding agent");

    let begun = Instant::now();
    let mut command = tokio::process::Command::from(installation.command(&["run"])?);
    let program = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("the program cannot be started")?;
    let output = tokio::time::timeout(PATIENCE, program.wait_with_output()).await;
    let seconds = begun.elapsed().as_secs_f64();
    output.context("the program did not end")??;

    let replies: Vec<Value> = installation.journal();
    let replies: Vec<&Value> = replies.iter().filter(|fact| fact["fact"] == "model_called").collect();
    let sum = |name: &str| replies.iter().filter_map(|fact| fact[name].as_u64()).sum();
    let pull = github.pulls().into_iter().next();
    let (end, result) = match &pull {
        Some(pull) => {
            let end = if pull.is_draft() { End::Draft } else { End::Ready };
            (end, Some(files_at(repository.git().path(), &pull.head_commit())?))
        }
        // It says that nothing had to be changed.
        None if issue.labels().iter().any(|label| label == DONE) => (End::Ready, Some(task.files.clone())),
        None => (End::Failed, None),
    };
    let (passes_visible, solved) = match result {
        Some(files) => tested(bench, task, files).await?,
        None => (false, false),
    };
    let outcome = Outcome {
        task: task.name.clone(),
        grade: task.grade,
        worker: Worker::Program,
        end,
        solved,
        passes_visible,
        names_doubts: doubts(&issue, pull.as_ref(), &github),
        input: sum("input"),
        output: sum("output"),
        turns: replies.len(),
        seconds,
        reason: if solved {
            String::new()
        } else {
            last_words(&issue, &github)
        },
    };
    if std::env::var_os("KEEP").is_some_and(|keep| !keep.is_empty()) {
        let kept = installation.keep(&github.timeline());
        println!("{}: its world is kept in {}", task.name, kept.display());
    }
    Ok(outcome)
}

fn configuration(server: &Server, task: &Task, limits: Limits, github: &GitHub, name: &str) -> anyhow::Result<Value> {
    let environment = task.language.environment();
    let plans = std::env::var_os("PLAN").is_some_and(|said| !said.is_empty());
    let mut environments = json!({});
    environments[environment] = json!(format!("coding-agent-executor-{environment}:latest"));
    let executor = installation::with(
        installation::executor()?,
        &json!({ "environments": environments, "default_environment": environment, "timeout_seconds": 120 }),
    );
    Ok(json!({
        "task_sources": ["github"],
        "github": { "api_url": github.api_url(), "token": github.token(), "repositories": [name] },
        "llm": server.section(),
        "max_llm_process_num": limits.turns,
        "budget": { "minutes": limits.minutes },
        "planning": { "enabled": plans },
        "command_executor": executor,
    }))
}

/// Returns the files of a commit that are text.
fn files_at(bare: &std::path::Path, commit: &str) -> anyhow::Result<Files> {
    let mut files = Files::new();
    for path in git(bare, &["ls-tree", "-r", "--name-only", "-z", commit])?.split('\0') {
        if path.is_empty() {
            continue;
        }
        // A last line end is taken off, and every file of ours has one.
        let content = git(bare, &["cat-file", "blob", &format!("{commit}:{path}")])?;
        files.push((path.to_owned(), content + "\n"));
    }
    Ok(files)
}

/// Runs both kinds of tests on a result. The tests that everybody sees are those of the task: a
/// result that changed them is judged by them as they were.
pub async fn tested(bench: &Bench, task: &Task, files: Files) -> anyhow::Result<(bool, bool)> {
    let is_test =
        |path: &str| task.files.iter().any(|(own, _)| own == path) && task.sources().all(|(own, _)| own != path);
    let tests: Files = task.files.iter().filter(|(path, _)| is_test(path)).cloned().collect();
    let result = Task { files, ..task.clone() };
    let visible = bench
        .test(&result.with(&[&tests]), task.language.visible_command())
        .await?;
    let hidden = bench
        .test(&result.with(&[&tests, &task.hidden]), task.language.hidden_command())
        .await?;
    Ok((visible.passed, hidden.passed))
}

/// Tells whether the pull request, or the last comment, says what is open.
fn doubts(issue: &Item, pull: Option<&Item>, github: &GitHub) -> bool {
    let pull = pull.map(Item::text).unwrap_or_default();
    let text = format!("{pull}\n{}", last_words(issue, github)).to_lowercase();
    DOUBTS.iter().any(|words| text.contains(words))
}

/// Returns the first lines of the program's last comment.
fn last_words(issue: &Item, github: &GitHub) -> String {
    let comment = issue.comments_of(github.bot()).pop().unwrap_or_default();
    let lines = comment
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("<!--"));
    let words = lines.take(3).collect::<Vec<_>>().join(" ");
    words.chars().take(300).collect()
}

/// Removes the containers with a label.
pub async fn remove_containers(label: &str) -> anyhow::Result<()> {
    let listed = tokio::process::Command::new("docker")
        .args(["ps", "--all", "--quiet", "--filter", &format!("label={label}")])
        .output()
        .await?;
    let containers = String::from_utf8(listed.stdout)?;
    if !containers.trim().is_empty() {
        // One may be on its way out already, which is no failure.
        let remove = tokio::process::Command::new("docker")
            .args(["rm", "--force"])
            .args(containers.split_whitespace())
            .output();
        remove.await?;
    }
    Ok(())
}
