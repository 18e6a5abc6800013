//! The commit that a recording began at. Recordings do not name it, but their difference names the
//! contents that it changes: the newest commit with exactly these contents, of the default branch
//! or else of any, is the one, or one that differs from it in other files only.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::Context;
use coding_agent_harness::history::{History, git};

use crate::difference::Changed;

/// How many commits are asked about at once.
const PORTION: usize = 500;

/// Returns the newest commit in which all these files have the contents that they had before.
pub fn of(history: &History, difference: &BTreeMap<String, Changed>) -> anyhow::Result<Option<String>> {
    let before: Vec<(&str, &str)> = difference
        .iter()
        .filter(|(_, changed)| !changed.is_new() && !changed.before.is_empty())
        .map(|(path, changed)| (path.as_str(), changed.before.as_str()))
        .collect();
    if before.is_empty() {
        return Ok(None);
    }
    // A branch that was merged late has old contents with a late date: the main line goes first.
    for line in [
        ["HEAD", "--first-parent"],
        ["HEAD", "--date-order"],
        ["--all", "--date-order"],
    ] {
        let listed = git(&history.path, &[&["rev-list"][..], &line].concat())?;
        let commits: Vec<&str> = listed.lines().collect();
        for portion in commits.chunks(PORTION) {
            if let Some(found) = first_with(history, portion, &before)? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// Returns the first of these commits that has all these contents.
fn first_with(history: &History, commits: &[&str], contents: &[(&str, &str)]) -> anyhow::Result<Option<String>> {
    let mut asked = tempfile::tempfile()?;
    for commit in commits {
        for (path, _) in contents {
            writeln!(asked, "{commit}:{path}")?;
        }
    }
    std::io::Seek::rewind(&mut asked)?;
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "cat-file", "--batch-check=%(objectname)"])
        .current_dir(&history.path)
        .stdin(Stdio::from(asked))
        .output()
        .context("git cannot be started")?;
    let answers = String::from_utf8_lossy(&output.stdout);
    let answers: Vec<&str> = answers.lines().collect();
    let found = commits.iter().zip(answers.chunks(contents.len())).find(|(_, answers)| {
        let mut pairs = answers.iter().zip(contents);
        answers.len() == contents.len() && pairs.all(|(answer, (_, wanted))| answer.starts_with(wanted))
    });
    Ok(found.map(|(commit, _)| (*commit).to_owned()))
}
