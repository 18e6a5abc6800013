//! A fake GitHub: the REST API and git over HTTP, with what a test or a person wants to do and see.
//!
//! It starts with one private repository, `acme/widgets`, that holds a `README.md` on `main`.
//! `alice` may write there, and so may the bot that owns the token; everybody else is a stranger.

mod api;
mod checks;
mod deeds;
mod item;
mod repository;
mod state;
mod story;
mod tokens;
mod written;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use crate::fake::board::HUMAN;
use crate::fake::fault::Disturbance;
use crate::fake::fault::Fault;
use crate::fake::forge::Forge;
use crate::fake::git_http;
use crate::fake::git_http::Late;
use crate::fake::github::state::Allowance;
use crate::fake::github::state::Place;
use crate::fake::github::state::State;
use crate::fake::github::state::now;
use crate::fake::github::tokens::Narrow;
use crate::fake::github::tokens::Token;
use crate::fake::running::Kind;
use crate::fake::running::Running;
use crate::fake::server;
use crate::fake::tls::Tls;
use crate::fake::traffic::Traffic;

pub use crate::fake::github::repository::Repository;
pub use crate::fake::github::state::Comment;
pub use crate::fake::github::state::Permission;
pub use crate::fake::github::tokens::App;

/// An issue or a pull request. On GitHub every pull request is an issue, too.
pub type Item = crate::fake::item::Item<State>;
/// A text of one author.
pub type Remark = crate::fake::remark::Remark<State>;

/// The repository that is meant when none is named.
const DEFAULT_REPOSITORY: &str = "acme/widgets";
/// The token of the bot, made up but of the right shape.
const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
/// The account of that token.
const BOT: &str = "coding-agent-bot";

/// A running GitHub. Everything it started ends when it is dropped.
pub struct GitHub {
    forge: Arc<Forge<State>>,
    _running: Running<State>,
}

const KIND: Kind<State> = Kind {
    state: new_state,
    router: api::router,
};

/// Tests read the requests and set faults in the same way for both forges.
impl Deref for GitHub {
    type Target = Traffic;

    fn deref(&self) -> &Traffic {
        &self.forge.traffic
    }
}

impl GitHub {
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
        let github = Self {
            forge: running.forge.clone(),
            _running: running,
        };
        github.repository(DEFAULT_REPOSITORY);
        github
    }

    /// Returns the address that the API begins at, for the configuration of a client.
    pub fn api_url(&self) -> String {
        self.forge.api()
    }

    pub fn url(&self) -> &str {
        &self.forge.origin
    }

    /// Somebody drops a file into a page; returns the address that then stands in the text.
    pub fn attaches(&self, bytes: &[u8]) -> String {
        let name = self.forge.change(|state| {
            let name = format!("00000000-0000-4000-8000-{:012}", state.attachments.len());
            state.attachments.insert(name.clone(), bytes.to_vec());
            name
        });
        format!("{}/user-attachments/assets/{name}", self.forge.origin)
    }

    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// The account that the token belongs to.
    pub fn bot(&self) -> &'static str {
        BOT
    }

    /// Installs an App on every repository that is there now. Its bot is `coding-agent[bot]`.
    pub fn install_app(&self, id: u64) -> App {
        let app = App {
            id,
            slug: "coding-agent".to_owned(),
            installation: id + 1,
            permissions: [
                ("actions", "read"),
                ("checks", "read"),
                ("contents", "write"),
                ("issues", "write"),
                ("metadata", "read"),
                ("pull_requests", "write"),
                ("statuses", "read"),
            ]
            .map(|(name, access)| (name.to_owned(), access.to_owned()))
            .into(),
            not_accepted: BTreeSet::new(),
        };
        self.forge.change(|state| {
            state.app = Some(app.clone());
            for place in &mut state.repositories {
                place.members.insert(format!("{}[bot]", app.slug), Permission::Write);
            }
        });
        app
    }

    /// Gives a person a token of their own.
    pub fn token_of(&self, login: &str) -> String {
        let token = format!("ghp_{login:0>36}");
        let login = login.to_owned();
        let owned = Token {
            login,
            scopes: Some("repo".to_owned()),
            installation: None,
        };
        self.forge.change(|state| state.tokens.insert(token.clone(), owned));
        token
    }

    /// Gives a person's login to somebody else, who has another id.
    pub fn takes_over(&self, login: &str) {
        let login = login.to_owned();
        self.forge.change(|state| {
            state.people.insert(login.clone());
            state.taken_over.insert(login);
        });
    }

    /// Returns the id of the account that has a login now.
    pub fn id_of(&self, login: &str) -> u64 {
        self.forge.read(|state| state.id_of(login))
    }

    /// Changes what the bot's token says of its scopes, such as `public_repo, read:org`.
    pub fn scopes(&self, scopes: &str) {
        self.forge.change(|state| {
            if let Some(token) = state.tokens.get_mut(TOKEN) {
                token.scopes = Some(scopes.to_owned());
            }
        });
    }

    /// Makes the bot's token a fine-grained one, which does not tell what it is good for.
    pub fn fine_grained(&self) {
        self.forge.change(|state| {
            if let Some(token) = state.tokens.get_mut(TOKEN) {
                token.scopes = None;
            }
        });
    }

    /// Gives the bot a fine-grained token, which reaches the repositories of one owner alone.
    pub fn fine_grained_token(&self) -> String {
        let token = "github_pat_0123456789abcdef".to_owned();
        let owned = Token {
            login: BOT.to_owned(),
            scopes: None,
            installation: None,
        };
        self.forge.change(|state| state.tokens.insert(token.clone(), owned));
        token
    }

    /// Makes a token of an App's installation, as a workflow has one, for whoever configures it as
    /// the token. Its account is `coding-agent[bot]`.
    pub fn installation_token(&self) -> String {
        let token = format!("ghs_{:0>36}", 7);
        let app = self.install_app(7);
        let owned = Token {
            login: format!("{}[bot]", app.slug),
            scopes: None,
            installation: Some(Narrow {
                repositories: None,
                permissions: app.accepted(),
                unknown_for: 0,
                unknown_to_git: Arc::default(),
            }),
        };
        self.forge.change(|state| state.tokens.insert(token.clone(), owned));
        token
    }

    /// Changes the day on which all personal tokens end; `None` for never.
    pub fn tokens_end(&self, day: Option<chrono::NaiveDate>) {
        self.forge.change(|state| state.tokens_end = day);
    }

    /// Gives the App that is installed a permission such as `checks`, with `read`, `write` or none.
    pub fn permit(&self, name: &str, access: Option<&str>) {
        self.forge.change(|state| {
            let Some(app) = &mut state.app else { return };
            app.permissions.remove(name);
            if let Some(access) = access {
                app.permissions.insert(name.to_owned(), access.to_owned());
            }
        });
    }

    /// Asks for a permission for the App that nobody has accepted yet where it is installed.
    pub fn leaves_unaccepted(&self, name: &str) {
        self.forge.change(|state| {
            if let Some(app) = &mut state.app {
                app.not_accepted.insert(name.to_owned());
            }
        });
    }

    /// Returns what the tokens of installations were made for: their repositories, or none for all,
    /// and their permissions.
    pub fn made_tokens(&self) -> Vec<String> {
        let told = |narrow: &Narrow| {
            let names = narrow
                .repositories
                .iter()
                .flatten()
                .cloned()
                .collect::<Vec<_>>()
                .join(" ");
            let may = narrow
                .permissions
                .iter()
                .map(|(name, access)| format!("{name} {access}"));
            format!("[{names}] {}", may.collect::<Vec<_>>().join(", "))
        };
        self.forge.read(|state| {
            let made = state.tokens.values().filter_map(|token| token.installation.as_ref());
            made.map(told).collect()
        })
    }

    /// Refuses the first requests with each token that is made for an installation from now on, as
    /// GitHub does for seconds.
    pub fn learns_of_tokens_late(&self, refusals: u32) {
        self.forge.change(|state| state.unknown_at_first = refusals);
    }

    /// Lets every token be refused from now on.
    pub fn revokes_tokens(&self) {
        self.forge.change(|state| state.tokens.clear());
    }

    /// Takes the bot's token again, as if the operator had put a new one in.
    pub fn takes_the_token_again(&self) {
        self.forge
            .change(|state| state.tokens.insert(TOKEN.to_owned(), bots_token()));
    }

    /// Returns a repository such as `acme/widgets`, which is made if it is not there.
    pub fn repository(&self, full_name: &str) -> Repository {
        Repository::at(&self.forge, full_name)
    }

    /// Returns the repository that is meant when none is named.
    pub fn default_repository(&self) -> Repository {
        self.repository(DEFAULT_REPOSITORY)
    }

    pub fn open_issue(&self, title: &str) -> Item {
        self.default_repository().open_issue(title)
    }

    /// Opens a pull request from a new branch with one commit.
    pub fn open_pull(&self, title: &str, head: &str, files: &[(&str, &str)]) -> Item {
        self.default_repository().open_pull(title, head, files)
    }

    pub fn open_pull_from_fork(&self, owner: &str, title: &str, head: &str, files: &[(&str, &str)]) -> Item {
        self.default_repository().open_pull_from_fork(owner, title, head, files)
    }

    /// Returns the pull requests of all repositories, oldest first.
    pub fn pulls(&self) -> Vec<Item> {
        self.items().into_iter().filter(Item::is_pull).collect()
    }

    /// Returns everything that was opened and not deleted, in all repositories.
    pub fn items(&self) -> Vec<Item> {
        let found: Vec<_> = self.forge.read(|state| {
            let all = state.repositories.iter().flat_map(|place| {
                let items = place.items.values().filter(|item| !item.is_deleted);
                items.map(|item| Place::new(&place.full_name(), item.number))
            });
            all.collect()
        });
        found.into_iter().map(|place| Item::at(&self.forge, place)).collect()
    }

    /// Returns the history of everything, for people.
    pub fn timeline(&self) -> String {
        self.forge.read(story::of_everything)
    }

    /// Waits until something is so.
    pub async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        self.until_some(|github| is_so(github).then_some(())).await;
    }

    /// Waits until something is there.
    pub async fn until_some<T>(&self, find: impl Fn(&Self) -> Option<T>) -> T {
        self.forge.until_some(|| self.account(), || find(self)).await
    }

    /// Waits for the first pull request that mentions an issue.
    pub async fn pull_request_for(&self, issue: &Item) -> Item {
        self.until_some(|github| github.pulls().into_iter().find(|pull| pull.mentions(issue)))
            .await
    }

    /// Has packs begin late, with signs of life until then.
    pub fn packs_late(&self, late: Late) {
        git_http::packs_late(&self.forge.folder, late);
    }

    /// Has every push of a branch wait for a hook, with signs of life until then.
    pub fn pushes_late(&self, late: Late) {
        git_http::pushes_late(&self.forge.folder, late);
    }

    /// Waits until a request hangs.
    pub async fn until_one_hangs(&self) {
        self.until(|github| github.hanging() > 0).await;
    }

    /// Breaks off the requests that hang.
    pub fn cuts_off(&self) {
        self.forge.cut_off();
    }

    /// Refuses everything after some more requests, until the allowance is renewed.
    pub fn rate_limited(&self, after: u64, renewed_in: Duration) {
        let wait = chrono::Duration::from_std(renewed_in).expect("a wait of a test is short");
        // Times are told in whole seconds: round up, so that the allowance is really renewed then.
        let reset = now() + wait + chrono::Duration::seconds(1);
        self.forge.change(|state| {
            state.allowance = Allowance {
                left: after,
                reset,
                secondary_until: None,
            }
        });
    }

    /// Refuses everything for a while, because of too many requests at once.
    pub fn secondary_limited(&self, retry_after: Duration) {
        let until = (Instant::now() + retry_after, retry_after.as_secs());
        self.forge.change(|state| state.allowance.secondary_until = Some(until));
    }

    /// Refuses the next comment, because too much was written, and wants to be left alone for an
    /// hour; everything else is done.
    pub fn takes_no_comment(&self) {
        self.limits("POST /repos/*/*/issues/*/comments");
    }

    /// The same for the next request to a route.
    pub fn limits(&self, route: &str) {
        let says = r#"{"message":"You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry your request again later."}"#;
        let refuses = Fault::RefusesWith(403, says, ("retry-after", "3600"));
        self.disturb(Disturbance::of(route, refuses));
    }

    fn account(&self) -> String {
        let requests: Vec<_> = self.all_requests().iter().map(ToString::to_string).collect();
        format!("{}\nRequests:\n  {}\n", self.timeline(), requests.join("\n  "))
    }
}

fn new_state(folder: &Path) -> State {
    State {
        folder: folder.to_owned(),
        people: [BOT, HUMAN].map(str::to_owned).into(),
        organizations: ["acme".to_owned()].into(),
        tokens: BTreeMap::from([(TOKEN.to_owned(), bots_token())]),
        tokens_end: Some(now().date_naive() + chrono::Duration::days(365)),
        last_id: 1000,
        ..State::default()
    }
}

fn bots_token() -> Token {
    Token {
        login: BOT.to_owned(),
        scopes: Some("repo".to_owned()),
        installation: None,
    }
}
