//! Reading what people wrote, and writing the bot's own notes.

use async_trait::async_trait;
use bytes::Bytes;

use crate::forge::gitlab::http::endpoints::Below;
use crate::forge::gitlab::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::once;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::CommentApi;
use crate::forge::{Comment, CommentId, CommentKey, CommentKind, Place, Post, Reaction};
use crate::markdown::marker::{is_marked, marked};
use crate::markdown::quick_actions::disarmed;
use crate::task::id::ItemKind;

/// The note that GitLab itself writes, since 17.0, when a reviewer requests changes; the list of
/// reviewers says neither when nor how often.
const CHANGES_REQUESTED: &str = "requested changes";
const ASKED_FOR_CHANGES: &str = "I request changes.";
/// The longest body that GitLab takes.
pub(crate) const LONGEST_BODY: usize = 1_000_000;

#[async_trait]
impl CommentApi for Api {
    /// Reads the notes, which include those on the changes with their position, so discussions need
    /// not be fetched.
    async fn read_comments(&self, address: ItemAddress<'_>) -> Result<Vec<Comment>, Failure> {
        let mut notes = self.notes(address).await?;
        if notes.iter().any(schema::Note::is_internal) && !self.has_readers_of_internal_notes(address).await? {
            notes.retain(|note| !note.is_internal());
        }
        let mut comments = Vec::new();
        for note in notes {
            let asks_for_changes = note.system && note.body.trim() == CHANGES_REQUESTED;
            if (note.system && !asks_for_changes) || self.is_bot(note.author.as_ref()).await? {
                continue;
            }
            let kind = match note.position {
                Some(_) => CommentKind::Inline,
                None if asks_for_changes => CommentKind::Review,
                None => CommentKind::Comment,
            };
            let is_bot = note.author.as_ref().is_some_and(schema::User::is_program);
            comments.push(Comment {
                key: CommentKey { kind, number: note.id },
                author_id: note.author.as_ref().and_then(|author| author.id),
                author: note.author.map(|author| author.username).unwrap_or_default(),
                body: if asks_for_changes {
                    ASKED_FOR_CHANGES.to_owned()
                } else {
                    note.body
                },
                created_at: note.created_at,
                updated_at: note.updated_at,
                place: note.position.and_then(place_of),
                thread: None,
                is_approval: false,
                is_bot,
            });
        }
        comments.sort_by_key(|comment| (comment.created_at, comment.key.number));
        Ok(comments)
    }

    async fn write_comment(&self, address: ItemAddress<'_>, post: &Post<'_>) -> Result<CommentId, Failure> {
        let body = body(post);
        let find = || self.find_note(address, post.marker);
        let make = || async {
            let note = Below::post(address, "/notes").with("body", &body);
            let note: schema::Note = self.client.ask(note.build()).await?;
            Ok(CommentId(note.id))
        };
        once(post.search_first, find, make).await
    }

    async fn rewrite_comment(
        &self,
        address: ItemAddress<'_>,
        comment: CommentId,
        post: &Post<'_>,
    ) -> Result<(), Failure> {
        let body = body(post);
        let note = Below::put(address, format!("/notes/{}", comment.0)).with("body", &body);
        self.client.order(note.build()).await
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
        self.put_award(address, comment, reaction).await
    }
}

impl Api {
    pub(crate) async fn notes(&self, address: ItemAddress<'_>) -> Result<Vec<schema::Note>, Failure> {
        let notes = Below::get(address, "/notes")
            .with("order_by", "created_at")
            .with("sort", "asc");
        self.client.list(notes.build()).await
    }

    /// Tells whether those who read an item, and what is made of it, are those who read its
    /// internal notes: words that only some may read must not come back in comments or a merge
    /// request that more people read. Guests of a private project read its issues that are not
    /// confidential, and neither its merge requests nor internal notes.
    async fn has_readers_of_internal_notes(&self, address: ItemAddress<'_>) -> Result<bool, Failure> {
        if self.project(address.repository).await?.is_open_to_more() {
            return Ok(false);
        }
        match address.kind {
            ItemKind::Issue => Ok(self.ask_item(address).await?.confidential == Some(true)),
            ItemKind::MergeRequest => Ok(true),
        }
    }

    pub(crate) async fn find_note(&self, address: ItemAddress<'_>, marker: &str) -> Result<Option<CommentId>, Failure> {
        for note in self.notes(address).await? {
            if is_marked(&note.body, marker) && self.is_bot(note.author.as_ref()).await? {
                return Ok(Some(CommentId(note.id)));
            }
        }
        Ok(None)
    }
}

pub(crate) fn body(post: &Post<'_>) -> String {
    marked(&disarmed(post.body.as_str()), post.marker, LONGEST_BODY)
}

fn place_of(position: schema::Position) -> Option<Place> {
    Some(Place {
        path: position.new_path.or(position.old_path)?,
        line: position.new_line.or(position.old_line),
    })
}
