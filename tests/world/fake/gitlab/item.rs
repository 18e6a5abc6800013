//! An issue or a merge request in GitLab's words, and what only a merge request has: branches and
//! remarks on lines.

use crate::fake::board::Board as _;
use crate::fake::gitlab::Item;
use crate::fake::gitlab::Note;
use crate::fake::gitlab::Remark;
use crate::fake::gitlab::state;
use crate::fake::gitlab::state::Merge;

impl Item {
    /// The number within its project, as in `#12` or `!12`.
    pub fn iid(&self) -> u64 {
        self.place().iid
    }

    /// The full path of the project.
    pub fn project(&self) -> &str {
        &self.place().project
    }

    pub fn is_merge_request(&self) -> bool {
        self.with(|item| item.merge.is_some())
    }

    /// Returns all notes in order, GitLab's own among them.
    pub fn notes(&self) -> Vec<Note> {
        self.with(|item| item.notes.clone())
    }

    /// Returns what people and bots wrote, in order, each with what it said before it was edited.
    pub fn comments(&self) -> Vec<Note> {
        self.notes().into_iter().filter(|note| !note.is_system).collect()
    }

    /// Returns the texts of the comments of one author.
    pub fn comments_of(&self, author: &str) -> Vec<String> {
        let comments = self.comments().into_iter().filter(|comment| comment.author == author);
        comments.map(|comment| comment.body).collect()
    }

    /// Lets nobody see it but its author, whoever it is assigned to, and the team.
    pub fn confidential(&self) -> Self {
        self.alter(|item| item.is_confidential = true)
    }

    /// Writes a comment that only the team sees.
    pub fn internal_note(&self, author: &str, text: &str) -> Self {
        self.act(|state| {
            let id = state.note(self.place(), author, text, None);
            let note = state.item_mut(self.place()).and_then(|item| item.note_mut(id));
            note.expect("the note was just written").is_internal = true;
        })
    }

    pub fn is_draft(&self) -> bool {
        self.with(state::Item::is_draft)
    }

    /// The branch that is to be merged.
    pub fn source(&self) -> String {
        self.merge(|merge| merge.source.clone())
    }

    /// The branch that it is to be merged into.
    pub fn target(&self) -> String {
        self.merge(|merge| merge.target.clone())
    }

    /// Assigns it an hour ago without a note about who did, as an import does.
    pub fn assigned_without_a_word(&self, username: &str) -> Self {
        self.alter(|item| {
            item.assignees.push(username.to_owned());
            item.updated -= chrono::Duration::hours(1);
        })
    }

    pub fn reviewers(&self) -> Vec<String> {
        self.merge(|merge| merge.reviewers.clone())
    }

    /// Returns the notes in the discussion of a remark, the remark first.
    pub fn discussion_of(&self, remark: &Remark) -> Vec<Note> {
        let notes = self.notes();
        let discussion = notes.iter().find(|note| note.id == remark.id());
        let discussion = discussion.map(|note| note.discussion.clone()).unwrap_or_default();
        notes.into_iter().filter(|note| note.discussion == discussion).collect()
    }

    pub fn source_project(&self) -> String {
        self.merge(|merge| merge.source_project.clone())
    }

    /// Lets those who may write to the project push to the fork's branch, too.
    pub fn allows_collaboration(&self) -> Self {
        self.alter(|item| item.merge.as_mut().expect("a merge request").allows_collaboration = true)
    }

    /// Merges it, as far as people see.
    pub fn merges(&self) -> Self {
        self.alter(|item| {
            item.merge.as_mut().expect("a merge request").merged = Some(state::now());
            item.is_open = false;
        })
    }

    /// Asks for changes without a word: GitLab notes it itself.
    pub fn requests_changes(&self, reviewer: &str) -> Self {
        self.act(|state| state.system_note(self.place(), reviewer, "requested changes"))
    }

    /// Writes a remark on a line of a file.
    pub fn line_comment(&self, author: &str, path: &str, line: u64, text: &str) -> Self {
        self.act(|state| {
            let id = state.note(self.place(), author, text, None);
            let note = state.item_mut(self.place()).and_then(|item| item.note_mut(id));
            note.expect("the note was just written").position = Some((path.to_owned(), line));
        })
    }

    /// Returns the newest remark on a line.
    pub fn last_line_comment(&self) -> Remark {
        let mut remarks = self.notes().into_iter().filter(|note| note.position.is_some());
        let newest = remarks.next_back().expect("a remark was written");
        Remark::at(self, newest.id)
    }

    fn merge<R>(&self, look: impl FnOnce(&Merge) -> R) -> R {
        self.with(|item| look(item.merge.as_ref().expect("a merge request")))
    }
}
