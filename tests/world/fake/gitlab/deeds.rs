//! The deeds on a fake GitLab that are its own. Those that both forges share are in `fake::board`.

use chrono::Duration;

use crate::fake::bare::Bare;
use crate::fake::board::Board;
use crate::fake::board::Draft;
use crate::fake::board::Heads;
use crate::fake::board::Record;
use crate::fake::board::Time;
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
use crate::fake::gitlab::state::is_draft;
use crate::fake::gitlab::state::now;
use crate::fake::gitlab::story;
use crate::fake::history::Happening;
use crate::fake::history::What;

impl State {
    /// Opens an issue, or a merge request if `merge` says from where.
    pub fn open(&mut self, project: &str, draft: Draft, merge: Option<Merge>) -> Place {
        let id = self.next_id();
        let author = draft.author.clone();
        self.people.insert(author.clone());
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
            record: Record::new(id, iid, draft, now()),
            is_confidential: false,
            edited: None,
            notes: Vec::new(),
            merge,
        };
        found.items_mut(kind).insert(iid, item);
        self.follow_head(&place);
        self.happened(&place, &author, What::Opened);
        self.mention(&place);
        place
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
            What::Reacted {
                comment: note,
                content: name.to_owned(),
            },
        );
        Some(award)
    }

    /// Keeps who edited an item, and writes what GitLab itself says of some deeds.
    fn tells_of(&mut self, place: &Place, actor: &str, what: &What<Place>) {
        let note = match what {
            What::Renamed { from, to } => {
                if let Some(item) = self.item_mut(place) {
                    item.edited = Some((now(), actor.to_owned()));
                }
                match (is_draft(from), is_draft(to)) {
                    (false, true) => "marked this merge request as **draft**".to_owned(),
                    (true, false) => "marked this merge request as **ready**".to_owned(),
                    _ => format!("changed title from **{from}** to **{to}**"),
                }
            }
            What::Assigned(name) => format!("assigned to @{name}"),
            What::Unassigned(name) => format!("unassigned @{name}"),
            What::Mentioned(by) => format!("mentioned in merge request !{}", by.iid),
            What::Pushed { subject, .. } => format!("added 1 commit\n\n* {subject}"),
            _ => return,
        };
        self.system_note(place, actor, &note);
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

impl Board for State {
    type Place = Place;
    type Item = Item;

    fn now() -> Time {
        now()
    }

    fn item(&self, place: &Place) -> Option<&Item> {
        self.project(&place.project)?.items(place.kind).get(&place.iid)
    }

    fn item_mut(&mut self, place: &Place) -> Option<&mut Item> {
        let project = self.project_mut(&place.project)?;
        project.items_mut(place.kind).get_mut(&place.iid)
    }

    fn happened(&mut self, place: &Place, actor: &str, what: What<Place>) {
        self.tells_of(place, actor, &what);
        let id = self.next_id();
        self.people.insert(actor.to_owned());
        if let Some(item) = self.item_mut(place) {
            let when = now();
            item.updated = moved(&what, item.updated, when);
            let actor = actor.to_owned();
            item.history.push(Happening { id, actor, what, when });
        }
    }

    fn story(&self, place: &Place) -> String {
        story::of_item(self, place)
    }

    fn meets(&mut self, person: &str) {
        self.people.insert(person.to_owned());
    }

    fn is_same_label(one: &str, other: &str) -> bool {
        one == other
    }

    fn ensure_label(&mut self, place: &Place, name: &str) -> String {
        let id = self.next_id();
        let project = self.project_mut(&place.project);
        if let Some(project) = project.filter(|project| project.label(name).is_none()) {
            project.labels.push(Label {
                id,
                name: name.to_owned(),
                color: "#428BCA".to_owned(),
                description: None,
                updated: now(),
            });
        }
        name.to_owned()
    }

    fn rewrite(&mut self, place: &Place, actor: &str, text: Option<&str>) {
        let text = text.unwrap_or_default();
        let Some(item) = self.item_mut(place) else { return };
        let before = item.text.replace(text.to_owned()).unwrap_or_default();
        item.edited = Some((now(), actor.to_owned()));
        // GitLab says nothing of a text that was changed while a box of it was ticked.
        let ticked = ticked(&before, text);
        for note in &ticked {
            self.system_note(place, actor, note);
        }
        if ticked.is_empty() {
            self.system_note(place, actor, "changed the description");
        }
        self.happened(place, actor, What::TextEdited);
        self.mention(place);
    }

    fn comment(&mut self, place: &Place, author: &str, text: &str) -> u64 {
        self.note(place, author, text, None)
    }

    fn edit_comment(&mut self, place: &Place, id: u64, actor: &str, text: &str) {
        let Some(note) = self.item_mut(place).and_then(|item| item.note_mut(id)) else {
            return;
        };
        let earlier = std::mem::replace(&mut note.body, text.to_owned());
        note.earlier.push(earlier);
        note.updated = now();
        self.happened(place, actor, What::CommentEdited(id));
    }

    fn delete_comment(&mut self, place: &Place, id: u64, actor: &str) {
        let Some(item) = self.item_mut(place) else { return };
        item.notes.retain(|note| note.id != id);
        let gone = [What::Commented(id), What::CommentEdited(id)];
        item.history.retain(|happening| {
            let is_award = matches!(happening.what, What::Reacted { comment, .. } if comment == id);
            !is_award && !gone.contains(&happening.what)
        });
        self.happened(place, actor, What::CommentDeleted);
    }

    fn author_of(item: &Item, comment: u64) -> String {
        item.note(comment).map(|note| note.author.clone()).unwrap_or_default()
    }

    fn newest_comment(item: &Item) -> Option<u64> {
        let mut written = item.notes.iter().filter(|note| !note.is_system);
        written.next_back().map(|note| note.id)
    }

    fn reactions_of(item: &Item, comment: u64, person: &str) -> Vec<String> {
        let awards = item.note(comment).into_iter().flat_map(|note| &note.awards);
        let given = awards.filter(|award| award.author == person);
        given.map(|award| award.name.clone()).collect()
    }

    fn age_comments(item: &mut Item, by: Duration) {
        for note in &mut item.notes {
            note.created -= by;
            note.updated -= by;
        }
        if let Some((at, _)) = &mut item.edited {
            *at -= by;
        }
    }

    fn comment_routes(&self, place: &Place) -> Vec<String> {
        let kind = match place.kind {
            Kind::Issue => "issues",
            Kind::MergeRequest => "merge_requests",
        };
        let project = place.project.replace('/', "%2F");
        vec![format!("GET /projects/{project}/{kind}/{}/notes", place.iid)]
    }

    /// Returns the item that a text means. Only merge requests leave a trace, and only on issues.
    fn meant(&self, by: &Place, repository: &str, number: u64) -> Option<Place> {
        let is_here = repository.is_empty();
        (by.kind == Kind::MergeRequest).then(|| Place {
            project: if is_here { &by.project } else { repository }.to_owned(),
            kind: Kind::Issue,
            iid: number,
        })
    }

    fn ends(&self, change: &Place) -> Option<(Bare, String, String)> {
        let merge = self.item(change)?.merge.as_ref()?;
        let git = self.project(&change.project)?.git.clone();
        let target = format!("refs/heads/{}", merge.target);
        Some((git, target, format!("refs/merge-requests/{}/head", change.iid)))
    }

    fn follow_head(&self, change: &Place) -> Option<()> {
        let project = self.project(&change.project)?;
        let merge = project.items(change.kind).get(&change.iid)?.merge.as_ref()?;
        let source = &self.project(&merge.source_project)?.git;
        source.resolve(&format!("refs/heads/{}", merge.source))?;
        let kept = format!("refs/merge-requests/{}/head", change.iid);
        project.git.take(source, &merge.source, &kept);
        Some(())
    }

    fn changes_from(&self, repository: &str, branch: &str) -> Vec<Place> {
        let is_from_here = |merge: &Merge| merge.source_project == repository && merge.source == branch;
        let found = self.projects.iter().flat_map(|project| {
            let open = project.merge_requests.values().filter(|item| item.is_open);
            let from_here = open.filter(|item| item.merge.as_ref().is_some_and(is_from_here));
            from_here.map(|item| Place {
                project: project.path.clone(),
                kind: Kind::MergeRequest,
                iid: item.number,
            })
        });
        found.collect()
    }

    fn look_at_heads(&mut self, repository: &str) -> Option<(String, Heads, Heads)> {
        let found = self.project_mut(repository)?;
        let heads = found.git.branches().into_iter().collect();
        let before = std::mem::replace(&mut found.heads, heads);
        Some((found.path.clone(), before, found.heads.clone()))
    }
}

/// Returns the time of the last change of an item to which something happens. What people write
/// below it moves the time once a minute at most, and an emoji moves that of the note alone.
fn moved(what: &What<Place>, before: Time, when: Time) -> Time {
    let is_recent = when - before <= Duration::minutes(1);
    match what {
        What::Reacted { .. } => before,
        What::Commented(_) | What::CommentEdited(_) | What::CommentDeleted if is_recent => before,
        _ => when,
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
            _ if self.is_in_maintenance => forbidden(
                "Git push is not allowed because this GitLab instance is currently in (read-only) maintenance mode.",
            ),
            _ if project.is_archived => forbidden("You can't push code to an archived project."),
            _ if self.is_opened_to(project, &username) => Ok(username),
            Access::Guest | Access::Planner | Access::Reporter => {
                forbidden("You are not allowed to push code to this project.")
            }
            Access::Developer | Access::Maintainer | Access::Owner => Ok(username),
        }
    }

    fn pushed(&mut self, repository: &str, pusher: &str) {
        self.heads_moved(repository, pusher);
    }
}
