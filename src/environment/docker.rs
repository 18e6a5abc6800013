//! Containers of this installation: connecting to the engine, finding, listing and sweeping them.
//!
//! Every container is identified by its labels, or by its name if it was started before its run, so
//! that a later process finds what an earlier one left. Several installations may share one engine;
//! each sees its own containers only.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{CreateContainerOptionsBuilder, ListContainersOptionsBuilder};
use chrono::Utc;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::container::{self, Container};
use super::engine::{Engine, Facts, Failure};
use super::fingerprint::Fingerprints;
use super::image_name::digest_of;
use super::specification::{
    self, Holder, LABEL_INSTANCE, LABEL_NETWORK, LABEL_RUN, LABEL_SERVICE, LABEL_WARM, Order, Purpose,
};
use super::user::{self, User};
use super::{Config, EnvironmentError};
use crate::task::id::{RunId, TaskId};

/// A connection to the Docker engine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Docker {
    pub(super) engine: Engine,
    shared: Arc<Shared>,
}

/// Describes the container to start.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    pub task: &'a TaskId,
    pub run: RunId,
    pub purpose: Purpose,
    /// The environment's name, which selects the services.
    pub environment: &'a str,
    pub image: &'a str,
    pub executor: &'a Path,
    /// The place whose kept set-ups may be started from, and which of them.
    pub set_up: Option<(&'a str, Wanted<'a>)>,
}

/// Which kept set-up a container should start from, if it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// The set-up with this name.
    Only(&'a str),
    /// The newest one of the place, because the plan is not known yet.
    Newest,
}

/// Ids of the known furnished images by their content; `None` once the engine refused to make one.
pub(super) type FurnishedImages = Option<HashMap<String, String>>;

/// Metadata of an image.
pub(super) struct Said {
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
    furnished: Mutex<FurnishedImages>,
    fingerprints: Fingerprints,
    facts: Facts,
    instance: String,
    said_that_disk_is_unlimited: AtomicBool,
}

impl Docker {
    /// Connects to `docker_host` (unix socket or tcp) or the default socket (API 1.41 and later).
    /// `instance` identifies this installation: only containers that carry it are ever found or
    /// swept.
    pub async fn connect(config: &Config, docker_host: Option<&str>, instance: &str) -> Result<Self, EnvironmentError> {
        let (engine, facts) = Engine::connect(docker_host).await?;
        let shared = Shared {
            config: config.clone(),
            furnished: Mutex::new(Some(HashMap::new())),
            fingerprints: Fingerprints::default(),
            facts,
            instance: instance.to_owned(),
            said_that_disk_is_unlimited: AtomicBool::new(false),
        };
        Ok(Self {
            engine,
            shared: Arc::new(shared),
        })
    }

    /// Returns a description for people, such as `Engine 20.10.24, API 1.41`.
    pub fn describe(&self) -> &str {
        &self.shared.facts.description
    }

    /// Returns the running work container that an earlier process left for `run`, with its
    /// services. A container with another network mode than the configured one is not returned.
    pub async fn find(&self, run: RunId) -> Result<Option<Container>, EnvironmentError> {
        let mut found = self.list(vec![("status", "running".to_owned())]).await?;
        found.retain(|found| found.run == Some(run) && found.purpose() == Purpose::Work);
        let network = specification::network(self.config());
        let is_main = |found: &Found| found.service.is_none() && found.network.as_deref() == Some(network);
        let main = found.iter().position(is_main);
        let main = main.map(|main| found.swap_remove(main));
        let companions = found.into_iter().map(|companion| companion.id).collect();
        Ok(main.map(|main| self.container(main.id).with(companions)))
    }

    /// Removes all containers of `run`, running or not.
    pub async fn remove(&self, run: RunId) -> Result<(), EnvironmentError> {
        let found = self.list(Vec::new()).await?;
        let of_run = found.iter().filter(|found| found.run == Some(run));
        container::remove_all(&self.engine, of_run.map(|found| &found.id)).await
    }

    /// Removes the containers in which an earlier process checked results of `run`.
    pub async fn remove_checks(&self, run: RunId) -> Result<(), EnvironmentError> {
        let found = self.list(Vec::new()).await?;
        let of_checks = found
            .iter()
            .filter(|found| found.run == Some(run) && found.purpose() == Purpose::Checks);
        container::remove_all(&self.engine, of_checks.map(|found| &found.id)).await
    }

    /// Returns an error if the engine does not have the configured runtime.
    pub fn missing_runtime(&self) -> Option<EnvironmentError> {
        let runtime = &self.shared.config.runtime;
        (!runtime.is_empty() && !self.shared.facts.runtimes.contains(runtime)).then(|| self.no_runtime())
    }

    fn no_runtime(&self) -> EnvironmentError {
        let mut known = self.shared.facts.runtimes.clone();
        known.sort();
        EnvironmentError::NoRuntime {
            runtime: self.shared.config.runtime.clone(),
            known: format!(", but {}", known.join(", ")),
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(super) fn furnished_images(&self) -> &Mutex<FurnishedImages> {
        &self.shared.furnished
    }

    pub(super) fn fingerprints(&self) -> &Fingerprints {
        &self.shared.fingerprints
    }

    pub(super) fn facts(&self) -> &Facts {
        &self.shared.facts
    }

    pub(super) fn instance(&self) -> &str {
        &self.shared.instance
    }

    pub(super) fn order<'a>(
        &'a self,
        holder: Holder<'a>,
        (environment, image): (&str, &'a str),
        said: &'a Said,
    ) -> Order<'a> {
        let services = self.config().services_of(environment);
        Order {
            holder,
            instance: &self.shared.instance,
            image,
            user: &said.user,
            image_variables: &said.variables,
            services: services.map(|(name, _)| name).collect(),
        }
    }

    /// True if the removal of a container failed since the last sweep.
    pub fn has_litter(&self) -> bool {
        self.engine.has_litter.load(Ordering::Relaxed)
    }

    /// Lists this installation's containers, running or not.
    pub async fn all(&self) -> Result<Vec<Found>, EnvironmentError> {
        self.list(Vec::new()).await
    }

    /// Removes the containers of `found` whose run is not in `keep` or that are older than
    /// `cleanup.stale_hours`; returns how many. `keep` must be read after the containers were
    /// listed, or a run that starts in between loses its container.
    pub async fn sweep(&self, found: Vec<Found>, keep: &HashSet<RunId>) -> Result<usize, EnvironmentError> {
        let stale_hours = i64::try_from(self.shared.config.cleanup.stale_hours).unwrap_or(i64::MAX);
        let oldest = Utc::now()
            .timestamp()
            .saturating_sub(stale_hours.saturating_mul(60 * 60));
        self.engine.has_litter.store(false, Ordering::Relaxed);
        let (mut removed, mut first_error) = (0, None);
        for found in found {
            if found.is_kept(keep, oldest) {
                continue;
            }
            // A failure must not keep the others.
            match container::remove(&self.engine, found.handle()).await {
                Ok(()) => removed += 1,
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(removed), Err)
    }

    pub(super) async fn said_by(&self, image: &str) -> Result<Said, EnvironmentError> {
        let inspected = self.engine.ask(self.engine.client.inspect_image(image)).await;
        let inspected = inspected.map_err(|failure| self.image_error("looking at the image", image, failure))?;
        let config = inspected.config.unwrap_or_default();
        let id = inspected.id.unwrap_or_else(|| image.to_owned());
        Ok(Said {
            digest: digest_of(image, &id, &inspected.repo_digests.unwrap_or_default()),
            id,
            user: user::of_image(&config.user.unwrap_or_default()),
            variables: config.env.unwrap_or_default(),
        })
    }

    pub(super) async fn create(
        &self,
        name: &str,
        image: &str,
        mut body: ContainerCreateBody,
    ) -> Result<String, EnvironmentError> {
        let what = "creating a container";
        let wants_disk_limit = !self.shared.config.resources.disk_limit.is_empty();
        if wants_disk_limit && !self.shared.facts.can_limit_disk {
            self.say_that_disk_is_unlimited("its storage driver has no limits");
        }
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let created = self.engine.client.create_container(Some(options.clone()), body.clone());
        let created = match self.engine.ask(created).await {
            Err(Failure::Refused { message, .. }) if drop_disk_limit(&mut body, &message) => {
                self.say_that_disk_is_unlimited(&message);
                self.engine
                    .ask(self.engine.client.create_container(Some(options), body))
                    .await
            }
            other => other,
        };
        let created = created.map_err(|failure| match failure {
            Failure::Refused { message, .. } if is_about_runtime(&message) => self.no_runtime(),
            failure => self.image_error(what, image, failure),
        })?;
        Ok(created.id)
    }

    fn say_that_disk_is_unlimited(&self, reason: &str) {
        if !self.shared.said_that_disk_is_unlimited.swap(true, Ordering::Relaxed) {
            tracing::warn!("command_executor.resources.disk_limit is ignored, the engine cannot keep it: {reason}");
        }
    }

    /// Lists this installation's containers, running or not, that pass `filters`.
    async fn list(&self, filters: Vec<(&str, String)>) -> Result<Vec<Found>, EnvironmentError> {
        let ours = format!("{LABEL_INSTANCE}={}", self.shared.instance);
        let mut all: HashMap<&str, Vec<String>> = HashMap::from([("label", vec![ours])]);
        for (key, value) in filters {
            all.entry(key).or_default().push(value);
        }
        let options = ListContainersOptionsBuilder::default().all(true).filters(&all).build();
        let listed = self.engine.ask(self.engine.client.list_containers(Some(options))).await;
        let listed = listed.map_err(|failure| self.engine.error("listing containers", failure))?;
        Ok(listed
            .into_iter()
            .filter_map(|summary| {
                let labels = summary.labels.unwrap_or_default();
                let label = |name: &str| labels.get(name).cloned();
                let name = summary.names.unwrap_or_default().pop().unwrap_or_default();
                let name = name.trim_start_matches('/').to_owned();
                let labelled = label(LABEL_RUN).and_then(|run| run.parse().ok());
                Some(Found {
                    id: summary.id?,
                    run: labelled.or_else(|| specification::run_of_name(&name)),
                    name,
                    warmed_by: label(LABEL_WARM).and_then(|worker| worker.parse().ok()),
                    service: label(LABEL_SERVICE),
                    network: label(LABEL_NETWORK),
                    created: summary.created.unwrap_or_default(),
                })
            })
            .collect())
    }

    pub(super) fn container(&self, id: String) -> Container {
        let silence = Duration::from_secs(self.shared.config.timeout_seconds);
        Container::new(self.engine.clone(), id, silence)
    }
}

/// A listed container of this installation.
#[derive(Debug)]
pub struct Found {
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

impl Found {
    /// Returns the run it belongs to; `None` while it waits in the warm pool.
    pub fn run(&self) -> Option<RunId> {
        self.run
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the worker whose warm pool it waits in, if any.
    pub fn waits_with(&self) -> Option<Uuid> {
        self.warmed_by.filter(|_| self.run.is_none())
    }

    fn purpose(&self) -> Purpose {
        specification::purpose_of_name(&self.name)
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

/// True if the engine reports an unknown runtime: `unknown or invalid runtime name: runsc`,
/// `Unknown runtime specified runsc`.
fn is_about_runtime(complaint: &str) -> bool {
    let complaint = complaint.to_ascii_lowercase();
    complaint.contains("unknown") && complaint.contains("runtime")
}

/// Removes the disk limit if the engine's error is about it; returns true if it did.
fn drop_disk_limit(body: &mut ContainerCreateBody, complaint: &str) -> bool {
    if !["storage-opt", "pquota", "quota"]
        .iter()
        .any(|word| complaint.contains(word))
    {
        return false;
    }
    body.host_config
        .as_mut()
        .and_then(|host| host.storage_opt.take())
        .is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_kept_while_its_run_is_known_and_it_is_not_stale() {
        let run = RunId::new();
        let found = |run, created| Found {
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

    #[test]
    fn a_disk_limit_is_dropped_only_where_it_is_what_is_wrong() {
        let mut body = ContainerCreateBody {
            host_config: Some(bollard::models::HostConfig {
                storage_opt: Some(HashMap::from([("size".to_owned(), "1".to_owned())])),
                ..Default::default()
            }),
            ..Default::default()
        };
        assert!(!drop_disk_limit(&mut body, "no such image"));
        let complaint = "--storage-opt is supported only for overlay over xfs with 'pquota' mount option";
        assert!(drop_disk_limit(&mut body, complaint));
        assert!(!drop_disk_limit(&mut body, complaint), "there is nothing left to try");
    }
}
