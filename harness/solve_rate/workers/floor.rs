//! The floor: the same model gets the issue and all sources in one question, and its reply is taken
//! for the files as they should be. An agent that solves fewer tasks than this does harm.

use std::fmt::Write as _;
use std::time::Instant;

use crate::bench::Bench;
use crate::outcome::{End, Facts, Outcome, Worker};
use crate::setting::Setting;
use crate::task::{Files, Task};
use crate::workers::Job;
use crate::workers::judged::judged;

pub async fn work(job: &Job<'_>, bench: &mut Bench, setting: &Setting) -> anyhow::Result<Outcome> {
    let task = job.task;
    let begun = Instant::now();
    let reply = match job
        .server
        .ask(&question(task), job.limits.longest_reply(), job.reply())
        .await
    {
        Ok(reply) => reply,
        Err(reason) => {
            let failed = Outcome::failed(task, Worker::Floor, setting, &reason);
            let facts = Facts {
                lacks_reply: true,
                ..Facts::default()
            };
            return Ok(Outcome {
                seconds: begun.elapsed().as_secs_f64(),
                facts,
                ..failed
            });
        }
    };
    let files = files_in(&reply.text, task);
    let judged = judged(bench, task, (&task.files, task.with(&[&files]))).await?;
    let reason = if files.is_empty() {
        "its reply holds no file"
    } else {
        ""
    };
    Ok(Outcome {
        end: if files.is_empty() { End::Failed } else { End::Ready },
        solved: judged.passes_hidden && !files.is_empty(),
        passes_visible: judged.passes_visible,
        input: reply.input,
        output: reply.output,
        turns: 1,
        seconds: reply.took.as_secs_f64(),
        facts: Facts {
            changes_files: judged.changes_files,
            ..Facts::default()
        },
        ..Outcome::failed(task, Worker::Floor, setting, reason)
    })
}

fn question(task: &Task) -> String {
    let mut text = format!("# {}\n\n{}\n\nThese are the files:\n", task.title, task.body);
    for (path, content) in task.sources() {
        let _ = write!(text, "\n{path}\n```\n{}```\n", String::from_utf8_lossy(content));
    }
    text.push_str(
        "\nReply with each file that has to change or is new, whole: a line with its path, then its content between two lines ```.\n",
    );
    text
}

/// Reads the files of a reply: blocks with a path in the line before them, or behind their fence.
/// A single block without a path is the only source, if there is one.
fn files_in(reply: &str, task: &Task) -> Files {
    let mut files = Files::new();
    let mut nameless = Vec::new();
    let mut before = String::new();
    let mut block: Option<(Option<String>, String)> = None;
    for line in reply.lines() {
        let fence = line.trim_start().strip_prefix("```");
        match (fence, block.take()) {
            (Some(_), Some((Some(path), content))) => files.push((path, content.into_bytes())),
            (Some(_), Some((None, content))) => nameless.push(content),
            (Some(kind), None) => block = Some((path_in(kind).or_else(|| path_in(&before)), String::new())),
            (None, Some((path, content))) => block = Some((path, format!("{content}{line}\n"))),
            (None, None) if !line.trim().is_empty() => line.clone_into(&mut before),
            (None, None) => {}
        }
    }
    let sources: Vec<_> = task.sources().collect();
    if let ([content], [], [(path, _)]) = (nameless.as_slice(), files.as_slice(), sources.as_slice()) {
        files.push((path.clone(), content.clone().into_bytes()));
    }
    files
}

/// Returns the path in a line such as `**src/a.py**:`.
fn path_in(line: &str) -> Option<String> {
    let is_edge = |letter: char| !letter.is_alphanumeric() && letter != '_';
    let mut words = line.split_whitespace().map(|word| word.trim_matches(is_edge));
    words
        .find(|word| {
            let end = word.rsplit_once('.').map(|(_, end)| end);
            matches!(end, Some("py" | "js" | "go" | "java")) && !word.contains("..")
        })
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Language;

    fn task(paths: &[&str]) -> Task {
        Task {
            name: "python/x".to_owned(),
            language: Language::Python,
            grade: 1,
            title: "Mend".to_owned(),
            body: "It is broken.".to_owned(),
            files: paths
                .iter()
                .map(|path| ((*path).to_owned(), b"old\n".to_vec()))
                .collect(),
            hidden: Files::new(),
            mend: Files::new(),
        }
    }

    #[test]
    fn the_question_has_no_tests_in_it() {
        let text = question(&task(&["a.py", "tests/test_a.py"]));
        assert!(
            text.contains("\na.py\n```\nold\n```") && !text.contains("test_a"),
            "{text}"
        );
    }

    #[test]
    fn files_are_found_with_their_paths() {
        let two = task(&["a.py", "b/c.py"]);
        let read = files_in(
            "Here:\n\n**a.py**:\n```python\nx = 1\n```\nand `b/c.py`\n\n```\ny\n```\n",
            &two,
        );
        assert_eq!(
            read,
            [
                ("a.py".to_owned(), b"x = 1\n".to_vec()),
                ("b/c.py".to_owned(), b"y\n".to_vec())
            ]
        );
        assert_eq!(files_in("```\nx\n```", &two), []);
        assert_eq!(
            files_in("```\nx\n```", &task(&["a.py"])),
            [("a.py".to_owned(), b"x\n".to_vec())]
        );
        assert_eq!(files_in("a/../../up.py\n```\nx\n```", &two), []);
    }
}
