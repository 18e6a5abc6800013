//! Errors of engines and containers.

/// An error of the engine or a container. The variant says who must act.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The worker: its engine cannot be used; the task stays queued.
    #[error("the Docker engine at {address} cannot be used: {reason}; start it, or set DOCKER_HOST")]
    EngineUnavailable { address: String, reason: String },
    /// The worker: its engine is named by a path and no address; the task stays queued.
    #[error("the Docker engine's address is the path {path}; write unix://{path} in DOCKER_HOST")]
    EngineByPath { path: String },
    /// The worker: its engine is too old; the task stays queued.
    #[error(
        "the Docker engine at {address} is too old: it is {found}, and Engine 20.10 (API 1.41) is the oldest that works; install a newer \
         one, or set DOCKER_HOST"
    )]
    EngineTooOld { address: String, found: String },
    /// The worker: its cluster cannot be used, or has no room; the task stays queued.
    #[error("the Kubernetes cluster {place}, cannot be used: {reason}")]
    ClusterUnavailable { place: String, reason: String },
    /// The registry: it refuses for now, as for a limit of pulls; the task stays queued.
    #[error("the image {image} cannot be pulled at the moment: {reason}")]
    RegistryUnavailable { image: String, reason: String },
    /// The operator: the image is missing and cannot be pulled or built.
    #[error("the image {image} is missing: {reason}; {hint}")]
    ImageMissing {
        image: String,
        reason: String,
        hint: String,
    },
    /// The run: the container died. A new one can replace it.
    #[error("the container {container} is gone: {reason}")]
    ContainerLost { container: String, reason: String },
    /// The operator: the engine does not have the configured runtime.
    #[error(
        "the Docker engine has no runtime '{runtime}'{known}; name it in the engine's /etc/docker/daemon.json, or change \
         command_executor.runtime"
    )]
    NoRuntime {
        runtime: String,
        /// Text that lists the known runtimes, or empty.
        known: String,
    },
    /// The operator: a service does not become ready as configured.
    #[error("the service {service} did not become ready: {reason}; correct command_executor.services.{service}{}", said_last(.said))]
    ServiceNotReady {
        service: String,
        reason: String,
        /// The end of the service's log.
        said: String,
    },
    /// The operator: there is no executor that fits the image.
    #[error("{reason}")]
    NoExecutor { reason: String },
    /// Any other error of the engine.
    #[error("{what}: {reason}")]
    Unexpected { what: String, reason: String },
}

fn said_last(said: &str) -> String {
    if said.is_empty() {
        return String::new();
    }
    format!(". It said last:\n{said}")
}

impl EnvironmentError {
    /// Returns [`Self::ImageMissing`] for an image that is in no registry that could be asked.
    pub(super) fn image_missing(image: &str, reason: String) -> Self {
        Self::ImageMissing {
            image: image.to_owned(),
            reason,
            hint: how_to_get(image),
        }
    }
}

/// Returns how to build the image of the shipped environment `name`, by each way in which the
/// program may have been installed: no registry has it.
pub fn how_to_build(image: &str, name: &str) -> String {
    format!(
        "build it: `scripts/setup images {name}` in the folder of coding-agent's source, `docker build -t {image} - \
         <docker/Dockerfile-executor-{name}` in that of the archive or in /usr/share/coding-agent (Debian package), or \
         `docker compose --profile executor-build build` beside the compose file"
    )
}

/// Returns the name of the shipped environment that an image belongs to by its own name; such an
/// image is built on each machine, and no registry has it.
pub(super) fn shipped_name(image: &str) -> Option<&str> {
    let rest = image.strip_prefix("coding-agent-executor-")?;
    rest.split(':').next()
}

/// Returns how to get an image; the shipped ones must be built.
fn how_to_get(image: &str) -> String {
    match shipped_name(image) {
        Some(name) => how_to_build(image, name),
        None => format!("bring it with `docker pull {image}`, or give the environment a `build` section"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_fits_the_image() {
        insta::assert_snapshot!(how_to_get("coding-agent-executor-go:latest"), @"build it: `scripts/setup images go` in the folder of coding-agent's source, `docker build -t coding-agent-executor-go:latest - <docker/Dockerfile-executor-go` in that of the archive or in /usr/share/coding-agent (Debian package), or `docker compose --profile executor-build build` beside the compose file");
        insta::assert_snapshot!(how_to_get("rust:1"), @"bring it with `docker pull rust:1`, or give the environment a `build` section");
    }
}
