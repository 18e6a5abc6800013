//! A cluster, as the rest of the program uses every kind of engine.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;

use super::cluster::Cluster;
use super::lives::digest;
use super::names::{self, Holder, WORK};
use super::pod::Names;
use crate::environment::config::Environment;
use crate::environment::container::Container;
use crate::environment::driver::{
    Driver, KeepResult, Listed, ListedContainer, READINESS_CHECK, StartImages, StartRequest, WarmContainer,
    WarmRequest, end_of_log,
};
use crate::environment::error::EnvironmentError;
use crate::environment::executor::{Architecture, find_executor};
use crate::environment::processes::Processes;
use crate::environment::rights::Rights;

/// Bytes of a service's log that are read.
const LOG_READ: i64 = 64 * 1024;
const LOG_LINES: i64 = 20;

impl Cluster {
    /// Returns a pod's container with the streams to its executor.
    async fn with_first(&self, container: Container, pod: &Pod) -> Container {
        let first = self.first_streams(container.id()).await.map_err(|failure| {
            tracing::info!(
                pod = container.id(),
                "no stream to its executor was opened: {}",
                failure.reason()
            );
        });
        container.with_first(first.ok()).of_image(digest(pod, WORK))
    }

    /// Returns the end of what a container said; empty if that is not known.
    pub(super) async fn last_words(&self, pod: &str, container: &str) -> String {
        let params = LogParams {
            container: Some(container.to_owned()),
            limit_bytes: Some(LOG_READ),
            tail_lines: Some(LOG_LINES),
            ..LogParams::default()
        };
        end_of_log(&self.ask(self.pods().logs(pod, &params)).await.unwrap_or_default())
    }

    /// Identifies what a pod consists of: an image may be another one under the same name, which
    /// nobody here can tell.
    async fn content(&self, image: &str, executor: &Path) -> Result<String, EnvironmentError> {
        let fingerprint = self.shared.fingerprints.of(executor).await;
        let fingerprint = fingerprint.map_err(|error| EnvironmentError::Unexpected {
            what: format!("reading the executor {}", executor.display()),
            reason: error.to_string(),
        })?;
        Ok(format!("{image}/{fingerprint:016x}"))
    }
}

#[async_trait]
impl Driver for Cluster {
    fn description(&self) -> &str {
        &self.shared.description
    }

    fn architecture(&self) -> Option<Architecture> {
        None
    }

    fn missing_runtime(&self) -> Option<EnvironmentError> {
        None
    }

    fn unkept_limits(&self) -> Vec<&'static str> {
        // A node's own setting (podPidsLimit), which no pod can ask for.
        vec!["pids_limit"]
    }

    async fn rights(&self) -> Result<Option<Rights>, EnvironmentError> {
        self.compared_rights().await.map(Some)
    }

    async fn try_network(&self) -> Result<Vec<String>, EnvironmentError> {
        self.ensure_confined().await
    }

    fn has_leftovers(&self) -> bool {
        self.shared.has_leftovers.load(Ordering::Relaxed)
    }

    fn forget_leftovers(&self) {
        self.shared.has_leftovers.store(false, Ordering::Relaxed);
    }

    fn processes(&self) -> &dyn Processes {
        self
    }

    fn container(&self, id: String) -> Container {
        self.container_of(&id)
    }

    async fn list(&self, which: Listed) -> Result<Vec<ListedContainer>, EnvironmentError> {
        self.listed(which).await
    }

    async fn find_executor(&self, _image: &str) -> Result<PathBuf, EnvironmentError> {
        find_executor(&self.shared.config, None).map_err(|reason| EnvironmentError::NoExecutor { reason })
    }

    async fn ensure_image(
        &self,
        _environment: &Environment,
        _progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(), EnvironmentError> {
        Ok(())
    }

    async fn has_image(&self, _image: &str) -> Result<bool, EnvironmentError> {
        Ok(true)
    }

    async fn why_not_pullable(&self, _image: &str) -> Option<String> {
        None
    }

    async fn start_images(&self, start: &StartRequest<'_>) -> Result<StartImages, EnvironmentError> {
        Ok(StartImages {
            content: self.content(start.image, start.executor).await?,
            local: None,
        })
    }

    async fn start_on(&self, start: &StartRequest<'_>, _images: StartImages) -> Result<Container, EnvironmentError> {
        self.ensure_confined().await?;
        self.make_room(start.run, start.purpose).await?;
        let holder = Holder::Run(start.task, start.run, start.purpose);
        let name = names::pod_of(start.run, start.purpose);
        let place = (start.environment, start.image);
        let started = Box::pin(self.bring_up(&name, holder, place, start.executor, Names::AsConfigured));
        let (container, pod) = started.await?;
        Ok(self.with_first(container, &pod).await)
    }

    async fn start_warm(&self, warm: &WarmRequest<'_>) -> Result<WarmContainer, EnvironmentError> {
        self.ensure_confined().await?;
        let content = self.content(warm.image, warm.executor).await?;
        let holder = Holder::Pool(warm.worker);
        let place = (warm.environment, warm.image);
        let started = Box::pin(self.bring_up(warm.name, holder, place, warm.executor, Names::AsConfigured));
        let (container, pod) = started.await?;
        Ok(WarmContainer {
            container: self.with_first(container, &pod).await,
            content,
        })
    }

    async fn adopt(
        &self,
        start: &StartRequest<'_>,
        _images: &StartImages,
        warm: Container,
    ) -> Result<Container, EnvironmentError> {
        self.make_room(start.run, start.purpose).await?;
        let pod = self.label(warm.id(), (start.task, start.run), start.purpose).await?;
        Ok(warm.of_image(digest(&pod, WORK)))
    }

    async fn start_services(
        &self,
        start: &StartRequest<'_>,
        main: &Container,
    ) -> Result<Vec<(String, Container)>, EnvironmentError> {
        let mut services = self.shared.config.services_of(start.environment).peekable();
        if services.peek().is_none() {
            return Ok(Vec::new());
        }
        let pod = self.ask(self.pods().get(main.id())).await;
        let pod = pod.map_err(|failure| self.error_of("looking at the services", failure))?;
        // They run already, as containers of the same pod.
        let started = services.map(|(name, _)| {
            let id = names::id_of_service(main.id(), name);
            let container = Container::new(std::sync::Arc::new(self.clone()), id, READINESS_CHECK);
            (name.to_owned(), container.of_image(digest(&pod, &names::service(name))))
        });
        Ok(started.collect())
    }

    async fn try_service(&self, _start: &StartRequest<'_>, _main: &Container) -> Result<(), EnvironmentError> {
        // A pod with them has just been started.
        Ok(())
    }

    async fn said_last(&self, service: &Container) -> String {
        let (pod, container) = names::place(service.id());
        self.last_words(pod, container).await
    }

    async fn keep_set_up(&self, _container: &Container, _done: &str) -> Result<KeepResult, EnvironmentError> {
        Ok(KeepResult::NoPlace)
    }
}
