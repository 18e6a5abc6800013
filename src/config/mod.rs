//! The configuration file.
//!
//! Composes the sections that the modules own. A [`Config`] that loaded can be worked with. All
//! faults are reported at once, as whole sentences with line and column, before anything is
//! touched. Nothing outside this machine is asked: `doctor` finds out whether a token is good or an
//! image is there.

pub mod chat;
mod document;
pub mod fault;
mod hosts;
pub mod http;
mod position;
mod rules;
mod schema;
mod secret_file;
mod trust;
mod typing;
mod usual_variable;
mod variable;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::record::budget::Budget;
use crate::agent::record::follow_up::FollowUp;
use crate::agent::settings::{ChangeRequests, Planning, Steering};
use crate::forge::{github, gitlab};
use crate::journal::LogConfig;
use crate::llm;
use crate::llm::config::Prices;
use crate::llm::config::model_config::{NamedBy, OWN};
use crate::store::{self, retention::Retention};
use crate::tool::{self, McpServerConfig};
use crate::{approval, environment, index, repository, reviewer, traces};
use chat::Chat;
use fault::{ConfigSource, Fault, Faults};
pub use hosts::Hosts;
use http::Http;

/// The whole of config.yaml.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where tasks come from.
    pub task_sources: Vec<TaskSource>,
    /// Used when `task_sources` names it. A list stands for several hosts, of which each but the
    /// first has a `name`.
    pub github: Hosts<github::Config>,
    /// Used when `task_sources` names it. A list stands for several hosts, as above.
    pub gitlab: Hosts<gitlab::Config>,
    /// The language model.
    pub llm: llm::config::Config,
    /// Most model turns in one run.
    pub max_llm_process_num: u32,
    /// The limits of one run, and of all runs on one day.
    pub budget: Budget,
    /// Tools besides the built-in ones.
    pub mcp_servers: Vec<McpServerConfig>,
    /// Bytes of MCP servers' schemas above which tools are listed by name, described on demand.
    pub mcp_schema_bytes: usize,
    /// The containers in which the work is done.
    pub command_executor: environment::Config,
    /// The engine that runs them.
    pub environment: environment::EngineChoice,
    /// How a run is planned and checked.
    pub planning: Planning,
    /// The code index that plans rest on.
    pub index: index::Config,
    /// Reviews of plans and results by a second model.
    pub review: reviewer::config::Config,
    /// The steps that people are asked to allow before the program goes on.
    pub approval: approval::config::Config,
    /// How people are heard while a run works, and how long a run waits.
    pub steering: Steering,
    /// Labels, assignees, reviewers and texts of the pull/merge requests that the program opens.
    pub change_requests: ChangeRequests,
    /// The work on a pull/merge request after it was opened.
    pub follow_up: FollowUp,
    /// How commits are made and what they may hold.
    pub git: repository::Config,
    /// Tasks that are worked on at the same time.
    pub consumers: usize,
    /// The search for new tasks.
    pub producer: Producer,
    /// How long runs may take to reach a safe point when the program is stopped.
    pub shutdown_grace_seconds: u64,
    /// Folder of the store and the mirrors; two programs with the same folder share the work.
    pub state_dir: PathBuf,
    /// Where the store lies.
    pub store: store::config::Config,
    /// The log files and the journal.
    pub logs: LogConfig,
    /// Data besides secrets that is kept from models.
    pub secret: Secret,
    /// Files that hold secrets, the configuration file among them if it does.
    #[serde(skip)]
    pub secret_files: Vec<PathBuf>,
    /// The template of `llm.system_prompt_file`, read and checked.
    #[serde(skip)]
    pub system_prompt: Option<String>,
    /// How long finished work is kept.
    pub retention: Retention,
    /// Dashboard, API, metrics and webhooks.
    pub http: Http,
    /// Traces for OpenTelemetry.
    pub traces: traces::Config,
    /// People in Slack and LINE.
    pub chat: Chat,
    /// File with certificates (PEM) that connections to forges and models, and programs in
    /// containers, trust beside the machine's, for instance the one of a company's own authority.
    pub ca_file: Option<PathBuf>,
}

/// A platform that tasks come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskSource {
    Github,
    Gitlab,
}

/// Data besides secrets that is kept from models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Secret {
    /// The treatment of personal data that would be sent to a model which is not on this machine or
    /// in a private network.
    pub pii: PersonalData,
}

/// The treatment of e-mail addresses, telephone numbers, card numbers and My Numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PersonalData {
    /// They are sent as they are.
    #[default]
    Off,
    /// A mark is sent in the place of each.
    Mask,
}

/// How tasks are searched for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Producer {
    /// Pause between two searches of `serve` and `produce`.
    pub interval_seconds: u64,
}

/// Looks up an environment variable.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The configuration of the current folder.
const HERE: &str = "config.yaml";
/// The configuration of the machine; users who may not enter its folder work without one.
const OF_MACHINE: &str = "/etc/coding-agent/config.yaml";

impl Config {
    /// Returns the file to load: the one that was asked for, else `CODING_AGENT_CONFIG`, else
    /// `./config.yaml`, else `/etc/coding-agent/config.yaml`. `None` if none was asked for and
    /// neither of the last two is there. A folder that may not be entered counts as one with a
    /// `./config.yaml`: reading it says so, where another file would be another installation.
    pub fn find(asked_for: Option<&Path>, environment: Variables<'_>) -> Option<PathBuf> {
        let from_environment = || environment("CODING_AGENT_CONFIG").filter(|path| !path.is_empty());
        asked_for
            .map(Path::to_owned)
            .or_else(|| from_environment().map(PathBuf::from))
            .or_else(|| {
                let is_there = match Path::new(HERE).metadata() {
                    Ok(found) => found.is_file(),
                    Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
                };
                let usual = if is_there { HERE } else { OF_MACHINE };
                Some(PathBuf::from(usual)).filter(|path| is_there || path.is_file())
            })
    }

    /// Like [`Config::find`], but a file that lies in `folder` is found only if it was asked for.
    pub fn find_outside(asked_for: Option<&Path>, folder: &Path, environment: Variables<'_>) -> Option<PathBuf> {
        let found = Self::find(asked_for, environment)?;
        let is_asked_for =
            asked_for.is_some() || environment("CODING_AGENT_CONFIG").is_some_and(|path| !path.is_empty());
        let is_inside = || found.canonicalize().is_ok_and(|path| path.starts_with(folder));
        (is_asked_for || !is_inside()).then_some(found)
    }

    /// Reads the file. Relative paths in it start at its folder.
    pub fn load(path: &Path, environment: Variables<'_>) -> Result<Self, Vec<Fault>> {
        let text = document::read(path).map_err(|reason| vec![Fault::of_file(path, reason)])?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, &ConfigSource::File(path.to_owned()), folder, environment)
    }

    /// Returns the configuration for a local task on a machine without a file: the defaults, and
    /// the model that the usual variables name.
    pub fn from_environment(environment: Variables<'_>) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::new(&ConfigSource::Environment);
        let value = usual_variable::as_file(environment);
        // Nothing was replaced in it: it is not YAML, so a `${` in a key is meant literally.
        let config = Self::from_value(
            value,
            Path::new(""),
            &variable::Replaced::default(),
            environment,
            &mut faults,
        );
        faults.into_result(config).map_err(|mut found| {
            for fault in &mut found {
                if let Some(name) = usual_variable::of_key(&fault.key, environment) {
                    name.clone_into(&mut fault.key);
                }
            }
            found
        })
    }

    /// Reads the text of a file. Relative paths in it start at `folder`.
    pub fn parse(
        text: &str,
        origin: &ConfigSource,
        folder: &Path,
        environment: Variables<'_>,
    ) -> Result<Self, Vec<Fault>> {
        // Editors of Windows put this mark before the text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut faults = Faults::new(origin);
        let mut value = match document::parse(text) {
            Ok(value) => value,
            Err((place, reason)) => return Err(vec![faults.of_text(place, reason)]),
        };
        variable::expand_home(&mut value, environment, &mut faults);
        let mut secret_files = secret_file::named(&value, folder);
        if let (ConfigSource::File(own), true) = (origin, secret_file::is_in_text(&value)) {
            secret_files.push(own.clone());
        }
        // Docker Compose reads variables from there.
        secret_files.extend([folder.join(".env")].into_iter().filter(|file| file.is_file()));
        let replaced = variable::replace(&mut value, environment, secret_file::file_key, &mut faults);
        secret_file::check_spelling(&value, &replaced, &mut faults);
        let config = Self::from_value(value, folder, &replaced, environment, &mut faults);
        let config = config.map(|config| Self { secret_files, ..config });
        faults.locate(|path| position::locate(text, path));
        faults.into_result(config)
    }

    fn from_value(
        mut value: Value,
        folder: &Path,
        replaced: &variable::Replaced,
        environment: Variables<'_>,
        faults: &mut Faults,
    ) -> Option<Self> {
        secret_file::read_all(&mut value, folder, faults);
        typing::check(&Self::schema(), &mut value, replaced, faults);
        let mut config: Self = match serde_path_to_error::deserialize(value) {
            Ok(config) => config,
            Err(error) => {
                // A rule that the schema does not state, such as what an environment is made of.
                let path: Vec<String> = error.path().to_string().split('.').map(str::to_owned).collect();
                faults.add(path, error.inner().to_string());
                return None;
            }
        };
        config.name_trigger_labels();
        config.llm.masks_personal_data = config.secret.pii == PersonalData::Mask;
        config.llm.embeddings = config.index.embedder().map(str::to_owned);
        if faults.are_of_environment() {
            config.llm.named_by = NamedBy::Variables;
        }
        rules::check(&config, folder, faults);
        config.system_prompt = rules::system_prompt(&config, folder, faults);
        config.chat.persona = rules::persona(&config, folder, faults);
        config.chat.rules = rules::dictionary(&config, folder, faults);
        config.resolve_paths(folder);
        trust::read(&mut config, folder, environment, faults);
        Some(config)
    }

    /// `trigger.label` and `labels.trigger` are two keys of one name.
    fn name_trigger_labels(&mut self) {
        for host in &mut self.github.entries {
            host.trigger.name_label(&mut host.labels);
        }
        for host in &mut self.gitlab.entries {
            host.trigger.name_label(&mut host.labels);
        }
    }

    /// Makes the paths absolute, since git and other programs are started in folders of their own.
    fn resolve_paths(&mut self, folder: &Path) {
        // An empty folder, that of `config.yaml`, has no absolute path.
        let folder = std::path::absolute(folder.join(".")).unwrap_or_else(|_| folder.to_owned());
        // `join` leaves absolute paths as they are; `components` drops the dot of `./state`.
        self.state_dir = folder.join(&self.state_dir).components().collect();
        self.logs.directory = folder.join(&self.logs.directory).components().collect();
        for app in self.github.entries.iter_mut().filter_map(|host| host.app.as_mut()) {
            app.private_key_file = folder.join(&app.private_key_file);
        }
        if let Some(file) = &mut self.review.prompt_file {
            *file = folder.join(&*file);
        }
        if let Some(file) = &mut self.git.signing_key_file {
            *file = folder.join(&*file);
        }
        if let Some(path) = &mut self.command_executor.executor_path {
            *path = folder.join(&*path);
        }
        if let Some(path) = &mut self.environment.kubernetes.kubeconfig {
            *path = folder.join(&*path);
        }
        for environment in self.command_executor.environments.values_mut() {
            if let Some(build) = &mut environment.build {
                build.dockerfile = folder.join(&build.dockerfile);
            }
        }
    }

    /// Returns the JSON Schema of the file (draft 2020-12), for editors.
    pub fn schema() -> Value {
        schema::of_config()
    }

    /// Returns where the store lies.
    pub fn store(&self) -> store::Address {
        self.store.address(&self.state_dir)
    }

    /// Returns the prices of the models, by their names.
    pub fn prices(&self) -> BTreeMap<String, Prices> {
        let own = self.budget.prices.clone().map(|prices| (OWN.to_owned(), prices));
        let models = self.llm.all_models().into_iter();
        let of_models = models.filter_map(|model| Some((model.name, model.options.prices?)));
        own.into_iter().chain(of_models).collect()
    }

    /// Returns what works but should be looked at, a sentence each.
    pub fn doubts(&self) -> Vec<String> {
        rules::doubts(self)
    }

    /// Returns what is wrong if tasks are to be taken from a forge and no source is named. Not part
    /// of loading, because a local task needs none.
    pub fn missing_source(&self) -> Option<String> {
        self.task_sources.is_empty().then(|| {
            "task_sources: no source of tasks is named; write `task_sources: [github]` or `[gitlab]` and fill in that section"
                .to_owned()
        })
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            task_sources: Vec::new(),
            github: Hosts::default(),
            gitlab: Hosts::default(),
            llm: llm::config::Config::default(),
            max_llm_process_num: 1_000,
            budget: Budget::default(),
            mcp_servers: Vec::new(),
            mcp_schema_bytes: tool::SCHEMA_BYTES,
            command_executor: environment::Config::default(),
            environment: environment::EngineChoice::default(),
            planning: Planning::default(),
            index: index::Config::default(),
            review: reviewer::config::Config::default(),
            approval: approval::config::Config::default(),
            steering: Steering::default(),
            change_requests: ChangeRequests::default(),
            follow_up: FollowUp::default(),
            git: repository::Config::default(),
            consumers: 2,
            producer: Producer::default(),
            shutdown_grace_seconds: 30,
            state_dir: PathBuf::from("./state"),
            store: store::config::Config::default(),
            logs: LogConfig::default(),
            secret: Secret::default(),
            secret_files: Vec::new(),
            system_prompt: None,
            retention: Retention::default(),
            http: Http::default(),
            traces: traces::Config::default(),
            chat: Chat::default(),
            ca_file: None,
        }
    }
}

impl Default for Producer {
    fn default() -> Self {
        Self { interval_seconds: 60 }
    }
}
