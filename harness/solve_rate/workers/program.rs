//! The program itself: an issue with the label on a fake forge, and whatever becomes of it.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Context;
use coding_agent_harness::history::git;
use coding_agent_harness::installation::{self, Installation};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::fake::github::{GitHub, Item};
use crate::outcome::{Checks, End, Facts, Outcome, Worker, in_a_line};
use crate::setting::{Setting, said};
use crate::task::Files;
use crate::workers::judged::{Judged, judged};
use crate::workers::{Job, containers, doubts};

/// The label that says that all is done.
const DONE: &str = "coding agent done";

pub async fn work(job: &Job<'_>, bench: &mut Bench, setting: &Setting) -> anyhow::Result<Outcome> {
    let task = job.task;
    let github = GitHub::start().await;
    let name = format!("solve/{}", task.name.replace('/', "-"));
    let repository = github.repository(&name);
    let files = task.files.iter();
    let files: Vec<(&str, &str)> = files
        .map(|(path, content)| Ok((path.as_str(), std::str::from_utf8(content)?)))
        .collect::<anyhow::Result<_>>()?;
    let base = repository.commit("main", "All of it", &files);
    let mut installation = Installation::new("solve-rate")?;
    installation.configure(configuration(job, setting, &github, &name)?)?;
    let issue = repository.open_issue(&task.title);
    issue.body(&task.body).label("coding agent");

    let begun = Instant::now();
    let program = installation.start_run()?;
    let patience = job.patience();
    let ended = tokio::time::timeout(patience, program.wait_with_output()).await;
    let seconds = begun.elapsed().as_secs_f64();
    // Where it was killed, or waits for a better time, its containers are still there.
    containers::remove(&installation.label()).await?;

    let journal = installation.journal();
    let mut facts = facts_of(&journal);
    facts.is_cut = ended.is_err();
    let pull = github.pulls().into_iter().next();
    let before = files_at(repository.git().path(), &base)?;
    let (end, result) = match &pull {
        Some(pull) => {
            let end = if pull.is_draft() { End::Draft } else { End::Ready };
            (end, Some(files_at(repository.git().path(), &pull.head_commit())?))
        }
        // It changed nothing, and is done all the same.
        None if issue.labels().iter().any(|label| label == DONE) => (End::Ready, Some(before.clone())),
        None => (End::Failed, None),
    };
    let judged = match result {
        Some(files) => judged(bench, task, (&before, files)).await?,
        None => Judged::default(),
    };
    facts.changes_files = judged.changes_files;
    let replies = journal.iter().filter(|fact| fact["fact"] == "model_called");
    let sum = |name: &str| replies.clone().filter_map(|fact| fact[name].as_u64()).sum();
    let comment = issue.comments_of(github.bot()).pop().unwrap_or_default();
    let reason = match &ended {
        _ if judged.passes_hidden => String::new(),
        Err(_) => format!("it did not end within {:.0} minutes", patience.as_secs_f64() / 60.0),
        Ok(output) => reason(&journal, &comment)
            .or_else(|| Some(String::from_utf8_lossy(&output.as_ref().ok()?.stderr).into_owned()))
            .unwrap_or_default(),
    };
    let outcome = Outcome {
        end,
        solved: judged.passes_hidden,
        passes_visible: judged.passes_visible,
        names_doubts: names_doubts(pull.as_ref(), &comment),
        input: sum("input"),
        output: sum("output"),
        turns: replies.clone().count(),
        seconds,
        facts,
        ..Outcome::failed(task, Worker::Program, setting, &reason)
    };
    if said("KEEP").is_some() {
        let kept = installation.keep(&github.timeline());
        println!("{}: its world is kept in {}", task.name, kept.display());
    }
    Ok(outcome)
}

fn configuration(job: &Job<'_>, setting: &Setting, github: &GitHub, name: &str) -> anyhow::Result<Value> {
    let environment = job.task.language.environment();
    let mut environments = json!({});
    environments[environment] = json!(format!("coding-agent-executor-{environment}:latest"));
    let executor = installation::with(
        installation::executor()?,
        &json!({ "environments": environments, "default_environment": environment, "timeout_seconds": 120 }),
    );
    Ok(json!({
        "task_sources": ["github"],
        "github": { "api_url": github.api_url(), "token": github.token(), "repositories": [name] },
        "llm": job.server.section(setting),
        "max_llm_process_num": setting.limits.turns,
        "budget": { "minutes": setting.limits.minutes },
        "planning": { "enabled": setting.plan },
        "command_executor": executor,
    }))
}

/// Returns the files of a commit, byte for byte. What is no file, such as a link or a repository
/// within it, is left out.
fn files_at(bare: &Path, commit: &str) -> anyhow::Result<Files> {
    let mut files = Files::new();
    for entry in git(bare, &["ls-tree", "-r", "-z", commit])?.split('\0') {
        let Some((about, path)) = entry.split_once('\t') else {
            continue;
        };
        let [mode, _, object] = about.split(' ').collect::<Vec<_>>()[..] else {
            anyhow::bail!("git lists {entry:?}");
        };
        if !mode.starts_with("100") {
            continue;
        }
        let output = Command::new("git")
            .args(["-c", "safe.directory=*", "cat-file", "blob", object])
            .current_dir(bare)
            .output()
            .context("git cannot be started")?;
        anyhow::ensure!(output.status.success(), "{path} of {commit} cannot be read");
        files.push((path.to_owned(), output.stdout));
    }
    Ok(files)
}

/// Reads what happened on the way in the program's journal.
fn facts_of(journal: &[Value]) -> Facts {
    let of = |name: &'static str| journal.iter().filter(move |fact| fact["fact"] == name);
    let mut checks: Vec<(&str, bool)> = Vec::new();
    for fact in of("verified") {
        let command = fact["command"].as_str().unwrap_or_default();
        checks.retain(|(other, _)| *other != command);
        checks.push((command, fact["passed"] == true));
    }
    let is_missed = |fact: &&Value| fact["is_error"] == true && fact["tool"] != "workspace/execute_command";
    let ending = of("put_down").next_back().and_then(|fact| fact["ending"].as_str());
    Facts {
        ending: ending.unwrap_or_default().to_owned(),
        changes_files: false,
        unreadable: of("reply_unreadable").count(),
        circles: of("conversation_restarted").count(),
        missed_calls: of("tool_called").filter(is_missed).count(),
        checks: match checks.as_slice() {
            [] => Checks::None,
            all if all.iter().all(|(_, passed)| *passed) => Checks::Passed,
            _ => Checks::Failed,
        },
        // The forge is always there, so that only the model can be waited for.
        lacks_reply: of("postponed").next().is_some(),
        is_cut: false,
    }
}

/// Returns why there is no result, or the first lines of the program's last comment.
fn reason(journal: &[Value], comment: &str) -> Option<String> {
    let ends = ["failed", "postponed"];
    let mut ended = journal
        .iter()
        .rev()
        .filter(|fact| ends.iter().any(|end| fact["fact"] == *end));
    let said = ended.next().and_then(|fact| fact["reason"].as_str()).map(str::to_owned);
    let lines = comment
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("<!--"));
    let lines = lines.take(3).collect::<Vec<_>>().join(" ");
    said.or_else(|| (!lines.is_empty()).then_some(lines))
        .map(|text| in_a_line(&text))
}

/// Tells whether the pull request, or the last comment, says what was not proven.
fn names_doubts(pull: Option<&Item>, comment: &str) -> bool {
    pull.is_some_and(|pull| doubts::in_a_pull_request(&pull.text())) || doubts::in_a_comment(comment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_read_in_the_journal() {
        let verified = |passed: bool| json!({ "fact": "verified", "command": "make", "passed": passed });
        let journal = [
            json!({ "fact": "tool_called", "tool": "workspace/str_replace", "is_error": true }),
            json!({ "fact": "tool_called", "tool": "workspace/execute_command", "is_error": true }),
            json!({ "fact": "reply_unreadable", "attempt": 1 }),
            json!({ "fact": "conversation_restarted", "messages": 4 }),
            verified(false),
            verified(true),
            json!({ "fact": "put_down", "ending": "paused: a limit is reached" }),
        ];
        let facts = facts_of(&journal);
        assert_eq!(
            facts,
            Facts {
                ending: "paused: a limit is reached".to_owned(),
                unreadable: 1,
                circles: 1,
                missed_calls: 1,
                checks: Checks::Passed,
                ..Facts::default()
            }
        );
        assert_eq!(facts_of(&[verified(true), verified(false)]).checks, Checks::Failed);
    }

    #[test]
    fn the_reason_is_the_journals_or_else_the_comments() {
        let journal = [json!({ "fact": "failed", "reason": "it is\ntoo hard" })];
        assert_eq!(reason(&journal, "### No").as_deref(), Some("it is too hard"));
        assert_eq!(reason(&[], "### No\n\n<!-- x -->\nWhy").as_deref(), Some("### No Why"));
        assert_eq!(reason(&[], ""), None);
    }

    #[test]
    fn files_are_read_byte_for_byte() {
        let folder = tempfile::tempdir().unwrap();
        let contents: [(&str, &[u8]); 3] = [("a", b"\n  x\n\n"), ("b", b"\xff"), ("empty", b"")];
        for (path, content) in contents {
            std::fs::write(folder.path().join(path), content).unwrap();
        }
        std::os::unix::fs::symlink("a", folder.path().join("link")).unwrap();
        for arguments in [
            &["init", "--quiet"][..],
            &["add", "."],
            &[
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@example.com",
                "commit",
                "--quiet",
                "-m",
                "x",
            ],
        ] {
            git(folder.path(), arguments).unwrap();
        }
        let wanted = contents.map(|(path, content)| (path.to_owned(), content.to_vec()));
        assert_eq!(files_at(folder.path(), "HEAD").unwrap(), wanted);
    }
}
