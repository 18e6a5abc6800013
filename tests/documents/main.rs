//! Everything that people copy from the documents works: command lines, configurations, the
//! tutorial's program, the compose file, crontab and systemd units; and the reference is what the
//! program says.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by panicking"
)]

mod build_folder;
mod cluster;
mod command_lines;
mod compatibility;
mod configurations;
mod deployment;
mod figures;
mod messengers;
mod packages;
mod paths;
mod reference;
mod security;
mod site;
mod tutorial;

use std::path::{Path, PathBuf};

use clap::Parser;
use coding_agent::cli::arguments::Arguments;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect(path)
}

/// Returns the paths of the documents for people.
fn documents() -> Vec<String> {
    let mut found = ["README.md", "README.ja.md", "CONTRIBUTING.md", "SECURITY.md"]
        .map(str::to_owned)
        .to_vec();
    for folder in ["docs", "docs/decisions", "docs/how-to", "docs/reference"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                found.push(format!("{folder}/{}", entry.file_name().to_str().unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn is_markdown(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "md")
}

/// Returns the fenced blocks of a document, with what stands behind the opening fence.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(kind)) => open = Some((kind.to_owned(), String::new())),
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

/// Splits a line into words, as a shell does with quotes and without variables.
fn words(line: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    for letter in line.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '"' || letter == '\'' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => found.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    found.extend(word);
    found
}

/// Tells whether the program takes these arguments; else what it says.
fn is_taken(arguments: &[String]) -> Result<(), String> {
    let line = std::iter::once("coding-agent".to_owned()).chain(arguments.iter().cloned());
    match Arguments::try_parse_from(line) {
        Ok(_) => Ok(()),
        // Help and version are answers, too.
        Err(error) if !error.use_stderr() => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
