//! The deeds on a fake GitHub that are its own. Those that both forges share are in `fake::board`.

use chrono::Duration;

use crate::fake::bare::Bare;
use crate::fake::board::Board;
use crate::fake::board::Draft;
use crate::fake::board::Heads;
use crate::fake::board::Record;
use crate::fake::board::Time;
use crate::fake::forge::Host;
use crate::fake::forge::Refusal;
use crate::fake::github::state::Comment;
use crate::fake::github::state::Item;
use crate::fake::github::state::Label;
use crate::fake::github::state::Permission;
use crate::fake::github::state::Place;
use crate::fake::github::state::Pull;
use crate::fake::github::state::Repository;
use crate::fake::github::state::State;
use crate::fake::github::state::now;
use crate::fake::github::story;
use crate::fake::history::Happening;
use crate::fake::history::What;

impl State {
    /// Opens an issue, or a pull request if `pull` says from where.
    pub fn open(&mut self, repository: &str, draft: Draft, pull: Option<Pull>) -> Place {
        let id = self.next_id();
        let author = draft.author.clone();
        self.people.insert(author.clone());
        let found = self.repository_mut(repository).expect("the repository was made before");
        found.last_number += 1;
        let place = Place::new(repository, found.last_number);
        let item = Item {
            record: Record::new(id, place.number, draft, now()),
            closed_because: None,
            comments: Vec::new(),
            pull,
        };
        found.items.insert(place.number, item);
        self.follow_head(&place);
        self.happened(&place, &author, What::Opened);
        self.mention(&place);
        place
    }

    /// Points a pull request to another branch.
    pub fn retarget(&mut self, place: &Place, actor: &str, base: &str) {
        let Some(pull) = self.pull_mut(place) else { return };
        base.clone_into(&mut pull.base);
        self.happened(place, actor, What::BaseChanged);
    }

    /// Makes a pull request a draft, or ready for review.
    pub fn set_draft(&mut self, place: &Place, actor: &str, is_draft: bool) {
        let changed = self.pull_mut(place).filter(|pull| pull.is_draft != is_draft);
        let Some(pull) = changed else { return };
        pull.is_draft = is_draft;
        let what = if is_draft { What::MadeDraft } else { What::MadeReady };
        self.happened(place, actor, what);
    }

    /// Closes an issue for a reason such as `not_planned`.
    pub fn close_because(&mut self, place: &Place, actor: &str, because: &str) {
        self.close(place, actor);
        if let Some(item) = self.item_mut(place).filter(|item| item.pull.is_none()) {
            item.closed_because = Some(because.to_owned());
        }
    }

    /// Says whether a fork lets those who may write to its parent push, for the sake of a pull
    /// request.
    fn is_opened_to(&self, fork: &Repository, login: &str) -> bool {
        let Some(parent) = fork.parent.as_ref().and_then(|parent| self.repository(parent)) else {
            return false;
        };
        let name = fork.full_name();
        let mut pulls = parent
            .items
            .values()
            .filter(|item| item.is_open)
            .filter_map(|item| item.pull.as_ref());
        let is_offered = pulls.any(|pull| pull.head_repository == name && pull.maintainers_can_modify);
        is_offered && parent.permission(login) >= Permission::Write
    }
}

impl Board for State {
    type Place = Place;
    type Item = Item;

    fn now() -> Time {
        now()
    }

    fn item(&self, place: &Place) -> Option<&Item> {
        self.repository(&place.repository)?.items.get(&place.number)
    }

    fn item_mut(&mut self, place: &Place) -> Option<&mut Item> {
        self.repository_mut(&place.repository)?.items.get_mut(&place.number)
    }

    fn happened(&mut self, place: &Place, actor: &str, what: What<Place>) {
        let id = self.next_id();
        self.people.insert(actor.to_owned());
        let Some(item) = self.item_mut(place) else { return };
        let when = now();
        // A reaction is seen in the comment's counts only.
        if !matches!(what, What::Reacted { .. }) {
            item.updated = when;
        }
        let reason = match what {
            What::Closed => Some("completed"),
            What::Reopened => Some("reopened"),
            _ => None,
        };
        if let Some(reason) = reason.filter(|_| item.pull.is_none()) {
            item.closed_because = Some(reason.to_owned());
        }
        let actor = actor.to_owned();
        item.history.push(Happening { id, actor, what, when });
    }

    fn story(&self, place: &Place) -> String {
        story::of_item(self, place)
    }

    fn meets(&mut self, person: &str) {
        self.people.insert(person.to_owned());
    }

    fn is_same_label(one: &str, other: &str) -> bool {
        one.eq_ignore_ascii_case(other)
    }

    fn ensure_label(&mut self, place: &Place, name: &str) -> String {
        let known = self.repository(&place.repository).and_then(|found| found.label(name));
        if let Some(label) = known {
            return label.name.clone();
        }
        let label = Label {
            id: self.next_id(),
            name: name.to_owned(),
            color: "ededed".to_owned(),
            description: None,
        };
        if let Some(found) = self.repository_mut(&place.repository) {
            found.labels.push(label);
        }
        name.to_owned()
    }

    fn rewrite(&mut self, place: &Place, actor: &str, text: Option<&str>) {
        let Some(item) = self.item_mut(place) else { return };
        item.text = text.map(str::to_owned);
        self.happened(place, actor, What::TextEdited);
        self.mention(place);
    }

    fn comment(&mut self, place: &Place, author: &str, text: &str) -> u64 {
        self.write_comment(place, author, text)
    }

    fn edit_comment(&mut self, place: &Place, id: u64, actor: &str, text: &str) {
        self.rewrite_comment(place, id, actor, text);
    }

    fn delete_comment(&mut self, place: &Place, id: u64, actor: &str) {
        self.take_comment_away(place, id, actor);
    }

    fn author_of(item: &Item, comment: u64) -> String {
        item.author_of(comment).to_owned()
    }

    fn newest_comment(item: &Item) -> Option<u64> {
        item.comments.last().map(|comment| comment.id)
    }

    fn reactions_of(item: &Item, comment: u64, person: &str) -> Vec<String> {
        let given = item.comment(comment).into_iter().flat_map(|comment| &comment.reactions);
        let given = given.filter(|reaction| reaction.author == person);
        given.map(|reaction| reaction.content.clone()).collect()
    }

    fn age_comments(item: &mut Item, by: Duration) {
        let age =
            |comment: &mut Comment| (comment.created, comment.updated) = (comment.created - by, comment.updated - by);
        item.comments.iter_mut().for_each(age);
    }

    fn comment_routes(&self, place: &Place) -> Vec<String> {
        let Place { repository, number } = place;
        let mut routes = vec![format!("GET /repos/{repository}/issues/{number}/comments")];
        if self.item(place).is_some_and(|item| item.pull.is_some()) {
            let parts = ["comments", "reviews"];
            routes.extend(parts.map(|part| format!("GET /repos/{repository}/pulls/{number}/{part}")));
        }
        routes
    }

    fn meant(&self, by: &Place, repository: &str, number: u64) -> Option<Place> {
        let is_here = repository.is_empty();
        Some(Place::new(if is_here { &by.repository } else { repository }, number))
    }

    fn ends(&self, change: &Place) -> Option<(Bare, String, String)> {
        let pull = self.item(change)?.pull.as_ref()?;
        let git = self.repository(&change.repository)?.git.clone();
        let (base, head) = (
            format!("refs/heads/{}", pull.base),
            format!("refs/pull/{}/head", change.number),
        );
        Some((git, base, head))
    }

    fn follow_head(&self, change: &Place) -> Option<()> {
        let place = self.repository(&change.repository)?;
        let pull = place.items.get(&change.number)?.pull.as_ref()?;
        let source = &self.repository(&pull.head_repository)?.git;
        source.resolve(&format!("refs/heads/{}", pull.head))?;
        let kept = format!("refs/pull/{}/head", change.number);
        place.git.take(source, &pull.head, &kept);
        Some(())
    }

    fn changes_from(&self, repository: &str, branch: &str) -> Vec<Place> {
        let is_from_here = |pull: &Pull| pull.head_repository == repository && pull.head == branch;
        let found = self.repositories.iter().flat_map(|place| {
            let open = place.items.values().filter(|item| item.is_open);
            let from_here = open.filter(|item| item.pull.as_ref().is_some_and(is_from_here));
            from_here.map(|item| Place::new(&place.full_name(), item.number))
        });
        found.collect()
    }

    fn look_at_heads(&mut self, repository: &str) -> Option<(String, Heads, Heads)> {
        let found = self.repository_mut(repository)?;
        let heads = found.git.branches().into_iter().collect();
        let before = std::mem::replace(&mut found.heads, heads);
        Some((found.full_name(), before, found.heads.clone()))
    }

    fn lost_its_branch(&mut self, change: &Place, actor: &str) {
        self.close(change, actor);
    }
}

impl Host for State {
    fn admit(&self, repository: &str, credential: Option<&str>, is_push: bool) -> Result<String, Refusal> {
        let token = match credential {
            Some(token) => Some(self.tokens.get(token).ok_or(Refusal::Unauthorized)?),
            None => None,
        };
        let login = token.map(|token| token.login.clone());
        let place = self.repository(repository);
        if let Some(narrow) = token.and_then(|token| token.installation.as_ref()) {
            if narrow.is_unknown_to_git() {
                return Err(Refusal::Unauthorized);
            }
            let is_open = place.is_some_and(|place| !place.is_private) && !is_push;
            if !is_open && !narrow.reaches(repository) {
                return Err(Refusal::NotFound);
            }
            if !is_open && !narrow.may(&["contents"], is_push) {
                return Err(Refusal::Forbidden("Resource not accessible by integration".to_owned()));
            }
        }
        let is_narrow = token.is_some_and(|token| token.scopes.is_none());
        if is_push && is_narrow && place.is_some_and(|place| place.parent.is_some()) {
            let refusal = format!(
                "Permission to {repository}.git denied to {}.",
                login.unwrap_or_default()
            );
            return Err(Refusal::Forbidden(refusal));
        }
        let login = match (login, place) {
            (Some(login), _) => login,
            (None, Some(place)) if !place.is_private && !is_push => "anonymous".to_owned(),
            (None, _) => return Err(Refusal::Unauthorized),
        };
        let place = place.ok_or(Refusal::NotFound)?;
        match place.permission(&login) {
            Permission::None => Err(Refusal::NotFound),
            _ if !is_push => Ok(login),
            _ if place.is_archived => Err(Refusal::Forbidden(
                "This repository was archived so it is read-only.".to_owned(),
            )),
            _ if self.is_opened_to(place, &login) => Ok(login),
            Permission::Read | Permission::Triage => Err(Refusal::Forbidden(format!(
                "Permission to {repository}.git denied to {login}."
            ))),
            Permission::Write | Permission::Maintain | Permission::Admin => Ok(login),
        }
    }

    fn pushed(&mut self, repository: &str, pusher: &str) {
        self.heads_moved(repository, pusher);
    }

    fn new_name(&self, repository: &str) -> Option<String> {
        self.renamed.get(repository).cloned()
    }
}
