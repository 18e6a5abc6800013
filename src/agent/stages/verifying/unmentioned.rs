//! Compares the task with the tests of the result, for the parts that no test mentions.

use std::sync::Arc;

use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::evidence::check::Checked;
use crate::evidence::demands::Demands;
use crate::evidence::language::is_among_tests;
use crate::evidence::unmentioned::{Search, Unmentioned};
use crate::repository::CommitId;
use crate::repository::reading::files::TreeEntry;

/// Maximum number of the project's files. Where there are more, or larger tests, nothing is said:
/// the rest could mention it.
const MOST_FILES: usize = 20_000;
/// Maximum size of all tests, in bytes.
const LARGEST_TESTS: u64 = 8 * 1024 * 1024;

/// Returns the parts of the task that no test in `commit` mentions; none where checks failed or
/// nothing was checked, since that is told anyway.
pub(super) async fn parts(run: &mut Run, commit: &CommitId) -> Result<Vec<Unmentioned>, Interruption> {
    let record = &run.claim.record;
    let checks = &record.verified.checks;
    // What a later round is asked for stands in comments on the request.
    let is_later_round = record.request.round.is_some();
    if checks.is_empty() || is_later_round || !checks.iter().all(Checked::passed) {
        return Ok(Vec::new());
    }
    let mut search = Search::of(&Demands::of(&record.planned.question));
    if search.is_empty() {
        return Ok(Vec::new());
    }
    let project = Arc::clone(&run.workspace.opened()?.project);
    let mirror = project.mirror();
    let (entries, are_more) = mirror.files(commit, MOST_FILES).await?;
    let is_test = |entry: &&TreeEntry| !entry.is_link && is_among_tests(&entry.path);
    let tests: Vec<&TreeEntry> = entries.iter().filter(is_test).collect();
    let size: u64 = tests.iter().map(|entry| entry.size).sum();
    if are_more || tests.is_empty() || size > LARGEST_TESTS {
        return Ok(Vec::new());
    }
    let ids: Vec<&str> = tests.iter().map(|entry| entry.object.as_str()).collect();
    mirror
        .each_content(&ids, |_, content| search.look(&String::from_utf8_lossy(content)))
        .await?;
    Ok(search.unmentioned())
}
