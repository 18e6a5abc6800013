//! Inputs of a project's set-up, so that it need not be repeated while they are unchanged.
//!
//! Commands that only install listed dependencies depend on those lists. Any other command may run
//! or read any file of the project, so its key is the whole tree; this holds for every command if
//! the lists refer to other files of the project. [`crate::workspace::set_up::install_commands`]
//! decides which commands only install.

use uuid::Uuid;

use crate::conversation::ToolCall;
use crate::repository::CommitId;
use crate::repository::reading::files::TreeEntry;
use crate::workspace::WORKSPACE;
use crate::workspace::scripts::PROJECT;
use crate::workspace::set_up::dependency_files::{is_list, points_elsewhere, steers};
use crate::workspace::set_up::install_commands::only_installs;

/// Inputs of a project's set-up, in addition to its commands.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Dependencies {
    /// Address of the repository.
    repository: String,
    /// Digest of the dependency lists.
    lists: Uuid,
    /// Tree of all files that the container receives.
    tree: CommitId,
    /// Whether the lists refer to other files of the project, or tell package managers what to run.
    #[serde(default = "not_known")]
    lists_lead_elsewhere: bool,
}

/// Returns the default for older records, which lack the field; the safe answer costs one set-up.
fn not_known() -> bool {
    true
}

/// Files of the base commit, as far as they matter for the set-up.
pub struct Project<'a> {
    pub repository: &'a str,
    pub files: &'a [TreeEntry],
    pub tree: CommitId,
    /// Contents of the files for which
    /// [`crate::workspace::set_up::dependency_files::may_lead_elsewhere`] is true; `None` for one
    /// that could not be read as text.
    pub pointers: Vec<Option<String>>,
}

impl Dependencies {
    pub fn of(project: Project<'_>) -> Self {
        let is_list = |file: &&TreeEntry| is_list(&file.path);
        let lists: Vec<&TreeEntry> = project.files.iter().filter(is_list).collect();
        let has_link = lists.iter().any(|file| file.is_link);
        let is_steered = project.files.iter().any(|file| steers(&file.path));
        let points = |text: &Option<String>| text.as_deref().is_none_or(points_elsewhere);
        let named: Vec<_> = lists.iter().map(|file| (&file.path, &file.object)).collect();
        Self {
            repository: project.repository.to_owned(),
            lists: digest(&serde_json::json!(named).to_string()),
            tree: project.tree,
            lists_lead_elsewhere: has_link || is_steered || project.pointers.iter().any(points),
        }
    }

    /// Makes the whole tree the key of every set-up: nobody vouches for the files of a local
    /// folder, whatever branch it has checked out.
    #[must_use]
    pub fn by_whole_tree(self) -> Self {
        Self {
            lists_lead_elsewhere: true,
            ..self
        }
    }

    /// Returns the inputs of the set-up for other files of the same repository. Changed lists are
    /// not examined, so in that case the whole tree is the key.
    #[must_use]
    pub fn with(&self, files: &[TreeEntry], tree: CommitId) -> Self {
        let now = Self::of(Project {
            repository: &self.repository,
            files,
            tree,
            pointers: Vec::new(),
        });
        let may_lead_elsewhere = self.lists_lead_elsewhere || now.lists != self.lists;
        Self {
            lists_lead_elsewhere: now.lists_lead_elsewhere || may_lead_elsewhere,
            ..now
        }
    }

    /// Returns a key that all set-ups of these dependencies share.
    pub fn place(&self) -> String {
        digest(&format!("{}\n{}", self.repository, self.lists)).to_string()
    }

    /// Returns the key of a set-up by `commands`: equal keys mean equal results. `None` if there
    /// are no commands.
    pub fn set_up_by(&self, commands: &[String]) -> Option<String> {
        let commands: Vec<&str> = commands.iter().map(|command| command.trim()).collect();
        if commands.iter().all(|command| command.is_empty()) {
            return None;
        }
        let is_bound_to_lists = !self.lists_lead_elsewhere && commands.iter().all(|command| only_installs(command));
        let tree = (!is_bound_to_lists).then_some(&self.tree);
        let named = serde_json::json!([self.place(), tree, commands]);
        Some(digest(&named.to_string()).to_string())
    }
}

fn digest(text: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes())
}

/// Returns the command of a call that only installed dependencies in the root of the project.
pub fn installed_by(call: &ToolCall) -> Option<&str> {
    if call.tool != format!("{WORKSPACE}/execute_command") {
        return None;
    }
    let text = |name: &str| call.args.get(name).and_then(serde_json::Value::as_str);
    let is_at_the_top = matches!(text("working_directory"), None | Some("" | "." | PROJECT));
    text("command").filter(|command| is_at_the_top && !command.trim().is_empty() && only_installs(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(digit: char) -> CommitId {
        String::from(digit).repeat(40).parse().unwrap()
    }

    fn file(path: &str, object: &str) -> TreeEntry {
        TreeEntry {
            path: path.to_owned(),
            object: object.to_owned(),
            size: 1,
            is_link: false,
        }
    }

    fn dependencies(files: &[TreeEntry], digit: char, pointers: &[&str]) -> Dependencies {
        Dependencies::of(Project {
            repository: "github:acme/widgets",
            files,
            tree: tree(digit),
            pointers: pointers.iter().map(|text| Some((*text).to_owned())).collect(),
        })
    }

    fn set_up(files: &[TreeEntry], digit: char, command: &str) -> Option<String> {
        dependencies(files, digit, &[]).set_up_by(&[command.to_owned()])
    }

    #[test]
    fn what_only_installs_depends_on_the_lists() {
        let before = [file("requirements-dev.txt", "1"), file("a.py", "2")];
        let after = [file("requirements-dev.txt", "1"), file("a.py", "3")];
        let newer = [file("requirements-dev.txt", "4"), file("a.py", "2")];
        let command = "pip install -r requirements-dev.txt";
        assert_eq!(set_up(&before, 'a', command), set_up(&after, 'b', command));
        assert_ne!(set_up(&before, 'a', command), set_up(&newer, 'a', command));
    }

    #[test]
    fn of_anything_else_nobody_knows() {
        for command in ["make deps", "./gradlew dependencies", "npm ci"] {
            assert_ne!(set_up(&[], 'a', command), set_up(&[], 'b', command), "{command}");
            assert_eq!(set_up(&[], 'a', command), set_up(&[], 'a', command), "{command}");
        }
    }

    #[test]
    fn lists_that_lead_to_other_files_make_the_whole_tree_the_key() {
        let command = ["pip install -r requirements.txt".to_owned()];
        let check = |text: &str, is_bound: bool| {
            let of = |digit| dependencies(&[], digit, &[text]).set_up_by(&command);
            assert_eq!(of('a') == of('b'), is_bound, "{text:?}");
        };
        check(
            "flask>=2,<3  # web\n\n# comment\nrequests[socks]==2.31 ; python_version < '4'\n",
            true,
        );
        check("a==1 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n", true);
        check(
            "-r requirements/base.txt\n-c constraints.txt\n--index-url https://pypi.org/simple\n",
            true,
        );
        check("-e .\n", false);
        check("-r base.txt\n", false);
        check("./vendor/x\n", false);
        check("vendor/x\n", false);
        check("wheel.whl\n", false);
        check("x @ file:///workspace/project/x\n", false);
        check("--find-links wheels\n", false);
        check("-\\\ne .\n", false);
        let mut link = file("requirements.txt", "1");
        link.is_link = true;
        for files in [[link], [file("web/.npmrc", "1")], [file("x/.pnpmfile.cjs", "1")]] {
            assert_ne!(
                set_up(&files, 'a', &command[0]),
                set_up(&files, 'b', &command[0]),
                "{files:?}"
            );
        }
    }

    #[test]
    fn where_nothing_is_set_up_there_is_no_name() {
        assert_eq!(set_up(&[], 'a', " "), None);
    }

    #[test]
    fn repositories_share_nothing() {
        let of = |repository| {
            let project = Project {
                repository,
                files: &[],
                tree: tree('a'),
                pointers: Vec::new(),
            };
            Dependencies::of(project).set_up_by(&["npm ci".to_owned()])
        };
        assert_ne!(of("github:acme/widgets"), of("github:acme/gadgets"));
    }
}
