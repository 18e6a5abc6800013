//! What can be done on a fake GitLab, by a person in a test or by a client over HTTP.
//!
//! One function for each deed, so that both leave the same traces. Permissions are checked by the
//! caller.

use crate::fake::forge::Host;
use crate::fake::forge::Refusal;
use crate::fake::gitlab::edits::ticked;
use crate::fake::gitlab::state::Access;
use crate::fake::gitlab::state::Award;
use crate::fake::gitlab::state::Item;
use crate::fake::gitlab::state::Kind;
use crate::fake::gitlab::state::Label;
use crate::fake::gitlab::state::Merge;
use crate::fake::gitlab::state::Note;
use crate::fake::gitlab::state::Place;
use crate::fake::gitlab::state::Project;
use crate::fake::gitlab::state::State;
use crate::fake::gitlab::state::What;
use crate::fake::gitlab::state::now;

/// The content of a new issue or merge request.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    pub title: String,
    pub description: Option<String>,
    pub author: String,
}

impl State {
    /// Opens an issue, or a merge request if `merge` says from where.
    pub fn open(&mut self, project: &str, draft: Draft, merge: Option<Merge>) -> Place {
        let id = self.next_id();
        self.people.insert(draft.author.clone());
        let kind = if merge.is_some() {
            Kind::MergeRequest
        } else {
            Kind::Issue
        };
        let found = self.project_mut(project).expect("the project was made before");
        let iid = found.items(kind).len() as u64 + 1;
        let place = Place {
            project: found.path.clone(),
            kind,
            iid,
        };
        let item = Item {
            id,
            iid,
            title: draft.title,
            description: draft.description,
            author: draft.author.clone(),
            is_open: true,
            is_locked: false,
            is_deleted: false,
            is_confidential: false,
            edited: None,
            labels: Vec::new(),
            assignees: Vec::new(),
            notes: Vec::new(),
            history: Vec::new(),
            created: now(),
            updated: now(),
            closed: None,
            closed_by: None,
            merge,
        };
        found.items_mut(kind).insert(iid, item);
        self.follow_head(&place);
        self.happened(&place, &draft.author, What::Opened);
        self.mention(&place);
        place
    }

    /// Puts a label on, which is made if the project has none of that name.
    pub fn add_label(&mut self, place: &Place, label: &str, actor: &str) {
        self.ensure_label(&place.project, label);
        let Some(item) = self
            .item_mut(place)
            .filter(|item| !item.labels.iter().any(|name| name == label))
        else {
            return;
        };
        item.labels.push(label.to_owned());
        self.happened(place, actor, What::LabelAdded(label.to_owned()));
    }

    /// Takes a label off. GitLab says nothing if it was not there.
    pub fn remove_label(&mut self, place: &Place, label: &str, actor: &str) {
        let Some(item) = self
            .item_mut(place)
            .filter(|item| item.labels.iter().any(|name| name == label))
        else {
            return;
        };
        item.labels.retain(|name| name != label);
        self.happened(place, actor, What::LabelRemoved(label.to_owned()));
    }

    /// Makes the labels these, one by one.
    pub fn set_labels(&mut self, place: &Place, labels: &[String], actor: &str) {
        let before = self.item(place).map(|item| item.labels.clone()).unwrap_or_default();
        for label in before.iter().filter(|label| !labels.contains(label)) {
            self.remove_label(place, label, actor);
        }
        for label in labels {
            self.add_label(place, label, actor);
        }
    }

    fn ensure_label(&mut self, project: &str, name: &str) {
        let id = self.next_id();
        let Some(project) = self
            .project_mut(project)
            .filter(|project| project.label(name).is_none())
        else {
            return;
        };
        project.labels.push(Label {
            id,
            name: name.to_owned(),
            color: "#428BCA".to_owned(),
            description: None,
            updated: now(),
        });
    }

    /// Writes a note, in a discussion of its own or in an earlier one.
    pub fn note(&mut self, place: &Place, author: &str, body: &str, discussion: Option<&str>) -> u64 {
        let id = self.write(place, author, body, discussion);
        self.happened(place, author, What::Commented(id));
        id
    }

    fn write(&mut self, place: &Place, author: &str, body: &str, discussion: Option<&str>) -> u64 {
        let id = self.next_id();
        let note = Note {
            id,
            discussion: discussion.map_or_else(|| format!("{id:040x}"), str::to_owned),
            author: author.to_owned(),
            body: body.to_owned(),
            earlier: Vec::new(),
            is_system: false,
            is_internal: false,
            position: None,
            awards: Vec::new(),
            created: now(),
            updated: now(),
        };
        if let Some(item) = self.item_mut(place) {
            item.notes.push(note);
        }
        id
    }

    /// Writes a note as GitLab itself does, about what somebody did.
    pub fn system_note(&mut self, place: &Place, author: &str, body: &str) {
        let id = self.write(place, author, body, None);
        if let Some(note) = self.item_mut(place).and_then(|item| item.note_mut(id)) {
            note.is_system = true;
        }
    }

    pub fn edit_note(&mut self, place: &Place, id: u64, actor: &str, body: &str) {
        let Some(note) = self.item_mut(place).and_then(|item| item.note_mut(id)) else {
            return;
        };
        let earlier = std::mem::replace(&mut note.body, body.to_owned());
        note.earlier.push(earlier);
        note.updated = now();
        self.happened(place, actor, What::NoteEdited(id));
    }

    pub fn delete_note(&mut self, place: &Place, id: u64, actor: &str) {
        let Some(item) = self.item_mut(place) else { return };
        item.notes.retain(|note| note.id != id);
        let gone = [What::Commented(id), What::NoteEdited(id)];
        item.history.retain(|happening| {
            let is_award = matches!(happening.what, What::Awarded { note, .. } if note == id);
            !is_award && !gone.contains(&happening.what)
        });
        self.happened(place, actor, What::NoteDeleted);
    }

    /// Gives a note an emoji. Returns nothing if it has that of the same person already.
    pub fn award(&mut self, place: &Place, note: u64, author: &str, name: &str) -> Option<Award> {
        let award = Award {
            id: self.next_id(),
            author: author.to_owned(),
            name: name.to_owned(),
            created: now(),
        };
        let found = self.item_mut(place)?.note_mut(note)?;
        if found
            .awards
            .iter()
            .any(|known| known.author == author && known.name == name)
        {
            return None;
        }
        found.awards.push(award.clone());
        // GitLab does not tell this from an edit.
        found.updated = now();
        self.happened(
            place,
            author,
            What::Awarded {
                note,
                name: name.to_owned(),
            },
        );
        Some(award)
    }

    pub fn rename(&mut self, place: &Place, actor: &str, title: &str) {
        let Some(item) = self.item_mut(place).filter(|item| item.title != title) else {
            return;
        };
        let from = std::mem::replace(&mut item.title, title.to_owned());
        item.edited = Some((now(), actor.to_owned()));
        self.system_note(place, actor, &format!("changed title from **{from}** to **{title}**"));
        self.happened(place, actor, What::Renamed { from });
    }

    pub fn describe(&mut self, place: &Place, actor: &str, description: &str) {
        let Some(item) = self.item_mut(place) else { return };
        let before = item.description.replace(description.to_owned()).unwrap_or_default();
        item.edited = Some((now(), actor.to_owned()));
        // GitLab says nothing of a text that was changed while a box of it was ticked.
        let ticked = ticked(&before, description);
        for note in &ticked {
            self.system_note(place, actor, note);
        }
        if ticked.is_empty() {
            self.system_note(place, actor, "changed the description");
        }
        self.happened(place, actor, What::DescriptionEdited);
        self.mention(place);
    }

    pub fn close(&mut self, place: &Place, actor: &str) {
        let Some(item) = self.item_mut(place).filter(|item| item.is_open) else {
            return;
        };
        item.is_open = false;
        item.closed = Some(now());
        item.closed_by = Some(actor.to_owned());
        self.happened(place, actor, What::Closed);
    }

    pub fn reopen(&mut self, place: &Place, actor: &str) {
        let Some(item) = self.item_mut(place).filter(|item| !item.is_open) else {
            return;
        };
        item.is_open = true;
        item.closed = None;
        item.closed_by = None;
        self.happened(place, actor, What::Reopened);
    }

    /// Makes the list of assignees this one.
    pub fn assign(&mut self, place: &Place, actor: &str, assignees: &[String]) {
        let Some(item) = self.item_mut(place) else { return };
        let before = std::mem::replace(&mut item.assignees, assignees.to_vec());
        for name in assignees.iter().filter(|name| !before.contains(name)) {
            self.system_note(place, actor, &format!("assigned to @{name}"));
            self.happened(place, actor, What::Assigned(name.clone()));
        }
        for name in before.iter().filter(|name| !assignees.contains(name)) {
            self.system_note(place, actor, &format!("unassigned @{name}"));
            self.happened(place, actor, What::Unassigned(name.clone()));
        }
    }

    /// Leaves a trace on every issue that the description of a merge request names, as `#12`.
    fn mention(&mut self, place: &Place) {
        let Some(item) = self.item(place).filter(|item| item.merge.is_some()) else {
            return;
        };
        let (author, text) = (item.author.clone(), item.description.clone().unwrap_or_default());
        for word in text.split(|letter: char| letter.is_whitespace() || "(),.:;".contains(letter)) {
            let Some((project, iid)) = word.split_once('#') else {
                continue;
            };
            let Ok(iid) = iid.parse() else { continue };
            let project = if project.is_empty() { &place.project } else { project }.to_owned();
            let issue = Place {
                project,
                kind: Kind::Issue,
                iid,
            };
            let what = What::Mentioned {
                project: place.project.clone(),
                iid: place.iid,
            };
            let Some(target) = self.item(&issue) else { continue };
            if !target.history.iter().any(|happening| happening.what == what) {
                self.system_note(&issue, &author, &format!("mentioned in merge request !{}", place.iid));
                self.happened(&issue, &author, what);
            }
        }
    }

    /// Brings the head of a merge request to `refs/merge-requests/<iid>/head`, where it survives
    /// its branch.
    pub fn follow_head(&mut self, place: &Place) -> Option<()> {
        let project = self.project(&place.project)?;
        let merge = project.items(place.kind).get(&place.iid)?.merge.as_ref()?;
        let source = &self.project(&merge.source_project)?.git;
        source.resolve(&format!("refs/heads/{}", merge.source))?;
        project.git.take(
            source,
            &merge.source,
            &format!("refs/merge-requests/{}/head", place.iid),
        );
        Some(())
    }

    /// Tells the merge requests what a push did to a branch.
    fn branch_moved(&mut self, path: &str, branch: &str, old: Option<&str>, pusher: &str) {
        let from_here = |item: &&Item| {
            let merge = item
                .merge
                .as_ref()
                .filter(|merge| merge.source_project == path && merge.source == branch);
            item.is_open && merge.is_some()
        };
        let mut concerned = Vec::new();
        for project in &self.projects {
            let found = project.merge_requests.values().filter(from_here);
            let kind = Kind::MergeRequest;
            concerned.extend(found.map(|item| Place {
                project: project.path.clone(),
                kind,
                iid: item.iid,
            }));
        }
        for place in concerned {
            let what = self.follow_head(&place).and_then(|()| {
                let git = &self.project(&place.project)?.git;
                let commit = git.commit_named(&format!("refs/merge-requests/{}/head", place.iid))?;
                let subject = commit.message.lines().next().unwrap_or_default().to_owned();
                let is_forced = old.is_some_and(|old| git.merge_base(old, &commit.id).as_deref() != Some(old));
                Some(What::Pushed { subject, is_forced })
            });
            if let Some(What::Pushed { subject, .. }) = &what {
                self.system_note(&place, pusher, &format!("added 1 commit\n\n* {subject}"));
            }
            self.happened(&place, pusher, what.unwrap_or(What::BranchDeleted));
        }
    }

    /// Says whether a fork lets those who may write to its parent push, for the sake of a merge
    /// request.
    fn is_opened_to(&self, fork: &Project, username: &str) -> bool {
        let Some(parent) = fork.parent.as_ref().and_then(|parent| self.project(parent)) else {
            return false;
        };
        let mut merges = parent
            .merge_requests
            .values()
            .filter(|item| item.is_open)
            .filter_map(|item| item.merge.as_ref());
        let is_offered = merges.any(|merge| merge.source_project == fork.path && merge.allows_collaboration);
        is_offered && parent.access(username) >= Access::Developer
    }
}

impl Host for State {
    fn admit(&self, repository: &str, credential: Option<&str>, is_push: bool) -> Result<String, Refusal> {
        let project = self.project(repository);
        let username = match credential {
            Some(token) => self.tokens.get(token).ok_or(Refusal::Unauthorized)?.username.clone(),
            None if !is_push && project.is_some_and(|project| project.is_public) => "anonymous".to_owned(),
            None => return Err(Refusal::Unauthorized),
        };
        let project = project.ok_or(Refusal::NotFound)?;
        let forbidden = |why: &str| Err(Refusal::Forbidden(why.to_owned()));
        match project.access(&username) {
            Access::None => Err(Refusal::NotFound),
            Access::Guest if !project.is_public => forbidden("You are not allowed to download code from this project."),
            _ if !is_push => Ok(username),
            _ if project.is_archived => forbidden("You can't push code to an archived project."),
            _ if self.is_opened_to(project, &username) => Ok(username),
            Access::Guest | Access::Planner | Access::Reporter => {
                forbidden("You are not allowed to push code to this project.")
            }
            Access::Developer | Access::Maintainer | Access::Owner => Ok(username),
        }
    }

    fn pushed(&mut self, repository: &str, pusher: &str) {
        let Some(project) = self.project_mut(repository) else {
            return;
        };
        let heads = project.git.branches().into_iter().collect();
        let before = std::mem::replace(&mut project.heads, heads);
        let after = project.heads.clone();
        let path = project.path.clone();
        for (branch, _) in after.iter().filter(|(branch, id)| before.get(*branch) != Some(id)) {
            self.branch_moved(&path, branch, before.get(branch).map(String::as_str), pusher);
        }
        for (branch, old) in before.iter().filter(|(branch, _)| !after.contains_key(*branch)) {
            self.branch_moved(&path, branch, Some(old), pusher);
        }
    }
}
