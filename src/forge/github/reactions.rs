//! The bot's reactions to what people wrote.

use http::Method;
use serde_json::json;

use super::client::path;
use super::installations::Rights;
use super::rights::Right;
use super::{Address, GitHub, attempt};
use crate::forge::retry::Repeat;
use crate::forge::{CommentKey, CommentKind, ForgeError, Reaction};

impl GitHub {
    /// GitHub keeps one reaction of a kind for each account, so that writing it again does nothing.
    pub(super) async fn put_reaction(
        &self,
        address: Address<'_>,
        comment: CommentKey,
        reaction: Reaction,
    ) -> Result<(), ForgeError> {
        let (place, right) = match comment.kind {
            CommentKind::Comment => ("issues", Right::WriteIssues),
            CommentKind::Inline => ("pulls", Right::WritePulls),
            // GitHub has no way to react to it but GraphQL, which not every token may use.
            CommentKind::Review => return Ok(()),
        };
        let rights = Rights::Repository(address.repository);
        let at = path(address.repository, &format!("/{place}/comments/{}", comment.number));
        let body = json!({ "content": content(reaction) });
        let reactions = format!("{at}/reactions");
        let put = self
            .client
            .order(rights, Method::POST, &reactions, Some(&body), Repeat::Always)
            .await;
        let Err(failure) = put else { return Ok(()) };
        // The comment is gone, unless it can be read: then it is the right that is missing.
        if failure.is_missing()
            && self
                .client
                .fetch(rights, &at)
                .await
                .is_err_and(|asked| asked.is_missing())
        {
            return Ok(());
        }
        let what = format!("reacting to {comment} on {address}");
        Err(attempt(&what, &right.remedy(address.repository)).failed(failure))
    }
}

fn content(reaction: Reaction) -> &'static str {
    match reaction {
        Reaction::Seen => "eyes",
        Reaction::Done => "+1",
        Reaction::Refused => "confused",
    }
}
