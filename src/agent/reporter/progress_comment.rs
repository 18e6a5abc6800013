//! The one progress comment of a run: posted once, then edited in place, at most every five
//! seconds.
//!
//! An earlier edit is delayed, and replaced by the next one, so that the latest state is shown in
//! the end. Only the last edit, when the work on the run ends temporarily or finally, is made at
//! once, since nobody would wait for a delayed one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::reporter::pending_edit::PendingEdit;
use crate::agent::reporter::{IfPresent, Reporter};
use crate::agent::text::comments;
use crate::forge::{CommentId, Post};
use crate::markdown::compose::Page;
use crate::task::state::State;

/// Name of the comment in its marker.
const PROGRESS: &str = "progress";
/// Shortest time between two edits.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5);
impl Reporter {
    /// Posts the progress comment, or edits it as soon as the rate limit permits.
    pub(crate) async fn show_progress(&mut self, claim: &mut Claim) -> Result<(), Interruption> {
        let Some(text) = self.progress_text(claim, claim.state) else {
            return Ok(());
        };
        let now = Instant::now();
        let due = match self.shown_at {
            // A pending edit is replaced by this one.
            Some(shown) if shown > now => shown,
            Some(shown) => now.max(shown + SHORTEST_PAUSE),
            None => now,
        };
        if let Some(waiting) = self.pending.take() {
            waiting.take_back().await;
        }
        self.shown_at = Some(due);
        match progress_comment(claim) {
            Some(comment) if due > now => {
                self.edit_later(claim, comment, &text, due);
                Ok(())
            }
            _ => {
                let written = self.write(claim, PROGRESS, &text, IfPresent::Edit).await;
                self.shown_at = Some(Instant::now());
                written
            }
        }
    }

    /// Makes the last edit of this process at once, if there is a progress comment.
    pub(crate) async fn show_final(&mut self, claim: &mut Claim, state: State) -> Result<(), Interruption> {
        if has_progress_comment(claim) {
            return self.show_at_once(claim, state).await;
        }
        Ok(())
    }

    /// Shows that the run waits for a remote service; this may be the first comment of the run.
    pub(crate) async fn show_parked(&mut self, claim: &mut Claim) -> Result<(), Interruption> {
        self.show_at_once(claim, claim.state).await?;
        let shown = claim.state.stage().map_or(claim.state, State::Paused);
        self.show_label(claim, shown, None).await?;
        claim.save().await
    }

    /// Removes the display of a wait, because the run continues.
    pub(crate) async fn show_that_it_goes_on(&mut self, claim: &mut Claim) {
        if claim.record.waiting.parked.take().is_none() {
            return;
        }
        let shown = async {
            self.show_label(claim, claim.state, None).await?;
            self.show_progress(claim).await
        };
        if let Err(interruption) = shown.await {
            tracing::warn!(task = %claim.lease.task, "it could not be shown that the run goes on: {interruption:?}");
        }
    }

    async fn show_at_once(&mut self, claim: &mut Claim, state: State) -> Result<(), Interruption> {
        claim.record.worked.doing.clear();
        if let Some(waiting) = self.pending.take() {
            waiting.take_back().await;
        }
        match self.progress_text(claim, state) {
            Some(text) => self.write(claim, PROGRESS, &text, IfPresent::Edit).await,
            None => Ok(()),
        }
    }

    /// Returns the text of the progress comment; `None` for a terminal. A follow-up round has one
    /// only while it waits: otherwise the reviewers see a reaction, the label and one comment with
    /// the result.
    fn progress_text(&self, claim: &Claim, state: State) -> Option<Page> {
        let ReportTarget::Item { labels, .. } = &self.destination else {
            return None;
        };
        let is_quiet = claim.record.request.round.is_some()
            && claim.record.waiting.parked.is_none()
            && !has_progress_comment(claim);
        (!is_quiet).then(|| comments::progress(claim.lease.run, state, &claim.record, &claim.services.settings, labels))
    }

    fn edit_later(&mut self, claim: &mut Claim, comment: CommentId, page: &Page, due: Instant) {
        let ReportTarget::Item { forge, .. } = &self.destination else {
            return;
        };
        let (forge, task, marker) = (Arc::clone(forge), claim.lease.task.clone(), marker(claim));
        let body = page.written(&claim.services.redactor);
        self.pending = Some(PendingEdit::new(|stop| {
            tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep_until(due.into()) => {}
                }
                let post = Post {
                    marker: &marker,
                    body: &body,
                    search_first: false,
                };
                if let Err(error) = forge.edit_comment(&task, comment, &post).await {
                    tracing::warn!(%task, "the progress could not be shown: {error}");
                }
            })
        }));
    }

    /// Shows the model's current activity: at once on a terminal, on the item at growing intervals
    /// (at least 5 s), so that a long run does not cost hundreds of requests. An error of the forge
    /// is logged and ignored.
    pub(crate) async fn say_what_is_going_on(&mut self, claim: &mut Claim, comment: &str) {
        claim.record.worked.doing = claim.services.redactor.clean(comment.trim()).into_string();
        if matches!(self.destination, ReportTarget::Terminal { .. }) {
            self.tell_terminal(claim, comment);
            return;
        }
        let pause = SHORTEST_PAUSE.max(claim.begun.elapsed() / 4);
        // A pending edit is updated at no extra cost.
        let is_waiting = self.shown_at.is_some_and(|at| at > Instant::now());
        if !is_waiting && self.shown_at.is_some_and(|at| at.elapsed() < pause) {
            return;
        }
        if let Err(interruption) = self.show_progress(claim).await {
            tracing::warn!(task = %claim.lease.task, "the progress could not be shown: {interruption:?}");
        }
    }
}

/// Returns the marker by which the comment is found again.
fn marker(claim: &Claim) -> String {
    format!("{}:{PROGRESS}", claim.lease.run)
}

fn has_progress_comment(claim: &Claim) -> bool {
    claim.record.thread.comments.contains_key(&marker(claim))
}

fn progress_comment(claim: &Claim) -> Option<CommentId> {
    claim.record.thread.comments.get(&marker(claim)).copied().flatten()
}
