//! Texts that people write on a fake GitHub: comments, remarks on lines, reviews, and reactions to
//! them.
//!
//! There is one function for each deed, so that a test and a client over HTTP leave the same
//! traces.

use crate::fake::board::Board as _;
use crate::fake::github::state::Comment;
use crate::fake::github::state::LineComment;
use crate::fake::github::state::Place;
use crate::fake::github::state::Reaction;
use crate::fake::github::state::Review;
use crate::fake::github::state::State;
use crate::fake::github::state::Verdict;
use crate::fake::github::state::now;
use crate::fake::history::What;

impl State {
    pub fn write_comment(&mut self, place: &Place, author: &str, body: &str) -> u64 {
        let comment = self.new_comment(author, body);
        let id = comment.id;
        if let Some(item) = self.item_mut(place) {
            item.comments.push(comment);
        }
        self.happened(place, author, What::Commented(id));
        id
    }

    /// Changes the text of a comment, of one on a line, or of a review.
    pub fn rewrite_comment(&mut self, place: &Place, id: u64, actor: &str, body: &str) {
        let Some(item) = self.item_mut(place) else {
            return;
        };
        if let Some(comment) = item.comment_mut(id) {
            let earlier = std::mem::replace(&mut comment.body, body.to_owned());
            comment.earlier.push(earlier);
            comment.updated = now();
        } else if let Some(review) = item.review_mut(id) {
            body.clone_into(&mut review.body);
        }
        self.happened(place, actor, What::CommentEdited(id));
    }

    /// Takes a comment away, also one on a line. A review cannot be taken away.
    pub fn take_comment_away(&mut self, place: &Place, id: u64, actor: &str) {
        let Some(item) = self.item_mut(place) else {
            return;
        };
        item.comments.retain(|comment| comment.id != id);
        if let Some(pull) = &mut item.pull {
            pull.line_comments.retain(|written| written.comment.id != id);
        }
        let gone = [What::Commented(id), What::LineCommented(id), What::CommentEdited(id)];
        item.history.retain(|happening| {
            let is_reaction = matches!(happening.what, What::Reacted { comment, .. } if comment == id);
            !is_reaction && !gone.contains(&happening.what)
        });
        self.happened(place, actor, What::CommentDeleted);
    }

    /// Returns the reaction, and whether it is new.
    pub fn react(&mut self, place: &Place, comment: u64, author: &str, content: &str) -> Option<(Reaction, bool)> {
        let reaction = Reaction {
            id: self.next_id(),
            author: author.to_owned(),
            content: content.to_owned(),
            created: now(),
        };
        let found = self.item_mut(place)?.comment_mut(comment)?;
        let same = |known: &&Reaction| known.author == author && known.content == content;
        if let Some(known) = found.reactions.iter().find(same) {
            return Some((known.clone(), false));
        }
        found.reactions.push(reaction.clone());
        self.happened(
            place,
            author,
            What::Reacted {
                comment,
                content: content.to_owned(),
            },
        );
        Some((reaction, true))
    }

    /// Writes a review without remarks on lines.
    pub fn review(&mut self, place: &Place, author: &str, verdict: Verdict, text: &str) {
        let id = self.add_review(place, author, verdict, text);
        self.happened(place, author, What::Reviewed(id));
    }

    /// Writes a reply in the thread that a remark began. Returns its number.
    pub fn reply(&mut self, place: &Place, first: &LineComment, author: &str, text: &str) -> u64 {
        let id = self.line_comment(place, author, (&first.path, first.line), text);
        let written = self.pull_mut(place).and_then(|pull| pull.line_comments.last_mut());
        written.expect("the reply was just written").in_reply_to = Some(first.comment.id);
        id
    }

    /// Writes a remark on a line of a file. Returns its number.
    pub fn line_comment(&mut self, place: &Place, author: &str, line: (&str, u64), text: &str) -> u64 {
        let comment = self.new_comment(author, text);
        let id = comment.id;
        // A single remark is a review of its own, with an empty text.
        let review = self.add_review(place, author, Verdict::Commented, "");
        let remark = LineComment {
            comment,
            review,
            in_reply_to: None,
            path: line.0.to_owned(),
            line: line.1,
        };
        if let Some(pull) = self.pull_mut(place) {
            pull.line_comments.push(remark);
        }
        self.happened(place, author, What::LineCommented(id));
        id
    }

    fn add_review(&mut self, place: &Place, author: &str, state: Verdict, text: &str) -> u64 {
        let id = self.next_id();
        let review = Review {
            id,
            author: author.to_owned(),
            body: text.to_owned(),
            state,
            submitted: now(),
        };
        if let Some(pull) = self.pull_mut(place) {
            pull.reviews.push(review);
        }
        id
    }

    fn new_comment(&mut self, author: &str, body: &str) -> Comment {
        Comment {
            id: self.next_id(),
            author: author.to_owned(),
            body: body.to_owned(),
            earlier: Vec::new(),
            reactions: Vec::new(),
            created: now(),
            updated: now(),
        }
    }
}
