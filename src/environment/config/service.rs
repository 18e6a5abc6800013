//! Services that a project's tests need, such as a database or a cache. Each is a container that
//! shares the loopback of the run's own.
//!
//! A network for the two would be the usual way. It would be a device in a container that has none,
//! cost an address range per run, lead to the host through its bridge, and need a sweep of its own.
//! Shared loopback avoids all that: a service is at `localhost` and at its own name.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::image_name::fault_of_name;
use super::size::fault_of_memory;

/// Maximum length of a service's name, which is part of host and container names.
const LONGEST_NAME: usize = 40;

/// The configuration of one service container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// The image's name, with its tag.
    pub image: String,
    /// Environment variables of the service. They are not secret: the run's container can read
    /// them.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The program to run instead of the image's own.
    #[serde(default)]
    pub entrypoint: Option<Vec<String>>,
    /// Its arguments, instead of the image's own.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// The user it runs as, e.g. `postgres`; if left out, the image's own, and 1000 instead of
    /// root.
    #[serde(default)]
    pub user: Option<String>,
    /// A shell command inside the service that succeeds once it is ready; if left out, the service
    /// counts as ready when it runs.
    #[serde(default)]
    pub ready: Option<String>,
    /// Time limit until it succeeds.
    #[serde(default = "usual_ready_seconds")]
    pub ready_seconds: u64,
    /// Memory limit, as in `resources`.
    #[serde(default = "usual_memory_limit")]
    pub memory_limit: String,
    /// Environments that get the service; if left out, all.
    #[serde(default)]
    pub environments: Vec<String>,
}

fn usual_ready_seconds() -> u64 {
    60
}

fn usual_memory_limit() -> String {
    "1g".to_owned()
}

impl Service {
    /// Returns a service of this image, with everything else as it is if it is left out.
    pub(crate) fn of_image(image: &str) -> Self {
        Self {
            image: image.to_owned(),
            env: BTreeMap::new(),
            entrypoint: None,
            command: None,
            user: None,
            ready: None,
            ready_seconds: usual_ready_seconds(),
            memory_limit: usual_memory_limit(),
            environments: Vec::new(),
        }
    }

    pub(crate) fn is_for(&self, environment: &str) -> bool {
        self.environments.is_empty() || self.environments.iter().any(|name| name == environment)
    }

    /// Returns a sentence per fault, each beginning with its key below `command_executor`.
    pub(crate) fn faults<'a>(&self, name: &str, environments: impl Fn(&str) -> bool + 'a) -> Vec<String> {
        let key = |key: &str| format!("services.{name}.{key}");
        let mut faults = Vec::new();
        if !is_name(name) {
            faults.push(format!(
                "services.{name}: '{name}' cannot be the name of a host; write small letters, digits and `-`, such as postgres"
            ));
        }
        if let Some(fault) = fault_of_name(&self.image, "postgres:17") {
            faults.push(format!("{}: {fault}", key("image")));
        }
        for variable in self.env.keys() {
            if variable.is_empty() || variable.contains(['=', '\0']) {
                faults.push(format!("{}: '{variable}' cannot be the name of a variable", key("env")));
            }
        }
        if self.command.as_ref().is_some_and(Vec::is_empty) {
            faults.push(format!(
                "{}: is empty; leave it out for the image's own",
                key("command")
            ));
        }
        if self.ready_seconds == 0 {
            faults.push(format!(
                "{}: 0 would give up at once; write at least 1",
                key("ready_seconds")
            ));
        }
        if let Some(fault) = fault_of_memory(&self.memory_limit) {
            faults.push(format!("{}: {fault}", key("memory_limit")));
        }
        for environment in &self.environments {
            if !environments(environment) {
                faults.push(format!(
                    "{}: '{environment}' is not among the environments",
                    key("environments")
                ));
            }
        }
        faults
    }
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(is_letter)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && name != "localhost"
}
