//! The files and names that reasons for another output are checked against: those of the repository
//! at the commit that the recording began at, and those in the recorded agent's own commands.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use coding_agent_harness::history::git;
use regex::Regex;

use crate::action::Action;

pub struct Known {
    repository: PathBuf,
    /// The files at the commit.
    files: HashSet<String>,
    /// The names of its files and folders, each by itself.
    names: HashSet<String>,
    /// All commands of the recording until now.
    said: String,
    /// The commands until now that did not do here what they did when they were recorded.
    missed: String,
}

/// The words of a command that writes files by the shell: what it redirects to, or what it copies.
static WRITES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(>\s*|\b(?:tee|touch|cp|mv|ln|install)\s[^\n;&|]*)[\w./+@-]+").ok());

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
            missed: String::new(),
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

    /// Takes a command in that ran code, or a program, which the image has not: files that it made
    /// when it was recorded are missing from here on.
    pub fn miss(&mut self, action: &Action) {
        self.missed.push_str(&action.in_words());
        self.missed.push('\n');
    }

    /// Tells whether a file can only have come from a command that did nothing here: a part of its
    /// path is nowhere at the commit and is named by such a command, and no command of the shell
    /// writes a file of this name.
    pub fn is_missed(&self, path: &str) -> bool {
        let Some(name) = path.trim_end_matches('/').rsplit('/').next() else {
            return false;
        };
        let is_written = WRITES
            .iter()
            .flat_map(|pattern| pattern.find_iter(&self.said))
            .any(|written| has_word(written.as_str(), name));
        let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
        !is_written && parts.any(|part| !self.names.contains(part) && has_word(&self.missed, part))
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

/// Tells whether a text has this name as a whole one, and not as a part of another.
fn has_word(text: &str, name: &str) -> bool {
    let is_end =
        |sign: Option<char>| sign.is_none_or(|sign| !sign.is_alphanumeric() && !matches!(sign, '_' | '-' | '.'));
    text.match_indices(name)
        .any(|(at, _)| is_end(text[..at].chars().next_back()) && is_end(text[at + name.len()..].chars().next()))
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

    #[test]
    fn what_a_command_did_not_make_here_is_missed_and_what_the_shell_writes_is_not() {
        let shell = |command: &str| Action::Call("workspace/execute_command", json!({ "command": command }));
        let mut known = known(&["docs/conf.py", "setup.py"]);
        let build = shell("mkdir demo; cd demo && sphinx-build -b latex . _build");
        known.hear(&build);
        assert!(
            !known.is_missed("demo/_build/demo.tex"),
            "it ran as it did when it was recorded"
        );
        known.miss(&build);
        assert!(known.is_missed("demo/_build/demo.tex") && known.is_missed("demo/conf.py"));
        assert!(!known.is_missed("docs/conf.py") && !known.is_missed("other/conf.py"));
        for command in [
            "cat <<'EOF' > demo/index.rst\nx\nEOF",
            "cp setup.py demo/copy.py",
            "touch demo/b demo/a",
        ] {
            known.hear(&shell(command));
        }
        for written in ["demo/index.rst", "demo/copy.py", "demo/a", "demo/b"] {
            assert!(!known.is_missed(written), "{written}");
        }
    }
}
