//! The worker's first view of the project, before it looks itself: the places that the plan rests
//! on, or, in a small project, the files themselves. A small model edits a file blindly that nobody
//! has shown it.

use crate::agent::dialogue::tool_calls;
use crate::agent::prompt::{self, places};
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::stages::planning::shown_files;
use crate::agent::workspace::source;
use crate::repository::reading::files::TreeEntry;

/// Maximum share of the window, in percent, and maximum bytes.
const SHARE: u64 = 8;
const MOST_BYTES: usize = 12 * 1024;
/// Most files of a project that is shown as a whole.
const MOST_FILES: usize = 12;

/// Returns the blocks for the first message of the work.
pub(super) async fn blocks(run: &mut Run) -> Result<String, Interruption> {
    let Some(base) = run.claim.record.planned.base.clone() else {
        return Ok(String::new());
    };
    if !run.claim.services.settings.index.enabled {
        return Ok(String::new());
    }
    let mirror = source::mirror_at_hand(run).await?;
    let claim = &run.claim;
    let fence = prompt::fence(claim.lease.run);
    let most = tool_calls::bytes_of_window(claim, SHARE).min(MOST_BYTES);
    let filter = claim.record.planned.rules.files.filter();
    let (files, are_more) = mirror.files(&base.commit, MOST_FILES).await?;
    let size: u64 = files.iter().map(|file| file.size).sum();
    if !are_more && size <= u64::try_from(most).unwrap_or_default() {
        let is_shown = |file: &&TreeEntry| {
            let is_known = claim
                .record
                .planned
                .task_text
                .contains(&format!("\n{}:\n<{fence}>\n", file.path));
            filter.takes(&file.path) && !file.is_link && file.size > 0 && !is_known
        };
        let mut texts = Vec::new();
        for file in files.iter().filter(is_shown) {
            let bytes = mirror.file(&base.commit, &file.path, size).await?.unwrap_or_default();
            // What the project asks of the model stands in the system prompt.
            let is_rule = |text: &str| {
                let mut rules = claim.record.planned.rules.texts.iter();
                rules.any(|rule| rule.path == file.path || rule.text.trim() == text.trim())
            };
            if let Ok(text) = String::from_utf8(bytes)
                && !is_rule(&text)
            {
                texts.push((file.path.clone(), text));
            }
        }
        return Ok(places::files(&fence, &texts));
    }
    shown_files::cited(claim, &mirror, &base.commit, most).await
}
