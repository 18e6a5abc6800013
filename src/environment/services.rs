//! Service containers, started in the network of a run's container and removed with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use tokio::time::{Instant, sleep, timeout};

use super::config::Config;
use super::config::service::Service;
use super::container::name::service_container_name;
use super::container::specification::{self, Holder};
use super::container::{self, Container};
use super::docker_engine::DockerEngine;
use super::driver::{Driver, READINESS_CHECK, StartRequest, end_of_log};
use super::error::EnvironmentError;

/// Interval between readiness checks of a service.
const PAUSE: Duration = Duration::from_millis(200);

/// Time that a service without a readiness check must run before it counts as ready.
const SETTLING: Duration = Duration::from_millis(300);

/// Maximum bytes of a service's log that are read.
const MOST_SAID: usize = 64 * 1024;

/// Time limit for reading the log.
const READING: Duration = Duration::from_secs(5);

/// The name of the service that [`DockerEngine::try_one`] starts.
const TRIAL: &str = "trial";

/// The services that run beside a container.
pub struct ServiceContainers<'a> {
    driver: &'a dyn Driver,
    started: Vec<(&'a str, &'a Service, Container)>,
}

impl DockerEngine {
    /// Starts the services of `start`'s environment concurrently, in the network of `main`.
    pub(super) async fn start_beside(
        &self,
        start: &StartRequest<'_>,
        main: &Container,
    ) -> Result<Vec<(String, Container)>, EnvironmentError> {
        let services = self.config().services_of(start.environment);
        // Awaits all: a start that goes on could create its container after the others were
        // removed.
        let started = join_all(services.map(|(name, service)| async move {
            let container = self.start_service(start, main, name, service).await?;
            Ok((name.to_owned(), container))
        }));
        started.await.into_iter().collect()
    }

    async fn start_service(
        &self,
        start: &StartRequest<'_>,
        main: &Container,
        name: &str,
        service: &Service,
    ) -> Result<Container, EnvironmentError> {
        let base = self.base_image(&service.image).await?;
        let holder = Holder::Run(start.task, start.run);
        let request = self.request(holder, (start.environment, start.image), &base);
        let mut spec =
            specification::service_container(self.config(), self.info(), &request, main.id(), (name, service))?;
        let failed = |failure| self.client.error(&format!("starting the service {name}"), failure);
        let container_name = service_container_name(start.run, start.purpose, name);
        let memory = if self.config().services.contains_key(name) {
            format!("services.{name}.memory_limit")
        } else {
            // The trial's, which is in no configuration.
            "resources.memory_limit".to_owned()
        };
        let id = self
            .create_within_limits(&container_name, &mut spec, &memory)
            .await
            .map_err(failed)?;
        self.client.start(&id).await.map_err(failed)?;
        Ok(Container::new(Arc::new(self.client.clone()), id, READINESS_CHECK).of_image(base.digest))
    }

    /// Starts a container beside `main` with the settings of a service's, and removes it. It is of
    /// `main`'s own image and sleeps. An engine that starts `main` may still lack what only
    /// services need: an init (podman takes `catatonit`) and the network of another container.
    pub(super) async fn try_one(&self, start: &StartRequest<'_>, main: &Container) -> Result<(), EnvironmentError> {
        let service = Service {
            entrypoint: Some(vec!["sleep".to_owned(), "60".to_owned()]),
            ..Service::of_image(start.image)
        };
        let tried = async {
            let container = self.start_service(start, main, TRIAL, &service).await?;
            let ready = until_ready(&container, &service).await;
            ready.map_err(|reason| EnvironmentError::Unexpected {
                what: "running a container as those of services are".to_owned(),
                reason,
            })
        };
        let tried = tried.await;
        // By its name: one that was created and did not start is removed as well.
        let name = service_container_name(start.run, start.purpose, TRIAL);
        container::remove(&self.client, &name).await?;
        tried
    }

    /// Returns the end of a container's log; empty if it cannot be read.
    pub(super) async fn end_of_log(&self, id: &str) -> String {
        let mut said = Vec::new();
        // After a time-out, the part that was read is shown.
        let _ = timeout(READING, self.client.read_log(id, MOST_SAID, &mut said)).await;
        end_of_log(&String::from_utf8_lossy(&said))
    }
}

impl<'a> ServiceContainers<'a> {
    /// Returns the services that were started with these names.
    pub(super) fn new(driver: &'a dyn Driver, config: &'a Config, started: Vec<(String, Container)>) -> Self {
        let started = started.into_iter().filter_map(|(name, container)| {
            let (name, service) = config.services.get_key_value(&name)?;
            Some((name.as_str(), service, container))
        });
        Self {
            driver,
            started: started.collect(),
        }
    }

    /// Returns the services' names, with the digests of their images.
    pub fn digests(&self) -> BTreeMap<String, String> {
        let digests = self.started.iter();
        digests
            .map(|(name, _, container)| ((*name).to_owned(), container.digest().to_owned()))
            .collect()
    }

    /// Waits until all services are ready.
    pub async fn until_ready(&self) -> Result<(), EnvironmentError> {
        let waits = self.started.iter().map(|(name, service, container)| async move {
            let Err(reason) = until_ready(container, service).await else {
                return Ok(());
            };
            Err(EnvironmentError::ServiceNotReady {
                service: (*name).to_owned(),
                reason,
                said: self.driver.said_last(container).await,
            })
        });
        try_join_all(waits).await?;
        Ok(())
    }
}

/// Waits until `service` is ready; `Err` says in a few words why it is not.
async fn until_ready(container: &Container, service: &Service) -> Result<(), String> {
    let Some(ready) = &service.ready else {
        sleep(SETTLING).await;
        return container.require_alive().await.map_err(|error| error.to_string());
    };
    let deadline = Instant::now() + Duration::from_secs(service.ready_seconds);
    loop {
        let command = ["sh", "-c", ready.as_str()];
        let asked = container.run(&command, tokio::io::empty(), MOST_SAID);
        match timeout(READINESS_CHECK, asked).await {
            Ok(Ok((_, ending))) if ending.exit_code == 0 => return Ok(()),
            Ok(Err(lost @ EnvironmentError::ContainerLost { .. })) => {
                // The first error only says that the container does not run.
                let why = container.require_alive().await.err();
                return Err(why.unwrap_or(lost).to_string());
            }
            // Any other failure is retried until the deadline.
            Ok(Ok(_) | Err(_)) | Err(_) => {}
        }
        if Instant::now() >= deadline {
            return Err(format!("`{ready}` did not succeed within {} s", service.ready_seconds));
        }
        sleep(PAUSE).await;
    }
}
