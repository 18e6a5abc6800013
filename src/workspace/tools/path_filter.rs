//! Restricts the workspace's file tools to files that the project's rules do not exclude.
//!
//! Guarantees that no file tool reads, lists or changes an excluded file. A command still may,
//! which its arguments cannot tell; so the result is checked again before delivery.

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::conversation::ToolSpec;
use crate::rules::{Files, Filter};
use crate::tool::{ToolError, ToolOutput, ToolServer};
use crate::workspace::scripts::PROJECT;

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
        if tool == "list_files" {
            if !path.is_empty() && !self.filter.takes_folder(&path) {
                return Err(left_out(&path, &self.files));
            }
            let output = self.server.call(tool, args).await?;
            return Ok(ToolOutput {
                text: shown(&output.text, &path, &self.filter),
                ..output
            });
        }
        if !self.filter.takes(&path) {
            return Err(left_out(&path, &self.files));
        }
        self.server.call(tool, args).await
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

/// Returns the lines of a listing that pass the filter. Folders end with a slash, links with an at
/// sign.
fn shown(listing: &str, folder: &str, filter: &Filter) -> String {
    let is_shown = |line: &&str| {
        if line.starts_with("[cut after ") || *line == "[empty folder]" {
            return true;
        }
        let path = if folder.is_empty() {
            (*line).to_owned()
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
        return "[empty folder]".to_owned();
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
    fn a_listing_shows_only_what_is_left() {
        let files = Files {
            exclude: vec!["infra/**".to_owned(), "*.pem".to_owned()],
            ..Files::default()
        };
        let listing = "README.md\nkey.pem\ninfra/\ninfra/a.tf\nlink.pem@\nsrc/\n[cut after 6 items; list a folder]";
        assert_eq!(
            shown(listing, "", &files.filter()),
            "README.md\nsrc/\n[cut after 6 items; list a folder]"
        );
        assert_eq!(shown("a.tf", "infra", &files.filter()), "[empty folder]");
    }
}
