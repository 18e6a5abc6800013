//! Containers, through the Docker engine. Knows images, containers and streams; nothing of repositories or tools.

pub mod container;
pub mod docker;
pub mod image;

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Execution environments and their limits.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Name: image, or name: {image, recommended_for, libraries, build}.
    pub environments: BTreeMap<String, Environment>,
    /// Used when the plan names none, or one that does not exist.
    pub default_environment: String,
    pub resources: Resources,
    pub network: Network,
    /// Longest time one command may take.
    pub timeout_seconds: u64,
    /// Most bytes of a command's output that are kept.
    pub max_output_bytes: u64,
    pub cleanup: Cleanup,
    /// The executor to copy into containers; the file `coding-agent-executor` beside the program when left out.
    pub executor_path: Option<PathBuf>,
}

/// Written as the image's name alone, or as a section.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
pub struct Environment {
    pub image: String,
    /// What the model is told the environment is for.
    pub recommended_for: String,
    /// How libraries are installed in it, for the system prompt.
    pub libraries: String,
    /// How to build the image when it is not there and cannot be pulled.
    pub build: Option<Build>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Path of the Dockerfile; its folder is the context.
    pub dockerfile: PathBuf,
    /// Build arguments, e.g. BASE_IMAGE.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Resources {
    /// Processors, e.g. 2 or 0.5.
    pub cpu_limit: f64,
    /// E.g. `4g`, `512m`.
    pub memory_limit: String,
    pub pids_limit: i64,
    /// Size of the container's writable layer, e.g. `20g`, where the storage driver can limit it; empty for none.
    pub disk_limit: String,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    pub mode: NetworkMode,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    /// Docker's bridge network.
    #[default]
    Open,
    /// No network at all.
    None,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cleanup {
    /// Containers of this program's that are older are removed, whatever the store says.
    pub stale_hours: u64,
}

/// Why there is no environment. The variant says who must act.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The worker's own fault: the task stays queued.
    #[error("the Docker engine at {address} cannot be used: {reason}; start it, or set DOCKER_HOST")]
    NoDocker { address: String, reason: String },
    /// The operator: the image is not there and cannot be had.
    #[error("the image {image} is missing: {reason}; {mend}")]
    ImageMissing {
        image: String,
        reason: String,
        mend: String,
    },
    /// The run: the container died. A new one can take its place.
    #[error("the container {container} is gone: {reason}")]
    ContainerLost { container: String, reason: String },
    /// Anything else Docker said.
    #[error("{what}: {reason}")]
    Unexpected { what: String, reason: String },
}

impl Default for Config {
    fn default() -> Self {
        todo!()
    }
}

impl Default for Resources {
    fn default() -> Self {
        todo!()
    }
}

impl Default for Cleanup {
    fn default() -> Self {
        Self { stale_hours: 24 }
    }
}

impl<'de> Deserialize<'de> for Environment {
    fn deserialize<D: serde::Deserializer<'de>>(_deserializer: D) -> Result<Self, D::Error> {
        todo!("a string is the image")
    }
}
