//! An issue or a pull request in GitHub's words, and what only a pull request has: branches and
//! reviews.

use crate::fake::board::Board as _;
use crate::fake::board::HUMAN;
use crate::fake::github::Comment;
use crate::fake::github::Item;
use crate::fake::github::Remark;
use crate::fake::github::state::LineComment;
use crate::fake::github::state::Pull;
use crate::fake::github::state::Verdict;
use crate::fake::github::state::now;
use crate::fake::history::What;

impl Item {
    pub fn number(&self) -> u64 {
        self.place().number
    }

    /// The full name of the repository.
    pub fn repository(&self) -> &str {
        &self.place().repository
    }

    pub fn is_pull(&self) -> bool {
        self.with(|item| item.pull.is_some())
    }

    /// Returns all comments in order, each with what it said before it was edited.
    pub fn comments(&self) -> Vec<Comment> {
        self.with(|item| item.comments.clone())
    }

    /// Returns the texts of the comments of one author.
    pub fn comments_of(&self, author: &str) -> Vec<String> {
        let comments = self.comments().into_iter().filter(|comment| comment.author == author);
        comments.map(|comment| comment.body).collect()
    }

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

    pub fn draft(&self) -> Self {
        self.alter(|item| item.pull.as_mut().expect("a pull request").is_draft = true)
    }

    /// Marks it as ready for review.
    pub fn ready(&self) -> Self {
        self.act(|state| state.set_draft(self.place(), HUMAN, false))
    }

    /// Lets those who may write to the repository push to the fork's branch, too.
    pub fn allows_maintainers(&self) -> Self {
        self.alter(|item| item.pull.as_mut().expect("a pull request").maintainers_can_modify = true)
    }

    /// Points it to another branch.
    pub fn retarget_by(&self, login: &str, base: &str) -> Self {
        self.act(|state| state.retarget(self.place(), login, base))
    }

    /// Has the fork deleted that it comes from.
    pub fn loses_its_fork(&self) -> Self {
        self.alter(|item| item.pull.as_mut().expect("a pull request").head_repository += "-deleted")
    }

    /// Merges it, as far as people see.
    pub fn merges(&self) -> Self {
        self.alter(|item| item.pull.as_mut().expect("a pull request").merged = Some(now()));
        self.act(|state| {
            state.happened(self.place(), HUMAN, What::Merged);
            state.close(self.place(), HUMAN);
        })
    }

    /// Writes a review without remarks on lines.
    pub fn review(&self, author: &str, text: &str) -> Self {
        self.reviewed(author, Verdict::Commented, text)
    }

    pub fn requests_changes(&self, author: &str, text: &str) -> Self {
        self.reviewed(author, Verdict::ChangesRequested, text)
    }

    pub fn approves(&self, author: &str, text: &str) -> Self {
        self.reviewed(author, Verdict::Approved, text)
    }

    fn reviewed(&self, author: &str, verdict: Verdict, text: &str) -> Self {
        self.act(|state| state.review(self.place(), author, verdict, text))
    }

    /// Writes a remark on a line of a file.
    pub fn line_comment(&self, author: &str, path: &str, line: u64, text: &str) -> Self {
        self.act(|state| _ = state.line_comment(self.place(), author, (path, line), text))
    }

    /// Writes a reply in the thread of the newest remark.
    pub fn line_reply(&self, author: &str, text: &str) -> Self {
        let newest = self.last_remark();
        self.act(|state| _ = state.reply(self.place(), &newest, author, text))
    }

    /// Returns the replies to remarks on lines, each with the text of the remark.
    pub fn replies(&self) -> Vec<(String, Comment)> {
        self.pull(|pull| {
            let text = |id| pull.line_comments.iter().find(|written| written.comment.id == id);
            let all = pull.line_comments.iter();
            let replies = all.filter_map(|written| Some((text(written.in_reply_to?)?, written)));
            let told = replies.map(|(first, reply)| (first.comment.body.clone(), reply.comment.clone()));
            told.collect()
        })
    }

    pub fn reviewers(&self) -> Vec<String> {
        self.pull(|pull| pull.reviewers.clone())
    }

    fn last_remark(&self) -> LineComment {
        let newest = self.pull(|pull| {
            let mut begun = pull
                .line_comments
                .iter()
                .filter(|written| written.in_reply_to.is_none());
            begun.next_back().cloned()
        });
        newest.expect("a remark was written")
    }

    /// Returns the newest remark on a line that is no reply.
    pub fn last_line_comment(&self) -> Remark {
        Remark::at(self, self.last_remark().comment.id)
    }

    /// Returns the text of the newest review.
    pub fn last_review(&self) -> Remark {
        let id = self.pull(|pull| pull.reviews.last().map(|review| review.id));
        Remark::at(self, id.expect("a review was written"))
    }

    /// Makes the last remark on a line older.
    pub fn minutes_ago(&self, minutes: i64) -> Self {
        self.alter(|item| {
            let remarks = &mut item.pull.as_mut().expect("a pull request").line_comments;
            let remark = &mut remarks.last_mut().expect("a remark was written").comment;
            let earlier = chrono::Duration::minutes(minutes);
            (remark.created, remark.updated) = (remark.created - earlier, remark.updated - earlier);
        })
    }

    fn pull<R>(&self, look: impl FnOnce(&Pull) -> R) -> R {
        self.with(|item| look(item.pull.as_ref().expect("a pull request")))
    }
}
