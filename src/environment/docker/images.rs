//! Images: looked up, made of containers, found by their labels, and removed.

use std::collections::HashMap;

use bollard::models::ContainerConfig;
use bollard::query_parameters::{CommitContainerOptionsBuilder, ListImagesOptionsBuilder, RemoveImageOptionsBuilder};

use super::Client;
use crate::environment::processes::Failure;

/// Metadata of an image.
pub(crate) struct ImageInfo {
    pub(crate) id: String,
    /// Its digests in registries, as `name@digest`.
    pub(crate) digests: Vec<String>,
    /// Its user; empty for root.
    pub(crate) user: String,
    /// Its environment variables, as `NAME=value`.
    pub(crate) variables: Vec<String>,
    /// The folders that are volumes of their own in each of its containers.
    pub(crate) volumes: Vec<String>,
    /// The architecture of its programs, such as `amd64`.
    pub(crate) architecture: String,
}

/// A listed image.
pub(crate) struct ImageSummary {
    pub(crate) id: String,
    pub(crate) labels: HashMap<String, String>,
    /// Seconds since 1970.
    pub(crate) created: i64,
}

impl Client {
    pub(crate) async fn image(&self, image: &str) -> Result<ImageInfo, Failure> {
        let inspected = self.ask(self.docker.inspect_image(image)).await?;
        let config = inspected.config.unwrap_or_default();
        let mut volumes = config.volumes.unwrap_or_default();
        volumes.sort();
        Ok(ImageInfo {
            id: inspected.id.unwrap_or_else(|| image.to_owned()),
            digests: inspected.repo_digests.unwrap_or_default(),
            user: config.user.unwrap_or_default(),
            variables: config.env.unwrap_or_default(),
            volumes,
            architecture: inspected.architecture.unwrap_or_default(),
        })
    }

    /// Makes an untagged image of a container and returns its id. The image inherits the
    /// container's labels, overridden by `labels`. With `pause`, the container is paused meanwhile,
    /// unless the engine cannot pause it.
    pub(crate) async fn commit(
        &self,
        container: &str,
        pause: bool,
        labels: &[(&str, &str)],
    ) -> Result<String, Failure> {
        // As instructions of a Dockerfile, one for each: podman does not read labels from the
        // body, and takes the rest of an instruction for the value of its first label.
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("LABEL {name}={value:?}"))
            .collect();
        let changes = labels.join("\n");
        let commit = |pause| {
            let options = CommitContainerOptionsBuilder::default()
                .container(container)
                .pause(pause)
                .changes(&changes)
                .build();
            // Boxed, because it is there twice.
            self.ask(Box::pin(
                self.docker.commit_container(options, ContainerConfig::default()),
            ))
        };
        let id = match commit(pause).await {
            // A rootless podman on the older kind of cgroups.
            Err(Failure::Refused { message, .. }) if message.contains("can not pause") => commit(false).await?.id,
            committed => committed?.id,
        };
        // Podman leaves out the prefix, and does not take the id without it.
        Ok(if id.contains(':') { id } else { format!("sha256:{id}") })
    }

    /// Lists the images that have all of `labels` (`name`, or `name=value`).
    pub(crate) async fn list_images(&self, labels: Vec<String>) -> Result<Vec<ImageSummary>, Failure> {
        // Podman finds nothing by two labels, so the engine looks for the first one alone.
        let first = labels.iter().take(1).cloned().collect::<Vec<_>>();
        let filters = HashMap::from([("label", first)]);
        // Without `all`, untagged images that others are based on are not listed.
        let options = ListImagesOptionsBuilder::default().all(true).filters(&filters).build();
        let listed = self.ask(self.docker.list_images(Some(options))).await?;
        let summaries = listed.into_iter().map(|image| ImageSummary {
            id: image.id,
            labels: image.labels,
            created: image.created,
        });
        Ok(summaries.filter(|image| has_all(&image.labels, &labels)).collect())
    }

    /// Removes one image; fails if a container uses it.
    pub(crate) async fn remove_image(&self, id: &str) -> Result<(), Failure> {
        // Without `noprune` the engine would also remove untagged parents that no other image uses.
        let options = RemoveImageOptionsBuilder::default().noprune(true).build();
        self.ask(self.docker.remove_image(id, Some(options), None)).await?;
        Ok(())
    }
}

/// Returns whether `labels` has all of `wanted` (`name`, or `name=value`).
fn has_all(labels: &HashMap<String, String>, wanted: &[String]) -> bool {
    wanted.iter().all(|label| match label.split_once('=') {
        Some((name, value)) => labels.get(name).is_some_and(|is| is == value),
        None => labels.contains_key(label),
    })
}
