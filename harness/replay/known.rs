//! The files and names that reasons for another output are checked against: those of the repository
//! at the commit that the recording began at, and those in the recorded agent's own commands.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use coding_agent_harness::history::git;

use crate::action::Action;

pub struct Known {
    repository: PathBuf,
    /// The files at the commit.
    files: HashSet<String>,
    /// The names of its files and folders, each by itself.
    names: HashSet<String>,
    /// All commands of the recording until now.
    said: String,
}

impl Known {
    /// Reads what a bare repository has at a commit.
    pub fn at(repository: &Path, commit: &str) -> anyhow::Result<Self> {
        let listed = git(repository, &["ls-tree", "-r", "--name-only", "-z", commit])?;
        let files: HashSet<String> = listed
            .split('\0')
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect();
        Ok(Self::of(repository, files))
    }

    fn of(repository: &Path, files: HashSet<String>) -> Self {
        let names = files.iter().flat_map(|path| path.split('/')).map(str::to_owned);
        Self {
            repository: repository.to_owned(),
            names: names.collect(),
            files,
            said: String::new(),
        }
    }

    /// Takes a command in, whose words can name files that it makes.
    pub fn hear(&mut self, action: &Action) {
        self.said.push_str(&action.in_words());
        self.said.push('\n');
    }

    /// Tells whether a path names a file that only the recorder's image had: a part of it is
    /// nowhere at the commit, and no command has named it.
    pub fn is_of_the_image(&self, path: &str) -> bool {
        let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
        parts.any(|part| !self.names.contains(part) && !self.said.contains(part))
    }

    /// Tells whether the repository has a commit or another object with this id.
    pub fn has_object(&self, id: &str) -> bool {
        let asked = Command::new("git")
            .args(["-c", "safe.directory=*", "cat-file", "-e", id])
            .current_dir(&self.repository)
            .output();
        asked.is_ok_and(|output| output.status.success())
    }

    pub fn has_folder(&self, path: &str) -> bool {
        let prefix = format!("{}/", path.trim_end_matches('/'));
        path.is_empty() || self.files.iter().any(|file| file.starts_with(&prefix))
    }
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;

    /// Returns what a repository with these files has; it has no object.
    pub fn known(files: &[&str]) -> Known {
        Known::of(Path::new("/"), files.iter().map(|path| (*path).to_owned()).collect())
    }

    #[test]
    fn a_file_of_the_image_is_neither_at_the_commit_nor_named() {
        let mut known = known(&["src/app.py", "README.md"]);
        assert!(!known.is_of_the_image("./src/app.py") && !known.is_of_the_image("src"));
        assert!(known.is_of_the_image("build/lib/app.py"));
        assert!(known.is_of_the_image("reproduce.py"));
        known.hear(&Action::Call(
            "workspace/execute_command",
            json!({ "command": "python reproduce.py" }),
        ));
        assert!(!known.is_of_the_image("reproduce.py"));
        assert!(known.has_folder("src") && known.has_folder("") && !known.has_folder("src/app.py"));
    }
}
