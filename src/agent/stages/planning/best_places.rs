//! The code index's part of the planner's first message: a small map of the project, and the places
//! that fit the task best.

use crate::agent::claim::Claim;
use crate::agent::code_index;
use crate::agent::dialogue::room;
use crate::agent::prompt::{self, places};
use crate::index::{Definition, Hit, IndexError};
use crate::workspace::tools::code_search::CodeSearch;

/// Maximum share of the window, in percent, and maximum bytes.
const SHARE: u64 = 6;
const MOST_BYTES: usize = 6 * 1024;
const PLACES: usize = 10;
const MAP: usize = 20;
/// Most files of a project that the planner oversees without help: the list of files says as much.
const FEW_FILES: usize = 12;

/// Returns the block for the planner; empty where nothing was found.
pub(super) async fn block(claim: &mut Claim, code: &CodeSearch) -> String {
    let question = claim.record.planned.question.clone();
    match found(code, &question).await {
        Ok((map, hits)) => {
            let most = room::bytes_of_window(claim, SHARE).min(MOST_BYTES);
            places::block(&prompt::fence(claim.lease.run), &map, &hits, most)
        }
        Err(error) => {
            code_index::note_unused(claim, &error.to_string());
            String::new()
        }
    }
}

async fn found(code: &CodeSearch, question: &str) -> Result<(Vec<(Definition, usize)>, Vec<Hit>), IndexError> {
    if code.count_files().await? <= FEW_FILES {
        return Ok((Vec::new(), Vec::new()));
    }
    Ok((code.most_referred(MAP).await?, code.places(question, PLACES).await?))
}
