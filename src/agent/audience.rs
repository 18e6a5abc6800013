//! Whose words the model is given: those of people who may decide here.
//!
//! The item's own text is read by whoever puts the label on, and so vouched for, be it written by a stranger; what a
//! stranger changes later is not. Comments of others are left out, or quoted where the operator wants it.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::OtherComments;
use super::hearing::Hears;
use super::run::Run;
use super::setback::Setback;
use super::thread::Thread;
use crate::forge::{Comment, CommentKind, Deed, Forge, Item};
use crate::journal::fact::Fact;
use crate::markdown::sanitize::harmless_name;

/// Comments by whose words they are.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Of people who may decide.
    pub comments: Vec<Comment>,
    /// Of others, where they are to be quoted.
    pub others: Vec<Comment>,
}

impl Run {
    /// Refuses an item whose title or text was changed by somebody who may not, after the label was put on.
    pub(super) async fn require_vouched_text(&self, item: &Item) -> Result<(), Setback> {
        let (Some(trigger), Thread::Item { forge, .. }) = (&self.record.trigger, &self.thread) else {
            return Ok(());
        };
        let is_own = item.author.eq_ignore_ascii_case(&trigger.by);
        // Whoever may write changes what they like, and nobody else but the author can.
        if is_own || self.is_authorised(forge.as_ref(), &item.author).await? {
            return Ok(());
        }
        match forge.last_edit(&item.task).await? {
            Some(edit) if edit.at >= trigger.at && !self.is_authorised(forge.as_ref(), &edit.by).await? => {
                Err(Setback::refused_by_policy(changed_later(&edit)))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Sorts comments by whose words they are, and leaves out what nobody is to read.
    pub(super) async fn heed(&self, comments: Vec<Comment>) -> Result<Said, Setback> {
        let mut said = Said::default();
        let Thread::Item { forge, .. } = &self.thread else {
            return Ok(said);
        };
        let forge = Arc::clone(forge);
        let quotes = self.workshop.settings.steering.other_comments == OtherComments::Quote;
        for comment in comments {
            if self.ear.lock().await.hears(forge.as_ref(), &comment).await? {
                said.comments.push(comment);
            } else if quotes && self.trigger_at().is_some_and(|at| stood_before(&comment, at)) {
                said.others.push(comment);
            } else {
                self.note(Fact::Ignored {
                    author: comment.author.clone(),
                    reason: format!(
                        "the comment {} is of {}",
                        comment.key,
                        Hears::whom(forge.as_ref(), &comment).nobody()
                    ),
                });
            }
        }
        Ok(said)
    }

    fn trigger_at(&self) -> Option<DateTime<Utc>> {
        self.record.trigger.as_ref().map(|trigger| trigger.at)
    }

    async fn is_authorised(&self, forge: &dyn Forge, user: &str) -> Result<bool, Setback> {
        Ok(self.ear.lock().await.is_authorised(forge, user).await?)
    }
}

/// Tells whether a comment was there, as it is, when the label was put on: whoever did so has seen it. Of a review's own text
/// nobody can tell.
fn stood_before(comment: &Comment, trigger: DateTime<Utc>) -> bool {
    comment.created_at < trigger && comment.updated_at < trigger && comment.key.kind != CommentKind::Review
}

fn changed_later(edit: &Deed) -> String {
    let by = harmless_name(&edit.by).unwrap_or_else(|| "an account that is gone".to_owned());
    format!(
        "its title or text was changed by {by}, who may not write to the repository, after the label was put on; read it \
         again, and put the label on once more if it still says what is wanted"
    )
}
