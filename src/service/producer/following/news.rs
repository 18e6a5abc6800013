//! New comments of people on a pull/merge request since the last poll.

use std::collections::BTreeSet;

use crate::agent::inbox::authority::{Authority, KnownRights};
use crate::agent::record::follow_up::{Kind, Notes};
use crate::agent::record::message::{self, HeardComment};
use crate::forge::Comment;
use crate::journal::fact::Fact;
use crate::service::Service;
use crate::service::forges::Connected;
use crate::service::producer::AdmitError;
use crate::task::command::{Command, Said};
use crate::task::id::TaskId;

/// The comments of people since the last poll.
#[derive(Default)]
pub(super) struct News {
    pub(super) words: Vec<Comment>,
    /// The comment with the command that ends the following, and its author.
    pub(super) stop: Option<(HeardComment, String)>,
}

impl Service {
    /// Reads new comments; those that need no attention are recorded as heard. Words and a command
    /// that ends the following are recorded by whoever has acted on them: an attempt that fails is
    /// made again by the next poll. Where a comment cannot be judged now, those before it are not
    /// judged again.
    pub(super) async fn news(
        &self,
        connected: &Connected,
        task: &TaskId,
        notes: &mut Notes,
    ) -> Result<News, AdmitError> {
        let comments = connected.forge.comments(task).await?;
        let heard = self.heard_before(task).await?;
        let mut dealt_with = BTreeSet::new();
        let mut news = News::default();
        let mut rights = KnownRights::default();
        for comment in comments {
            let now = HeardComment::of(&comment);
            let is_known = now.is_in(&heard);
            let is_unasked = comment.is_approval || self.config.follow_up.most(Kind::Review) == 0;
            let command = Said::of(&comment.body).command;
            if !is_known && (command.is_some() || !is_unasked) {
                let forge = connected.forge.as_ref();
                if !rights.has(forge, task, &comment, false).await? {
                    self.ignore(task, &comment, Authority::of(forge, &comment));
                } else if command == Some(Command::Stop) {
                    if news.stop.is_none() {
                        news.stop = Some((now, comment.author.clone()));
                        continue;
                    }
                } else if command == Some(Command::AutoApproveOff) {
                    self.end_automatic_approval(&format!("@{}", comment.author)).await?;
                } else if !is_unasked && message::for_model(&comment).is_some() {
                    news.words.push(comment);
                    continue;
                }
            }
            notes.heard.insert(now.key, now.fingerprint);
            dealt_with.insert(now.key);
        }
        // Without those that were deleted.
        notes.heard.retain(|key, _| dealt_with.contains(key));
        Ok(news)
    }

    fn ignore(&self, task: &TaskId, comment: &Comment, standing: Authority) {
        let reason = format!("the comment {} is of {}", comment.key, standing.described());
        let author = comment.author.clone();
        self.record(task, None, Fact::Ignored { author, reason });
    }
}
