//! Reports to people: comments and labels on the item, or lines on the terminal. The progress
//! comment is in [`crate::agent::reporter::progress_comment`].

pub mod destination; // the item, or the terminal
mod progress_editor; // edits the progress comment as facts of the run are written
mod progress_comment; // posts it, and shows in it how the work ended

use std::sync::Arc;
use std::time::Duration;

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::reporter::progress_editor::ProgressEditor;
use crate::forge::{CommentKey, ForgeError, Item, Post};
use crate::journal::fact::Fact;
use crate::markdown::compose::Page;
use crate::task::labels::Labels;
use crate::task::state::State;

/// Longest time to read the item of a run that ends.
const LOOK_TIME: Duration = Duration::from_secs(20);

/// Reports on one run.
pub struct Reporter {
    pub(crate) destination: ReportTarget,
    /// Edits the progress comment while the run is at work.
    pub(crate) editor: Option<ProgressEditor>,
}

impl Reporter {
    /// Creates a reporter that has not reported anything yet.
    pub(crate) fn new(destination: ReportTarget) -> Self {
        Self {
            destination,
            editor: None,
        }
    }

    /// Returns the item, or an interruption if it is no longer to be worked on.
    pub(crate) async fn item(&mut self, claim: &mut Claim) -> Result<Option<Item>, Interruption> {
        let ReportTarget::Item { forge, labels } = &self.destination else {
            return Ok(None);
        };
        let item = forge.item(&claim.lease.task).await?;
        // Who merges the result closes its item, and does not withdraw it.
        if !item.is_open && !claim.record.is_handed_over() {
            return Err(Interruption::Withdrawn {
                reason: item.why_closed().to_owned(),
                item_exists: true,
            });
        }
        if is_finished_elsewhere(claim, &item, labels) {
            return Err(Interruption::FinishedElsewhere);
        }
        let carries = |label: &String| item.labels.contains(label);
        // A process killed after it set the final label left the other steps of delivery to be
        // done; so did whoever closed an item whose result is there, or took its labels off.
        let is_delivered = claim.record.is_handed_over() || (claim.state == State::Delivering && carries(&labels.done));
        let is_shown = [&labels.processing, &labels.trigger, &labels.paused, &labels.waiting]
            .into_iter()
            .any(carries)
            || is_delivered;
        if claim.state != State::Planning && !is_shown {
            let reason = format!("the label `{}` was taken off", labels.processing);
            return Err(Interruption::Withdrawn {
                reason,
                item_exists: true,
            });
        }
        Ok(Some(item))
    }

    /// Returns the item of a run that ends, if its work is to be brought there: it is open, and no
    /// other installation has finished it. Its labels do not count: they may show the end already.
    pub(crate) async fn item_at_end(&self, claim: &Claim) -> Result<Option<Item>, Interruption> {
        let ReportTarget::Item { forge, labels } = &self.destination else {
            return Ok(None);
        };
        let item = forge.item(&claim.lease.task).await?;
        let is_wanted = item.is_open && !is_finished_elsewhere(claim, &item, labels);
        Ok(is_wanted.then_some(item))
    }

    /// Tells whether another installation finished the item. An item that cannot be read is taken
    /// for unfinished.
    pub(crate) async fn finds_it_finished(&self, claim: &Claim) -> bool {
        let ReportTarget::Item { forge, labels } = &self.destination else {
            return false;
        };
        let read = tokio::time::timeout(LOOK_TIME, forge.item(&claim.lease.task)).await;
        read.is_ok_and(|read| read.is_ok_and(|item| is_finished_elsewhere(claim, &item, labels)))
    }

    /// Posts a comment once in the life of the run, however often this is called.
    pub(crate) async fn say(&mut self, claim: &mut Claim, what: &str, page: &Page) -> Result<(), Interruption> {
        self.write(claim, what, page, IfPresent::Leave).await
    }

    /// Prints the current activity, if the destination is a terminal.
    pub(crate) fn tell_terminal(&self, claim: &Claim, text: &str) {
        if let ReportTarget::Terminal { show } = &self.destination
            && !text.trim().is_empty()
        {
            show(&claim.services.redactor.clean(text.trim()));
        }
    }

    /// Posts the comment; if it exists, does what `again` says.
    pub(crate) async fn write(
        &mut self,
        claim: &mut Claim,
        what: &str,
        page: &Page,
        again: IfPresent,
    ) -> Result<(), Interruption> {
        let body = page.written(&claim.services.redactor);
        let (forge, task) = match &self.destination {
            ReportTarget::Item { forge, .. } => (Arc::clone(forge), claim.lease.task.clone()),
            ReportTarget::Terminal { .. } => return Ok(()),
        };
        let marker = claim.marker(what);
        let known = claim.record.thread.comments.get(&marker).copied();
        let search_first = known == Some(None);
        let post = Post {
            marker: &marker,
            body: &body,
            search_first,
        };
        if let Some(Some(comment)) = known {
            return match again {
                IfPresent::Leave => Ok(()),
                IfPresent::Edit => match forge.edit_comment(&task, comment, &post).await {
                    // A deleted comment is not posted again, since somebody did not want it. If the
                    // item itself is gone, the next request for it fails.
                    Err(ForgeError::Gone { .. }) => Ok(()),
                    edited => Ok(edited?),
                },
            };
        }
        // Saved before posting, so that a process that takes over after a crash searches first.
        claim.record.thread.comments.insert(marker.clone(), None);
        claim.save().await?;
        let comment = forge.comment(&task, &post).await?;
        claim.record.thread.comments.insert(marker.clone(), Some(comment));
        claim.save().await?;
        claim.note(Fact::Commented { marker });
        Ok(())
    }

    /// Replies in a reviewer's thread, once in the life of the run. Returns how the forge took it.
    pub(crate) async fn reply(
        &mut self,
        claim: &mut Claim,
        thread: CommentKey,
        page: &Page,
    ) -> Result<Result<(), ForgeError>, Interruption> {
        let ReportTarget::Item { forge, .. } = &self.destination else {
            return Ok(Ok(()));
        };
        let marker = claim.marker(&format!("reply-to-{thread}"));
        let known = claim.record.thread.comments.get(&marker).copied();
        if let Some(Some(_)) = known {
            return Ok(Ok(()));
        }
        claim.record.thread.comments.insert(marker.clone(), None);
        claim.save().await?;
        let post = Post {
            marker: &marker,
            body: &page.written(&claim.services.redactor),
            search_first: known.is_some(),
        };
        let replied = forge.reply(&claim.lease.task, thread, &post).await;
        Ok(replied.map(|comment| {
            claim.record.thread.comments.insert(marker.clone(), Some(comment));
            claim.note(Fact::Commented { marker });
        }))
    }

    /// Sets the label for `state`, and removes the program's other labels.
    pub(crate) async fn show_label(
        &mut self,
        claim: &mut Claim,
        state: State,
        carried: Carried<'_>,
    ) -> Result<(), Interruption> {
        let ReportTarget::Item { forge, labels } = &self.destination else {
            return Ok(());
        };
        let task = &claim.lease.task;
        let wanted = labels.showing(state);
        let shown = claim.record.thread.shown.clone();
        // Until the run has set a label, the item may have any that an earlier run left.
        let read = match carried {
            Carried::Unread if shown.is_none() => Some(forge.item(task).await?.labels),
            Carried::Unread | Carried::Read(_) => None,
        };
        let carried = read.as_deref().map_or(carried, Carried::Read);
        let is_there = match carried {
            Carried::Read(found) => found.iter().any(|label| label == wanted),
            Carried::Unread => shown.as_deref() == Some(wanted),
        };
        // Added first: between the two requests the item has two labels rather than none.
        if !is_there {
            forge.add_label(task, wanted).await?;
            claim.note(Fact::LabelChanged {
                added: Some(wanted.to_owned()),
                removed: None,
            });
        }
        let ours = [
            &labels.processing,
            &labels.waiting,
            &labels.paused,
            &labels.stopped,
            &labels.failed,
            &labels.done,
        ];
        for label in ours.into_iter().filter(|label| *label != wanted) {
            let is_known = match carried {
                Carried::Read(found) => found.contains(label),
                // The producer set the one, and the latest may not have been saved.
                Carried::Unread => *label == labels.processing || shown.as_ref() == Some(label),
            };
            if is_known {
                forge.remove_label(task, label).await?;
                claim.note(Fact::LabelChanged {
                    added: None,
                    removed: Some(label.clone()),
                });
            }
        }
        claim.record.thread.shown = Some(wanted.to_owned());
        Ok(())
    }

    /// Returns true if the label for `state` was the last one set on the item.
    pub(crate) fn is_shown(&self, claim: &Claim, state: State) -> bool {
        match &self.destination {
            ReportTarget::Item { labels, .. } => claim.record.thread.shown.as_deref() == Some(labels.showing(state)),
            ReportTarget::Terminal { .. } => true,
        }
    }

    /// Removes the trigger label if it is still set, so that only a new request of a person starts
    /// another run.
    pub(crate) async fn take_trigger_off(&self, item: &Item) -> Result<(), Interruption> {
        let ReportTarget::Item { forge, labels } = &self.destination else {
            return Ok(());
        };
        if item.labels.contains(&labels.trigger) {
            forge.remove_label(&item.task, &labels.trigger).await?;
        }
        Ok(())
    }
}

/// Tells whether an item that this run works on has a label of work that has ended, although this
/// run has not ended: it took such labels off when it began.
fn is_finished_elsewhere(claim: &Claim, item: &Item, labels: &Labels) -> bool {
    let thread = &claim.record.thread;
    let began = thread.shown.is_some();
    began && labels.show_an_end(&item.labels) && !thread.comments.contains_key(&claim.marker("final"))
}

/// The labels that an item carries, as far as they are known.
#[derive(Clone, Copy)]
pub(crate) enum Carried<'a> {
    /// The labels of the item, as just read.
    Read(&'a [String]),
    /// The item was not read. Of the program's labels it has the one that the run set last; until
    /// the run has set one, it is read.
    Unread,
}

/// Action for a comment that exists already.
#[derive(Clone, Copy)]
pub(crate) enum IfPresent {
    Leave,
    Edit,
}
