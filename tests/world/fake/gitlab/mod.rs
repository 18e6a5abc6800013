//! A fake GitLab: the REST API and git over HTTP, with what a test or a person wants to do and see.
//!
//! It starts with one private project, `acme/widgets`, that holds a `README.md` on `main`. `alice`
//! is a maintainer and the bot that owns the token a developer; everybody else is a stranger.

mod api;
mod deeds;
mod edits;
mod item;
mod pipelines;
mod project;
mod state;
mod story;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use crate::fake::board::HUMAN;
use crate::fake::forge::Forge;
use crate::fake::gitlab::state::State;
use crate::fake::gitlab::state::Token;
use crate::fake::running::Kind;
use crate::fake::running::Running;
use crate::fake::server;
use crate::fake::tls::Tls;
use crate::fake::traffic::Traffic;

pub use crate::fake::gitlab::pipelines::Job;
pub use crate::fake::gitlab::project::Project;
pub use crate::fake::gitlab::state::Access;
pub use crate::fake::gitlab::state::Note;

/// An issue or a merge request: they differ less than their names.
pub type Item = crate::fake::item::Item<State>;
/// A text of one author.
pub type Remark = crate::fake::remark::Remark<State>;

/// The project that is meant when none is named.
const DEFAULT_PROJECT: &str = "acme/widgets";
/// The token of the bot, made up but of the right shape.
const TOKEN: &str = "glpat-0123456789abcdefghij";
/// The account of that token.
const BOT: &str = "coding-agent-bot";

/// A running GitLab. Everything it started ends when it is dropped.
pub struct GitLab {
    forge: Arc<Forge<State>>,
    _running: Running<State>,
}

const KIND: Kind<State> = Kind {
    state: new_state,
    router: api::router,
};

/// Tests read the requests and set faults in the same way for both forges.
impl Deref for GitLab {
    type Target = Traffic;

    fn deref(&self) -> &Traffic {
        &self.forge.traffic
    }
}

impl GitLab {
    /// Starts on a free port of the loopback interface.
    pub async fn start() -> Self {
        Self::start_on(server::loopback().await)
    }

    /// Starts on a listener that is already bound.
    pub fn start_on(listener: TcpListener) -> Self {
        Self::run(Running::start_on(listener, &KIND))
    }

    /// Starts behind TLS, which all its addresses then show.
    pub async fn start_behind(tls: &Tls) -> Self {
        Self::run(Running::start_behind(tls, &KIND).await)
    }

    fn run(running: Running<State>) -> Self {
        let gitlab = Self {
            forge: running.forge.clone(),
            _running: running,
        };
        gitlab.project(DEFAULT_PROJECT);
        gitlab
    }

    /// Returns the address that the API begins at.
    pub fn api_url(&self) -> String {
        self.forge.api()
    }

    /// Returns the address of GitLab itself: most clients want this, and add `/api/v4`.
    pub fn url(&self) -> &str {
        &self.forge.origin
    }

    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// The account that the token belongs to.
    pub fn bot(&self) -> &'static str {
        BOT
    }

    /// Gives a person a token of their own.
    pub fn token_of(&self, username: &str) -> String {
        let token = format!("glpat-{username:0>20}");
        let owned = Token {
            username: username.to_owned(),
            scopes: vec!["api".to_owned()],
        };
        self.forge.change(|state| state.tokens.insert(token.clone(), owned));
        token
    }

    /// Gives a person's name to somebody else, who has another id.
    pub fn takes_over(&self, username: &str) {
        let username = username.to_owned();
        self.forge.change(|state| {
            state.people.insert(username.clone());
            state.taken_over.insert(username);
        });
    }

    /// Returns the id of the account that has a name now.
    pub fn id_of(&self, username: &str) -> u64 {
        self.forge.read(|state| state.id_of(username))
    }

    /// Changes what the bot's token is good for, such as `read_api`.
    pub fn scopes(&self, scopes: &[&str]) {
        self.forge.change(|state| {
            if let Some(token) = state.tokens.get_mut(TOKEN) {
                token.scopes = scopes.iter().map(|&scope| scope.to_owned()).collect();
            }
        });
    }

    /// Changes the day on which all tokens end; `None` for never.
    pub fn tokens_end(&self, day: Option<chrono::NaiveDate>) {
        self.forge.change(|state| state.tokens_end = day);
    }

    /// Takes the tokens out of use; one that does not work any more can still be asked about itself
    /// on some servers.
    pub fn inactive_tokens(&self) {
        self.forge.change(|state| state.has_inactive_tokens = true);
    }

    /// Makes a person an administrator of the whole GitLab.
    pub fn administrator(&self, username: &str) {
        self.forge
            .change(|state| state.administrators.insert(username.to_owned()));
    }

    /// Lets every token be refused from now on.
    pub fn revokes_tokens(&self) {
        self.forge.change(|state| state.tokens.clear());
    }

    /// Returns a project such as `acme/tools/widgets`, which is made if it is not there.
    pub fn project(&self, path: &str) -> Project {
        Project::at(&self.forge, path)
    }

    /// Returns the project that is meant when none is named.
    pub fn default_project(&self) -> Project {
        self.project(DEFAULT_PROJECT)
    }

    pub fn open_issue(&self, title: &str) -> Item {
        self.default_project().open_issue(title)
    }

    /// Opens a merge request from a new branch with one commit.
    pub fn open_merge_request(&self, title: &str, source: &str, files: &[(&str, &str)]) -> Item {
        self.default_project().open_merge_request(title, source, files)
    }

    pub fn open_merge_request_from_fork(&self, owner: &str, title: &str, source: &str, files: &[(&str, &str)]) -> Item {
        self.default_project()
            .open_merge_request_from_fork(owner, title, source, files)
    }

    /// Returns the merge requests of all projects, oldest first.
    pub fn merge_requests(&self) -> Vec<Item> {
        self.items().into_iter().filter(Item::is_merge_request).collect()
    }

    /// Returns everything that was opened and not deleted, in all projects.
    pub fn items(&self) -> Vec<Item> {
        self.forge
            .read(story::places)
            .into_iter()
            .map(|place| Item::at(&self.forge, place))
            .collect()
    }

    /// Returns the history of everything, for people.
    pub fn timeline(&self) -> String {
        self.forge.read(story::of_everything)
    }

    /// Waits until something is so.
    pub async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        self.until_some(|gitlab| is_so(gitlab).then_some(())).await;
    }

    /// Waits until something is there.
    pub async fn until_some<T>(&self, find: impl Fn(&Self) -> Option<T>) -> T {
        self.forge.until_some(|| self.account(), || find(self)).await
    }

    /// Waits for the first merge request that mentions an issue.
    pub async fn merge_request_for(&self, issue: &Item) -> Item {
        self.until_some(|gitlab| gitlab.merge_requests().into_iter().find(|merge| merge.mentions(issue)))
            .await
    }

    /// Refuses everything for a while, because of too many requests.
    pub fn rate_limited(&self, retry_after: Duration) {
        let until = (Instant::now() + retry_after, retry_after.as_secs());
        self.forge.change(|state| state.limited_until = Some(until));
    }

    /// Takes no writes from now on, as an administrator has it before an update.
    pub fn begins_maintenance(&self) {
        self.forge.change(|state| state.is_in_maintenance = true);
    }

    pub fn ends_maintenance(&self) {
        self.forge.change(|state| state.is_in_maintenance = false);
    }

    fn account(&self) -> String {
        let requests: Vec<_> = self.all_requests().iter().map(ToString::to_string).collect();
        format!("{}\nRequests:\n  {}\n", self.timeline(), requests.join("\n  "))
    }
}

fn new_state(folder: &Path) -> State {
    let scopes = ["api", "write_repository"].map(str::to_owned).to_vec();
    State {
        folder: folder.to_owned(),
        people: [BOT, HUMAN].map(str::to_owned).into(),
        tokens: BTreeMap::from([(
            TOKEN.to_owned(),
            Token {
                username: BOT.to_owned(),
                scopes,
            },
        )]),
        tokens_end: Some(chrono::Utc::now().date_naive() + chrono::Duration::days(365)),
        last_id: 1000,
        ..State::default()
    }
}
