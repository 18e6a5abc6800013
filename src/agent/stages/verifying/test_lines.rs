//! Reads the lines of tests at which checks failed, for the message to the model: a small model
//! that was not shown a test does not know what it expects.

use std::sync::Arc;

use crate::agent::prompt::shown;
use crate::agent::prompt::test_lines;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::stages::planning::shown_files;
use crate::agent::stages::working;
use crate::evidence::check::Checked;
use crate::evidence::test_lines::{TestLines, around, places};
use crate::repository::{CommitId, RepositoryError};
use crate::workspace::scripts::PROJECT;

/// Maximum number of places that are shown.
const MOST: usize = 3;
/// Maximum number of project files among which those of tests are looked for.
const MOST_FILES: usize = 20_000;
/// Maximum size of a file of tests, in bytes.
const LARGEST_FILE: u64 = 256 * 1024;

/// Returns the blocks with the lines of tests in `commit` at which `checks` failed. What the model
/// has before it already is left out: no state is shown twice, but for what a summary replaced.
pub(super) async fn unseen(run: &mut Run, commit: &CommitId, checks: &[Checked]) -> Result<String, Interruption> {
    if checks.is_empty() {
        return Ok(String::new());
    }
    let chat = working::open_chat(run).await?;
    let outputs: Vec<&str> = checks.iter().map(|check| check.tail.as_str()).collect();
    let blocks = blocks(run, commit, checks, |lines| {
        shown::has_lines(chat.messages(), &outputs, lines)
    })
    .await;
    run.dialogue.chat = Some(chat);
    blocks
}

/// Returns the same blocks for a conversation that has not begun.
pub(super) async fn of(run: &mut Run, commit: &CommitId, checks: &[Checked]) -> Result<String, Interruption> {
    let outputs: Vec<&str> = checks.iter().map(|check| check.tail.as_str()).collect();
    blocks(run, commit, checks, |lines| shown::has_lines(&[], &outputs, lines)).await
}

async fn blocks(
    run: &mut Run,
    commit: &CommitId,
    checks: &[Checked],
    is_shown: impl Fn(&str) -> bool,
) -> Result<String, Interruption> {
    let project = Arc::clone(&run.workspace.opened()?.project);
    let mirror = project.mirror();
    let filter = run.claim.record.planned.rules.files.filter();
    let (entries, _) = mirror.files(commit, MOST_FILES).await?;
    let files: Vec<String> = entries
        .into_iter()
        .filter(|entry| !entry.is_link && filter.takes(&entry.path))
        .map(|entry| entry.path)
        .collect();
    let places = places(checks, PROJECT, &files);
    if places.is_empty() {
        return Ok(String::new());
    }
    let mut found: Vec<TestLines> = Vec::new();
    for place in &places {
        let is_around =
            |known: &TestLines| known.place.path == place.path && (known.first..=known.last).contains(&place.line);
        if found.len() == MOST || found.iter().any(is_around) {
            continue;
        }
        let bytes = match mirror.file(commit, &place.path, LARGEST_FILE).await {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(RepositoryError::Unexpected { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        // Of a secret of several lines no part is shown.
        let clean = run.claim.services.redactor.clean(&text).into_string();
        if clean.lines().count() != text.lines().count() {
            continue;
        }
        let lines = around(place, &clean);
        found.extend(lines.filter(|lines| !is_shown(&lines.text)));
    }
    Ok(test_lines::blocks(&shown_files::file_fence(&run.claim), &found))
}
