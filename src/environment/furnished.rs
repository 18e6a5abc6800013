//! Furnished images: an environment's image with the executor and the workspace already copied in.
//!
//! Such an image is committed from a container that never ran, so it contains nothing else. It has
//! no tag: `docker image prune` removes it, and it is made again. Installations on the same engine
//! share it.

use std::path::Path;
use std::time::Duration;

use bollard::body_try_stream;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use chrono::Utc;
use tokio_util::io::ReaderStream;

use super::EnvironmentError;
use super::container;
use super::docker::{Docker, Said};
use super::furniture::{EXECUTOR_MODE, first_file, furniture};
use super::specification::LABEL_INSTANCE;
use super::user::{Owner, User};

/// Label with the content of a furnished image: base image, user and executor.
pub(super) const LABEL_FURNISHED: &str = "coding-agent.furnished";
/// Label with the name of the base image.
pub(super) const LABEL_OF: &str = "coding-agent.furnished.of";

/// Days before a superseded image is deleted; another installation may still use it.
const KEPT_DAYS: i64 = 7;

/// Maximum bytes of an image's `/etc/passwd` that are read.
const PASSWD_LIMIT: usize = 1024 * 1024;

/// Size of one read of the executor in bytes.
const PIECE: usize = 256 * 1024;

/// A furnished image.
pub(super) struct Furnished {
    /// The image's id. Two processes may make the same image concurrently; either may be found.
    /// `None` if the engine refuses to make images, so that each container is furnished.
    pub(super) id: Option<String>,
    /// Identifies the content: base image, user and executor.
    pub(super) content: String,
}

impl Docker {
    /// Returns the furnished image for `image`, and makes it if there is none yet.
    pub(super) async fn furnished(
        &self,
        image: &str,
        said: &Said,
        executor: &Path,
    ) -> Result<Furnished, EnvironmentError> {
        let fingerprint = self.fingerprints().of(executor).await;
        let executors = fingerprint.map_err(|error| unreadable(executor, &error))?;
        let content = format!("{}/{}/{executors:016x}/{EXECUTOR_MODE:o}", said.id, said.user.name);
        // Held while the image is made, so that concurrent callers wait instead of making another.
        let mut known = self.furnished_images().lock().await;
        let Some(images) = known.as_mut() else {
            return Ok(Furnished { id: None, content });
        };
        if let Some(id) = images.get(&content).cloned() {
            return Ok(Furnished { id: Some(id), content });
        }
        let found = self.images_with(vec![format!("{LABEL_FURNISHED}={content}")]).await?;
        let id = match found.into_iter().next() {
            Some(image) => Some(image.id),
            None => self.make_furnished(image, said, executor, &content).await?,
        };
        match &id {
            Some(id) => {
                images.insert(content.clone(), id.clone());
            }
            None => *known = None,
        }
        Ok(Furnished { id, content })
    }

    /// Clears the cache of known images, after one was found to be gone.
    pub(super) async fn forget_furnished(&self) {
        if let Some(images) = self.furnished_images().lock().await.as_mut() {
            images.clear();
        }
    }

    /// Makes a furnished image; `None` if the engine refuses.
    async fn make_furnished(
        &self,
        image: &str,
        said: &Said,
        executor: &Path,
        content: &str,
    ) -> Result<Option<String>, EnvironmentError> {
        let name = format!("coding-agent-furnishing-{}", uuid::Uuid::now_v7().simple());
        let body = ContainerCreateBody {
            image: Some(said.id.clone()),
            // Never run, but the engine requires one if the image has none.
            cmd: Some(vec!["true".to_owned()]),
            labels: Some([(LABEL_INSTANCE.to_owned(), self.instance().to_owned())].into()),
            ..ContainerCreateBody::default()
        };
        let id = self.create(&name, image, body).await?;
        let made = async {
            self.furnish(&id, &said.user, executor).await?;
            let labels = [(LABEL_FURNISHED, content), (LABEL_OF, image), (LABEL_INSTANCE, "")];
            match self.make_image(&id, false, &labels).await {
                Ok(made) => Ok(Some(made)),
                Err(failure) if failure.is_refused() => {
                    tracing::info!(
                        "the executor is copied into each container, as no image can be made: {}",
                        failure.reason()
                    );
                    Ok(None)
                }
                Err(failure) => Err(self.engine.error("making an image with the executor in it", failure)),
            }
        };
        let made = made.await;
        if let Err(error) = container::remove(&self.engine, &id).await {
            tracing::warn!(container = id, "the container of an image was left behind: {error}");
        }
        if let Ok(Some(id)) = &made {
            self.remove_replaced(image, id).await;
        }
        made
    }

    /// Removes superseded furnished images of the same base image. One that is in use stays, which
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

    /// Copies executor and workspace into a container that does not run yet.
    pub(super) async fn furnish(&self, id: &str, user: &User, executor: &Path) -> Result<(), EnvironmentError> {
        let owner = match user.numbers() {
            Some(owner) => owner,
            None => self.look_up(id, user).await?,
        };
        let failed = |error: std::io::Error| unreadable(executor, &error);
        let file = tokio::fs::File::open(executor).await.map_err(failed)?;
        let size = file.metadata().await.map_err(failed)?.len();
        let furniture = ReaderStream::with_capacity(furniture(file, size, owner).map_err(failed)?, PIECE);
        let options = UploadToContainerOptionsBuilder::default().path("/").build();
        let client = &self.engine.client;
        let upload = client.upload_to_container(id, Some(options), body_try_stream(furniture));
        let uploaded = self.engine.ask(upload).await;
        uploaded.map_err(|failure| self.engine.error("furnishing a container", failure))
    }

    /// Reads uid and gid from the container's `/etc/passwd`: nothing runs in it yet that could be
    /// asked.
    async fn look_up(&self, id: &str, user: &User) -> Result<Owner, EnvironmentError> {
        let what = format!("looking for the image's user '{}'", user.name);
        let options = DownloadFromContainerOptionsBuilder::default()
            .path("/etc/passwd")
            .build();
        let mut parts = Box::pin(self.engine.client.download_from_container(id, Some(options)));
        let mut archive = Vec::new();
        loop {
            match self.engine.next(&mut parts, Duration::from_mins(1)).await {
                Ok(Some(part)) if archive.len() + part.len() <= PASSWD_LIMIT => archive.extend_from_slice(&part),
                Ok(_) => break,
                Err(failure) if failure.is_absent() => break,
                Err(failure) => return Err(self.engine.error(&what, failure)),
            }
        }
        user.look_up(&first_file(&archive))
            .ok_or_else(|| EnvironmentError::Unexpected {
                what,
                reason: "its /etc/passwd does not have it; name a user that exists, or a number, in the image's USER"
                    .to_owned(),
            })
    }
}

fn unreadable(executor: &Path, error: &std::io::Error) -> EnvironmentError {
    EnvironmentError::Unexpected {
        what: format!("reading the executor {}", executor.display()),
        reason: error.to_string(),
    }
}
