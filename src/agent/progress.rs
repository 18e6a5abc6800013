//! The one progress comment of a run: written once, then edited in place, at most once in five
//! seconds.
//!
//! What comes earlier waits, and what comes after that takes its place, so that the newest is shown
//! in the end. Only the last edit, when the work on the run ends for now or for good, is made at
//! once: nobody waits for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pending::Pending;
use super::run::Run;
use super::setback::Setback;
use super::talk;
use super::telling::Again;
use super::thread::Thread;
use crate::forge::{CommentId, Post};
use crate::markdown::compose::Page;
use crate::task::state::State;

/// What the comment is called in its marker.
const PROGRESS: &str = "progress";
/// Shortest time between two edits.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5);
impl Run {
    /// Writes the progress comment, or edits it as soon as it may be edited.
    pub(super) async fn show_progress(&mut self) -> Result<(), Setback> {
        let Some(text) = self.progress_text(self.state) else {
            return Ok(());
        };
        let now = Instant::now();
        let due = match self.shown_at {
            // One waits already: this one takes its place.
            Some(shown) if shown > now => shown,
            Some(shown) => now.max(shown + SHORTEST_PAUSE),
            None => now,
        };
        if let Some(waiting) = self.pending.take() {
            waiting.take_back().await;
        }
        self.shown_at = Some(due);
        match self.progress_comment() {
            Some(comment) if due > now => {
                self.edit_later(comment, &text, due);
                Ok(())
            }
            _ => {
                let written = self.write(PROGRESS, &text, Again::Edit).await;
                self.shown_at = Some(Instant::now());
                written
            }
        }
    }

    /// Edits the progress comment at once and for the last time in this process, if there is one.
    pub(super) async fn show_final(&mut self, state: State) -> Result<(), Setback> {
        if self.has_progress_comment() {
            return self.show_at_once(state).await;
        }
        Ok(())
    }

    /// Shows that the run waits for the outside. It may be the first that people see of it.
    pub(super) async fn show_parked(&mut self) -> Result<(), Setback> {
        self.show_at_once(self.state).await?;
        let shown = self.state.stage().map_or(self.state, State::Paused);
        self.show_label(shown, None).await?;
        self.save().await
    }

    /// Takes back what was shown of a run that waited for the outside, because it goes on.
    pub(super) async fn show_that_it_goes_on(&mut self) {
        if self.record.parked.take().is_none() {
            return;
        }
        let shown = async {
            self.show_label(self.state, None).await?;
            self.show_progress().await
        };
        if let Err(setback) = shown.await {
            tracing::warn!(task = %self.lease.task, "it could not be shown that the run goes on: {setback:?}");
        }
    }

    async fn show_at_once(&mut self, state: State) -> Result<(), Setback> {
        self.record.doing.clear();
        if let Some(waiting) = self.pending.take() {
            waiting.take_back().await;
        }
        match self.progress_text(state) {
            Some(text) => self.write(PROGRESS, &text, Again::Edit).await,
            None => Ok(()),
        }
    }

    /// Returns the text of the progress comment; a terminal has none. A round on an own pull/merge
    /// request has one only if it has to wait: else the reviewers see a reaction and the label, and
    /// what came of it is one comment, not two.
    fn progress_text(&self, state: State) -> Option<Page> {
        let Thread::Item { labels, .. } = &self.thread else {
            return None;
        };
        let is_quiet = self.record.round.is_some() && self.record.parked.is_none() && !self.has_progress_comment();
        (!is_quiet).then(|| talk::progress(self.lease.run, state, &self.record, &self.workshop.settings, labels))
    }

    fn marker(&self) -> String {
        format!("{}:{PROGRESS}", self.lease.run)
    }

    fn has_progress_comment(&self) -> bool {
        self.record.comments.contains_key(&self.marker())
    }

    fn progress_comment(&self) -> Option<CommentId> {
        self.record.comments.get(&self.marker()).copied().flatten()
    }

    fn edit_later(&mut self, comment: CommentId, page: &Page, due: Instant) {
        let Thread::Item { forge, .. } = &self.thread else {
            return;
        };
        let (forge, task, marker) = (Arc::clone(forge), self.lease.task.clone(), self.marker());
        let body = page.written(&self.workshop.redactor);
        self.pending = Some(Pending::new(|stop| {
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

    /// Shows what the model does now: at once on a terminal, on the item ever more rarely the
    /// longer the run lasts (at most every 5 s), so that a long run does not cost hundreds of
    /// requests. A forge that does not answer is passed over.
    pub(super) async fn say_what_is_going_on(&mut self, comment: &str) {
        self.record.doing = self.workshop.redactor.clean(comment.trim()).into_string();
        if matches!(self.thread, Thread::Terminal { .. }) {
            self.tell_terminal(comment);
            return;
        }
        let pause = SHORTEST_PAUSE.max(self.begun.elapsed() / 4);
        // An edit that waits costs nothing more when it tells of this as well.
        let is_waiting = self.shown_at.is_some_and(|at| at > Instant::now());
        if !is_waiting && self.shown_at.is_some_and(|at| at.elapsed() < pause) {
            return;
        }
        if let Err(setback) = self.show_progress().await {
            tracing::warn!(task = %self.lease.task, "the progress could not be shown: {setback:?}");
        }
    }
}
