//! Restricts the workspace's file tools to files that the project's rules do not exclude.
//!
//! Guarantees that no file tool reads, lists or changes an excluded file. A command still may,
//! which its arguments cannot tell; so the result is checked again before delivery.
//!
//! The executor takes a path that repeats the project's own (`workspace/project/a.py`) as meant
//! beneath it, unless there is such a folder. Which of the two is not known here: a path must be
//! allowed in both readings.

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::conversation::ToolSpec;
use crate::rules::{Files, Filter};
use crate::tool::{ToolError, ToolOutput, ToolServer};
use crate::workspace::scripts::PROJECT;

/// Answers of the executor if there is nothing to list.
const NOTHING: [&str; 2] = ["[empty folder]", "[no such files]"];

/// A tool server whose file tools have no access to excluded files.
pub(crate) struct PathFilter {
    server: Box<dyn ToolServer>,
    files: Files,
    filter: Filter,
}

impl PathFilter {
    pub(crate) fn new(server: Box<dyn ToolServer>, files: Files) -> Self {
        let filter = files.filter();
        Self { server, files, filter }
    }
}

#[async_trait]
impl ToolServer for PathFilter {
    fn name(&self) -> &str {
        self.server.name()
    }

    fn system_prompt(&self) -> Option<&str> {
        self.server.system_prompt()
    }

    async fn list(&self) -> Result<Vec<ToolSpec>, ToolError> {
        self.server.list().await
    }

    async fn call(&self, tool: &str, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let path = args.get("path").and_then(Value::as_str).and_then(within_project);
        let Some(path) = path.filter(|_| tool != "execute_command") else {
            // The executor refuses a path that leads out of the project.
            return self.server.call(tool, args).await;
        };
        let readings: Vec<&str> = without_root(&path).into_iter().chain([path.as_str()]).collect();
        let is_folder = tool == "list_files";
        let is_allowed = |path: &&str| {
            if is_folder {
                path.is_empty() || self.filter.takes_folder(path)
            } else {
                self.filter.takes(path)
            }
        };
        if let Some(path) = readings.iter().find(|path| !is_allowed(path)) {
            return Err(left_out(path, &self.files));
        }
        let mut output = self.server.call(tool, args).await?;
        if is_folder {
            for folder in readings {
                output.text = shown(&output.text, folder, &self.filter);
            }
        }
        Ok(output)
    }

    fn only_reads(&self, tool: &str) -> bool {
        self.server.only_reads(tool)
    }

    async fn close(&self) {
        self.server.close().await;
    }
}

/// Returns the error for a call that names an excluded file.
pub(crate) fn left_out(path: &str, files: &Files) -> ToolError {
    ToolError::Forbidden {
        rule: "left_out",
        status: 403,
        reason: format!("'{path}' {}; do without it", files.reason()),
    }
}

/// Returns `path` as patterns need it: relative to the project's root, without `.` and `..`. `None`
/// if it leads out of the project.
pub(crate) fn within_project(path: &str) -> Option<String> {
    let path = path.strip_prefix(PROJECT).unwrap_or(path);
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns what is left of a path that begins with the project's own.
pub(crate) fn without_root(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(PROJECT.trim_start_matches('/'))?;
    if rest.is_empty() {
        return Some(rest);
    }
    rest.strip_prefix('/')
}

/// Returns the lines of a listing that pass the filter. Folders end with a slash, links with an at
/// sign, and a file's size stands behind a tab.
fn shown(listing: &str, folder: &str, filter: &Filter) -> String {
    let is_shown = |line: &&str| {
        if line.starts_with("[cut after ") || NOTHING.contains(line) {
            return true;
        }
        let line = line.split('\t').next().unwrap_or_default();
        let path = if folder.is_empty() {
            line.to_owned()
        } else {
            format!("{folder}/{line}")
        };
        match path.strip_suffix('/') {
            Some(folder) => filter.takes_folder(folder),
            None => filter.takes(&path) && filter.takes(path.trim_end_matches('@')),
        }
    };
    let lines: Vec<&str> = listing.lines().filter(is_shown).collect();
    if lines.is_empty() {
        return NOTHING[0].to_owned();
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_same_however_it_is_written() {
        for path in [
            "infra/a.tf",
            "./infra//a.tf",
            "src/../infra/a.tf",
            "/workspace/project/infra/./a.tf",
        ] {
            assert_eq!(within_project(path).as_deref(), Some("infra/a.tf"), "{path}");
        }
        assert_eq!(within_project("../a"), None);
        assert_eq!(within_project(".").as_deref(), Some(""));
    }

    #[test]
    fn a_path_that_repeats_the_root_is_read_in_both_ways() {
        assert_eq!(without_root("workspace/project"), Some(""));
        assert_eq!(without_root("workspace/project/a/b"), Some("a/b"));
        assert_eq!(without_root("workspace/projects/a"), None);
        assert_eq!(without_root("a/workspace/project/b"), None);
    }

    #[test]
    fn a_listing_shows_only_what_is_left() {
        let files = Files {
            exclude: vec!["infra/**".to_owned(), "*.pem".to_owned()],
            ..Files::default()
        };
        let listing =
            "README.md\t12\nkey.pem\t1\ninfra/\ninfra/a.tf\nlink.pem@\nsrc/\n[cut after 6 items; list a folder]";
        assert_eq!(
            shown(listing, "", &files.filter()),
            "README.md\t12\nsrc/\n[cut after 6 items; list a folder]"
        );
        assert_eq!(shown("a.tf", "infra", &files.filter()), "[empty folder]");
    }
}
