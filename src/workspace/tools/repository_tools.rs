//! The tools of the planner: they read one commit of the bare mirror and cannot change anything.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::conversation::ToolSpec;
use crate::repository::mirror::Mirror;
use crate::repository::reading::search::Pattern;
use crate::repository::{CommitId, RepositoryError};
use crate::rules::{Files, Filter};
use crate::tool::{ToolError, ToolOutput, ToolServer, own_spec, read_args};
use crate::workspace::tools::path_filter::{left_out, within_project};

const NAME: &str = "repository";
const MOST_FILES: usize = 2_000;
const MOST_MATCHES: usize = 200;
const LARGEST_FILE: u64 = 512 * 1024;

/// Read access to one commit, without files that the project's rules exclude.
pub struct RepositoryTools {
    mirror: Mirror,
    commit: CommitId,
    files: Files,
    filter: Filter,
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
    view_range: Option<(usize, usize)>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// Extended regular expression without back-references.
    pattern: String,
}

impl RepositoryTools {
    pub fn new(mirror: Mirror, commit: CommitId, files: Files) -> Self {
        let filter = files.filter();
        Self {
            mirror,
            commit,
            files,
            filter,
        }
    }

    async fn list_files(&self, args: ListFiles) -> Result<String, ToolError> {
        let (files, more) = self
            .mirror
            .files(&self.commit, 50 * MOST_FILES)
            .await
            .map_err(|error| for_model(&error))?;
        let folder = args.path.trim_start_matches("./").trim_matches('/');
        let folder = if folder == "." { "" } else { folder };
        let below =
            |path: &str| folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let is_chosen = |path: &str| below(path) && self.filter.takes(path);
        let chosen: Vec<_> = files.iter().filter(|file| is_chosen(&file.path)).collect();
        if chosen.is_empty() {
            return Err(ToolError::TellModel(format!(
                "not_found 404: there are no files below '{}'",
                args.path
            )));
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

    async fn read_file(&self, args: ReadFile) -> Result<String, ToolError> {
        let path = args.path.trim_start_matches("./");
        if within_project(path).is_some_and(|path| !self.filter.takes(&path)) {
            return Err(left_out(path, &self.files));
        }
        let missing = || {
            ToolError::TellModel(format!(
                "not_found 404: there is no file '{path}'; use repository/list_files"
            ))
        };
        let bytes = self
            .mirror
            .file(&self.commit, path, LARGEST_FILE)
            .await
            .map_err(|error| for_model(&error))?
            .ok_or_else(missing)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| ToolError::TellModel(format!("not_utf8 415: '{path}' is not a text file")))?;
        let Some((first, last)) = args.view_range else {
            return Ok(text);
        };
        let count = last.saturating_add(1).saturating_sub(first.max(1));
        Ok(text
            .lines()
            .skip(first.max(1) - 1)
            .take(count)
            .collect::<Vec<_>>()
            .join("\n"))
    }

    async fn search(&self, args: Search) -> Result<String, ToolError> {
        let pattern = Pattern::read(&args.pattern)
            .map_err(|reason| ToolError::TellModel(format!("bad_pattern 400: {reason}")))?;
        let found = self
            .mirror
            .search(&self.commit, &pattern, |path| self.filter.takes(path), MOST_MATCHES)
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
        Ok(vec![
            own_spec::<ListFiles>(
                NAME,
                "list_files",
                "Lists the files of the repository with their sizes.",
            ),
            own_spec::<ReadFile>(NAME, "read_file", "Reads a text file of the repository."),
            own_spec::<Search>(NAME, "search", "Searches all text files; gives path:line:text."),
        ])
    }

    async fn call(&self, tool: &str, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let text = match tool {
            "list_files" => self.list_files(read_args(args)?).await,
            "read_file" => self.read_file(read_args(args)?).await,
            "search" => self.search(read_args(args)?).await,
            other => Err(ToolError::TellModel(format!(
                "{NAME} has no tool '{other}'; it has list_files, read_file, search"
            ))),
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
        RepositoryError::Unexpected { .. } | RepositoryError::Unacceptable(_) => {
            ToolError::TellModel(error.to_string())
        }
        RepositoryError::Refused { .. } | RepositoryError::Unavailable { .. } | RepositoryError::Moved { .. } => {
            ToolError::Lost {
                server: NAME.to_owned(),
                reason: error.to_string(),
            }
        }
    }
}
