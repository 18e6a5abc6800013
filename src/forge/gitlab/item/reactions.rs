//! The bot's reactions to what people wrote: GitLab's award emojis.

use http::StatusCode;

use crate::forge::gitlab::Api;
use crate::forge::gitlab::http::endpoints::Below;
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::once;
use crate::forge::item::address::ItemAddress;
use crate::forge::{CommentKey, Reaction};

impl Api {
    pub(crate) async fn put_award(
        &self,
        address: ItemAddress<'_>,
        comment: CommentKey,
        reaction: Reaction,
    ) -> Result<(), Failure> {
        let (note, name) = (comment.number, name(reaction));
        // GitLab keeps one award of a name for each account, so that there is no need to look
        // before a repeat.
        let put = once(
            false,
            || async { Ok(None) },
            || async { taken_for_done(self.post_award(address, note, name).await) },
        )
        .await;
        let Err(failure) = put else { return Ok(()) };
        if failure.is_missing() && self.is_gone(address, note).await {
            return Ok(());
        }
        Err(failure)
    }

    async fn post_award(&self, address: ItemAddress<'_>, note: u64, name: &str) -> Result<(), Failure> {
        let award = Below::post(address, format!("/notes/{note}/award_emoji")).with("name", name);
        self.client.order(award.build()).await
    }

    /// Tells whether the comment is gone: GitLab also answers 404 for an award that is not allowed,
    /// but then the comment can be read.
    async fn is_gone(&self, address: ItemAddress<'_>, note: u64) -> bool {
        match self.notes(address).await {
            Ok(notes) => notes.iter().all(|known| known.id != note),
            Err(failure) => failure.is_missing(),
        }
    }
}

/// Treats the refusal of a second award of the same name, a 404, as success.
fn taken_for_done(put: Result<(), Failure>) -> Result<(), Failure> {
    match put {
        Err(failure) if failure.says(StatusCode::NOT_FOUND, "already been taken") => Ok(()),
        put => put,
    }
}

fn name(reaction: Reaction) -> &'static str {
    match reaction {
        Reaction::Seen => "eyes",
        Reaction::Done => "thumbsup",
        Reaction::Refused => "confused",
    }
}
