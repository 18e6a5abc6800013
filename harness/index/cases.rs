//! The issues, and the repositories they are of.

use std::path::{Path, PathBuf};

use anyhow::Context;
use coding_agent::plain::{agreeing, counted};
use serde::Deserialize;

/// Folders below REPOS in which repositories are looked for.
const DEPTH: usize = 3;

/// A resolved issue.
#[derive(Debug, Clone, Deserialize)]
pub struct Issue {
    pub id: String,
    pub repository: String,
    /// The commit before its resolution.
    pub commit: String,
    pub text: String,
    /// The files that its resolution changed.
    pub gold: Vec<String>,
    #[serde(skip)]
    pub folder: PathBuf,
}

/// Returns the bare repositories below REPOS; without it, the repository that this stands in.
pub fn repositories() -> anyhow::Result<Vec<PathBuf>> {
    let Some(folder) = variable("REPOS") else {
        return Ok(vec![
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("..")
                .join(".git")
                .canonicalize()?,
        ]);
    };
    let mut found = Vec::new();
    find(Path::new(&folder), DEPTH, &mut found);
    found.sort();
    anyhow::ensure!(!found.is_empty(), "there is no bare repository in REPOS={folder}");
    Ok(found)
}

/// Returns the issues of ISSUES whose repositories are there.
pub fn issues(repositories: &[PathBuf]) -> anyhow::Result<Vec<Issue>> {
    let Some(file) = variable("ISSUES") else {
        return Ok(Vec::new());
    };
    let text = std::fs::read_to_string(&file).with_context(|| format!("ISSUES={file}"))?;
    let mut issues = Vec::new();
    let mut missing = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut issue: Issue = serde_json::from_str(line).with_context(|| format!("a line of {file}"))?;
        let parts: Vec<&str> = issue.repository.split('/').collect();
        let folder = repositories.iter().find(|folder| {
            let folder = folder.to_string_lossy();
            parts.iter().all(|part| folder.contains(part))
        });
        match folder {
            Some(folder) => {
                issue.folder.clone_from(folder);
                issues.push(issue);
            }
            None => missing += 1,
        }
    }
    if let Some(most) = variable("MOST").and_then(|most| most.parse::<usize>().ok()) {
        // Evenly chosen, so that each repository has its part.
        let step = issues.len().div_ceil(most.max(1)).max(1);
        issues = issues.into_iter().step_by(step).collect();
    }
    if missing > 0 {
        println!(
            "{} {} left out: their repositories are not in REPOS.",
            counted(missing, "issue"),
            agreeing(missing, "is", "are")
        );
    }
    Ok(issues)
}

pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if folder.join("HEAD").is_file() && folder.join("objects").is_dir() {
        found.push(folder.to_owned());
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if depth > 0 && entry.path().is_dir() {
            find(&entry.path(), depth - 1, found);
        }
    }
}
