//! A project of the fake GitLab, as a test or a person sees and changes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fake::bare::Bare;
use crate::fake::board::Board as _;
use crate::fake::board::Draft;
use crate::fake::board::HUMAN;
use crate::fake::forge::Forge;
use crate::fake::gitlab::Access;
use crate::fake::gitlab::BOT;
use crate::fake::gitlab::Item;
use crate::fake::gitlab::state;
use crate::fake::gitlab::state::Merge;
use crate::fake::gitlab::state::State;
use crate::fake::gitlab::state::now;

/// A project of the fake GitLab.
#[derive(Clone)]
pub struct Project {
    forge: Arc<Forge<State>>,
    path: String,
}

impl Project {
    pub(super) fn at(forge: &Arc<Forge<State>>, path: &str) -> Self {
        forge.change(|state| {
            if state.project(path).is_none() {
                create(state, path);
            }
        });
        Self {
            forge: forge.clone(),
            path: path.to_owned(),
        }
    }

    /// With all groups: `acme/tools/widgets`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The number that the API knows the project by.
    pub fn id(&self) -> u64 {
        self.with(|project| project.id)
    }

    /// The address that the API gives for cloning.
    pub fn clone_url(&self) -> String {
        format!("{}/{}.git", self.forge.origin, self.path)
    }

    /// The repository on disk.
    pub fn git(&self) -> Bare {
        self.with(|project| project.git.clone())
    }

    /// Takes every commit and branch away, as in a project that was just made.
    pub fn empty(&self) -> Self {
        let git = self.git();
        for (branch, _) in git.branches() {
            git.delete_reference(&format!("refs/heads/{branch}"));
        }
        self.alter(|project| project.heads.clear())
    }

    pub fn archived(&self) -> Self {
        self.alter(|project| project.is_archived = true)
    }

    pub fn public(&self) -> Self {
        self.alter(|project| project.is_public = true)
    }

    /// Lets nobody with a lower role merge.
    pub fn merged_by(&self, access: Access) -> Self {
        self.alter(|project| project.merged_by = access)
    }

    /// Moves it to another path. Who reads at the old one is redirected, and nobody writes there.
    pub fn moves_to(&self, path: &str) {
        self.forge.change(|state| {
            let (old, new) = (state.folder.join(&self.path), state.folder.join(path));
            let group = new.parent().expect("a project is in a group");
            std::fs::create_dir_all(group).expect("a folder can be made");
            let [old, new] = [old, new].map(|folder| folder.with_extension("git"));
            std::os::unix::fs::symlink(old, new).expect("a link can be made");
            let project = state.project_mut(&self.path).expect("the project was made before");
            path.clone_into(&mut project.path);
            state.moved.insert(self.path.clone(), path.to_owned());
        });
    }

    /// Names a default branch, which need not be there.
    pub fn default_branch(&self, branch: &str) -> Self {
        self.alter(|project| branch.clone_into(&mut project.default_branch))
    }

    /// Makes somebody a member of a group above the project.
    pub fn inherited_member(&self, username: &str, access: Access) -> Self {
        self.forge.change(|state| state.people.insert(username.to_owned()));
        self.alter(|project| _ = project.inherited.insert(username.to_owned(), access))
    }

    pub fn member(&self, username: &str, access: Access) -> Self {
        self.forge.change(|state| state.people.insert(username.to_owned()));
        self.alter(|project| _ = project.members.insert(username.to_owned(), access))
    }

    /// Protects a branch: nobody with a lower role pushes to it.
    pub fn protects(&self, branch: &str, access: Access) -> Self {
        if self.with(|project| project.access(BOT)) < access {
            self.rejects_pushes_to(branch);
        }
        self.alter(|project| _ = project.protected.insert(branch.to_owned(), access))
    }

    /// Refuses every push to a branch, as a protected one does.
    pub fn rejects_pushes_to(&self, branch: &str) -> Self {
        self.git().reject_pushes_to(
            branch,
            "GitLab: You are not allowed to push code to protected branches on this project.",
        );
        self.clone()
    }

    /// Protects all branches, so that developers may push to them, but not by force.
    pub fn rejects_forced_pushes(&self) -> Self {
        self.git().reject_forced_pushes(
            "GitLab: You are not allowed to force push code to a protected branch on this project.",
        );
        self.clone()
    }

    /// Puts a commit on a branch, which begins at the default branch if it is new. Returns the
    /// commit id.
    pub fn commit(&self, branch: &str, message: &str, files: &[(&str, &str)]) -> String {
        let (git, start) = self.with(|project| (project.git.clone(), project.default_branch.clone()));
        let id = git.commit(branch, &start, message, files);
        // Nobody but its owner pushes to a fork.
        let pusher = self.with(|project| match &project.parent {
            Some(_) => project.group().to_owned(),
            None => HUMAN.to_owned(),
        });
        self.forge.change(|state| state.heads_moved(&self.path, &pusher));
        id
    }

    pub fn rename_label(&self, from: &str, to: &str) -> Self {
        self.forge.change(|state| state.rename_label(&self.path, from, to));
        self.clone()
    }

    pub fn delete_label(&self, name: &str) -> Self {
        self.forge.change(|state| state.delete_label(&self.path, name));
        self.clone()
    }

    pub fn branches(&self) -> Vec<String> {
        self.git().branches().into_iter().map(|(name, _)| name).collect()
    }

    pub fn file(&self, branch: &str, path: &str) -> Option<String> {
        self.git().file(&format!("refs/heads/{branch}"), path)
    }

    /// Returns the names of the labels that the project has.
    pub fn labels(&self) -> Vec<String> {
        self.with(|project| project.labels.iter().map(|label| label.name.clone()).collect())
    }

    /// Returns what a label looks like: its colour and its description.
    pub fn label_look(&self, name: &str) -> Option<(String, Option<String>)> {
        self.with(|project| {
            project
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
        let place = self.forge.change(|state| state.open(&self.path, draft, None));
        Item::at(&self.forge, place)
    }

    /// Opens a merge request from a new branch with one commit.
    pub fn open_merge_request(&self, title: &str, source: &str, files: &[(&str, &str)]) -> Item {
        self.commit(source, title, files);
        self.open_merge_request_by(HUMAN, &self.path, title, source)
    }

    /// Opens a merge request from one branch that is there to another.
    pub fn open_merge_request_between(&self, title: &str, source: &str, target: &str) -> Item {
        let merge = self.open_merge_request_by(HUMAN, &self.path, title, source);
        merge.alter(|item| target.clone_into(&mut item.merge.as_mut().expect("a merge request").target))
    }

    /// Opens a merge request from a stranger's copy of the project.
    pub fn open_merge_request_from_fork(&self, owner: &str, title: &str, source: &str, files: &[(&str, &str)]) -> Item {
        let fork = self.fork(owner);
        fork.commit(source, title, files);
        self.open_merge_request_by(owner, &fork.path, title, source)
    }

    /// Copies the project to another owner.
    pub fn fork(&self, owner: &str) -> Self {
        let name = self.path.split('/').next_back().unwrap_or_default();
        let path = format!("{owner}/{name}");
        self.forge.change(|state| {
            if state.project(&path).is_none() {
                let folder = state.folder.join(format!("{path}.git"));
                let id = state.next_id();
                state.people.insert(owner.to_owned());
                let parent = state.project(&self.path).expect("the project was made before");
                let git = parent.git.fork(&folder, &parent.default_branch);
                let heads = git.branches().into_iter().collect();
                let fork = state::Project {
                    id,
                    path: path.clone(),
                    parent: Some(self.path.clone()),
                    labels: Vec::new(),
                    issues: BTreeMap::new(),
                    merge_requests: BTreeMap::new(),
                    pipelines: Vec::new(),
                    members: parent
                        .members
                        .keys()
                        .map(|name| (name.clone(), Access::Reporter))
                        .collect(),
                    inherited: BTreeMap::new(),
                    protected: BTreeMap::from([(parent.default_branch.clone(), Access::Maintainer)]),
                    git,
                    heads,
                    ..parent.clone()
                };
                state.projects.push(fork);
            }
        });
        Self {
            forge: self.forge.clone(),
            path,
        }
    }

    fn open_merge_request_by(&self, author: &str, source_project: &str, title: &str, source: &str) -> Item {
        let place = self.forge.change(|state| {
            let target = state.project(&self.path).map(|project| project.default_branch.clone());
            let merge = Merge {
                source_project: source_project.to_owned(),
                source: source.to_owned(),
                target: target.unwrap_or_default(),
                merged: None,
                allows_collaboration: false,
                reviewers: Vec::new(),
            };
            let draft = Draft {
                title: title.to_owned(),
                text: None,
                author: author.to_owned(),
            };
            state.open(&self.path, draft, Some(merge))
        });
        Item::at(&self.forge, place)
    }

    fn with<R>(&self, look: impl FnOnce(&state::Project) -> R) -> R {
        self.forge
            .read(|state| look(state.project(&self.path).expect("a project is never taken away")))
    }

    fn alter(&self, alter: impl FnOnce(&mut state::Project)) -> Self {
        self.forge.change(|state| {
            let project = state.project_mut(&self.path).expect("a project is never taken away");
            alter(project);
        });
        self.clone()
    }
}

fn create(state: &mut State, path: &str) {
    let name = path.rsplit('/').next().unwrap_or_default();
    let git = Bare::create(&state.folder.join(format!("{path}.git")), "main");
    git.commit("main", "HEAD", "Begin", &[("README.md", &format!("# {name}\n"))]);
    let heads = git.branches().into_iter().collect();
    let id = state.next_id();
    state.projects.push(state::Project {
        id,
        path: path.to_owned(),
        default_branch: "main".to_owned(),
        is_public: false,
        is_archived: false,
        merged_by: Access::Developer,
        protected: BTreeMap::from([("main".to_owned(), Access::Maintainer)]),
        parent: None,
        labels: Vec::new(),
        members: BTreeMap::from([
            (BOT.to_owned(), Access::Developer),
            (HUMAN.to_owned(), Access::Maintainer),
        ]),
        inherited: BTreeMap::new(),
        issues: BTreeMap::new(),
        merge_requests: BTreeMap::new(),
        pipelines: Vec::new(),
        git,
        heads,
        created: now(),
    });
}
