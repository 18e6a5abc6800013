//! Containers of this installation: connecting to the engine, starting, finding and sweeping them,
//! whatever kind of engine it is.
//!
//! Every container is identified by its labels, or by its name if it was started before its run, so
//! that a later process finds what an earlier one left. Several installations may share one engine;
//! each sees its own containers only.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::Utc;

use super::config::engine_choice::Kubernetes;
use super::config::{Config, Environment};
use super::container::name::Purpose;
use super::container::{self, Container, specification};
use super::docker::EngineAccess;
use super::docker_engine::DockerEngine;
use super::driver::{
    Driver, KeepResult, Listed, ListedContainer, StartImages, StartRequest, WarmContainer, WarmRequest,
};
use super::error::EnvironmentError;
use super::executor::Architecture;
#[cfg(feature = "kubernetes")]
use super::kubernetes::Cluster;
use super::rights::Rights;
use super::services::ServiceContainers;
use crate::task::id::RunId;

/// A connection to the engine, as one installation uses it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine {
    driver: Arc<dyn Driver>,
    config: Arc<Config>,
}

impl Engine {
    /// Connects to the engine. `instance` identifies this installation: only containers that carry
    /// it are ever found or swept.
    pub async fn connect(config: &Config, access: &EngineAccess, instance: &str) -> Result<Self, EnvironmentError> {
        let driver: Arc<dyn Driver> = match &access.cluster {
            None => Arc::new(DockerEngine::connect(config, access, instance).await?),
            Some(cluster) => connect_to(config, cluster, access, instance).await?,
        };
        Ok(Self {
            driver,
            config: Arc::new(config.clone()),
        })
    }

    /// Returns a description for people, such as `Engine 20.10.24, API 1.41`.
    pub fn describe(&self) -> &str {
        self.driver.description()
    }

    /// Returns the running work container that an earlier process left for `run`, with its
    /// services. A container with another network mode than the configured one is not returned.
    pub async fn find(&self, run: RunId) -> Result<Option<Container>, EnvironmentError> {
        let mut found = self.driver.list(Listed::Running).await?;
        found.retain(|found| found.run == Some(run) && found.purpose == Purpose::Work);
        let network = specification::network(&self.config);
        let is_main = |found: &ListedContainer| found.service.is_none() && found.network.as_deref() == Some(network);
        let main = found.iter().position(is_main);
        let main = main.map(|main| found.swap_remove(main));
        let services = found.into_iter().map(|service| service.id).collect();
        Ok(main.map(|main| self.driver.container(main.id).with(services)))
    }

    /// Removes all containers of `run`, running or not.
    pub async fn remove(&self, run: RunId) -> Result<(), EnvironmentError> {
        self.remove_those(|found| found.run == Some(run)).await
    }

    /// Removes the containers in which an earlier process checked results of `run`.
    pub async fn remove_checks(&self, run: RunId) -> Result<(), EnvironmentError> {
        self.remove_those(|found| found.run == Some(run) && found.purpose == Purpose::Checks)
            .await
    }

    async fn remove_those(&self, is_one: impl Fn(&ListedContainer) -> bool) -> Result<(), EnvironmentError> {
        let found = self.driver.list(Listed::All).await?;
        let found = found.iter().filter(|found| is_one(found));
        let (services, others): (Vec<_>, Vec<_>) = found.partition(|found| found.service.is_some());
        let ids = |found: Vec<&'_ ListedContainer>| found.into_iter().map(|found| found.id.clone()).collect::<Vec<_>>();
        container::remove_all(self.driver.processes(), ids(services).iter(), ids(others).iter()).await
    }

    /// Returns an error if the engine does not have the configured runtime.
    pub fn missing_runtime(&self) -> Option<EnvironmentError> {
        self.driver.missing_runtime()
    }

    /// Returns true if the removal of a container failed since the last sweep.
    pub fn has_leftovers(&self) -> bool {
        self.driver.has_leftovers()
    }

    /// Lists this installation's containers, running or not.
    pub async fn all(&self) -> Result<Vec<ListedContainer>, EnvironmentError> {
        self.driver.list(Listed::All).await
    }

    /// Removes the containers of `found` whose run is not in `keep` or that are older than
    /// `cleanup.stale_hours`; returns how many. `keep` must be read after the containers were
    /// listed, or a run that starts in between loses its container. What is worked in must not be
    /// in `found`: age says nothing of it.
    pub async fn sweep(
        &self,
        mut found: Vec<ListedContainer>,
        keep: &HashSet<RunId>,
    ) -> Result<usize, EnvironmentError> {
        let stale_hours = i64::try_from(self.config.cleanup.stale_hours).unwrap_or(i64::MAX);
        let oldest = Utc::now()
            .timestamp()
            .saturating_sub(stale_hours.saturating_mul(60 * 60));
        self.driver.forget_leftovers();
        let (mut removed, mut first_error) = (0, None);
        // Services first, as in [`container::remove_all`].
        found.sort_by_key(|found| found.service.is_none());
        for found in found {
            if found.is_kept(keep, oldest) {
                continue;
            }
            // A failure must not keep the others.
            match container::remove(self.driver.processes(), &found.handle).await {
                Ok(()) => removed += 1,
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(removed), Err)
    }

    /// Returns the executor for containers of `image`. It must fit the image's processor, which
    /// need not be this machine's.
    pub async fn find_executor(&self, image: &str) -> Result<PathBuf, EnvironmentError> {
        self.driver.find_executor(image).await
    }

    /// Returns the architecture of the engine's machine, if it is known.
    pub fn architecture(&self) -> Option<Architecture> {
        self.driver.architecture()
    }

    /// Returns the keys of the configured limits that the engine says it cannot keep.
    pub fn unkept_limits(&self) -> Vec<&'static str> {
        self.driver.unkept_limits()
    }

    /// Returns what the program may do with the engine; `None` if it knows no rights.
    pub async fn rights(&self) -> Result<Option<Rights>, EnvironmentError> {
        self.driver.rights().await
    }

    /// Fails unless containers are cut off as configured.
    pub async fn try_network(&self) -> Result<Vec<String>, EnvironmentError> {
        self.driver.try_network().await
    }

    /// Ensures that the image is present: pulls it, or builds it if the environment says how.
    /// `progress` gets short lines for people.
    pub async fn ensure_image(
        &self,
        environment: &Environment,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(), EnvironmentError> {
        self.driver.ensure_image(environment, progress).await
    }

    /// Returns true if the image is present.
    pub async fn has_image(&self, image: &str) -> Result<bool, EnvironmentError> {
        self.driver.has_image(image).await
    }

    /// Returns why the image cannot be pulled; `None` if it can, or if nobody knows.
    pub async fn why_not_pullable(&self, image: &str) -> Option<String> {
        self.driver.why_not_pullable(image).await
    }

    /// Pulls the missing images of an environment's services.
    pub async fn ensure_services(
        &self,
        environment: &str,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(), EnvironmentError> {
        for (_, service) in self.config.services_of(environment) {
            let image = Environment::of_image(&service.image);
            self.driver.ensure_image(&image, progress).await?;
        }
        Ok(())
    }

    /// Returns true if all images of an environment's services are present.
    pub async fn has_services(&self, environment: &str) -> Result<bool, EnvironmentError> {
        for (_, service) in self.config.services_of(environment) {
            if !self.driver.has_image(&service.image).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Looks up what the container of `start` will start from.
    pub async fn start_images(&self, start: &StartRequest<'_>) -> Result<StartImages, EnvironmentError> {
        self.driver.start_images(start).await
    }

    /// Creates and starts a container with all limits and the executor at
    /// `/usr/local/bin/coding-agent-executor`. `/workspace/project` exists and belongs to its user.
    /// Removes older containers of the same run and purpose first.
    pub async fn start(&self, start: &StartRequest<'_>) -> Result<Container, EnvironmentError> {
        self.start_on(start, self.start_images(start).await?).await
    }

    /// Like [`Self::start`], with images that were looked up before.
    pub async fn start_on(&self, start: &StartRequest<'_>, images: StartImages) -> Result<Container, EnvironmentError> {
        self.driver.start_on(start, images).await
    }

    /// Starts a container for the warm pool.
    pub async fn start_warm(&self, warm: &WarmRequest<'_>) -> Result<WarmContainer, EnvironmentError> {
        self.driver.start_warm(warm).await
    }

    /// Makes a container of the warm pool the run's. Removes older containers of the same run and
    /// purpose first.
    pub async fn adopt(
        &self,
        start: &StartRequest<'_>,
        images: &StartImages,
        warm: Container,
    ) -> Result<Container, EnvironmentError> {
        self.driver.adopt(start, images, warm).await
    }

    /// Starts the services of `start`'s environment beside `main`. Removing `main` removes them,
    /// those of a failed start included.
    pub async fn start_services(
        &self,
        start: &StartRequest<'_>,
        main: &Container,
    ) -> Result<ServiceContainers<'_>, EnvironmentError> {
        let started = self.driver.start_services(start, main).await?;
        Ok(ServiceContainers::new(&*self.driver, &self.config, started))
    }

    /// Starts a container beside `main` with the settings of a service's, and removes it.
    pub async fn try_service(&self, start: &StartRequest<'_>, main: &Container) -> Result<(), EnvironmentError> {
        self.driver.try_service(start, main).await
    }

    /// Keeps `container` as the set-up `done` of its place, unless it grew too large or has
    /// volumes, and removes excess and old set-ups. The container is paused meanwhile.
    pub async fn keep_set_up(&self, container: &Container, done: &str) -> Result<KeepResult, EnvironmentError> {
        self.driver.keep_set_up(container, done).await
    }
}

#[cfg(feature = "kubernetes")]
async fn connect_to(
    config: &Config,
    cluster: &Kubernetes,
    access: &EngineAccess,
    instance: &str,
) -> Result<Arc<dyn Driver>, EnvironmentError> {
    let kubeconfig = access.kubeconfig.clone();
    Ok(Arc::new(Cluster::connect(config, cluster, kubeconfig, instance).await?))
}

#[cfg(not(feature = "kubernetes"))]
#[expect(
    clippy::unused_async,
    reason = "it is awaited where the program was built with clusters"
)]
async fn connect_to(
    _config: &Config,
    cluster: &Kubernetes,
    _access: &EngineAccess,
    _instance: &str,
) -> Result<Arc<dyn Driver>, EnvironmentError> {
    Err(EnvironmentError::ClusterUnavailable {
        place: format!("of namespace {}", cluster.namespace),
        reason: "this program was built without clusters; build it with `--features kubernetes`".to_owned(),
    })
}
