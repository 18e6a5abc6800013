//! Prepared images: an environment's image with the executor, the workspace and, where some are
//! named, the certificates already copied in.
//!
//! Such an image is committed from a container that never ran, so it contains nothing else. It has
//! no tag: `docker image prune` removes it, and it is made again. Installations on the same engine
//! share it.

use std::path::Path;

use chrono::Utc;

use crate::environment::container::name::LABEL_INSTANCE;
use crate::environment::container::user::{Owner, User};
use crate::environment::container::{self, certificates};
use crate::environment::docker::{ContainerNetwork, ContainerSpec, ImageSummary, Limits};
use crate::environment::docker_engine::DockerEngine;
use crate::environment::driver::BaseImage;
use crate::environment::error::EnvironmentError;
use crate::environment::executor::{EXECUTOR_MODE, First, base_layer, first, linked};
use crate::environment::processes::{EXECUTOR, Failure, WORKSPACE};

/// Label with the content of a prepared image: base image, user, executor and certificates.
pub(super) const LABEL_CONTENT: &str = "coding-agent.furnished";
/// Label with the name of the base image.
pub(super) const LABEL_OF: &str = "coding-agent.furnished.of";

/// Days before a superseded image is deleted; another installation may still use it.
const KEPT_DAYS: i64 = 7;

/// Maximum bytes of an image's `/etc/passwd` that are read.
const PASSWD_LIMIT: usize = 1024 * 1024;

/// Maximum bytes of each file with an image's certificates that are read: ten times what public
/// authorities come to.
const CERTIFICATES_LIMIT: usize = 2 * 1024 * 1024;

/// Most links that are followed to a file; the kernel follows as many.
const MOST_LINKS: usize = 40;

/// A prepared image.
pub(crate) struct PreparedImage {
    /// The image's id. Two processes may make the same image concurrently; either may be found.
    /// `None` if the engine refuses to make images, or they would lack what was copied in, so that
    /// each container is prepared.
    pub(crate) id: Option<String>,
    /// Identifies the content: base image, user, executor and certificates.
    pub(crate) content: String,
}

impl DockerEngine {
    /// Returns the prepared image for `image`, and makes it if there is none yet.
    pub(crate) async fn prepared_image(
        &self,
        image: &str,
        base: &BaseImage,
        executor: &Path,
    ) -> Result<PreparedImage, EnvironmentError> {
        let fingerprint = self.fingerprints().of(executor).await;
        let executors = fingerprint.map_err(|error| unreadable(executor, &error))?;
        let mut content = format!("{}/{}/{executors:016x}/{EXECUTOR_MODE:o}", base.id, base.user.name);
        if let Some(certificates) = self.config().trust.fingerprint() {
            content = format!("{content}/{certificates}");
        }
        if base.volumes.iter().any(|volume| takes_what_is_copied(volume)) {
            return Ok(PreparedImage { id: None, content });
        }
        // Held while the image is made, so that concurrent callers wait instead of making another.
        let mut known = self.prepared_images().lock().await;
        let Some(images) = known.as_mut() else {
            return Ok(PreparedImage { id: None, content });
        };
        if let Some(id) = images.get(&content).cloned() {
            return Ok(PreparedImage { id: Some(id), content });
        }
        let found = self.images_with(vec![format!("{LABEL_CONTENT}={content}")]).await?;
        let id = match found.into_iter().next() {
            Some(image) => Some(image.id),
            None => self.make_prepared(image, base, executor, &content).await?,
        };
        match &id {
            Some(id) => {
                images.insert(content.clone(), id.clone());
            }
            None => *known = None,
        }
        Ok(PreparedImage { id, content })
    }

    /// Clears the cache of known images, after one was found to be gone.
    pub(crate) async fn forget_prepared(&self) {
        if let Some(images) = self.prepared_images().lock().await.as_mut() {
            images.clear();
        }
    }

    /// Makes a prepared image; `None` if the engine refuses.
    async fn make_prepared(
        &self,
        image: &str,
        base: &BaseImage,
        executor: &Path,
        content: &str,
    ) -> Result<Option<String>, EnvironmentError> {
        let name = format!("coding-agent-preparing-{}", uuid::Uuid::now_v7().simple());
        let spec = ContainerSpec {
            image: base.id.clone(),
            user: None,
            variables: Vec::new(),
            folder: None,
            entrypoint: None,
            // Never run, but the engine requires one if the image has none.
            command: Some(vec!["true".to_owned()]),
            labels: [(LABEL_INSTANCE.to_owned(), self.instance().to_owned())].into(),
            network: ContainerNetwork::Loopback { names: Vec::new() },
            runtime: None,
            limits: Limits::default(),
            is_attached: false,
            log_size: None,
        };
        let id = self.create(&name, image, spec).await?;
        let made = async {
            self.prepare(&id, &base.user, executor).await?;
            let labels = [(LABEL_CONTENT, content), (LABEL_OF, image), (LABEL_INSTANCE, "")];
            match self.client.commit(&id, false, &labels).await {
                Ok(made) => Ok(Some(made)),
                Err(failure) if failure.is_refused() => {
                    tracing::info!(
                        "the executor is copied into each container, as no image can be made: {}",
                        failure.reason()
                    );
                    Ok(None)
                }
                Err(failure) => Err(self.client.error("making an image with the executor in it", failure)),
            }
        };
        let made = made.await;
        if let Err(error) = container::remove(&self.client, &id).await {
            tracing::warn!(container = id, "the container of an image was left behind: {error}");
        }
        if let Ok(Some(id)) = &made {
            self.remove_replaced(image, id).await;
        }
        made
    }

    /// Removes superseded prepared images of the same base image. One that is in use stays, which
    /// does no harm.
    async fn remove_replaced(&self, image: &str, by: &str) {
        let replaced = match self.images_with(vec![format!("{LABEL_OF}={image}")]).await {
            Ok(replaced) => replaced,
            Err(error) => return tracing::debug!("old images could not be looked for: {error}"),
        };
        let oldest = Utc::now().timestamp() - KEPT_DAYS * 24 * 60 * 60;
        for image in replaced {
            if image.id != by && image.created < oldest {
                self.remove_image(&image.id).await;
            }
        }
    }

    /// Returns the images that have all of `labels` (`name`, or `name=value`).
    pub(super) async fn images_with(&self, labels: Vec<String>) -> Result<Vec<ImageSummary>, EnvironmentError> {
        let listed = self.client.list_images(labels).await;
        listed.map_err(|failure| self.client.error("listing images", failure))
    }

    /// Removes one image, unless a container uses it.
    pub(super) async fn remove_image(&self, id: &str) {
        if let Err(failure) = self.client.remove_image(id).await {
            tracing::debug!("the image {id} stays: {}", failure.reason());
        }
    }

    /// Copies executor, workspace and named certificates into a container that does not run yet.
    pub(crate) async fn prepare(&self, id: &str, user: &User, executor: &Path) -> Result<(), EnvironmentError> {
        let owner = match user.numbers() {
            Some(owner) => owner,
            None => self.look_up(id, user).await?,
        };
        let certificates = self.certificates(id).await?;
        let failed = |error: std::io::Error| unreadable(executor, &error);
        let file = tokio::fs::File::open(executor).await.map_err(failed)?;
        let size = file.metadata().await.map_err(failed)?.len();
        let layer = base_layer(file, size, owner, certificates.as_deref()).map_err(failed)?;
        let uploaded = self.client.upload(id, layer).await;
        uploaded.map_err(|failure| self.client.error("copying the executor into a container", failure))
    }

    /// Returns the certificates that programs in the container are to trust, those of its image
    /// among them; `None` if none are named, and the image's do.
    async fn certificates(&self, id: &str) -> Result<Option<String>, EnvironmentError> {
        let trust = &self.config().trust;
        if !trust.is_named() {
            return Ok(None);
        }
        let mut of_image = Vec::new();
        for path in certificates::OF_IMAGES {
            let text = self.text_of(id, path, CERTIFICATES_LIMIT).await;
            let what = "looking for the image's certificates";
            of_image.push(text.map_err(|failure| self.client.error(what, failure))?);
        }
        Ok(Some(certificates::file(trust, &of_image)))
    }

    /// Returns the text of a file in a container that does not run yet, through links: the engine
    /// gives a link that is the last part of a path as what it is. Empty if there is none.
    async fn text_of(&self, id: &str, path: &str, limit: usize) -> Result<String, Failure> {
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            let archive = self.client.download(id, &path, limit).await?;
            match first(&archive) {
                First::Text(text) => return Ok(text),
                First::Link(target) => path = linked(&path, &target),
            }
        }
        Ok(String::new())
    }

    /// Reads uid and gid from the container's `/etc/passwd`: nothing runs in it yet that could be
    /// asked.
    async fn look_up(&self, id: &str, user: &User) -> Result<Owner, EnvironmentError> {
        let what = format!("looking for the image's user '{}'", user.name);
        let text = self.text_of(id, "/etc/passwd", PASSWD_LIMIT).await;
        let text = text.map_err(|failure| self.client.error(&what, failure))?;
        user.look_up(&text).ok_or_else(|| EnvironmentError::Unexpected {
            what,
            reason: "its /etc/passwd does not have it; name a user that exists, or a number, in the image's USER"
                .to_owned(),
        })
    }
}

/// Returns true if something that is copied into containers comes to lie in this volume: an image
/// that is made of one lacks it.
fn takes_what_is_copied(volume: &str) -> bool {
    let project = format!("{WORKSPACE}/project");
    let copied = [project.as_str(), EXECUTOR, certificates::CERTIFICATES];
    copied.iter().any(|path| Path::new(path).starts_with(volume))
}

fn unreadable(executor: &Path, error: &std::io::Error) -> EnvironmentError {
    EnvironmentError::Unexpected {
        what: format!("reading the executor {}", executor.display()),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::takes_what_is_copied;

    #[test]
    fn a_volume_takes_what_lies_at_or_below_its_path() {
        for volume in [
            "/workspace",
            "/workspace/",
            "/workspace/project",
            "/usr/local/bin",
            "/usr",
        ] {
            assert!(takes_what_is_copied(volume), "{volume}");
        }
        for volume in [
            "/work",
            "/workspace/project/target",
            "/home/gradle/.gradle",
            "/usr/local/lib",
        ] {
            assert!(!takes_what_is_copied(volume), "{volume}");
        }
    }
}
