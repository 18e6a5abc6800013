//! The tools of the planner: they read one commit of the bare mirror and cannot change anything.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::conversation::ToolSpec;
use crate::repository::mirror::Mirror;
use crate::repository::reading::search::Pattern;
use crate::repository::{CommitId, RepositoryError};
use crate::rules::{Files, Filter};
use crate::secret::Redactor;
use crate::spelling::nearest_by;
use crate::tool::{ToolError, ToolOutput, ToolServer, own_spec, read_args};
use crate::workspace::tools::code_search::{self, CodeSearch, OUTLINE, SEARCH_CODE, WHO_USES, beneath_root};
use crate::workspace::tools::path_filter::left_out;

const NAME: &str = "repository";
const MOST_FILES: usize = 2_000;
/// Most files that are looked at, of which some may be excluded.
const MOST_LOOKED_AT: usize = 50 * MOST_FILES;
const MOST_MATCHES: usize = 200;
const LARGEST_FILE: u64 = 512 * 1024;
/// Most folders that are named where there is none of the name asked for.
const MOST_NAMED: usize = 10;
/// Least likeness of the name of a file that may have been meant.
const LIKENESS: f64 = 0.75;

/// Read access to one commit, without files that the project's rules exclude.
pub struct RepositoryTools {
    mirror: Mirror,
    commit: CommitId,
    files: Files,
    filter: Filter,
    redactor: Arc<Redactor>,
    /// The code index of the commit, where there is one.
    code: Option<CodeSearch>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListFiles {
    /// Folder; the whole repository when left out.
    #[serde(default)]
    path: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    path: String,
    /// First and last line, from 1.
    #[serde(default)]
    view_range: Option<(i64, i64)>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// Extended regular expression without back-references.
    pattern: String,
}

impl RepositoryTools {
    pub fn new(mirror: Mirror, commit: CommitId, files: Files, redactor: Arc<Redactor>) -> Self {
        let filter = files.filter();
        Self {
            mirror,
            commit,
            files,
            filter,
            redactor,
            code: None,
        }
    }

    /// Adds the tools that look into the code index.
    #[must_use]
    pub fn with_index(mut self, code: Option<CodeSearch>) -> Self {
        self.code = code;
        self
    }

    async fn list_files(&self, args: ListFiles) -> Result<String, ToolError> {
        let folder = beneath_root(&args.path);
        let (files, more) = self
            .mirror
            .files_below(&self.commit, &folder, MOST_LOOKED_AT)
            .await
            .map_err(|error| for_model(&error))?;
        let chosen: Vec<_> = files.iter().filter(|file| self.filter.takes(&file.path)).collect();
        if chosen.is_empty() {
            return Err(self.nothing_below(&args.path, more).await);
        }
        let mut lines: Vec<String> = chosen
            .iter()
            .take(MOST_FILES)
            .map(|file| format!("{} ({} bytes)", file.path, file.size))
            .collect();
        if more || chosen.len() > MOST_FILES {
            lines.push(format!("[only the first {} are shown; name a folder]", lines.len()));
        }
        Ok(lines.join("\n"))
    }

    /// Returns the error for a folder with no file to show, with the folders that there are.
    async fn nothing_below(&self, folder: &str, is_cut: bool) -> ToolError {
        let names = self.mirror.names_in_root(&self.commit, MOST_LOOKED_AT).await;
        let names = names.unwrap_or_default();
        let top = names.iter().filter_map(|name| name.strip_suffix('/'));
        let top: Vec<&str> = top.take(MOST_NAMED).collect();
        let among = if is_cut {
            format!(" among the first {MOST_LOOKED_AT}")
        } else {
            String::new()
        };
        let folders = if top.is_empty() {
            String::new()
        } else {
            format!("; there are the folders {}", top.join(", "))
        };
        let what = format!("there are no files below '{folder}'{among}{folders}");
        ToolError::TellModel(format!("not_found 404: {what}"))
    }

    async fn read_file(&self, args: ReadFile) -> Result<String, ToolError> {
        let path = beneath_root(&args.path);
        let path = path.as_str();
        if !self.filter.takes(path) {
            return Err(left_out(path, &self.files));
        }
        let read = self.mirror.file(&self.commit, path, LARGEST_FILE).await;
        let Some(bytes) = read.map_err(|error| for_model(&error))? else {
            return Err(self.missing(path).await);
        };
        let text = String::from_utf8(bytes)
            .map_err(|_| ToolError::TellModel(format!("not_utf8 415: '{path}' is not a text file")))?;
        Ok(match args.view_range {
            Some(range) => lines_in(range, &text, &self.redactor),
            None => text,
        })
    }

    /// Returns the error for a file that does not exist, with the one that may have been meant.
    async fn missing(&self, path: &str) -> ToolError {
        let files = self.mirror.files(&self.commit, MOST_LOOKED_AT).await;
        let files = files.map(|(files, _)| files).unwrap_or_default();
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_lowercase();
        let paths = files.iter().map(|file| file.path.as_str());
        let taken = paths.filter(|other| self.filter.takes(other));
        let meant = nearest_by(&name(path), taken, LIKENESS, |other| name(other));
        ToolError::TellModel(match meant {
            Some(meant) => format!("not_found 404: there is no file '{path}'; did you mean '{meant}'?"),
            None => format!("not_found 404: there is no file '{path}'; use repository/list_files"),
        })
    }

    async fn search(&self, args: Search) -> Result<String, ToolError> {
        let pattern = Pattern::read(&args.pattern)
            .map_err(|reason| ToolError::TellModel(format!("bad_pattern 400: {reason}")))?;
        let takes = |path: &str| self.filter.takes(path);
        let found = self
            .mirror
            .search(&self.commit, &pattern, takes, MOST_MATCHES, &self.redactor)
            .await
            .map_err(|error| for_model(&error))?;
        let mut lines = Vec::new();
        if let Some(reason) = pattern.why_plain() {
            lines.push(format!(
                "[searched as plain text, since the pattern is no regular expression that can be searched for here: {reason}]"
            ));
        }
        if found.lines.is_empty() {
            lines.push("no match".to_owned());
        }
        lines.extend(found.lines);
        lines.extend(found.left_out.into_iter().map(|left_out| format!("[{left_out}]")));
        Ok(lines.join("\n"))
    }
}

#[async_trait]
impl ToolServer for RepositoryTools {
    fn name(&self) -> &str {
        NAME
    }

    fn system_prompt(&self) -> Option<&str> {
        None
    }

    async fn list(&self) -> Result<Vec<ToolSpec>, ToolError> {
        let mut specs = vec![
            own_spec::<ListFiles>(
                NAME,
                "list_files",
                "Lists the files of the repository with their sizes.",
            ),
            own_spec::<ReadFile>(NAME, "read_file", "Reads a text file of the repository."),
            own_spec::<Search>(NAME, "search", "Searches all text files; gives path:line:text."),
        ];
        if self.code.is_some() {
            specs.extend(code_search::specs());
        }
        Ok(specs)
    }

    async fn call(&self, tool: &str, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let text = match tool {
            "list_files" => self.list_files(read_args(args)?).await,
            "read_file" => self.read_file(read_args(args)?).await,
            "search" => self.search(read_args(args)?).await,
            other => match &self.code {
                Some(code) if [SEARCH_CODE, OUTLINE, WHO_USES].contains(&other) => code.call(other, args).await,
                Some(_) => Err(ToolError::TellModel(format!(
                    "{NAME} has no tool '{other}'; it has list_files, read_file, search, {SEARCH_CODE}, {OUTLINE}, {WHO_USES}"
                ))),
                None => Err(ToolError::TellModel(format!(
                    "{NAME} has no tool '{other}'; it has list_files, read_file, search"
                ))),
            },
        }?;
        Ok(ToolOutput {
            text,
            is_error: false,
            structured: None,
        })
    }

    fn only_reads(&self, _tool: &str) -> bool {
        true
    }

    async fn close(&self) {}
}

fn for_model(error: &RepositoryError) -> ToolError {
    match error {
        RepositoryError::Unexpected { .. } | RepositoryError::Unacceptable(_) | RepositoryError::TooSlow(_) => {
            ToolError::TellModel(error.to_string())
        }
        RepositoryError::Refused { .. }
        | RepositoryError::ForceRefused { .. }
        | RepositoryError::Unavailable { .. }
        | RepositoryError::Moved { .. } => ToolError::Lost {
            server: NAME.to_owned(),
            reason: error.to_string(),
        },
    }
}

/// Returns some lines of a file, without the secrets of the whole: nobody recognises the part of a
/// key that stands in them.
fn lines_in((first, last): (i64, i64), text: &str, redactor: &Redactor) -> String {
    // Models write 0 or -1 where they want no limit.
    let first = usize::try_from(first).unwrap_or_default().max(1);
    let last = usize::try_from(last)
        .ok()
        .filter(|last| *last > 0)
        .unwrap_or(usize::MAX);
    let clean = redactor.clean_in_lines(text);
    let lines = clean.as_str().lines().skip(first - 1);
    let lines: Vec<&str> = lines.take(last.saturating_add(1).saturating_sub(first)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::repository::Config;

    /// Runs git on a mirror and returns what it prints.
    fn git(mirror: &Mirror, arguments: &[&str], input: &str) -> String {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(mirror.path());
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        command.args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[tokio::test]
    async fn a_folder_behind_very_many_files_is_listed_and_one_that_is_not_there_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let mirror = Mirror::local(&Config::default(), folder.path(), "one").await.unwrap();
        let tree = |entries: Vec<String>| git(&mirror, &["mktree"], &entries.concat());
        let file = git(&mirror, &["hash-object", "-w", "--stdin"], "one");
        let few = tree(vec![format!("100644 blob {file}\ta.txt\n")]);
        let thousand = (0..1_000).map(|number| format!("100644 blob {file}\t{number}\n"));
        let thousand = tree(thousand.collect());
        let many = (0..=100).map(|number| format!("040000 tree {thousand}\t{number}\n"));
        let many = tree(many.collect());
        let root = tree(vec![
            format!("040000 tree {many}\tapps\n"),
            format!("040000 tree {few}\tzeta\n"),
        ]);
        let commit = git(&mirror, &["commit-tree", &root, "-m", "work"], "").parse().unwrap();
        let tools = RepositoryTools::new(mirror, commit, Files::default(), Arc::default());
        let list = async |path: &str| {
            let args = serde_json::json!({ "path": path });
            let listed = tools.call("list_files", args.as_object().unwrap()).await;
            listed.map(|output| output.text)
        };
        assert_eq!(list("zeta").await.unwrap(), "zeta/a.txt (3 bytes)");
        assert_eq!(list("/workspace/project/zeta/").await.unwrap(), "zeta/a.txt (3 bytes)");
        for path in ["zet", "zeta/a.txt", "../zeta", ":(glob)*", "a\0b"] {
            let told = list(path).await.unwrap_err().to_string();
            let expected = format!("there are no files below '{path}'; there are the folders apps, zeta");
            assert_eq!(told, format!("not_found 404: {expected}"));
        }
    }

    #[test]
    fn lines_from_the_middle_of_a_key_are_not_shown() {
        let line = "x0".repeat(32) + "\n";
        let frame = |word: &str| format!("-----{word} {}-----\n", "PRIVATE KEY");
        let text = [frame("BEGIN"), line.repeat(9), frame("END"), "last\n".to_owned()].concat();
        let read = |range| lines_in(range, &text, &Redactor::default());
        assert_eq!(read((4, 5)), "[redacted:private-key]\n[redacted:private-key]");
        assert_eq!(read((12, -1)), "last");
        assert_eq!(read((0, 0)).lines().count(), 12);
        assert_eq!(read((13, 20)), "");
    }
}
