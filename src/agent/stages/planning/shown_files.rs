//! The project's files, as the model first sees them: an overview, and the texts of those that the
//! task names.

use crate::agent::claim::Claim;
use crate::agent::dialogue::room;
use crate::agent::prompt;
use crate::agent::prompt::file_block::FileFence;
use crate::agent::prompt::file_overview;
use crate::agent::prompt::named_files;
use crate::agent::prompt::places;
use crate::agent::record::interruption::Interruption;
use crate::index::evidence;
use crate::llm::config::Edits;
use crate::plan::evidence::Citation;
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};

/// Maximum share of the window, in percent, and maximum bytes for the list of the project's files.
const FILES_SHARE: u64 = 4;
const MOST_FILES_BYTES: usize = 16 * 1024;

/// Number of files of a project that is small enough to be shown as a whole.
pub(crate) const FEW_FILES: usize = 12;

/// Maximum share of the window, in percent, for texts of files in the first message: usually, and
/// where the model writes whole files, which it can only do of those that it sees.
const TEXTS_SHARE: u64 = 8;
const WHOLE_TEXTS_SHARE: u64 = 35;
/// Maximum bytes for the texts of the files that the task names, and maximum size of such a file.
const MOST_NAMED_BYTES: usize = 12 * 1024;
const LARGEST_NAMED: u64 = 64 * 1024;

/// Returns the list of files for the model, limited to its share of the window. One that writes
/// whole files is told no names of files that it sees anyway: it would write them all.
pub(crate) fn files_at_a_glance(claim: &Claim, files: &[String]) -> String {
    if claim.services.settings.edits == Edits::Whole && files.len() <= FEW_FILES {
        return String::new();
    }
    let overview = file_overview::overview(files, room::bytes_of_window(claim, FILES_SHARE).min(MOST_FILES_BYTES));
    file_overview::block(&prompt::fence(claim.lease.run), &overview)
}

/// Returns the lines around the text of a file in the first message.
pub(crate) fn file_fence(claim: &Claim) -> FileFence {
    FileFence::of(claim.services.settings.edits, &prompt::fence(claim.lease.run))
}

/// Returns the maximum bytes for texts of files in the first message.
pub(crate) fn bytes_for_texts(claim: &Claim) -> usize {
    let share = match claim.services.settings.edits {
        Edits::Whole => WHOLE_TEXTS_SHARE,
        Edits::Auto | Edits::Exact => TEXTS_SHARE,
    };
    room::bytes_of_window(claim, share)
}

/// Returns the texts of the files that the task names, limited to their share of the window. A file
/// that is too large, or no text, is left out.
pub(crate) async fn named_files(
    claim: &Claim,
    task: &str,
    files: &[String],
    mirror: &Mirror,
    commit: &CommitId,
) -> Result<String, Interruption> {
    let mut texts = Vec::new();
    for path in named_files::named(task, files) {
        let bytes = match mirror.file(commit, path, LARGEST_NAMED).await {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(RepositoryError::Unexpected { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        if let Ok(text) = String::from_utf8(bytes) {
            // Before it is cut: nobody recognises half of a secret.
            texts.push((path, claim.services.redactor.clean(&text).into_string()));
        }
    }
    let most = bytes_for_texts(claim).min(MOST_NAMED_BYTES);
    Ok(named_files::block(&file_fence(claim), &texts, most))
}

/// Returns the lines that the plan cites, in at most about `most` bytes, without those that are not
/// there.
pub(crate) async fn cited(
    claim: &Claim,
    mirror: &Mirror,
    commit: &CommitId,
    most: usize,
) -> Result<String, Interruption> {
    let redactor = &claim.services.redactor;
    let mut cited: Vec<(Citation, String)> = Vec::new();
    for evidence in claim
        .record
        .planned
        .evidence
        .iter()
        .filter(|evidence| evidence.fault.is_none())
    {
        if let Ok(lines) = evidence::lines(mirror, commit, &evidence.cited, redactor).await? {
            cited.push((evidence.cited.clone(), lines));
        }
    }
    Ok(places::cited(&prompt::fence(claim.lease.run), &cited, most))
}
