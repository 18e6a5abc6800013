//! A repository of the fake GitHub, as a test or a person sees and changes it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::fake::bare::Bare;
use crate::fake::board::Board as _;
use crate::fake::board::Draft;
use crate::fake::board::HUMAN;
use crate::fake::forge::Forge;
use crate::fake::github::BOT;
use crate::fake::github::Item;
use crate::fake::github::Permission;
use crate::fake::github::state;
use crate::fake::github::state::Pull;
use crate::fake::github::state::State;
use crate::fake::github::state::now;

/// A repository of the fake GitHub.
#[derive(Clone)]
pub struct Repository {
    forge: Arc<Forge<State>>,
    full_name: String,
}

impl Repository {
    pub(super) fn at(forge: &Arc<Forge<State>>, full_name: &str) -> Self {
        forge.change(|state| {
            if state.repository(full_name).is_none() {
                create(state, full_name);
            }
        });
        Self {
            forge: forge.clone(),
            full_name: full_name.to_owned(),
        }
    }

    pub fn full_name(&self) -> &str {
        &self.full_name
    }

    /// The address that the API gives for cloning.
    pub fn clone_url(&self) -> String {
        format!("{}/{}.git", self.forge.origin, self.full_name)
    }

    /// The repository on disk.
    pub fn git(&self) -> Bare {
        self.with(|place| place.git.clone())
    }

    /// Takes every commit and branch away, as in a repository that was just made.
    pub fn empty(&self) -> Self {
        let git = self.git();
        for (branch, _) in git.branches() {
            git.delete_reference(&format!("refs/heads/{branch}"));
        }
        self.alter(|place| place.heads.clear())
    }

    pub fn archived(&self) -> Self {
        self.alter(|place| place.is_archived = true)
    }

    pub fn public(&self) -> Self {
        self.alter(|place| place.is_private = false)
    }

    /// Gives it another name. Requests with the old one are redirected, those of git as well.
    pub fn renames_to(&self, name: &str) {
        self.forge.change(|state| {
            let [old, new] = {
                let place = state.repository_mut(&self.full_name).expect("it was made before");
                let folder = place.git.path().to_owned();
                name.clone_into(&mut place.name);
                [folder.clone(), folder.with_file_name(format!("{name}.git"))]
            };
            std::os::unix::fs::symlink(old, new).expect("a link can be made");
            let place = state.repositories.iter().find(|place| place.name == name);
            let now = place.expect("it was renamed just now").full_name();
            let items = state.repositories.iter_mut().flat_map(|place| place.items.values_mut());
            for pull in items.filter_map(|item| item.pull.as_mut()) {
                if pull.head_repository == self.full_name {
                    pull.head_repository.clone_from(&now);
                }
            }
            state.renamed.insert(self.full_name.clone(), now);
        });
    }

    /// Belongs to a plan whose private repositories have no drafts.
    pub fn without_drafts(&self) -> Self {
        self.alter(|place| place.has_drafts = false)
    }

    /// Names a default branch, which need not be there.
    pub fn default_branch(&self, branch: &str) -> Self {
        self.alter(|place| branch.clone_into(&mut place.default_branch))
    }

    /// Gives the default branch another name, also in the pull requests that lead to it.
    pub fn renames_default_branch(&self, name: &str) -> Self {
        self.alter(|place| {
            let old = std::mem::replace(&mut place.default_branch, name.to_owned());
            place.git.rename_branch(&old, name);
            place.heads = place.git.branches().into_iter().collect();
            let pulls = place.items.values_mut().filter_map(|item| item.pull.as_mut());
            pulls
                .filter(|pull| pull.base == old)
                .for_each(|pull| name.clone_into(&mut pull.base));
        })
    }

    pub fn member(&self, login: &str, permission: Permission) -> Self {
        self.forge.change(|state| state.people.insert(login.to_owned()));
        self.alter(|place| _ = place.members.insert(login.to_owned(), permission))
    }

    /// Gives a team of the organization access.
    pub fn team(&self, name: &str) -> Self {
        self.alter(|place| place.teams.push(name.to_owned()))
    }

    /// Protects a branch in the way that is older than rulesets, with an exception for the bot.
    pub fn protects(&self, branch: &str) -> Self {
        self.alter(|place| _ = place.protected.insert(branch.to_owned()))
    }

    /// Lays a rule such as `pull_request` on a branch, with an exception for the bot.
    pub fn lays_rule_on(&self, branch: &str, rule: &str) -> Self {
        self.alter(|place| place.rules.entry(branch.to_owned()).or_default().push(rule.to_owned()))
    }

    /// Refuses every push to a branch, as a protected one does.
    pub fn rejects_pushes_to(&self, branch: &str) -> Self {
        self.git()
            .reject_pushes_to(branch, "GH006: Protected branch update failed");
        self.clone()
    }

    /// Lays a rule against force pushes on all branches.
    pub fn rejects_forced_pushes(&self) -> Self {
        self.git().reject_forced_pushes(
            "error: GH013: Repository rule violations found.\n\n- Cannot force-push to this branch\n",
        );
        self.clone()
    }

    /// Puts a commit on a branch, which begins at the default branch if it is new. Returns the
    /// commit id.
    pub fn commit(&self, branch: &str, message: &str, files: &[(&str, &str)]) -> String {
        let (git, start) = self.with(|place| (place.git.clone(), place.default_branch.clone()));
        let id = git.commit(branch, &start, message, files);
        // Nobody but its owner pushes to a fork.
        let pusher = self.with(|place| match &place.parent {
            Some(_) => place.owner.clone(),
            None => HUMAN.to_owned(),
        });
        self.forge.change(|state| state.heads_moved(&self.full_name, &pusher));
        id
    }

    pub fn branches(&self) -> Vec<String> {
        self.git().branches().into_iter().map(|(name, _)| name).collect()
    }

    pub fn file(&self, branch: &str, path: &str) -> Option<String> {
        self.git().file(&format!("refs/heads/{branch}"), path)
    }

    /// Returns the names of the labels that the repository has.
    pub fn labels(&self) -> Vec<String> {
        self.with(|place| place.labels.iter().map(|label| label.name.clone()).collect())
    }

    /// Returns what a label looks like: its colour and its description.
    pub fn label_look(&self, name: &str) -> Option<(String, Option<String>)> {
        self.with(|place| {
            place
                .label(name)
                .map(|label| (label.color.clone(), label.description.clone()))
        })
    }

    pub fn open_issue(&self, title: &str) -> Item {
        let draft = Draft {
            title: title.to_owned(),
            text: None,
            author: HUMAN.to_owned(),
        };
        let place = self.forge.change(|state| state.open(&self.full_name, draft, None));
        Item::at(&self.forge, place)
    }

    /// Opens a pull request from a new branch with one commit.
    pub fn open_pull(&self, title: &str, head: &str, files: &[(&str, &str)]) -> Item {
        self.commit(head, title, files);
        self.open_pull_by(HUMAN, &self.full_name, title, head)
    }

    /// Opens a pull request from one branch that is there to another.
    pub fn open_pull_between(&self, title: &str, head: &str, base: &str) -> Item {
        let pull = self.open_pull_by(HUMAN, &self.full_name, title, head);
        pull.alter(|item| base.clone_into(&mut item.pull.as_mut().expect("a pull request").base))
    }

    /// Opens a pull request from a stranger's copy of the repository.
    pub fn open_pull_from_fork(&self, owner: &str, title: &str, head: &str, files: &[(&str, &str)]) -> Item {
        let fork = self.fork(owner);
        fork.commit(head, title, files);
        self.open_pull_by(owner, &fork.full_name, title, head)
    }

    /// Copies the repository to another owner.
    pub fn fork(&self, owner: &str) -> Self {
        let name = self.full_name.split('/').next_back().unwrap_or_default();
        let full_name = format!("{owner}/{name}");
        self.forge.change(|state| {
            if state.repository(&full_name).is_none() {
                let path = state.folder.join(format!("{full_name}.git"));
                let id = state.next_id();
                state.people.insert(owner.to_owned());
                let parent = state
                    .repository(&self.full_name)
                    .expect("the repository was made before");
                let git = parent.git.fork(&path, &parent.default_branch);
                let members = parent
                    .members
                    .keys()
                    .map(|login| (login.clone(), Permission::Read))
                    .collect();
                let heads = git.branches().into_iter().collect();
                let fork = state::Repository {
                    id,
                    owner: owner.to_owned(),
                    parent: Some(self.full_name.clone()),
                    labels: Vec::new(),
                    items: BTreeMap::new(),
                    last_number: 0,
                    jobs: Vec::new(),
                    statuses: Vec::new(),
                    protected: BTreeSet::new(),
                    rules: BTreeMap::new(),
                    members,
                    git,
                    heads,
                    ..parent.clone()
                };
                state.repositories.push(fork);
            }
        });
        Self {
            forge: self.forge.clone(),
            full_name,
        }
    }

    fn open_pull_by(&self, author: &str, head_repository: &str, title: &str, head: &str) -> Item {
        let place = self.forge.change(|state| {
            let base = state
                .repository(&self.full_name)
                .map(|place| place.default_branch.clone());
            let pull = Pull {
                head_repository: head_repository.to_owned(),
                head: head.to_owned(),
                base: base.unwrap_or_default(),
                is_draft: false,
                merged: None,
                maintainers_can_modify: head_repository == self.full_name,
                reviewers: Vec::new(),
                reviews: Vec::new(),
                line_comments: Vec::new(),
            };
            let draft = Draft {
                title: title.to_owned(),
                text: None,
                author: author.to_owned(),
            };
            state.open(&self.full_name, draft, Some(pull))
        });
        Item::at(&self.forge, place)
    }

    fn with<R>(&self, look: impl FnOnce(&state::Repository) -> R) -> R {
        self.forge.read(|state| {
            look(
                state
                    .repository(&self.full_name)
                    .expect("a repository is never taken away"),
            )
        })
    }

    fn alter(&self, alter: impl FnOnce(&mut state::Repository)) -> Self {
        self.forge.change(|state| {
            alter(
                state
                    .repository_mut(&self.full_name)
                    .expect("a repository is never taken away"),
            );
        });
        self.clone()
    }
}

fn create(state: &mut State, full_name: &str) {
    let (owner, name) = full_name.split_once('/').expect("a repository is named owner/name");
    let git = Bare::create(&state.folder.join(format!("{full_name}.git")), "main");
    git.commit("main", "HEAD", "Begin", &[("README.md", &format!("# {name}\n"))]);
    let id = state.next_id();
    // Whoever is not known as a person is an organization.
    if !state.people.contains(owner) {
        state.organizations.insert(owner.to_owned());
    }
    let mut members = BTreeMap::from([BOT, HUMAN].map(|login| (login.to_owned(), Permission::Write)));
    if let Some(app) = &state.app {
        members.insert(format!("{}[bot]", app.slug), Permission::Write);
    }
    let heads = git.branches().into_iter().collect();
    state.repositories.push(state::Repository {
        id,
        owner: owner.to_owned(),
        name: name.to_owned(),
        default_branch: "main".to_owned(),
        is_private: true,
        is_archived: false,
        has_issues: true,
        has_drafts: true,
        parent: None,
        labels: Vec::new(),
        members,
        teams: Vec::new(),
        items: BTreeMap::new(),
        last_number: 0,
        jobs: Vec::new(),
        statuses: Vec::new(),
        protected: BTreeSet::new(),
        rules: BTreeMap::new(),
        git,
        heads,
        created: now(),
    });
}
