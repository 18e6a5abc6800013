//! The commit that a recording began at. Recordings do not name it, but their difference names the
//! contents that it changes, and their own name often the request that mended the same later: what
//! that request was merged into is the one if it has exactly these contents. Otherwise it is the
//! newest commit that has, of the default branch or else of any, or one that differs from it in
//! other files only.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::Context;
use coding_agent_harness::history::{History, git};

use crate::difference::Changed;

/// How many commits are asked about at once.
const PORTION: usize = 500;

/// Returns the commit in which all these files have the contents that they had before. `number` is
/// that of the request that mended the same.
pub fn of(
    history: &History,
    difference: &BTreeMap<String, Changed>,
    number: Option<u64>,
) -> anyhow::Result<Option<String>> {
    let before: Vec<(&str, &str)> = difference
        .iter()
        .filter(|(_, changed)| !changed.is_new() && !changed.before.is_empty())
        .map(|(path, changed)| (path.as_str(), changed.before.as_str()))
        .collect();
    if before.is_empty() {
        return Ok(None);
    }
    if let Some(number) = number {
        let grep = format!("--grep=(Merge pull request #{number} from |\\(#{number}\\)$)");
        let arguments = ["log", "--all", "--extended-regexp", "--format=%P", &grep];
        let listed = git(&history.path, &arguments)?;
        let parents: Vec<&str> = listed.lines().filter_map(|parents| parents.split(' ').next()).collect();
        let parents: Vec<&str> = parents.into_iter().filter(|parent| !parent.is_empty()).collect();
        if let Some(found) = first_with(history, &parents, &before)? {
            return Ok(Some(found));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_request_was_merged_into_comes_before_what_is_newer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let run = |arguments: &[&str]| {
            let own = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
            git(&path, &[&own[..], arguments].concat()).unwrap()
        };
        let commit = |file: &str, message: &str| {
            std::fs::write(path.join(file), "two\n").unwrap();
            run(&["add", "."]);
            run(&["commit", "--quiet", "-m", message]);
            run(&["rev-parse", "HEAD"])
        };
        run(&["init", "--quiet", "-b", "main"]);
        let base = commit("a.txt", "first");
        run(&["checkout", "--quiet", "-b", "side"]);
        commit("b.txt", "second");
        run(&["checkout", "--quiet", "main"]);
        let message = "Merge pull request #7 from a/side";
        run(&["merge", "--quiet", "--no-ff", "-m", message, "side"]);
        let newest = commit("c.txt", "third");
        let before = run(&["rev-parse", "HEAD:a.txt"]);
        let history = History {
            name: "widgets".to_owned(),
            path: path.clone(),
            tip: newest.clone(),
            commits: 4,
            files: 3,
            megabytes: 0,
            missing: 0,
        };
        let changed = Changed {
            before: before[..8].to_owned(),
            ..Changed::default()
        };
        let difference = BTreeMap::from([("a.txt".to_owned(), changed)]);
        let found = |number| of(&history, &difference, number).unwrap();
        assert_eq!(found(Some(7)).as_ref(), Some(&base));
        assert_eq!(found(Some(8)).as_ref(), Some(&newest));
        assert_eq!(found(None).as_ref(), Some(&newest));
    }
}
