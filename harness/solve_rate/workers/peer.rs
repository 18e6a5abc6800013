//! The peer, mini-swe-agent, with the same model on the same files, in the same image.

use std::io::Read;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Instant;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coding_agent_harness::peer::Peer;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::bench::Bench;
use crate::outcome::{End, Facts, Outcome, Worker, in_a_line};
use crate::setting::Setting;
use crate::task::Files;
use crate::workers::judged::judged;
use crate::workers::{Job, containers};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/solve_rate/workers/peer.py");
/// Prints the files of its folder; the script has the same.
const FILES: &str = "cd /workspace/project && git add -A && git ls-files -z | tar -c --null --ignore-failed-read -T -";

/// The number of times that a failing request is made, the same as the program's.
const ATTEMPTS: u32 = 4;

/// How it ended, as far as it could tell.
struct Told {
    said: Value,
    ending: String,
    is_cut: bool,
}

/// Has the peer work on the task of a job, judges what it leaves behind, and removes its container.
pub async fn work(peer: &Peer, job: &Job<'_>, bench: &mut Bench, setting: &Setting) -> anyhow::Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("coding-agent-solve-rate-").tempdir()?;
    let label = format!("coding-agent.solve-rate={}", uuid::Uuid::new_v4());
    let begun = Instant::now();
    let told = told_by(peer, folder.path(), &label, job).await;
    let seconds = begun.elapsed().as_secs_f64();
    let files = match &told {
        Ok(told) if told.said["files"].is_object() => files_in(&told.said),
        // It was ended, or broke down: what is in its folder counts all the same.
        _ => left_behind(&label).await,
    };
    containers::remove(&label).await?;
    let told = told?;
    let judged = judged(bench, job.task, (&job.task.files, files)).await?;
    let count = |name: &str| told.said[name].as_u64().unwrap_or_default();
    let is_submitted = told.ending == "Submitted";
    let reason = if is_submitted { "" } else { told.ending.as_str() };
    Ok(Outcome {
        end: if is_submitted { End::Ready } else { End::Failed },
        solved: judged.passes_hidden,
        passes_visible: judged.passes_visible,
        input: count("input"),
        output: count("output"),
        turns: usize::try_from(count("turns"))?,
        seconds,
        facts: Facts {
            ending: in_a_line(&told.ending),
            changes_files: judged.changes_files,
            is_cut: told.is_cut,
            ..Facts::default()
        },
        ..Outcome::failed(job.task, Worker::Peer, setting, reason)
    })
}

/// Lets the peer work, and returns what it told in the end.
async fn told_by(peer: &Peer, folder: &Path, label: &str, job: &Job<'_>) -> anyhow::Result<Told> {
    let mut child = start(peer, folder)?;
    let mut stdin = child.stdin.take().context("it has no stdin")?;
    let given = given(label, job).to_string();
    let writing = async move {
        // One that breaks down at once does not read it all.
        let _ = stdin.write_all(given.as_bytes()).await;
    };
    let both = async { tokio::join!(writing, child.wait_with_output()).1 };
    let patience = job.patience();
    let Ok(output) = tokio::time::timeout(patience, both).await else {
        let ending = format!("it did not end within {:.0} minutes", patience.as_secs_f64() / 60.0);
        return Ok(Told {
            said: Value::Null,
            ending,
            is_cut: true,
        });
    };
    Ok(read(&output?))
}

fn start(peer: &Peer, folder: &Path) -> anyhow::Result<Child> {
    Command::from(peer.command(SCRIPT, folder, ATTEMPTS))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("mini-swe-agent cannot be started")
}

/// Returns the task, the model and the limits, as the script reads them.
fn given(label: &str, job: &Job<'_>) -> Value {
    let (server, task) = (job.server, job.task);
    let files = task.files.iter();
    let files: Vec<Value> = files
        .map(|(path, content)| json!([path, STANDARD.encode(content)]))
        .collect();
    json!({
        "base": server.base(), "key": server.key(), "model": server.model, "native": server.takes_native_calls(),
        "temperature": server.temperature(), "max_tokens": job.limits.longest_reply(), "reply_seconds": job.reply().as_secs(),
        "image": format!("coding-agent-executor-{}:latest", task.language.environment()),
        "task": format!("{}\n\n{}", task.title, task.body), "files": files,
        "run_args": ["--rm", "--init", "--entrypoint=", "--network=none", "--memory=4g", "--pids-limit=512", "--label", label],
        "steps": job.limits.turns, "seconds": job.limits.minutes * 60,
    })
}

/// Reads the last line of its output; one that cannot be read is a failure of this task alone.
fn read(output: &Output) -> Told {
    let text = String::from_utf8_lossy(&output.stdout);
    let said: Option<Value> = text
        .lines()
        .next_back()
        .and_then(|line| serde_json::from_str(line).ok());
    let Some(said) = said.filter(Value::is_object) else {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or_default();
        let ending = format!("mini-swe-agent told nothing that can be read: {last}");
        return Told {
            said: Value::Null,
            ending,
            is_cut: false,
        };
    };
    let ending = said["ended"].as_str().unwrap_or_default().to_owned();
    Told {
        said,
        ending,
        is_cut: false,
    }
}

fn files_in(said: &Value) -> Files {
    let files = said["files"].as_object().into_iter().flatten();
    files
        .filter_map(|(path, content)| Some((path.clone(), STANDARD.decode(content.as_str()?).ok()?)))
        .collect()
}

/// Returns the files in the folder of one that did not tell them; none if its container is gone.
async fn left_behind(label: &str) -> Files {
    let containers = containers::with(label).await.unwrap_or_default();
    let Some(container) = containers.first() else {
        return Files::new();
    };
    let printed = containers::printed(container, FILES).await.unwrap_or_default();
    unpacked(&printed).unwrap_or_default()
}

fn unpacked(tar: &[u8]) -> anyhow::Result<Files> {
    let mut files = Files::new();
    for entry in tar::Archive::new(tar).entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_file() {
            let path = entry.path()?.to_string_lossy().into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            files.push((path, content));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn told(stdout: &str, stderr: &str) -> Told {
        read(&Output {
            status: ExitStatus::from_raw(0),
            stdout: stdout.as_bytes().to_vec(),
            stderr: stderr.as_bytes().to_vec(),
        })
    }

    #[test]
    fn its_last_line_tells_how_it_ended() {
        let submitted = told("noise\n{\"ended\": \"Submitted\", \"files\": {\"a\": \"IHg=\"}}\n", "");
        assert_eq!(submitted.ending, "Submitted");
        assert_eq!(files_in(&submitted.said), [("a".to_owned(), b" x".to_vec())]);
        for nothing in ["", "Traceback", "7"] {
            let broken = told(nothing, "Traceback\nKeyError: 'x'\n\n");
            assert_eq!(
                broken.ending,
                "mini-swe-agent told nothing that can be read: KeyError: 'x'"
            );
            assert_eq!(files_in(&broken.said), []);
        }
    }
}
