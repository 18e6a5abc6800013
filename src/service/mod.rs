//! The service: the producer admits labelled items, consumers work on them, recovery repairs what a
//! crash left. Recovery runs at every start of a process that works on runs; there is no other
//! recovery code.

pub mod attending;
pub mod automatic_approval;
mod bell;
pub mod consumer;
pub mod forges;
mod gate;
pub mod local;
pub mod producer;
pub mod recovery;
pub mod requested;
pub mod retention;
pub mod running;
pub mod shutdown;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;

use crate::agent::prompt::system_prompt;
use crate::agent::readiness::{self, NotReady};
use crate::agent::record::saved;
use crate::agent::record::stop::Stop;
use crate::agent::record::usage::ModelCall;
use crate::agent::services::{ReviewSettings, Services, Settings};
use crate::agent::shared_turns::SharedTurns;
use crate::config::Config;
use crate::environment::EngineAccess;
use crate::forge::{ForgeError, Post, Traffic};
use crate::gateway::upstream::Upstream;
use crate::index::Reranker;
use crate::journal::Journal;
use crate::journal::fact::{Fact, Subject};
use crate::llm::config::PriceList;
use crate::llm::model::Model;
use crate::llm::models::Models;
use crate::markdown::compose::Page;
use crate::plain::one_line;
use crate::queue::WakeUps;
use crate::reviewer;
use crate::secret::Redactor;
use crate::store::{Store, StoreError};
use crate::task::id::{RunId, TaskId};
use crate::workspace::containers::Containers;
use bell::Bell;
use forges::{Connected, Forges};
use producer::claiming::LeftToOthers;
use producer::renamed::PresentNames;
use producer::searches::{SearchMeter, Searches};

/// Properties of the machine that are not in the configuration.
pub struct Host {
    /// Path of this program.
    pub program: PathBuf,
    /// The ways to reach the engine and registries.
    pub engine: EngineAccess,
    /// The proxy that the machine is behind, if any.
    pub upstream: Arc<Upstream>,
}

/// The assembled program.
pub struct Service {
    services: Arc<Services>,
    forges: Forges,
    wake_ups: WakeUps,
    bell: Bell,
    /// Items that other installations have claimed.
    left: LeftToOthers,
    /// The names that repositories have now.
    present_names: PresentNames,
    searches: SearchMeter,
    /// Rings when somebody said something in a messenger.
    said: tokio::sync::Notify,
    /// Whether this process looks for work or works.
    is_at_work: AtomicBool,
    stop: Stop,
    config: Config,
}

impl Service {
    /// Opens the store and assembles the service. Contacts neither forge, model nor Docker.
    pub async fn open(
        config: Config,
        host: Host,
        journal: Journal,
        redactor: Arc<Redactor>,
        stop: Stop,
    ) -> anyhow::Result<Self> {
        let store = Store::open(config.store()).await?;
        journal.keep_in(&store);
        // A worker of an older version would read a new record as an empty one.
        if !store.has_other_workers().await? {
            saved::bring_all_up_to_date(&store).await?;
        }
        let models = Models::new(&config.llm)?;
        if store.rung().is_some() {
            models.share(&SharedTurns::over(&store));
        }
        let forges = Forges::connect(&config).await?;
        for connected in forges.all() {
            connected.recall(&store).await;
        }
        let machine = instance(&config.state_dir);
        let containers = Containers::new(
            config.command_executor.clone(),
            host.engine.to(&config.environment),
            machine.clone(),
            host.upstream,
        );
        let services = Services {
            installation: store.installation().await?,
            machine,
            store,
            journal,
            redactor,
            models,
            settings: settings(&config, host.program),
            containers: Arc::new(containers),
            restarting: tokio::sync::Mutex::default(),
        };
        let wake_ups = WakeUps::new(config.consumers);
        Ok(Self {
            services: Arc::new(services),
            forges,
            wake_ups,
            bell: Bell::new(),
            left: LeftToOthers::default(),
            present_names: PresentNames::default(),
            searches: SearchMeter::default(),
            said: tokio::sync::Notify::new(),
            is_at_work: AtomicBool::new(false),
            stop,
            config,
        })
    }

    pub fn store(&self) -> &Store {
        &self.services.store
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn journal(&self) -> &Journal {
        &self.services.journal
    }

    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.services.redactor
    }

    /// Returns the repositories that the configuration names, each with its host before it; those
    /// of which it names the owner alone are not among them.
    pub fn repositories(&self) -> Vec<String> {
        let config = &self.config;
        let github = config.github.entries.iter().flat_map(|host| {
            let name = host.name.as_deref().unwrap_or("github");
            host.repositories.iter().map(move |entry| format!("{name}:{entry}"))
        });
        let gitlab = config.gitlab.entries.iter().flat_map(|host| {
            let name = host.name.as_deref().unwrap_or("gitlab");
            host.projects.iter().map(move |entry| format!("{name}:{entry}"))
        });
        let all = github.chain(gitlab);
        let connected = |entry: &String| {
            let host = entry.split(':').next();
            let mut forges = self.forges.all();
            forges.any(|connected| host == Some(connected.forge.name().as_str()))
        };
        all.filter(|entry| connected(entry) && !entry.ends_with("/*")).collect()
    }

    /// Returns the model that reorders places of the code index by their meaning, if there is one.
    pub fn reranker(&self) -> Option<Reranker> {
        Some(Reranker {
            model: self.services.models.embedder(None)?,
            redactor: Arc::clone(&self.services.redactor),
        })
    }

    /// Tells whether the configuration names a repository, written with its host before it.
    pub fn works_on(&self, repository: &str) -> bool {
        repository.split_once(':').is_some_and(|(host, name)| {
            let mut forges = self.forges.all();
            forges.any(|connected| connected.forge.name().as_str() == host && connected.forge.works_on(name))
        })
    }

    /// Tells whether a process looks for work or works: this one, or another that has the store
    /// open.
    pub async fn has_workers(&self) -> Result<bool, StoreError> {
        if self.is_at_work.load(Ordering::Relaxed) {
            return Ok(true);
        }
        self.store().has_other_workers().await
    }

    /// Has the forges looked at now, because one of them said that something happened.
    pub fn look_now(&self) {
        self.bell.has_delivered();
        self.bell.ring();
    }

    /// Has the messages of people looked at now, because somebody said something.
    pub fn answer_now(&self) {
        self.said.notify_one();
    }

    /// Waits until somebody said something.
    pub async fn somebody_speaks(&self) {
        self.said.notified().await;
    }

    pub fn models(&self) -> &Models {
        &self.services.models
    }

    /// Has the server of a model load it, where the configuration says so; returns why it cannot be
    /// asked now.
    pub async fn make_ready(&self, model: &Model) -> Result<Option<String>, StoreError> {
        let readiness = readiness::ensure(&self.services, model).await?;
        if let Some(text) = readiness.done {
            tracing::warn!(model = model.name(), "{}", one_line(&text));
            self.services.journal.record(&Subject::default(), Fact::Warned { text });
        }
        Ok(readiness.missing.map(|missing| match missing {
            NotReady::Lasts(reason) | NotReady::Passes(reason) => reason,
        }))
    }

    /// Counts a call of a model that is part of no run: in the journal, and for the limits of the
    /// day.
    pub async fn count(&self, call: &ModelCall<'_>) -> Result<(), StoreError> {
        let services = &self.services;
        let counted = services.settings.budget.per_day.count(&services.store, call).await;
        services.journal.record(&Subject::default(), call.fact(0));
        counted
    }

    /// Returns the part of the configuration that runs depend on.
    pub fn settings(&self) -> &Settings {
        &self.services.settings
    }

    /// Returns what this process asked of each forge.
    pub fn forge_traffic(&self) -> Vec<(String, Traffic)> {
        let forges = self.forges.all().map(|connected| &connected.forge);
        forges
            .map(|forge| (forge.name().as_str().to_owned(), forge.traffic()))
            .collect()
    }

    /// Returns what came of this process's searches of each forge.
    pub fn forge_searches(&self) -> Vec<(String, Searches)> {
        let names = self.forges.all().map(|connected| connected.forge.name());
        names
            .map(|name| (name.as_str().to_owned(), self.searches.of(name)))
            .collect()
    }

    /// Returns the prices of the models.
    pub fn prices(&self) -> &PriceList {
        &self.services.settings.prices
    }

    /// Comments `page` once on an item that no run works on; `(area, what)` identifies the comment.
    async fn say(
        &self,
        connected: &Connected,
        task: &TaskId,
        (area, what): (&str, &str),
        page: &Page,
    ) -> Result<(), ForgeError> {
        let name = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_URL, task.to_string().as_bytes());
        let post = Post {
            marker: &format!("{area}-{name}:{what}"),
            body: &page.written(&self.services.redactor),
            search_first: true,
        };
        connected.forge.comment(task, &post).await.map(|_| ())
    }

    fn record(&self, task: &TaskId, run: Option<RunId>, fact: Fact) {
        let task = Some(task.clone());
        self.services.journal.record(&Subject { task, run }, fact);
    }
}

/// A panic in [`isolated`] work, with its words.
#[derive(Debug, thiserror::Error)]
#[error("it broke off by a fault of this program: {0}")]
pub struct Broken(String);

/// Awaits work on one item; a panic in it is an error of that item alone. Without this, strange
/// input would end the loop that met it, with it the process and all its runs, and again at each
/// start.
pub fn isolated<T>(work: impl Future<Output = T>) -> impl Future<Output = Result<T, Broken>> {
    // What the work shares with others stands behind locks that a panic does not close.
    let outcome = AssertUnwindSafe(work).catch_unwind();
    outcome.map(|outcome| outcome.map_err(|panic| Broken(words_of(&*panic))))
}

/// Returns the words of a panic.
fn words_of(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let words = literal.or_else(|| panic.downcast_ref::<String>().cloned());
    words.unwrap_or_else(|| "it said nothing".to_owned())
}

fn settings(config: &Config, program: PathBuf) -> Settings {
    Settings {
        state_dir: config.state_dir.clone(),
        outputs_dir: config.logs.outputs(),
        review: review(config, &program),
        program,
        max_turns: config.max_llm_process_num,
        budget: config.budget.clone(),
        prices: PriceList(config.prices()),
        planning: config.planning.clone(),
        steering: config.steering.clone(),
        approval: config.approval.clone(),
        change_requests: config.change_requests.clone(),
        repository: config.git.clone(),
        max_work_bytes: config.store.max_work_bytes,
        mcp_servers: config.mcp_servers.clone(),
        mcp_schema_bytes: config.mcp_schema_bytes,
        edits: config.llm.edits,
        health: config.llm.health.clone(),
        index: config.index.clone(),
        system_prompt: Arc::from(config.system_prompt.as_deref().unwrap_or(system_prompt::SHIPPED)),
    }
}

fn review(config: &Config, program: &Path) -> ReviewSettings {
    let (prompt, doubt) = reviewer::prompt(config.review.prompt_file.as_deref());
    if let Some(doubt) = doubt {
        tracing::warn!("review.prompt_file: {doubt}");
    }
    ReviewSettings {
        config: config.review.clone(),
        prompt: prompt.into(),
        program_paths: reviewer::ProgramPaths {
            guard: program.to_owned(),
            folder: config.state_dir.join(reviewer::FOLDER),
        },
    }
}

/// Returns the name that distinguishes this installation's containers from those of others on the
/// same engine. The first start stores it with the state: the path alone would be the same in every
/// worker that runs in a container, and each would sweep the others' containers. If it cannot be
/// stored, the name is derived from the path.
pub fn instance(state_dir: &Path) -> String {
    let file = state_dir.join("instance");
    let read = || {
        let name = std::fs::read_to_string(&file).ok()?;
        let name = uuid::Uuid::try_parse(name.trim()).ok()?;
        Some(name.simple().to_string())
    };
    read()
        .or_else(|| make(&file).ok().and_then(|()| read()))
        .unwrap_or_else(|| {
            let path = std::fs::canonicalize(state_dir).unwrap_or_else(|_| state_dir.to_owned());
            uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_URL, path.as_os_str().as_encoded_bytes())
                .simple()
                .to_string()
        })
}

/// Writes a new name atomically, unless another process was faster.
fn make(file: &Path) -> std::io::Result<()> {
    let name = uuid::Uuid::new_v4().simple().to_string();
    let draft = file.with_extension(&name);
    std::fs::write(&draft, format!("{name}\n"))?;
    let placed = std::fs::hard_link(&draft, file);
    std::fs::remove_file(&draft)?;
    match placed {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_in_the_work_on_one_item_is_an_error_of_that_item() {
        let length = |input: &'static str| async move {
            assert!(input.is_ascii(), "strange input: {input}");
            input.len()
        };
        let mut told = Vec::new();
        for input in ["a", "é", "bc"] {
            told.push(isolated(length(input)).await.map_err(|broken| broken.to_string()));
        }
        let broken = "it broke off by a fault of this program: strange input: é".to_owned();
        assert_eq!(told, [Ok(1), Err(broken), Ok(2)]);
    }

    #[test]
    fn an_installation_keeps_its_name_where_its_state_goes_and_shares_it_with_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second, moved] = ["first", "second", "moved"].map(|name| folder.path().join(name));
        std::fs::create_dir(&first).unwrap();
        let name = instance(&first);
        assert_eq!(instance(&first), name);
        std::fs::rename(&first, &moved).unwrap();
        assert_eq!(instance(&moved), name);
        // Another installation at the same path, as in another container.
        std::fs::create_dir(&first).unwrap();
        assert_ne!(instance(&first), name);
        assert_eq!(std::fs::read_dir(&first).unwrap().count(), 1);
        // An invalid name is ignored, and without a folder none can be stored.
        std::fs::write(moved.join("instance"), "coding-agent.run=1").unwrap();
        assert_ne!(instance(&moved), name);
        assert_eq!(instance(&second), instance(&second));
        assert!(!second.exists());
    }
}
