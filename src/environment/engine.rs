//! Containers of this installation: connecting to the engine, finding, listing and sweeping them.
//!
//! Every container is identified by its labels, or by its name if it was started before its run, so
//! that a later process finds what an earlier one left. Several installations may share one engine;
//! each sees its own containers only.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::config::Config;
use super::config::image_name::digest_of;
use super::container::name::{self, LABEL_INSTANCE, LABEL_NETWORK, LABEL_RUN, LABEL_SERVICE, LABEL_WARM, Purpose};
use super::container::specification::{self, ContainerRequest, Holder};
use super::container::user::{self, User};
use super::container::{self, Container};
use super::docker::{Client, ContainerSpec, EngineAccess, EngineInfo, Failure, Limit};
use super::error::EnvironmentError;
use super::executor::{Architecture, Fingerprints, find_executor};
use crate::task::id::{RunId, TaskId};

/// A connection to the engine, as one installation uses it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(super) client: Client,
    shared: Arc<Shared>,
}

/// Describes the container to start.
#[derive(Debug, Clone, Copy)]
pub struct StartRequest<'a> {
    pub task: &'a TaskId,
    pub run: RunId,
    pub purpose: Purpose,
    /// The environment's name, which selects the services.
    pub environment: &'a str,
    pub image: &'a str,
    pub executor: &'a Path,
    /// The place whose kept set-ups may be started from, and which of them.
    pub set_up: Option<(&'a str, WantedSetUp<'a>)>,
}

/// Which kept set-up a container should start from, if it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedSetUp<'a> {
    /// The set-up with this name.
    Only(&'a str),
    /// The newest one of the place, because the plan is not known yet.
    Newest,
}

/// Ids of the known prepared images by their content; `None` once the engine refused to make one.
pub(super) type PreparedImages = Option<HashMap<String, String>>;

/// The properties of an image that its containers need.
pub(crate) struct BaseImage {
    pub(super) id: String,
    /// The registry's digest with its name, or the id if the image is in no registry.
    pub(super) digest: String,
    /// The image's user, or an unprivileged one instead of root.
    pub(super) user: User,
    /// The image's environment variables, as `NAME=value`.
    pub(super) variables: Vec<String>,
}

#[derive(Debug)]
struct Shared {
    config: Config,
    prepared: Mutex<PreparedImages>,
    fingerprints: Fingerprints,
    info: EngineInfo,
    instance: String,
    /// Limits that cannot be kept and were already logged.
    told_unlimited: Mutex<HashSet<Limit>>,
}

impl Engine {
    /// Connects to the engine (API 1.41 and later). `instance` identifies this installation: only
    /// containers that carry it are ever found or swept.
    pub async fn connect(config: &Config, access: &EngineAccess, instance: &str) -> Result<Self, EnvironmentError> {
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
    pub fn describe(&self) -> &str {
        &self.shared.info.description
    }

    /// Returns the running work container that an earlier process left for `run`, with its
    /// services. A container with another network mode than the configured one is not returned.
    pub async fn find(&self, run: RunId) -> Result<Option<Container>, EnvironmentError> {
        let mut found = self.list(true).await?;
        found.retain(|found| found.run == Some(run) && found.purpose() == Purpose::Work);
        let network = specification::network(self.config());
        let is_main = |found: &ListedContainer| found.service.is_none() && found.network.as_deref() == Some(network);
        let main = found.iter().position(is_main);
        let main = main.map(|main| found.swap_remove(main));
        let services = found.into_iter().map(|service| service.id).collect();
        Ok(main.map(|main| self.container(main.id).with(services)))
    }

    /// Removes all containers of `run`, running or not.
    pub async fn remove(&self, run: RunId) -> Result<(), EnvironmentError> {
        self.remove_those(|found| found.run == Some(run)).await
    }

    /// Removes the containers in which an earlier process checked results of `run`.
    pub async fn remove_checks(&self, run: RunId) -> Result<(), EnvironmentError> {
        self.remove_those(|found| found.run == Some(run) && found.purpose() == Purpose::Checks)
            .await
    }

    async fn remove_those(&self, is_one: impl Fn(&ListedContainer) -> bool) -> Result<(), EnvironmentError> {
        let found = self.list(false).await?;
        let found = found.iter().filter(|found| is_one(found));
        let (services, others): (Vec<_>, Vec<_>) = found.partition(|found| found.service.is_some());
        let ids = |found: Vec<&'_ ListedContainer>| found.into_iter().map(|found| found.id.clone()).collect::<Vec<_>>();
        container::remove_all(&self.client, ids(services).iter(), ids(others).iter()).await
    }

    /// Returns an error if the engine does not have the configured runtime.
    pub fn missing_runtime(&self) -> Option<EnvironmentError> {
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

    /// Returns true if the removal of a container failed since the last sweep.
    pub fn has_leftovers(&self) -> bool {
        self.client.has_leftovers()
    }

    /// Lists this installation's containers, running or not.
    pub async fn all(&self) -> Result<Vec<ListedContainer>, EnvironmentError> {
        self.list(false).await
    }

    /// Removes the containers of `found` whose run is not in `keep` or that are older than
    /// `cleanup.stale_hours`; returns how many. `keep` must be read after the containers were
    /// listed, or a run that starts in between loses its container.
    pub async fn sweep(
        &self,
        mut found: Vec<ListedContainer>,
        keep: &HashSet<RunId>,
    ) -> Result<usize, EnvironmentError> {
        let stale_hours = i64::try_from(self.shared.config.cleanup.stale_hours).unwrap_or(i64::MAX);
        let oldest = Utc::now()
            .timestamp()
            .saturating_sub(stale_hours.saturating_mul(60 * 60));
        self.client.forget_leftovers();
        let (mut removed, mut first_error) = (0, None);
        // Services first, as in [`container::remove_all`].
        found.sort_by_key(|found| found.service.is_none());
        for found in found {
            if found.is_kept(keep, oldest) {
                continue;
            }
            // A failure must not keep the others.
            match container::remove(&self.client, found.handle()).await {
                Ok(()) => removed += 1,
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(removed), Err)
    }

    /// Returns the executor for containers of `image`. It must fit the image's processor, which
    /// need not be this machine's.
    pub async fn find_executor(&self, image: &str) -> Result<PathBuf, EnvironmentError> {
        let found = self.client.image(image).await;
        let found = found.map_err(|failure| self.image_error("looking at the image", image, failure))?;
        let architecture = Architecture::named(&found.architecture).or(self.architecture());
        find_executor(self.config(), architecture).map_err(|reason| EnvironmentError::NoExecutor { reason })
    }

    /// Returns the architecture of the engine's machine, if it is known.
    pub fn architecture(&self) -> Option<Architecture> {
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
        let created = self.create_within_limits(name, &mut spec).await;
        created.map_err(|failure| match failure {
            Failure::Refused { message, .. } if is_about_runtime(&message) => self.no_runtime(),
            failure => self.image_error("creating a container", image, failure),
        })
    }

    /// Creates a container without the limits that the engine cannot keep.
    pub(super) async fn create_within_limits(&self, name: &str, spec: &mut ContainerSpec) -> Result<String, Failure> {
        for limit in self.unlimited() {
            self.tell_unlimited(limit, "it has no means for it").await;
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
            self.tell_unlimited(limit, &failure.reason()).await;
        }
    }

    /// Returns the configured limits that the engine says it cannot keep.
    fn unlimited(&self) -> impl Iterator<Item = Limit> {
        let wants_disk_limit = !self.shared.config.resources.disk_limit.is_empty();
        let unlimited = self.shared.info.unlimited.iter().copied();
        unlimited.filter(move |limit| *limit != Limit::Disk || wants_disk_limit)
    }

    /// Returns the keys of the configured limits that the engine says it cannot keep.
    pub fn unkept_limits(&self) -> Vec<&'static str> {
        self.unlimited().map(Limit::key).collect()
    }

    async fn tell_unlimited(&self, limit: Limit, reason: &str) {
        if self.shared.told_unlimited.lock().await.insert(limit) {
            let key = limit.key();
            tracing::warn!("command_executor.resources.{key} is ignored, the engine cannot keep it: {reason}");
        }
    }

    /// Lists this installation's containers.
    async fn list(&self, only_running: bool) -> Result<Vec<ListedContainer>, EnvironmentError> {
        let ours = format!("{LABEL_INSTANCE}={}", self.shared.instance);
        let listed = self.client.list(ours, only_running).await;
        let listed = listed.map_err(|failure| self.client.error("listing containers", failure))?;
        let containers = listed.into_iter().map(|mut listed| {
            let mut label = |name: &str| listed.labels.remove(name);
            let labelled = label(LABEL_RUN).and_then(|run| run.parse().ok());
            ListedContainer {
                warmed_by: label(LABEL_WARM).and_then(|worker| worker.parse().ok()),
                service: label(LABEL_SERVICE),
                network: label(LABEL_NETWORK),
                run: labelled.or_else(|| name::run_of_name(&listed.name)),
                id: listed.id,
                name: listed.name,
                created: listed.created,
            }
        });
        Ok(containers.collect())
    }

    pub(super) fn container(&self, id: String) -> Container {
        let silence = Duration::from_secs(self.shared.config.timeout_seconds);
        Container::new(self.client.clone(), id, silence)
    }
}

/// A listed container of this installation.
#[derive(Debug)]
pub struct ListedContainer {
    id: String,
    name: String,
    run: Option<RunId>,
    /// The worker that started it for the warm pool.
    warmed_by: Option<Uuid>,
    /// The service's name, if it is a service container.
    service: Option<String>,
    network: Option<String>,
    /// Seconds since 1970.
    created: i64,
}

impl ListedContainer {
    /// Returns the run that the container belongs to; `None` while it waits in the warm pool.
    pub fn run(&self) -> Option<RunId> {
        self.run
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the worker whose warm pool the container waits in, if any.
    pub fn waits_with(&self) -> Option<Uuid> {
        self.warmed_by.filter(|_| self.run.is_none())
    }

    fn purpose(&self) -> Purpose {
        name::purpose_of_name(&self.name)
    }

    fn is_kept(&self, keep: &HashSet<RunId>, oldest: i64) -> bool {
        self.run.is_some_and(|run| keep.contains(&run)) && self.created >= oldest
    }

    /// Returns the name of a waiting container, else its id. A run that takes a waiting container
    /// at this moment renames it, so removal by its old name cannot hit it.
    fn handle(&self) -> &str {
        if self.waits_with().is_some() {
            &self.name
        } else {
            &self.id
        }
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
    fn a_container_is_kept_while_its_run_is_known_and_it_is_not_stale() {
        let run = RunId::new();
        let found = |run, created| ListedContainer {
            id: String::new(),
            name: String::new(),
            run,
            warmed_by: None,
            service: None,
            network: None,
            created,
        };
        let keep = HashSet::from([run]);
        assert!(found(Some(run), 100).is_kept(&keep, 100));
        assert!(!found(Some(run), 99).is_kept(&keep, 100));
        assert!(!found(Some(RunId::new()), 100).is_kept(&keep, 100));
        assert!(!found(None, 100).is_kept(&keep, 100));
    }
}
