//! An engine that serves Docker's API: its images, limits and containers.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::config::Config;
use super::config::image_name::digest_of;
use super::container::Container;
use super::container::name::{self, LABEL_INSTANCE, LABEL_NETWORK, LABEL_RUN, LABEL_SERVICE, LABEL_WARM};
use super::container::specification::{ContainerRequest, Holder};
use super::container::user;
use super::docker::{Client, ContainerSpec, EngineAccess, EngineInfo, Limit};
use super::driver::{BaseImage, Listed, ListedContainer};
use super::error::EnvironmentError;
use super::executor::{Architecture, Fingerprints, find_executor};
use super::processes::Failure;

/// A connection to an engine with Docker's API, as one installation uses it. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct DockerEngine {
    pub(super) client: Client,
    shared: Arc<Shared>,
}

/// Ids of the known prepared images by their content; `None` once the engine refused to make one.
pub(super) type PreparedImages = Option<HashMap<String, String>>;

#[derive(Debug)]
struct Shared {
    config: Config,
    prepared: Mutex<PreparedImages>,
    fingerprints: Fingerprints,
    info: EngineInfo,
    instance: String,
    /// Keys of the limits that cannot be kept and were already logged.
    told_unlimited: Mutex<HashSet<String>>,
}

impl DockerEngine {
    /// Connects to the engine (API 1.41 and later). `instance` identifies this installation: only
    /// containers that carry it are ever found or swept.
    pub(super) async fn connect(
        config: &Config,
        access: &EngineAccess,
        instance: &str,
    ) -> Result<Self, EnvironmentError> {
        let (client, info) = Client::connect(access).await?;
        let shared = Shared {
            config: config.clone(),
            prepared: Mutex::new(Some(HashMap::new())),
            fingerprints: Fingerprints::default(),
            info,
            instance: instance.to_owned(),
            told_unlimited: Mutex::default(),
        };
        Ok(Self {
            client,
            shared: Arc::new(shared),
        })
    }

    /// Returns a description for people, such as `Engine 20.10.24, API 1.41`.
    pub(super) fn describe(&self) -> &str {
        &self.shared.info.description
    }

    /// Returns an error if the engine does not have the configured runtime.
    pub(super) fn lacks_runtime(&self) -> Option<EnvironmentError> {
        let runtime = &self.shared.config.runtime;
        (!runtime.is_empty() && !self.shared.info.runtimes.contains(runtime)).then(|| self.no_runtime())
    }

    fn no_runtime(&self) -> EnvironmentError {
        let mut known = self.shared.info.runtimes.clone();
        known.sort();
        EnvironmentError::NoRuntime {
            runtime: self.shared.config.runtime.clone(),
            known: format!(", but {}", known.join(", ")),
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(super) fn prepared_images(&self) -> &Mutex<PreparedImages> {
        &self.shared.prepared
    }

    pub(super) fn fingerprints(&self) -> &Fingerprints {
        &self.shared.fingerprints
    }

    pub(super) fn info(&self) -> &EngineInfo {
        &self.shared.info
    }

    pub(super) fn instance(&self) -> &str {
        &self.shared.instance
    }

    pub(super) fn request<'a>(
        &'a self,
        holder: Holder<'a>,
        (environment, image): (&str, &'a str),
        base: &'a BaseImage,
    ) -> ContainerRequest<'a> {
        let services = self.config().services_of(environment);
        ContainerRequest {
            holder,
            instance: &self.shared.instance,
            image,
            user: &base.user,
            image_variables: &base.variables,
            services: services.map(|(name, _)| name).collect(),
        }
    }

    /// Returns the executor for containers of `image`. It must fit the image's processor, which
    /// need not be this machine's.
    pub(super) async fn executor_for(&self, image: &str) -> Result<PathBuf, EnvironmentError> {
        let found = self.client.image(image).await;
        let found = found.map_err(|failure| self.image_error("looking at the image", image, failure))?;
        let architecture = Architecture::named(&found.architecture).or(self.machine());
        find_executor(self.config(), architecture).map_err(|reason| EnvironmentError::NoExecutor { reason })
    }

    /// Returns the architecture of the engine's machine, if it is known.
    pub(super) fn machine(&self) -> Option<Architecture> {
        Architecture::named(&self.shared.info.architecture)
    }

    pub(super) async fn base_image(&self, image: &str) -> Result<BaseImage, EnvironmentError> {
        let found = self.client.image(image).await;
        let found = found.map_err(|failure| self.image_error("looking at the image", image, failure))?;
        Ok(BaseImage {
            digest: digest_of(image, &found.id, &found.digests),
            id: found.id,
            user: user::of_image(&found.user),
            variables: found.variables,
            volumes: found.volumes,
        })
    }

    /// Returns [`EnvironmentError::ImageMissing`] for an absent image, else the engine's error.
    fn image_error(&self, what: &str, image: &str, failure: Failure) -> EnvironmentError {
        if failure.is_absent() {
            return EnvironmentError::image_missing(image, "it is not on this machine".to_owned());
        }
        self.client.error(what, failure)
    }

    pub(super) async fn create(
        &self,
        name: &str,
        image: &str,
        mut spec: ContainerSpec,
    ) -> Result<String, EnvironmentError> {
        let created = self
            .create_within_limits(name, &mut spec, "resources.memory_limit")
            .await;
        created.map_err(|failure| match failure {
            Failure::Refused { message, .. } if is_about_runtime(&message) => self.no_runtime(),
            failure => self.image_error("creating a container", image, failure),
        })
    }

    /// Creates a container without the limits that the engine cannot keep; `memory` is the key of
    /// its limit of memory below `command_executor`.
    pub(super) async fn create_within_limits(
        &self,
        name: &str,
        spec: &mut ContainerSpec,
        memory: &str,
    ) -> Result<String, Failure> {
        for limit in self.unlimited() {
            self.tell_unlimited(&key_of(limit, memory), "it has no means for it")
                .await;
        }
        loop {
            let failure = match self.client.create(name, spec).await {
                Ok(id) => return Ok(id),
                Err(failure) => failure,
            };
            let refused = failure.complaint().and_then(Limit::complained_of);
            // Each limit is removed once, so this ends.
            let Some(limit) = refused.filter(|limit| spec.limits.remove(*limit)) else {
                return Err(failure);
            };
            self.tell_unlimited(&key_of(limit, memory), &failure.reason()).await;
        }
    }

    /// Returns the configured limits that the engine says it cannot keep.
    fn unlimited(&self) -> impl Iterator<Item = Limit> {
        let wants_disk_limit = !self.shared.config.resources.disk_limit.is_empty();
        let unlimited = self.shared.info.unlimited.iter().copied();
        unlimited.filter(move |limit| *limit != Limit::Disk || wants_disk_limit)
    }

    /// Returns the keys of the configured limits that the engine says it cannot keep.
    pub(super) fn unkept(&self) -> Vec<&'static str> {
        self.unlimited().map(Limit::key).collect()
    }

    async fn tell_unlimited(&self, key: &str, reason: &str) {
        if self.shared.told_unlimited.lock().await.insert(key.to_owned()) {
            tracing::warn!("command_executor.{key} is ignored, the engine cannot keep it: {reason}");
        }
    }

    /// Lists this installation's containers.
    pub(super) async fn listed(&self, which: Listed) -> Result<Vec<ListedContainer>, EnvironmentError> {
        let ours = format!("{LABEL_INSTANCE}={}", self.shared.instance);
        let listed = self.client.list(ours, which == Listed::Running).await;
        let listed = listed.map_err(|failure| self.client.error("listing containers", failure))?;
        let containers = listed.into_iter().map(|mut listed| {
            let mut label = |name: &str| listed.labels.remove(name);
            let labelled = label(LABEL_RUN).and_then(|run| run.parse().ok());
            let warmed_by = label(LABEL_WARM).and_then(|worker| worker.parse().ok());
            let run = labelled.or_else(|| name::run_of_name(&listed.name));
            let is_waiting = warmed_by.is_some() && run.is_none();
            ListedContainer {
                warmed_by,
                service: label(LABEL_SERVICE),
                network: label(LABEL_NETWORK),
                run,
                purpose: name::purpose_of_name(&listed.name),
                // Whoever takes one that waits renames it.
                handle: if is_waiting {
                    listed.name.clone()
                } else {
                    listed.id.clone()
                },
                id: listed.id,
                name: listed.name,
                created: listed.created,
            }
        });
        Ok(containers.collect())
    }

    pub(super) fn running(&self, id: String) -> Container {
        let silence = Duration::from_secs(self.shared.config.timeout_seconds);
        Container::new(Arc::new(self.client.clone()), id, silence)
    }
}

/// Returns the key of a container's limit below `command_executor`. All have the same, but for the
/// limit of `memory`, which each service has for itself.
fn key_of(limit: Limit, memory: &str) -> String {
    match limit {
        Limit::Memory => memory.to_owned(),
        Limit::Processors | Limit::Processes | Limit::Disk => format!("resources.{}", limit.key()),
    }
}

/// Returns true if the engine reports an unknown runtime: `unknown or invalid runtime name: runsc`,
/// `Unknown runtime specified runsc`.
fn is_about_runtime(complaint: &str) -> bool {
    let complaint = complaint.to_ascii_lowercase();
    complaint.contains("unknown") && complaint.contains("runtime")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_service_is_named_by_its_own_key() {
        let memory = "services.db.memory_limit";
        assert_eq!(key_of(Limit::Memory, memory), memory);
        assert_eq!(key_of(Limit::Processes, memory), "resources.pids_limit");
    }
}
