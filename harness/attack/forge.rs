//! Either forge, as far as attacks need it: the fakes differ in names only.

use crate::fake::bare::Bare;
use crate::fake::github::GitHub;
use crate::fake::gitlab::GitLab;
use crate::fake::{github, gitlab};

/// Who attacks: may neither write nor label.
pub const STRANGER: &str = "mallory";

/// May write.
pub const MEMBER: &str = "alice";

/// Could write once.
pub const FORMER_MEMBER: &str = "bertha";

/// Was given up by somebody whom the configuration lets have the program work, and belongs to an
/// attacker now.
pub const TAKEN_LOGIN: &str = "olivia";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    GitHub,
    GitLab,
}

pub enum Forge {
    GitHub(GitHub),
    GitLab(GitLab),
}

#[derive(Clone)]
pub enum Repository {
    GitHub(github::Repository),
    GitLab(gitlab::Project),
}

#[derive(Clone)]
pub enum Item {
    GitHub(github::Item),
    GitLab(gitlab::Item),
}

impl Forge {
    pub async fn start(kind: Kind) -> Self {
        match kind {
            Kind::GitHub => Self::GitHub(GitHub::start().await),
            Kind::GitLab => Self::GitLab(GitLab::start().await),
        }
    }

    /// The part of the configuration that leads to it.
    pub fn config(&self) -> (&'static str, serde_json::Value) {
        match self {
            Self::GitHub(github) => (
                "github",
                serde_json::json!({ "api_url": github.api_url(), "token": github.token(), "repositories": ["acme/*"] }),
            ),
            Self::GitLab(gitlab) => (
                "gitlab",
                serde_json::json!({ "api_url": gitlab.api_url(), "token": gitlab.token(), "projects": ["acme/*"] }),
            ),
        }
    }

    /// Has [`TAKEN_LOGIN`] be taken by an attacker, and returns the id of the account that had it.
    pub fn gives_login_away(&self) -> u64 {
        match self {
            Self::GitHub(github) => {
                let id = github.id_of(TAKEN_LOGIN);
                github.takes_over(TAKEN_LOGIN);
                id
            }
            Self::GitLab(gitlab) => {
                let id = gitlab.id_of(TAKEN_LOGIN);
                gitlab.takes_over(TAKEN_LOGIN);
                id
            }
        }
    }

    pub fn token(&self) -> &'static str {
        match self {
            Self::GitHub(github) => github.token(),
            Self::GitLab(gitlab) => gitlab.token(),
        }
    }

    pub fn bot(&self) -> &'static str {
        match self {
            Self::GitHub(github) => github.bot(),
            Self::GitLab(gitlab) => gitlab.bot(),
        }
    }

    pub fn repository(&self, path: &str) -> Repository {
        match self {
            Self::GitHub(github) => Repository::GitHub(github.repository(path)),
            Self::GitLab(gitlab) => Repository::GitLab(gitlab.project(path)),
        }
    }

    /// Returns all pull or merge requests.
    pub fn changes(&self) -> Vec<Item> {
        match self {
            Self::GitHub(github) => github.pulls().into_iter().map(Item::GitHub).collect(),
            Self::GitLab(gitlab) => gitlab.merge_requests().into_iter().map(Item::GitLab).collect(),
        }
    }

    /// Has something happen between the admission of an item and its planning: when its first label
    /// is changed.
    pub fn once_admitted(&self, item: &Item, act: impl FnOnce(&Item) + Send + 'static) {
        let (place, _, number) = item.place();
        let own = item.clone();
        match self {
            Self::GitHub(github) => {
                let route = format!("POST /repos/{place}/issues/{number}/labels");
                github.after(&route, move || act(&own));
            }
            Self::GitLab(gitlab) => {
                let route = format!("PUT /projects/{}/{}/{number}", place.replace('/', "%2F"), item.kind());
                gitlab.after(&route, move || act(&own));
            }
        }
    }

    /// Has something happen while an item is planned: after its comments were read.
    pub fn once_read(&self, item: &Item, act: impl FnOnce(&Item) + Send + 'static) {
        let (place, _, number) = item.place();
        let own = item.clone();
        match self {
            Self::GitHub(github) => {
                let route = format!("GET /repos/{place}/issues/{number}/comments");
                github.after(&route, move || act(&own));
            }
            Self::GitLab(gitlab) => {
                let route = format!(
                    "GET /projects/{}/{}/{number}/notes",
                    place.replace('/', "%2F"),
                    item.kind()
                );
                gitlab.after(&route, move || act(&own));
            }
        }
    }

    pub fn timeline(&self) -> String {
        match self {
            Self::GitHub(github) => github.timeline(),
            Self::GitLab(gitlab) => gitlab.timeline(),
        }
    }
}

impl Repository {
    pub fn git(&self) -> Bare {
        match self {
            Self::GitHub(repository) => repository.git(),
            Self::GitLab(project) => project.git(),
        }
    }

    pub fn commit(&self, branch: &str, message: &str, files: &[(&str, &str)]) -> String {
        match self {
            Self::GitHub(repository) => repository.commit(branch, message, files),
            Self::GitLab(project) => project.commit(branch, message, files),
        }
    }

    /// Lets somebody write, and takes that away again.
    pub fn had_member(&self, person: &str) {
        match self {
            Self::GitHub(repository) => {
                repository.member(person, github::Permission::Write);
                repository.member(person, github::Permission::None);
            }
            Self::GitLab(project) => {
                project.member(person, gitlab::Access::Developer);
                project.member(person, gitlab::Access::None);
            }
        }
    }

    pub fn open_issue(&self, title: &str) -> Item {
        match self {
            Self::GitHub(repository) => Item::GitHub(repository.open_issue(title)),
            Self::GitLab(project) => Item::GitLab(project.open_issue(title)),
        }
    }

    /// Returns the stranger's fork, which was made before.
    pub fn fork_of_stranger(&self, forge: &Forge) -> Self {
        let (_, name) = self.path().rsplit_once('/').unwrap_or_default();
        forge.repository(&format!("{STRANGER}/{name}"))
    }

    pub fn path(&self) -> &str {
        match self {
            Self::GitHub(repository) => repository.full_name(),
            Self::GitLab(project) => project.path(),
        }
    }

    /// Returns the project, for what only GitLab has.
    pub fn gitlab(&self) -> Option<&gitlab::Project> {
        match self {
            Self::GitHub(_) => None,
            Self::GitLab(project) => Some(project),
        }
    }

    /// Opens a pull or merge request from a stranger's fork, whose branch the program may push to.
    pub fn open_change_from_fork(&self, title: &str, head: &str, files: &[(&str, &str)]) -> Item {
        match self {
            Self::GitHub(repository) => {
                let pull = repository.open_pull_from_fork(STRANGER, title, head, files);
                Item::GitHub(pull.allows_maintainers())
            }
            Self::GitLab(project) => {
                let merge = project.open_merge_request_from_fork(STRANGER, title, head, files);
                Item::GitLab(merge.allows_collaboration())
            }
        }
    }
}

impl Item {
    /// Returns the repository, the kind and the number of the item, which no other has.
    pub fn place(&self) -> (String, bool, u64) {
        match self {
            Self::GitHub(item) => (item.repository().to_owned(), item.is_pull(), item.number()),
            Self::GitLab(item) => (item.project().to_owned(), item.is_merge_request(), item.iid()),
        }
    }

    pub fn body(&self, text: &str) {
        match self {
            Self::GitHub(item) => drop(item.body(text)),
            Self::GitLab(item) => drop(item.body(text)),
        }
    }

    pub fn comment(&self, author: &str, text: &str) {
        match self {
            Self::GitHub(item) => drop(item.comment(author, text)),
            Self::GitLab(item) => drop(item.comment(author, text)),
        }
    }

    pub fn label(&self, name: &str) {
        match self {
            Self::GitHub(item) => drop(item.label(name)),
            Self::GitLab(item) => drop(item.label(name)),
        }
    }

    pub fn label_by(&self, person: &str, name: &str) {
        match self {
            Self::GitHub(item) => drop(item.label_by(person, name)),
            Self::GitLab(item) => drop(item.label_by(person, name)),
        }
    }

    pub fn by(&self, author: &str) {
        match self {
            Self::GitHub(item) => drop(item.by(author)),
            Self::GitLab(item) => drop(item.by(author)),
        }
    }

    pub fn rewrite_by(&self, person: &str, text: &str) {
        match self {
            Self::GitHub(item) => drop(item.rewrite_by(person, text)),
            Self::GitLab(item) => drop(item.rewrite_by(person, text)),
        }
    }

    pub fn rename_by(&self, person: &str, title: &str) {
        match self {
            Self::GitHub(item) => drop(item.rename_by(person, title)),
            Self::GitLab(item) => drop(item.rename_by(person, title)),
        }
    }

    /// Lets everything that happened until now have happened an hour earlier.
    pub fn an_hour_passes(&self) {
        match self {
            Self::GitHub(item) => drop(item.an_hour_passes()),
            Self::GitLab(item) => drop(item.an_hour_passes()),
        }
    }

    pub fn gitlab(&self) -> Option<&gitlab::Item> {
        match self {
            Self::GitHub(_) => None,
            Self::GitLab(item) => Some(item),
        }
    }

    pub fn github(&self) -> Option<&github::Item> {
        match self {
            Self::GitHub(item) => Some(item),
            Self::GitLab(_) => None,
        }
    }

    fn kind(&self) -> &'static str {
        if self.place().1 { "merge_requests" } else { "issues" }
    }

    pub fn delete(&self) {
        match self {
            Self::GitHub(item) => drop(item.delete()),
            Self::GitLab(item) => drop(item.delete()),
        }
    }

    pub fn labels(&self) -> Vec<String> {
        match self {
            Self::GitHub(item) => item.labels(),
            Self::GitLab(item) => item.labels(),
        }
    }

    pub fn title(&self) -> String {
        match self {
            Self::GitHub(item) => item.title(),
            Self::GitLab(item) => item.title(),
        }
    }

    pub fn is_draft(&self) -> bool {
        match self {
            Self::GitHub(item) => item.is_draft(),
            Self::GitLab(item) => item.is_draft(),
        }
    }

    pub fn text(&self) -> String {
        match self {
            Self::GitHub(item) => item.text(),
            Self::GitLab(item) => item.text(),
        }
    }

    pub fn comments_of(&self, author: &str) -> Vec<String> {
        match self {
            Self::GitHub(item) => item.comments_of(author),
            Self::GitLab(item) => item.comments_of(author),
        }
    }
}
