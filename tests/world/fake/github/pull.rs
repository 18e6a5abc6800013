//! What only a pull request has: a branch, a diff, and reviews.

use crate::fake::bare::Bare;
use crate::fake::bare::Commit;
use crate::fake::github::Item;
use crate::fake::github::state::LineComment;
use crate::fake::github::state::Pull;
use crate::fake::github::state::Review;
use crate::fake::github::state::What;
use crate::fake::github::state::now;

impl Item {
    pub fn is_draft(&self) -> bool {
        self.pull(|pull| pull.is_draft)
    }

    /// The branch that is to be merged.
    pub fn head(&self) -> String {
        self.pull(|pull| pull.head.clone())
    }

    /// The branch that it is to be merged into.
    pub fn base(&self) -> String {
        self.pull(|pull| pull.base.clone())
    }

    pub fn head_repository(&self) -> String {
        self.pull(|pull| pull.head_repository.clone())
    }

    /// Returns the text of a file as the pull request would have it.
    pub fn file(&self, path: &str) -> Option<String> {
        self.git(|git, _, head| git.file(head, path))
    }

    /// Returns every path that the pull request would leave.
    pub fn files(&self) -> Vec<String> {
        self.git(|git, _, head| git.files(head))
    }

    pub fn diff(&self) -> String {
        self.git(Bare::diff)
    }

    /// Returns the commits that it would add, oldest first.
    pub fn commits(&self) -> Vec<Commit> {
        self.git(Bare::commits)
    }

    pub fn draft(&self) -> Self {
        self.alter(|item| item.pull.as_mut().expect("a pull request").is_draft = true)
    }

    /// Lets those who may write to the repository push to the fork's branch, too.
    pub fn allows_maintainers(&self) -> Self {
        self.alter(|item| item.pull.as_mut().expect("a pull request").maintainers_can_modify = true)
    }

    /// Writes a review without remarks on lines.
    pub fn review(&self, author: &str, text: &str) -> Self {
        self.act(|state| {
            let id = state.next_id();
            let review = new_review(id, author, text);
            let item = state
                .item_mut(self.repository(), self.number())
                .expect("an item is never forgotten");
            item.pull.as_mut().expect("a pull request").reviews.push(review);
            state.happened(self.repository(), self.number(), author, What::Reviewed(id));
        })
    }

    /// Writes a remark on a line of a file.
    pub fn line_comment(&self, author: &str, path: &str, line: u64, text: &str) -> Self {
        self.act(|state| {
            let (id, review) = (state.next_id(), state.next_id());
            let comment = LineComment {
                id,
                review,
                in_reply_to: None,
                author: author.to_owned(),
                body: text.to_owned(),
                path: path.to_owned(),
                line,
                created: now(),
            };
            let item = state
                .item_mut(self.repository(), self.number())
                .expect("an item is never forgotten");
            let pull = item.pull.as_mut().expect("a pull request");
            // A single remark is a review of its own, with an empty text.
            pull.reviews.push(new_review(review, author, ""));
            pull.line_comments.push(comment);
            state.happened(self.repository(), self.number(), author, What::LineCommented(id));
        })
    }

    /// Makes the last remark on a line older.
    pub fn minutes_ago(&self, minutes: i64) -> Self {
        self.alter(|item| {
            let remarks = &mut item.pull.as_mut().expect("a pull request").line_comments;
            remarks.last_mut().expect("a remark was written").created -= chrono::Duration::minutes(minutes);
        })
    }

    fn pull<R>(&self, look: impl FnOnce(&Pull) -> R) -> R {
        self.with(|item| look(item.pull.as_ref().expect("a pull request")))
    }

    fn git<R>(&self, look: impl FnOnce(&Bare, &str, &str) -> R) -> R {
        let git = self.look(|state| state.repository(self.repository()).map(|place| place.git.clone()));
        let (base, head) = (
            format!("refs/heads/{}", self.base()),
            format!("refs/pull/{}/head", self.number()),
        );
        look(&git.expect("a repository is never taken away"), &base, &head)
    }
}

fn new_review(id: u64, author: &str, text: &str) -> Review {
    Review {
        id,
        author: author.to_owned(),
        body: text.to_owned(),
        state: "COMMENTED",
        submitted: now(),
    }
}
