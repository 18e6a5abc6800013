//! What a project's tests need beside it: a database, a cache. Each is a container that shares the
//! loopback of the run's own.
//!
//! A network for the two would be the usual way. It would be a device in a container that has none,
//! cost an address range for each run, lead to the host through its bridge, and be swept apart.
//! Shared loopback is none of that: a service is at `localhost` and at its own name.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::image_name::fault_of_name;
use super::size::parse_size;

/// Characters that a name of a host may have; also those of a container's name.
const LONGEST_NAME: usize = 40;

/// A side container, by the name under which the project's tests reach it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// The image's name, with its tag.
    pub image: String,
    /// Variables of the service. Nothing in it is secret: whoever works in the container can read
    /// it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What is run in the place of the image's own program.
    #[serde(default)]
    pub entrypoint: Option<Vec<String>>,
    /// Its arguments, in the place of the image's own.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Whom it runs as, e.g. `postgres`; the image's own user when left out, and 1000 in the place
    /// of root.
    #[serde(default)]
    pub user: Option<String>,
    /// A shell command inside of the service that succeeds once it can be used; when left out, it
    /// counts as ready when it runs.
    #[serde(default)]
    pub ready: Option<String>,
    /// How long that may take.
    #[serde(default = "usual_ready_seconds")]
    pub ready_seconds: u64,
    /// As in `resources`.
    #[serde(default = "usual_memory_limit")]
    pub memory_limit: String,
    /// Environments that get it; all when left out.
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
    pub(super) fn is_for(&self, environment: &str) -> bool {
        self.environments.is_empty() || self.environments.iter().any(|name| name == environment)
    }

    /// Returns a sentence per fault, each beginning with the key below `command_executor`.
    pub(super) fn faults<'a>(&self, name: &str, environments: impl Fn(&str) -> bool + 'a) -> Vec<String> {
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
        if let Err(reason) = parse_size(&self.memory_limit) {
            faults.push(format!("{}: {reason}", key("memory_limit")));
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
