//! What can be done on a fake GitHub, by a person in a test or by a client over HTTP.
//!
//! One function for each deed, so that both leave the same traces. Permissions are checked by the
//! caller.

use crate::fake::forge::Host;
use crate::fake::forge::Refusal;
use crate::fake::github::state::Item;
use crate::fake::github::state::Label;
use crate::fake::github::state::Permission;
use crate::fake::github::state::Pull;
use crate::fake::github::state::Repository;
use crate::fake::github::state::State;
use crate::fake::github::state::What;
use crate::fake::github::state::now;

/// The content of a new issue or pull request.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    pub title: String,
    pub body: Option<String>,
    pub author: String,
}

impl State {
    /// Opens an issue, or a pull request if `pull` says from where. Returns its number.
    pub fn open(&mut self, repository: &str, draft: Draft, pull: Option<Pull>) -> u64 {
        let id = self.next_id();
        self.people.insert(draft.author.clone());
        let place = self.repository_mut(repository).expect("the repository was made before");
        place.last_number += 1;
        let number = place.last_number;
        let item = Item {
            id,
            number,
            title: draft.title,
            body: draft.body,
            author: draft.author.clone(),
            is_open: true,
            closed_because: None,
            is_locked: false,
            is_deleted: false,
            labels: Vec::new(),
            assignees: Vec::new(),
            comments: Vec::new(),
            history: Vec::new(),
            created: now(),
            updated: now(),
            closed: None,
            closed_by: None,
            pull,
        };
        place.items.insert(number, item);
        self.follow_head(repository, number);
        self.happened(repository, number, &draft.author, What::Opened);
        self.mention(repository, number);
        number
    }

    /// Puts a label on, which is made if the repository has none of that name.
    pub fn add_label(&mut self, repository: &str, number: u64, label: &str, actor: &str) {
        let label = self.ensure_label(repository, label);
        let Some(item) = self.item_mut(repository, number).filter(|item| !item.has_label(&label)) else {
            return;
        };
        item.labels.push(label.clone());
        self.happened(repository, number, actor, What::Labeled(label));
    }

    /// Takes a label off. Returns whether it was there.
    pub fn remove_label(&mut self, repository: &str, number: u64, label: &str, actor: &str) -> bool {
        let Some(item) = self.item_mut(repository, number) else {
            return false;
        };
        let Some(index) = item.labels.iter().position(|name| name.eq_ignore_ascii_case(label)) else {
            return false;
        };
        let label = item.labels.remove(index);
        self.happened(repository, number, actor, What::Unlabeled(label));
        true
    }

    /// Makes the labels these, one by one.
    pub fn set_labels(&mut self, repository: &str, number: u64, labels: &[String], actor: &str) {
        let before = self
            .item(repository, number)
            .map(|item| item.labels.clone())
            .unwrap_or_default();
        for label in before
            .iter()
            .filter(|label| !labels.iter().any(|wanted| wanted.eq_ignore_ascii_case(label)))
        {
            self.remove_label(repository, number, label, actor);
        }
        for label in labels {
            self.add_label(repository, number, label, actor);
        }
    }

    fn ensure_label(&mut self, repository: &str, name: &str) -> String {
        let known = self.repository(repository).and_then(|place| place.label(name));
        if let Some(label) = known {
            return label.name.clone();
        }
        let label = Label {
            id: self.next_id(),
            name: name.to_owned(),
            color: "ededed".to_owned(),
            description: None,
        };
        if let Some(place) = self.repository_mut(repository) {
            place.labels.push(label);
        }
        name.to_owned()
    }

    pub fn rename(&mut self, repository: &str, number: u64, actor: &str, title: &str) {
        let Some(item) = self.item_mut(repository, number).filter(|item| item.title != title) else {
            return;
        };
        let from = std::mem::replace(&mut item.title, title.to_owned());
        self.happened(
            repository,
            number,
            actor,
            What::Renamed {
                from,
                to: title.to_owned(),
            },
        );
    }

    pub fn rewrite(&mut self, repository: &str, number: u64, actor: &str, body: Option<&str>) {
        let Some(item) = self.item_mut(repository, number) else {
            return;
        };
        item.body = body.map(str::to_owned);
        self.happened(repository, number, actor, What::BodyEdited);
        self.mention(repository, number);
    }

    /// Points a pull request to another branch.
    pub fn retarget(&mut self, repository: &str, number: u64, actor: &str, base: &str) {
        let Some(pull) = self.item_mut(repository, number).and_then(|item| item.pull.as_mut()) else {
            return;
        };
        base.clone_into(&mut pull.base);
        self.happened(repository, number, actor, What::BaseChanged);
    }

    pub fn close(&mut self, repository: &str, number: u64, actor: &str, because: &str) {
        let Some(item) = self.item_mut(repository, number).filter(|item| item.is_open) else {
            return;
        };
        item.is_open = false;
        item.closed = Some(now());
        item.closed_by = Some(actor.to_owned());
        item.closed_because = item.pull.is_none().then(|| because.to_owned());
        self.happened(repository, number, actor, What::Closed);
    }

    pub fn reopen(&mut self, repository: &str, number: u64, actor: &str) {
        let Some(item) = self.item_mut(repository, number).filter(|item| !item.is_open) else {
            return;
        };
        item.is_open = true;
        item.closed = None;
        item.closed_by = None;
        item.closed_because = item.pull.is_none().then(|| "reopened".to_owned());
        self.happened(repository, number, actor, What::Reopened);
    }

    /// Makes the list of assignees this one.
    pub fn assign(&mut self, repository: &str, number: u64, actor: &str, assignees: &[String]) {
        let Some(item) = self.item_mut(repository, number) else {
            return;
        };
        let before = std::mem::replace(&mut item.assignees, assignees.to_vec());
        for login in assignees.iter().filter(|login| !before.contains(login)) {
            self.happened(repository, number, actor, What::Assigned(login.clone()));
        }
        for login in before.iter().filter(|login| !assignees.contains(login)) {
            self.happened(repository, number, actor, What::Unassigned(login.clone()));
        }
    }

    /// Leaves a trace on every issue that the text of this item names, as `#12` or `owner/name#12`.
    fn mention(&mut self, repository: &str, number: u64) {
        let Some(item) = self.item(repository, number) else {
            return;
        };
        let (author, body) = (item.author.clone(), item.body.clone().unwrap_or_default());
        for word in body.split(|letter: char| letter.is_whitespace() || "(),.:;".contains(letter)) {
            let Some((place, mentioned)) = word.split_once('#') else {
                continue;
            };
            let Ok(mentioned) = mentioned.parse::<u64>() else {
                continue;
            };
            let place = if place.is_empty() { repository } else { place }.to_owned();
            let what = What::Mentioned {
                repository: repository.to_owned(),
                number,
            };
            let Some(target) = self.item(&place, mentioned) else {
                continue;
            };
            let is_known = target.history.iter().any(|happening| happening.what == what);
            if !is_known && (place != repository || mentioned != number) {
                self.happened(&place, mentioned, &author, what);
            }
        }
    }

    /// Brings the head of a pull request to `refs/pull/<number>/head`, where it survives its
    /// branch.
    pub fn follow_head(&mut self, repository: &str, number: u64) -> Option<()> {
        let place = self.repository(repository)?;
        let pull = place.items.get(&number)?.pull.as_ref()?;
        let source = &self.repository(&pull.head_repository)?.git;
        source.resolve(&format!("refs/heads/{}", pull.head))?;
        place.git.take(source, &pull.head, &format!("refs/pull/{number}/head"));
        Some(())
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

    /// Tells the pull requests what a push did to a branch.
    fn branch_moved(&mut self, repository: &str, branch: &str, old: Option<&str>, pusher: &str) {
        let from_here = |item: &&Item| {
            let pull = item
                .pull
                .as_ref()
                .filter(|pull| pull.head_repository == repository && pull.head == branch);
            item.is_open && pull.is_some()
        };
        let mut concerned = Vec::new();
        for place in &self.repositories {
            let numbers = place.items.values().filter(from_here).map(|item| item.number);
            concerned.extend(numbers.map(|number| (place.full_name(), number)));
        }
        for (place, number) in concerned {
            let what = self.follow_head(&place, number).and_then(|()| {
                let git = &self.repository(&place)?.git;
                let commit = git.commit_named(&format!("refs/pull/{number}/head"))?;
                let subject = commit.message.lines().next().unwrap_or_default().to_owned();
                let is_forced = old.is_some_and(|old| git.merge_base(old, &commit.id).as_deref() != Some(old));
                Some(What::Pushed {
                    commit: commit.id,
                    subject,
                    is_forced,
                })
            });
            let is_gone = what.is_none();
            self.happened(&place, number, pusher, what.unwrap_or(What::HeadDeleted));
            if is_gone {
                self.close(&place, number, pusher, "completed");
            }
        }
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
        let Some(place) = self.repository_mut(repository) else {
            return;
        };
        let heads = place.git.branches().into_iter().collect();
        let before = std::mem::replace(&mut place.heads, heads);
        let after = place.heads.clone();
        let repository = place.full_name();
        for (branch, _) in after.iter().filter(|(branch, id)| before.get(*branch) != Some(id)) {
            self.branch_moved(&repository, branch, before.get(branch).map(String::as_str), pusher);
        }
        for (branch, old) in before.iter().filter(|(branch, _)| !after.contains_key(*branch)) {
            self.branch_moved(&repository, branch, Some(old), pusher);
        }
    }
}
