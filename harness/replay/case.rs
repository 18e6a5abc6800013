//! One recording, from the label to the pull request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent_harness::history::{History, git};
use coding_agent_harness::installation::{self, Installation};
use serde_json::{Value, json};

use crate::action::Action;
use crate::difference::{self, Changed};
use crate::edits;
use crate::fake::github::{GitHub, Repository};
use crate::fake::model::{Answer, Model, Plan, Request, Said};
use crate::judge::{self, Given, Judgement};
use crate::known::Known;
use crate::normal::FOLDER;
use crate::reason::{DID_NOT_RUN, only_reads};
use crate::trajectory::{Step, Trajectory};

/// The longest time that one recording may take.
const PATIENCE: Duration = Duration::from_mins(30);
/// The longest time of one command, in seconds: twice of what the recorded agent gave.
const LONGEST_COMMAND: u64 = 120;
/// A window in which nothing has to be summed up.
const WINDOW: u64 = 4_000_000;

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
    /// The number of steps that the program has no tool for.
    pub without_tool: usize,
    /// The deviations of the final difference, by path; empty where there are none.
    pub unlike_files: BTreeMap<String, &'static str>,
    /// Files of the recorded difference that were changed when the recorded image was made.
    pub of_the_image: Vec<String>,
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

pub async fn play(trajectory: &Trajectory, source: &Source<'_>, edits_as_tools: bool) -> anyhow::Result<Played> {
    let github = GitHub::start().await;
    let name = format!("replay/{}", trajectory.repository());
    let repository = github.repository(&name);
    let base = publish(source, &repository)?;
    let remote = repository.git().path().to_owned();
    let known = Known::at(&remote, &base)?;
    let steps = steps_of(trajectory, &known, edits_as_tools, |path| {
        git(&remote, &["show", &format!("{base}:{path}")]).ok()
    });
    let heard = Arc::new(Mutex::new(Heard::default()));
    let model = model_of(&steps, &trajectory.folder, &heard).await;
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
    let program = installation.start_run()?;
    let output = tokio::time::timeout(PATIENCE, program.wait_with_output()).await;
    let output = output.with_context(|| format!("it did not end within {} min", PATIENCE.as_secs() / 60))??;
    let took = begun.elapsed();

    let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    let pull = github.pulls().into_iter().next();
    let theirs = difference::read(&trajectory.submission);
    let ours = match &pull {
        Some(pull) => git(
            &remote,
            &["diff", "--full-index", "--no-renames", &base, &pull.head_commit()],
        )?,
        None => String::new(),
    };
    let ours = difference::read(&ours);
    let of_the_image = of_the_image(&theirs, &ours, trajectory);
    let wanted = theirs
        .into_iter()
        .filter(|(path, _)| !of_the_image.contains(path))
        .collect();
    let (unlike_files, without_pull) = match &pull {
        Some(_) => (unlike(&wanted, &ours), None),
        None if wanted.is_empty() => (BTreeMap::new(), None),
        None => {
            let comment = issue.comments_of(github.bot()).pop();
            let said = comment.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned());
            let mut lines = said.lines().filter(|line| !line.trim().is_empty());
            let why = lines.by_ref().take(2).collect::<Vec<_>>().join(" ");
            (BTreeMap::new(), Some(why))
        }
    };
    let journal = installation.journal();
    let called: Vec<&Value> = journal.iter().filter(|fact| fact["fact"] == "tool_called").collect();
    Ok(Played {
        without_tool: steps
            .iter()
            .filter(|step| matches!(step.action, Action::Unknown(_)))
            .count(),
        milliseconds: called.iter().filter_map(|fact| fact["milliseconds"].as_f64()).collect(),
        judged: judged(steps, heard, &called, (&trajectory.folder, known)),
        unlike_files,
        of_the_image,
        without_pull,
        took,
    })
}

/// Returns the steps as they are played.
fn steps_of(
    trajectory: &Trajectory,
    known: &Known,
    edits_as_tools: bool,
    content_of: impl Fn(&str) -> Option<String>,
) -> Vec<Step> {
    let folder = &trajectory.folder;
    let steps = if edits_as_tools {
        edits::as_tools(&trajectory.steps, folder, content_of)
    } else {
        trajectory.steps.clone()
    };
    let listed = steps.into_iter().map(|step| Step {
        action: step.action.listing_folders(|path| {
            let path = path.strip_prefix(folder.as_str()).unwrap_or(path);
            known.has_folder(path.trim_matches('/'))
        }),
        ..step
    });
    listed.collect()
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
async fn model_of(steps: &[Step], folder: &str, heard: &Arc<Mutex<Heard>>) -> Model {
    let steps: Vec<Action> = steps.iter().map(|step| step.action.moved(folder, FOLDER)).collect();
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

fn judged(
    steps: Vec<Step>,
    heard: Heard,
    called: &[&Value],
    (folder, mut known): (&str, Known),
) -> Vec<(Step, Judgement)> {
    let of_files = called.iter().filter(|fact| fact["tool"] != "workspace/execute_command");
    let mut of_files = of_files.peekable();
    let pairs = steps.into_iter().zip(heard.results);
    let judged = pairs.filter_map(|(step, result)| {
        let text = result?;
        let is_refused = match &step.action {
            Action::Call(tool, _) if step.action.command().is_none() => {
                // A call that no tool was asked for was refused before.
                let fact = of_files.next_if(|fact| fact["tool"] == *tool);
                fact.is_none_or(|fact| fact["is_error"] == true)
            }
            _ => false,
        };
        known.hear(&step.action);
        let given = Given {
            text: &text,
            is_refused,
        };
        let judgement = judge::judge(&step, given, folder, &known);
        if DID_NOT_RUN.contains(&judgement.reason.as_str()) {
            known.miss(&step.action);
        }
        Some((step, judgement))
    });
    judged.collect()
}

/// Returns the files of the recorded difference that were changed or built when the recorded image
/// was made, and only got into it: no command that could change them names them by their whole
/// path, and nothing that was played changed them.
fn of_the_image(
    theirs: &BTreeMap<String, Changed>,
    ours: &BTreeMap<String, Changed>,
    trajectory: &Trajectory,
) -> Vec<String> {
    let said = || trajectory.steps.iter().map(|step| step.action.in_words());
    let is_named = |path: &str| said().any(|command| !only_reads(&command) && names(&command, path));
    let paths = theirs.keys().filter(|path| !ours.contains_key(*path));
    paths.filter(|path| !is_named(path)).cloned().collect()
}

/// Tells whether a command names a file by its whole path, or from a folder that it goes to.
fn names(command: &str, path: &str) -> bool {
    let is_of_path = |letter: char| letter.is_alphanumeric() || "._-/+@".contains(letter);
    let words: Vec<&str> = command.split(|letter: char| !is_of_path(letter)).collect();
    let is_named = |rest: &str| {
        words.iter().any(|word| {
            let before = word.strip_suffix(rest);
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        })
    };
    let folders = words.windows(2).filter(|pair| pair[0] == "cd").map(|pair| pair[1]);
    let from_folder = |folder: &str| {
        let mut cuts = path.match_indices('/').map(|(place, _)| path.split_at(place));
        cuts.any(|(begin, rest)| folder.trim_end_matches('/').ends_with(begin) && is_named(&rest[1..]))
    };
    is_named(path) || folders.into_iter().any(from_folder)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_their_whole_paths() {
        for command in [
            "sed -i 's/a/b/' src/tox.ini",
            "cat /testbed/src/tox.ini",
            "cd /testbed/src && sed -i 's/a/b/' tox.ini",
            "python -c \"open('./src/tox.ini')\"",
        ] {
            assert!(names(command, "src/tox.ini"), "{command}");
        }
        for command in [
            "cat tox.ini",
            "cat other/tox.ini",
            "cat src/tox.ini.old",
            "cd /testbed && cat tox.ini",
        ] {
            assert!(!names(command, "src/tox.ini"), "{command}");
        }
    }
}
