//! The bot's reactions to what people wrote.

use http::Method;
use serde_json::json;

use crate::forge::github::Api;
use crate::forge::github::http::TokenScope;
use crate::forge::github::http::path;
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::Repeat;
use crate::forge::{CommentKey, CommentKind, Reaction};

impl Api {
    /// Adds a reaction to a comment. GitHub keeps one of each kind for an account, so repeating it
    /// changes nothing.
    pub(crate) async fn react_to(
        &self,
        repository: &str,
        comment: CommentKey,
        reaction: Reaction,
    ) -> Result<(), Failure> {
        let place = match comment.kind {
            CommentKind::Inline => "pulls",
            CommentKind::Comment | CommentKind::Review => "issues",
        };
        let scope = TokenScope::Repository(repository);
        let at = path(repository, &format!("/{place}/comments/{}", comment.number));
        let body = json!({ "content": content(reaction) });
        let reactions = format!("{at}/reactions");
        let put = self
            .client
            .order(scope, Method::POST, &reactions, Some(&body), Repeat::Always)
            .await;
        let Err(failure) = put else { return Ok(()) };
        // The comment is gone, unless it can be read: then it is the right that is missing.
        if failure.is_missing()
            && self
                .client
                .fetch(scope, &at)
                .await
                .is_err_and(|asked| asked.is_missing())
        {
            return Ok(());
        }
        Err(failure)
    }
}

fn content(reaction: Reaction) -> &'static str {
    match reaction {
        Reaction::Seen => "eyes",
        Reaction::Done => "+1",
        Reaction::Refused => "confused",
    }
}
