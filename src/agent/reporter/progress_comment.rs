//! The one progress comment of a run: posted once, then edited in place while the run is at work
//! ([`crate::agent::reporter::progress_editor`]). What is here is written at once: the post, and
//! what stays to be read when the work ends, for good or for now.

use std::sync::Arc;

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::reporter::progress_editor::ProgressEditor;
use crate::agent::reporter::{Carried, IfPresent, Reporter};
use crate::agent::text::comments;
use crate::task::state::State;

/// Name of the comment in its marker.
const PROGRESS: &str = "progress";

impl Reporter {
    /// Has the progress comment edited from now on, until the end of the work is shown; on a
    /// terminal shows that long replies arrive.
    pub(crate) async fn follow_progress(&mut self, claim: &Claim) {
        self.editor = Some(match &self.destination {
            ReportTarget::Item { forge, labels } => {
                ProgressEditor::start(claim, Arc::clone(forge), labels.clone(), PROGRESS).await
            }
            ReportTarget::Terminal { show } => ProgressEditor::on_terminal(claim, Arc::clone(show)).await,
        });
    }

    /// Posts the progress comment. A follow-up round has one only if it had to wait: otherwise the
    /// reviewers see a reaction, the label and one comment with the result.
    pub(crate) async fn post_progress(&mut self, claim: &mut Claim) -> Result<(), Interruption> {
        if claim.record.request.round.is_some() {
            return Ok(());
        }
        self.write_progress(claim, claim.state, IfPresent::Leave).await
    }

    /// Shows the end of the work in the progress comment, if there is one.
    pub(crate) async fn show_final(&mut self, claim: &mut Claim, state: State) -> Result<(), Interruption> {
        if claim.record.thread.comments.contains_key(&claim.marker(PROGRESS)) {
            return self.show_at_once(claim, state).await;
        }
        Ok(())
    }

    /// Shows that the run waits for a remote service; this may be the first comment of the run.
    pub(crate) async fn show_parked(&mut self, claim: &mut Claim) -> Result<(), Interruption> {
        self.show_at_once(claim, claim.state).await?;
        let shown = claim.state.stage().map_or(claim.state, State::Paused);
        self.show_label(claim, shown, Carried::Unread).await?;
        claim.save().await
    }

    /// Removes the display of a wait, because the run continues.
    pub(crate) async fn show_that_it_goes_on(&mut self, claim: &mut Claim) {
        if claim.record.waiting.parked.take().is_none() {
            return;
        }
        let shown = async {
            self.show_label(claim, claim.state, Carried::Unread).await?;
            claim.save().await
        };
        if let Err(interruption) = shown.await {
            tracing::warn!(task = %claim.lease.task, "it could not be shown that the run goes on: {interruption:?}");
        }
    }

    async fn show_at_once(&mut self, claim: &mut Claim, state: State) -> Result<(), Interruption> {
        claim.record.worked.doing.clear();
        if let Some(editor) = self.editor.take() {
            editor.end().await;
        }
        self.write_progress(claim, state, IfPresent::Edit).await
    }

    async fn write_progress(&mut self, claim: &mut Claim, state: State, again: IfPresent) -> Result<(), Interruption> {
        let ReportTarget::Item { labels, .. } = &self.destination else {
            return Ok(());
        };
        let run = claim.lease.run;
        let page = comments::progress(run, state, &claim.record, &claim.services.settings, labels);
        self.write(claim, PROGRESS, &page, again).await
    }
}
