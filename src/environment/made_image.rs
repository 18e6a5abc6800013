//! Creates untagged images from containers, finds them by their labels, and removes them.

use std::collections::HashMap;

use bollard::models::{ContainerConfig, ImageSummary};
use bollard::query_parameters::{CommitContainerOptionsBuilder, ListImagesOptionsBuilder, RemoveImageOptionsBuilder};

use super::EnvironmentError;
use super::docker::Docker;
use super::engine::Failure;

impl Docker {
    /// Commits a container to an image and returns its id. The image inherits the container's
    /// labels, overridden by `labels`. With `pause`, the container is paused meanwhile.
    pub(super) async fn make_image(
        &self,
        container: &str,
        pause: bool,
        labels: &[(&str, &str)],
    ) -> Result<String, Failure> {
        let options = CommitContainerOptionsBuilder::default()
            .container(container)
            .pause(pause)
            .build();
        let labels = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let config = ContainerConfig {
            labels: Some(labels.collect()),
            ..ContainerConfig::default()
        };
        let making = self.engine.client.commit_container(options, config);
        Ok(self.engine.ask(making).await?.id)
    }

    /// Returns the images that have all of `labels` (`name`, or `name=value`).
    pub(super) async fn images_with(&self, labels: Vec<String>) -> Result<Vec<ImageSummary>, EnvironmentError> {
        let filters = HashMap::from([("label", labels)]);
        // Without `all`, untagged images that others are based on are not listed.
        let options = ListImagesOptionsBuilder::default().all(true).filters(&filters).build();
        let listed = self.engine.ask(self.engine.client.list_images(Some(options))).await;
        listed.map_err(|failure| self.engine.error("listing images", failure))
    }

    /// Removes one image, unless a container uses it.
    pub(super) async fn remove_image(&self, id: &str) {
        // Without `noprune` the engine would also remove untagged parents that no other image uses.
        let options = RemoveImageOptionsBuilder::default().noprune(true).build();
        let removing = self.engine.client.remove_image(id, Some(options), None);
        if let Err(failure) = self.engine.ask(removing).await {
            tracing::debug!("the image {id} stays: {}", failure.reason());
        }
    }
}
