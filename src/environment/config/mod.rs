//! The section `command_executor` of the configuration: environments, limits and network.

mod file_tools; // limits of the file tools
pub mod size; // `4g`, `512m`
pub(crate) mod image_name; // tags and digests
mod resources; // memory, processors, processes, disk
pub mod service; // service containers
mod snapshots; // limits of kept set-ups
mod shipped; // the five environments that ship
mod notation; // parses one environment
pub mod engine_choice; // the section `environment`: Docker's API or a cluster

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::certificates::Trust;
use crate::egress::Policy;
use crate::egress::pattern::Pattern;
use file_tools::FileTools;
use resources::Resources;
use service::Service;
use snapshots::Snapshots;

/// Maximum size of one environment's warm pool. Each container takes some 10 MB of the engine's
/// memory.
const MOST_WARM: usize = 32;

/// Execution environments and their limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Must be true: nothing is ever run outside of a container.
    pub enabled: bool,
    /// Environments by name, each an image or a section {image, `recommended_for`, libraries,
    /// build}. Replaces the five that ship.
    #[serde(deserialize_with = "notation::environments")]
    pub environments: BTreeMap<String, Environment>,
    /// The environment of a plan that names none, or one that does not exist.
    pub default_environment: String,
    /// The settings that projects may choose for themselves in their rules.
    pub by_rules: ByRules,
    pub resources: Resources,
    pub network: Network,
    /// Name of the engine's runtime, such as `runsc` (gVisor) or one of Kata's; empty for the
    /// engine's default.
    pub runtime: String,
    /// Service containers for the projects' tests, by the host name under which they are reached.
    pub services: BTreeMap<String, Service>,
    /// Time limit of one command.
    pub timeout_seconds: u64,
    /// Maximum bytes of a command's output that are kept.
    pub max_output_bytes: u64,
    /// Limits of the tools that read and write single files.
    pub files: FileTools,
    /// Environments that are kept after a plan's set-up commands, for the project's next run.
    pub snapshots: Snapshots,
    /// Number of containers that a service keeps started, by environment, so that a run need not
    /// wait for one.
    pub warm: BTreeMap<String, usize>,
    pub cleanup: Cleanup,
    /// The executor to copy into containers; if left out, the file `coding-agent-executor` beside
    /// the program.
    pub executor_path: Option<PathBuf>,
    /// Whom programs in containers trust besides those that their image does, when the top-level
    /// `ca_file` was read.
    #[serde(skip)]
    pub trust: Trust,
}

/// An execution environment, written as the image's name alone or as a section.
#[derive(Debug, Clone, PartialEq)]
pub struct Environment {
    pub image: String,
    /// The kinds of work that the environment is good for, as the model is told.
    pub recommended_for: String,
    /// How to install libraries in it, for the system prompt.
    pub libraries: String,
    /// How to build the image if it is missing and cannot be pulled.
    pub build: Option<Build>,
    /// Hosts that its containers may reach; if left out, those of the shipped environment of its
    /// name.
    pub allow: Option<Vec<String>>,
    /// Files at the top of a repository that show that it wants this environment; if left out,
    /// those of the shipped environment of its name.
    pub project_files: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Path of the Dockerfile; its folder is the context.
    pub dockerfile: PathBuf,
    /// Build arguments, e.g. `BASE_IMAGE`.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
}

/// The settings that projects may choose for themselves, in the section `environment` of their
/// rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ByRules {
    /// Images that a project may name, with `*` for any number of characters; none if left out.
    pub images: Vec<String>,
    /// Whether a project's own set-up commands are run.
    pub setup_commands: bool,
}

impl Default for ByRules {
    fn default() -> Self {
        Self {
            images: Vec::new(),
            setup_commands: true,
        }
    }
}

/// Network access of containers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// The hosts that containers may reach: the listed ones alone, none, or all without any limit.
    pub mode: NetworkMode,
    /// When containers may reach the listed hosts.
    pub during: During,
    /// Hosts that every container may reach besides those of its environment: `example.com`,
    /// `*.example.com`, `example.com:8080`.
    pub allow: Vec<String>,
    /// Hosts that may be reached even in a private network, such as a company's own registry.
    pub allow_private: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    /// No network except a way out to the listed hosts.
    #[default]
    Allowlist,
    /// No network at all.
    None,
    /// Docker's bridge network, without any limit.
    Open,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum During {
    /// As long as the container lives.
    #[default]
    Always,
    /// Only while the plan's set-up commands run.
    Setup,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cleanup {
    /// Age after which a container of this program is removed, unless a worker works in it.
    pub stale_hours: u64,
}

impl Environment {
    /// Returns an environment with an image and nothing else.
    pub(crate) fn of_image(image: &str) -> Self {
        Self {
            image: image.to_owned(),
            recommended_for: String::new(),
            libraries: String::new(),
            build: None,
            allow: None,
            project_files: None,
        }
    }

    fn is_wanted_by(&self, files: &[String]) -> bool {
        let shown = self.project_files.iter().flatten();
        shown.into_iter().any(|file| files.contains(file))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            environments: shipped::environments(),
            default_environment: "python".to_owned(),
            by_rules: ByRules::default(),
            resources: Resources::default(),
            network: Network::default(),
            runtime: String::new(),
            services: BTreeMap::new(),
            timeout_seconds: 600,
            max_output_bytes: 1024 * 1024,
            files: FileTools::default(),
            snapshots: Snapshots::default(),
            warm: BTreeMap::new(),
            cleanup: Cleanup::default(),
            executor_path: None,
            trust: Trust::default(),
        }
    }
}

impl Default for Cleanup {
    fn default() -> Self {
        Self { stale_hours: 24 }
    }
}

impl Config {
    /// Returns a sentence per fault, each beginning with its key. Does no I/O.
    pub fn validate(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.enabled {
            faults.push(
                "enabled: false would leave no place to work in, as nothing is ever run outside of a container; write true, or \
                 leave it out"
                    .to_owned(),
            );
        }
        if self.environments.is_empty() {
            faults.push(
                "environments: there is none; name at least one, e.g. python: coding-agent-executor-python:latest"
                    .to_owned(),
            );
        } else if !self.environments.contains_key(&self.default_environment) {
            let names: Vec<&str> = self.environments.keys().map(String::as_str).collect();
            let names = names.join(", ");
            faults.push(format!(
                "default_environment: '{}' is not among the environments; write one of {names}",
                self.default_environment
            ));
        }
        for (name, environment) in &self.environments {
            if let Some(fault) = image_name::fault_of_name(&environment.image, "python:3.11-slim-bookworm") {
                faults.push(format!("environments.{name}: {fault}"));
            } else if environment.build.is_some() && image_name::is_by_digest(&environment.image) {
                faults.push(format!(
                    "environments.{name}: an image that is named by its digest is never built, since what is built has another one; \
                     leave build out, or name the image by a tag"
                ));
            }
        }
        faults.extend(self.network_faults());
        if self
            .runtime
            .contains(|letter: char| letter.is_whitespace() || letter == '/')
        {
            faults.push(format!(
                "runtime: '{}' is not the name of a runtime; write one that `docker info` shows, such as runsc",
                self.runtime
            ));
        }
        for (name, service) in &self.services {
            faults.extend(service.faults(name, |environment| self.environments.contains_key(environment)));
        }
        faults.extend(self.warm_faults());
        faults.extend(self.resources.validate());
        if self.timeout_seconds == 0 {
            faults.push("timeout_seconds: 0 would end every command at once; write at least 1".to_owned());
        }
        if self.max_output_bytes == 0 {
            faults.push("max_output_bytes: 0 would hide all output; write at least 1".to_owned());
        }
        faults.extend(self.files.faults());
        if self.cleanup.stale_hours == 0 {
            faults.push("cleanup.stale_hours: 0 would remove containers at work; write at least 1".to_owned());
        }
        faults
    }

    fn warm_faults(&self) -> Vec<String> {
        let faults = self.warm.iter().filter_map(|(name, count)| {
            if !self.environments.contains_key(name) {
                let names: Vec<&str> = self.environments.keys().map(String::as_str).collect();
                let names = names.join(", ");
                return Some(format!(
                    "warm.{name}: there is no such environment; write one of {names}"
                ));
            }
            (*count > MOST_WARM)
                .then(|| format!("warm.{name}: {count} is more than {MOST_WARM}, the maximum; write fewer"))
        });
        faults.collect()
    }

    fn network_faults(&self) -> Vec<String> {
        let of_environments = self
            .environments
            .iter()
            .map(|(name, environment)| (format!("environments.{name}.allow"), environment.allow.as_deref()));
        let lists = [
            ("network.allow".to_owned(), Some(self.network.allow.as_slice())),
            (
                "network.allow_private".to_owned(),
                Some(self.network.allow_private.as_slice()),
            ),
        ];
        let entries = of_environments.chain(lists).flat_map(|(key, list)| {
            let entries = list.unwrap_or_default().iter().enumerate();
            entries.map(move |(index, entry)| (format!("{key}.{index}"), entry))
        });
        let mut faults: Vec<String> = entries
            .filter_map(|(key, entry)| Some(format!("{key}: {}", entry.parse::<Pattern>().err()?)))
            .collect();
        if self.network.during == During::Setup && self.network.mode == NetworkMode::Open {
            faults.push(
                "network.during: setup closes the way out after set-up, and with mode: open there is none to close; write \
                 mode: allowlist, or during: always"
                    .to_owned(),
            );
        }
        faults
    }

    /// Returns the environment that a repository with these files (paths from its top) will get, if
    /// that is certain: the only one configured, or the only one whose project files are present.
    pub fn expected_for(&self, files: &[String]) -> Option<&str> {
        let mut wanted: Vec<&str> = self.environments.keys().map(String::as_str).collect();
        if wanted.len() > 1 {
            wanted.retain(|name| self.environments[*name].is_wanted_by(files));
        }
        match wanted[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the services of the environment with this name.
    pub fn services_of(&self, environment: &str) -> impl Iterator<Item = (&str, &Service)> {
        let services = self.services.iter().map(|(name, service)| (name.as_str(), service));
        services.filter(move |(_, service)| service.is_for(environment))
    }

    /// Returns the network policy for containers of `environment`; `None` if they have no way out.
    pub fn policy(&self, environment: &Environment) -> Option<Policy> {
        match self.network.mode {
            NetworkMode::None | NetworkMode::Open => None,
            NetworkMode::Allowlist => {
                let allowed = environment.allow.iter().flatten().chain(&self.network.allow);
                // An unreadable entry was reported when the configuration was checked, and allows
                // nothing.
                Some(Policy::of_readable(allowed, &self.network.allow_private))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_have_no_fault() {
        assert_eq!(Config::default().validate(), Vec::<String>::new());
    }

    #[test]
    fn the_files_show_the_environment_where_only_one_comes_into_question() {
        let mut config = Config::default();
        let expected = |config: &Config, files: &[&str]| {
            let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
            config.expected_for(&files).map(str::to_owned)
        };
        assert_eq!(expected(&config, &["README.md", "go.mod"]).as_deref(), Some("go"));
        assert_eq!(expected(&config, &["tools/go.mod", "README.md"]), None);
        assert_eq!(expected(&config, &["go.mod", "package.json"]), None);
        config.environments.retain(|name, _| name == "java");
        assert_eq!(expected(&config, &["go.mod"]).as_deref(), Some("java"));
    }

    #[test]
    fn every_fault_is_named_with_its_key_and_its_mend() {
        let mut config = Config {
            enabled: false,
            default_environment: "ruby".to_owned(),
            timeout_seconds: 0,
            ..Config::default()
        };
        config.resources.memory_limit = "much".to_owned();
        config.resources.cpu_limit = f64::NAN;
        config.environments.retain(|name, _| name == "go");
        config.network.allow = vec!["pypi.org".to_owned(), "https://pypi.org/".to_owned()];
        config.warm = [("go".to_owned(), 33), ("python".to_owned(), 1)].into();
        insta::assert_snapshot!(config.validate().join("\n"), @r"
        enabled: false would leave no place to work in, as nothing is ever run outside of a container; write true, or leave it out
        default_environment: 'ruby' is not among the environments; write one of go
        network.allow.1: 'https://pypi.org/' is not a host; write a name such as example.com, *.example.com for all below it, or example.com:8080 for another port than 80 and 443 (no https://, no path)
        warm.go: 33 is more than 32, the maximum; write fewer
        warm.python: there is no such environment; write one of go
        resources.cpu_limit: NaN is not a number of processors; write at least 0.01
        resources.memory_limit: 'much' is not a size; write a number of bytes, or a number with k, m, g or t, such as 4g
        timeout_seconds: 0 would end every command at once; write at least 1
        ");
    }
}
