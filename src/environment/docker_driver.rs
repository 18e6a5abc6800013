//! An engine with Docker's API, as the rest of the program uses every kind of engine.

use std::path::PathBuf;

use async_trait::async_trait;

use super::config::Environment;
use super::container::Container;
use super::docker_engine::DockerEngine;
use super::driver::{
    Driver, KeepResult, Listed, ListedContainer, StartImages, StartRequest, WarmContainer, WarmRequest,
};
use super::error::EnvironmentError;
use super::executor::Architecture;
use super::processes::Processes;
use super::rights::Rights;

#[async_trait]
impl Driver for DockerEngine {
    fn description(&self) -> &str {
        self.describe()
    }

    fn architecture(&self) -> Option<Architecture> {
        self.machine()
    }

    fn missing_runtime(&self) -> Option<EnvironmentError> {
        self.lacks_runtime()
    }

    fn unkept_limits(&self) -> Vec<&'static str> {
        self.unkept()
    }

    async fn rights(&self) -> Result<Option<Rights>, EnvironmentError> {
        Ok(None)
    }

    async fn try_network(&self) -> Result<Vec<String>, EnvironmentError> {
        Ok(Vec::new())
    }

    fn has_leftovers(&self) -> bool {
        self.client.has_leftovers()
    }

    fn forget_leftovers(&self) {
        self.client.forget_leftovers();
    }

    fn processes(&self) -> &dyn Processes {
        &self.client
    }

    fn container(&self, id: String) -> Container {
        self.running(id)
    }

    async fn list(&self, which: Listed) -> Result<Vec<ListedContainer>, EnvironmentError> {
        self.listed(which).await
    }

    async fn find_executor(&self, image: &str) -> Result<PathBuf, EnvironmentError> {
        self.executor_for(image).await
    }

    async fn ensure_image(
        &self,
        environment: &Environment,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(), EnvironmentError> {
        self.ensure(environment, progress).await
    }

    async fn has_image(&self, image: &str) -> Result<bool, EnvironmentError> {
        self.is_present(image).await
    }

    async fn why_not_pullable(&self, image: &str) -> Option<String> {
        self.why_not_in_registry(image).await
    }

    async fn start_images(&self, start: &StartRequest<'_>) -> Result<StartImages, EnvironmentError> {
        self.images_of(start).await
    }

    async fn start_on(&self, start: &StartRequest<'_>, images: StartImages) -> Result<Container, EnvironmentError> {
        self.start_with(start, images).await
    }

    async fn start_warm(&self, warm: &WarmRequest<'_>) -> Result<WarmContainer, EnvironmentError> {
        self.warm_up(warm).await
    }

    async fn adopt(
        &self,
        start: &StartRequest<'_>,
        images: &StartImages,
        warm: Container,
    ) -> Result<Container, EnvironmentError> {
        self.take(start, images, warm).await
    }

    async fn start_services(
        &self,
        start: &StartRequest<'_>,
        main: &Container,
    ) -> Result<Vec<(String, Container)>, EnvironmentError> {
        self.start_beside(start, main).await
    }

    async fn try_service(&self, start: &StartRequest<'_>, main: &Container) -> Result<(), EnvironmentError> {
        self.try_one(start, main).await
    }

    async fn said_last(&self, service: &Container) -> String {
        self.end_of_log(service.id()).await
    }

    async fn keep_set_up(&self, container: &Container, done: &str) -> Result<KeepResult, EnvironmentError> {
        self.keep(container, done).await
    }
}
