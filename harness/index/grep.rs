//! The same files by ripgrep: those with the most lines that have a word of the question.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use coding_agent::syntax::words;

use super::cases::Issue;
use super::issues::is_code;
use super::judge::{HEAD, Score};

/// Looks for the files of each issue in a checkout of its commit.
pub fn measure(issues: &[Issue]) -> anyhow::Result<()> {
    if !is_installed() {
        return Ok(());
    }
    let mut score = Score::default();
    for issue in issues {
        let folder = tempfile::tempdir()?;
        let archive = folder.path().join("files.tar");
        super::opened::git(
            &issue.folder,
            &[
                "archive",
                "--format=tar",
                "-o",
                &archive.to_string_lossy(),
                &issue.commit,
            ],
        )?;
        let unpacked = Command::new("tar")
            .arg("-xf")
            .arg(&archive)
            .arg("-C")
            .arg(folder.path())
            .status()?;
        anyhow::ensure!(
            unpacked.success(),
            "the files of {} could not be unpacked",
            issue.commit
        );
        let title = issue.text.lines().next().unwrap_or_default();
        score.take(&files(title, folder.path())?, &issue.gold);
    }
    println!(
        "\n{HEAD}\n{}",
        score.row("ripgrep, words of the title, Python files without tests")
    );
    Ok(())
}

/// Tells whether ripgrep is here, and says so where it is not.
pub fn is_installed() -> bool {
    let is_there = Command::new("rg").arg("--version").output().is_ok();
    if !is_there {
        println!("ripgrep is not measured beside it: `rg` is not installed.");
    }
    is_there
}

/// Returns the Python files of a folder with the most lines that have a word of the question.
pub fn files(question: &str, folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for word in words::identifiers(question).into_iter().filter(|word| word.len() > 3) {
        let found = Command::new("rg")
            .args([
                "--count",
                "--ignore-case",
                "--fixed-strings",
                "--type",
                "py",
                "--",
                word,
                ".",
            ])
            .current_dir(folder)
            .output()?;
        for line in String::from_utf8_lossy(&found.stdout).lines() {
            if let Some((path, count)) = line.trim_start_matches("./").rsplit_once(':') {
                *counts.entry(path.to_owned()).or_default() += count.parse::<usize>().unwrap_or_default();
            }
        }
    }
    let mut files: Vec<(usize, String)> = counts
        .into_iter()
        .filter(|(path, _)| is_code(path))
        .map(|(path, count)| (count, path))
        .collect();
    files.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
    Ok(files.into_iter().map(|(_, path)| path).collect())
}
