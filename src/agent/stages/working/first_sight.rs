//! The worker's first view of the project, before it looks itself: the places that the plan rests
//! on, or, in a small project, the files themselves. A small model edits a file blindly that nobody
//! has shown it.

use crate::agent::prompt::{self, places, shown};
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::stages::planning::shown_files::{self, FEW_FILES};
use crate::agent::workspace::source;
use crate::evidence::language::is_among_tests;
use crate::llm::config::Edits;
use crate::repository::reading::files::TreeEntry;
use crate::syntax::Language;

/// Maximum bytes; the window may allow fewer.
const MOST_BYTES: usize = 12 * 1024;

/// The part of the project that the worker sees before its first turn.
#[derive(Debug, Default)]
pub(super) struct FirstSight {
    /// Blocks for the first message of the work.
    pub(super) text: String,
    /// Whether it sees all files of the project.
    pub(super) is_all: bool,
}

/// Returns what the worker sees first.
pub(super) async fn look(run: &mut Run) -> Result<FirstSight, Interruption> {
    let Some(base) = run.claim.record.planned.base.clone() else {
        return Ok(FirstSight::default());
    };
    if !run.claim.services.settings.index.enabled {
        return Ok(FirstSight::default());
    }
    let mirror = source::mirror_at_hand(run).await?;
    let claim = &run.claim;
    let fence = prompt::fence(claim.lease.run);
    let most = shown_files::bytes_for_texts(claim).min(MOST_BYTES);
    let filter = claim.record.planned.rules.files.filter();
    let (files, are_more) = mirror.files(&base.commit, FEW_FILES).await?;
    let size: u64 = files.iter().map(|file| file.size).sum();
    if !are_more && size <= u64::try_from(most).unwrap_or_default() {
        let known = shown::files(&fence, &claim.record.planned.task_text);
        let is_shown = |file: &&TreeEntry| {
            let is_known = known.iter().any(|(path, _)| *path == file.path);
            filter.takes(&file.path) && !file.is_link && file.size > 0 && !is_known
        };
        let mut texts: Vec<(String, String)> = Vec::new();
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
        if claim.services.settings.edits == Edits::Whole {
            // A model that writes whole files writes again what it has read: tests and texts for
            // people are for others. What a test says comes back to it when it fails.
            texts.retain(|(path, _)| Language::of(path).is_code() && !is_among_tests(path));
        }
        return Ok(FirstSight {
            text: places::files(&shown_files::file_fence(claim), &texts),
            is_all: true,
        });
    }
    Ok(FirstSight {
        text: shown_files::cited(claim, &mirror, &base.commit, most).await?,
        is_all: false,
    })
}
