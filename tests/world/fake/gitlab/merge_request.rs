//! What only a merge request has: a branch, a diff, and remarks on lines.

use crate::fake::bare::Bare;
use crate::fake::bare::Commit;
use crate::fake::gitlab::Item;
use crate::fake::gitlab::Remark;
use crate::fake::gitlab::state;
use crate::fake::gitlab::state::Merge;

impl Item {
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

    pub fn source_project(&self) -> String {
        self.merge(|merge| merge.source_project.clone())
    }

    /// Returns the text of a file as the merge request would have it.
    pub fn file(&self, path: &str) -> Option<String> {
        self.git(|git, _, head| git.file(head, path))
    }

    /// Returns every path that the merge request would leave.
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

    fn git<R>(&self, look: impl FnOnce(&Bare, &str, &str) -> R) -> R {
        let git = self.look(|state| state.project(self.project()).map(|project| project.git.clone()));
        let (target, head) = (
            format!("refs/heads/{}", self.target()),
            format!("refs/merge-requests/{}/head", self.iid()),
        );
        look(&git.expect("a project is never taken away"), &target, &head)
    }
}
