//! One recording, from the label to the pull request.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent_harness::history::{History, git};
use coding_agent_harness::installation::{self, Installation};
use serde_json::json;

use crate::action::Action;
use crate::difference::{self, Changed};
use crate::fake::github::{GitHub, Repository};
use crate::fake::model::{Answer, Model, Plan, Request, Said};
use crate::judge::{self, Judgement, Verdict};
use crate::normal::FOLDER;
use crate::trajectory::{Step, Trajectory};

/// The longest time that one recording may take.
const PATIENCE: Duration = Duration::from_mins(30);
/// The longest time of one command, in seconds: twice of what the recorded agent gave.
const LONGEST_COMMAND: u64 = 120;
/// A window in which nothing has to be summed up.
const WINDOW: u64 = 4_000_000;

/// The reason why a file that the difference does not change may have another content.
const ELSEWHERE: &str = "a file outside of the difference, by which alone the commit was found";

/// The source of a recording's repository.
pub enum Source<'a> {
    /// Files that make up the whole repository.
    Files(Vec<(&'a str, &'a str)>),
    /// A commit of a repository, with its history.
    Commit(&'a History, String),
}

/// The outcome of playing a recording.
pub struct Played {
    /// The judgement of each step; steps that were never played are left out.
    pub judged: Vec<(Step, Judgement)>,
    /// The deviations of the final difference, by path; empty where there are none.
    pub unlike_files: BTreeMap<String, &'static str>,
    /// The reason why there is no final difference.
    pub without_pull: Option<String>,
    /// Milliseconds of each call, as the program counts them.
    pub milliseconds: Vec<f64>,
    pub took: Duration,
}

/// The results of the calls, as the model read them, in order.
#[derive(Default)]
struct Heard {
    asked: usize,
    results: Vec<Option<String>>,
    last: Option<String>,
}

pub async fn play(trajectory: &Trajectory, source: &Source<'_>) -> anyhow::Result<Played> {
    let github = GitHub::start().await;
    let name = format!("replay/{}", trajectory.repository());
    let repository = github.repository(&name);
    let base = publish(source, &repository)?;
    let heard = Arc::new(Mutex::new(Heard::default()));
    let model = model_of(trajectory, &heard).await;
    let installation = Installation::new("replay")?;
    installation.configure(json!({
        "task_sources": ["github"],
        "github": { "api_url": github.api_url(), "token": github.token(), "repositories": [name] },
        "llm": {
            "provider": "openai",
            "function_calling": true,
            "openai": {
                "base_url": model.openai_address(), "api_key": "sk-replay-0123456789", "model": "scripted",
                "context_length": WINDOW,
            },
        },
        // What the recorded agent did is compared, not what the program would do behind it.
        "planning": { "verification": { "enabled": false } },
        "command_executor": installation::with(installation::executor()?, &json!({ "timeout_seconds": LONGEST_COMMAND })),
    }))?;
    let title = trajectory.task.lines().next().unwrap_or("Mend it");
    let issue = repository.open_issue(title);
    issue.body(&trajectory.task).label("coding agent");

    let begun = Instant::now();
    let mut command = tokio::process::Command::from(installation.command(&["run"])?);
    let program = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("the program cannot be started")?;
    let output = tokio::time::timeout(PATIENCE, program.wait_with_output()).await;
    let output = output.with_context(|| format!("it did not end within {} min", PATIENCE.as_secs() / 60))??;
    let took = begun.elapsed();

    let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    let pull = github.pulls().into_iter().next();
    let (unlike_files, without_pull) = match pull {
        Some(pull) => {
            let remote = repository.git().path().to_owned();
            let ours = git(
                &remote,
                &["diff", "--full-index", "--no-renames", &base, &pull.head_commit()],
            )?;
            (
                unlike(
                    &without_the_images(difference::read(&trajectory.submission), trajectory),
                    &difference::read(&ours),
                ),
                None,
            )
        }
        None if trajectory.submission.trim().is_empty() => (BTreeMap::new(), None),
        None => {
            let comment = issue.comments_of(github.bot()).pop();
            let said = comment.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned());
            let mut lines = said.lines().filter(|line| !line.trim().is_empty());
            let why = lines.by_ref().take(2).collect::<Vec<_>>().join(" ");
            (BTreeMap::new(), Some(why))
        }
    };
    let called = installation.journal();
    let called = called.iter().filter(|fact| fact["fact"] == "tool_called");
    Ok(Played {
        judged: judged(trajectory, heard, matches!(source, Source::Commit(..))),
        unlike_files,
        without_pull,
        milliseconds: called.filter_map(|fact| fact["milliseconds"].as_f64()).collect(),
        took,
    })
}

/// Puts the repository behind the forge, and returns the commit that the work begins at.
fn publish(source: &Source<'_>, repository: &Repository) -> anyhow::Result<String> {
    match source {
        Source::Files(files) => Ok(repository.commit("main", "Everything", files)),
        Source::Commit(history, commit) => {
            history.publish_at(commit, repository)?;
            Ok(commit.clone())
        }
    }
}

/// Starts the model: whoever offers the tools of the work is told the next command.
async fn model_of(trajectory: &Trajectory, heard: &Arc<Mutex<Heard>>) -> Model {
    let steps: Vec<Action> = trajectory
        .steps
        .iter()
        .map(|step| step.action.moved(&trajectory.folder, FOLDER))
        .collect();
    let heard = Arc::clone(heard);
    Model::answering(move |request| {
        if request.offered_name("workspace/execute_command").is_none() {
            return Answer::plans(Plan::of(&["do what was recorded"]).in_environment("python"));
        }
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.hear(request);
        loop {
            let step = steps.get(heard.asked);
            heard.asked += 1;
            match step {
                Some(Action::Call(tool, arguments)) => return Answer::calls(tool, arguments.clone()),
                Some(Action::Unknown(_)) => heard.results.push(None),
                None => return Answer::done("What was recorded is done."),
            }
        }
    })
    .await
}

impl Heard {
    /// Takes the result of the last step out of the request that came after it.
    fn hear(&mut self, request: &Request) {
        if self.results.len() >= self.asked {
            return;
        }
        let result = request.messages.iter().rev().find_map(|said| match said {
            Said::Result(id, text) => Some((id.clone(), text.clone())),
            _ => None,
        });
        // A conversation that began anew has no result, or the one before.
        let result = result.filter(|(id, _)| self.last.as_ref() != Some(id));
        let (id, text) = result.unzip();
        self.last = id.or_else(|| self.last.take());
        self.results.push(text);
    }
}

fn judged(trajectory: &Trajectory, heard: Heard, is_commit_found: bool) -> Vec<(Step, Judgement)> {
    let pairs = trajectory.steps.iter().zip(heard.results);
    let known = difference::read(&trajectory.submission);
    let judged = pairs.filter_map(|(step, result)| {
        let mut judgement = judge::judge(step, &result?, &trajectory.folder);
        let command = step.action.command().unwrap_or_default();
        let looks_elsewhere = !known.keys().any(|path| command.contains(path.as_str()));
        if judgement.verdict == Verdict::Unlike && is_commit_found && looks_elsewhere {
            // The commit has the contents of the difference. Others may be of another day.
            judgement.verdict = Verdict::Explained;
            ELSEWHERE.clone_into(&mut judgement.reason);
        }
        Some((step.clone(), judgement))
    });
    judged.collect()
}

/// Leaves out the files that no command of the recording names: they were changed, or built, when
/// the recorded image was made, and only got into its difference.
fn without_the_images(mut files: BTreeMap<String, Changed>, trajectory: &Trajectory) -> BTreeMap<String, Changed> {
    files.retain(|path, _| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_built = path.starts_with("build/");
        !is_built
            && trajectory
                .steps
                .iter()
                .any(|step| step.action.in_words().contains(name))
    });
    files
}

/// Names each file whose content is not the recorded one.
fn unlike(theirs: &BTreeMap<String, Changed>, ours: &BTreeMap<String, Changed>) -> BTreeMap<String, &'static str> {
    let mut unlike = BTreeMap::new();
    for (path, changed) in theirs {
        match ours.get(path) {
            Some(own) if own.agrees_with(changed) => {}
            Some(_) => {
                unlike.insert(path.clone(), "another content");
            }
            None => {
                unlike.insert(path.clone(), "only in the recording");
            }
        }
    }
    for path in ours.keys().filter(|path| !theirs.contains_key(*path)) {
        unlike.insert(path.clone(), "only in the pull request");
    }
    unlike
}
