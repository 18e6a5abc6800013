//! Reading what people wrote, and writing the bot's own comments.

use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use serde_json::json;

use crate::forge::github::http::TokenScope;
use crate::forge::github::http::path;
use crate::forge::github::{Api, Kind, schema};
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::{Repeat, once};
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::CommentApi;
use crate::forge::{Comment, CommentId, CommentKey, CommentKind, Place, Post, Reaction};
use crate::markdown::marker::{is_marked, marked};

/// The longest body that GitHub takes.
pub(crate) const LONGEST_BODY: usize = 65_536;

#[async_trait]
impl CommentApi for Api {
    async fn read_comments(&self, address: ItemAddress<'_>) -> Result<Vec<Comment>, Failure> {
        let scope = TokenScope::Repository(address.repository);
        let number = address.number;
        let on_pull = |part: &str| path(address.repository, &format!("/pulls/{number}/{part}?per_page=100"));
        let mut comments = Vec::new();
        for comment in self.conversation(address).await? {
            self.take_over(&mut comments, CommentKind::Comment, comment).await?;
        }
        if self.kind(address).await? == Kind::PullRequest {
            for comment in self.remarks(address).await? {
                self.take_over(&mut comments, CommentKind::Inline, comment).await?;
            }
            for review in self.client.list::<schema::Review>(scope, &on_pull("reviews")).await? {
                let (Some(body), Some(created_at)) = (review.body, review.submitted_at) else {
                    continue;
                };
                if body.trim().is_empty() || self.is_bot(review.user.as_ref()).await? {
                    continue;
                }
                let is_bot = review.user.as_ref().is_some_and(schema::User::is_program);
                comments.push(Comment {
                    key: CommentKey {
                        kind: CommentKind::Review,
                        number: review.id,
                    },
                    author_id: review.user.as_ref().and_then(|user| user.id),
                    author: review.user.map(|user| user.login).unwrap_or_default(),
                    body,
                    created_at,
                    // GitHub does not tell when a review's text was edited.
                    updated_at: created_at,
                    place: None,
                    thread: None,
                    is_approval: review.state.as_deref() == Some("APPROVED"),
                    is_bot,
                });
            }
        }
        comments.sort_by_key(|comment| (comment.created_at, comment.key));
        Ok(comments)
    }

    async fn write_comment(&self, address: ItemAddress<'_>, post: &Post<'_>) -> Result<CommentId, Failure> {
        let at = path(address.repository, &format!("/issues/{}/comments", address.number));
        let body = json!({ "body": marked(post.body.as_str(), post.marker, LONGEST_BODY) });
        let find = || self.find_comment(address, post.marker);
        let make = || async {
            let scope = TokenScope::Repository(address.repository);
            let made = self
                .client
                .write::<schema::Made>(scope, Method::POST, &at, &body, Repeat::IfNotDone);
            Ok(CommentId(made.await?.id))
        };
        once(post.search_first, find, make).await
    }

    async fn rewrite_comment(
        &self,
        address: ItemAddress<'_>,
        comment: CommentId,
        post: &Post<'_>,
    ) -> Result<(), Failure> {
        let at = path(address.repository, &format!("/issues/comments/{}", comment.0));
        let body = json!({ "body": marked(post.body.as_str(), post.marker, LONGEST_BODY) });
        let scope = TokenScope::Repository(address.repository);
        let edited = self
            .client
            .order(scope, Method::PATCH, &at, Some(&body), Repeat::Always)
            .await;
        edited.map(|_| ())
    }

    async fn fetch_picture(&self, at: ItemAddress<'_>, address: &str) -> Result<Option<Bytes>, Failure> {
        self.picture(at, address).await
    }

    async fn put_reaction(
        &self,
        address: ItemAddress<'_>,
        comment: CommentKey,
        reaction: Reaction,
    ) -> Result<(), Failure> {
        self.react_to(address.repository, comment, reaction).await
    }
}

impl Api {
    async fn conversation(&self, address: ItemAddress<'_>) -> Result<Vec<schema::Comment>, Failure> {
        let at = path(
            address.repository,
            &format!("/issues/{}/comments?per_page=100", address.number),
        );
        self.client.list(TokenScope::Repository(address.repository), &at).await
    }

    async fn take_over(
        &self,
        comments: &mut Vec<Comment>,
        kind: CommentKind,
        comment: schema::Comment,
    ) -> Result<(), Failure> {
        if self.is_bot(comment.user.as_ref()).await? {
            return Ok(());
        }
        let line = comment.line;
        let is_bot = comment.user.as_ref().is_some_and(schema::User::is_program);
        comments.push(Comment {
            key: CommentKey {
                kind,
                number: comment.id,
            },
            author_id: comment.user.as_ref().and_then(|user| user.id),
            author: comment.user.map(|user| user.login).unwrap_or_default(),
            body: comment.body.unwrap_or_default(),
            created_at: comment.created_at,
            updated_at: comment.updated_at,
            place: comment.path.map(|path| Place { path, line }),
            thread: comment.in_reply_to_id.map(|number| CommentKey { kind, number }),
            is_approval: false,
            is_bot,
        });
        Ok(())
    }

    /// Returns the remarks on the lines of a pull request.
    pub(crate) async fn remarks(&self, address: ItemAddress<'_>) -> Result<Vec<schema::Comment>, Failure> {
        let at = path(
            address.repository,
            &format!("/pulls/{}/comments?per_page=100", address.number),
        );
        self.client.list(TokenScope::Repository(address.repository), &at).await
    }

    /// Finds the bot's own comment with a marker.
    pub(crate) async fn marked_by_bot(
        &self,
        comments: Vec<schema::Comment>,
        marker: &str,
    ) -> Result<Option<CommentId>, Failure> {
        for comment in comments {
            let is_marked = comment.body.as_deref().is_some_and(|body| is_marked(body, marker));
            if is_marked && self.is_bot(comment.user.as_ref()).await? {
                return Ok(Some(CommentId(comment.id)));
            }
        }
        Ok(None)
    }

    async fn find_comment(&self, address: ItemAddress<'_>, marker: &str) -> Result<Option<CommentId>, Failure> {
        self.marked_by_bot(self.conversation(address).await?, marker).await
    }
}
