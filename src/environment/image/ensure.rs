//! Provides images: present, else pulled, else built if the environment says how.

use std::time::Duration;

use tokio::time::timeout;

use crate::environment::config::Environment;
use crate::environment::docker_engine::DockerEngine;
use crate::environment::error::EnvironmentError;
use crate::environment::processes::Failure;

/// Time limit of a question to a registry. A pull may take longer, a person waits for this answer.
const REGISTRY_LIMIT: Duration = Duration::from_secs(30);

impl DockerEngine {
    /// Ensures that the image is present: pulls it, or builds it if the environment says how.
    /// `progress` gets short lines for people.
    pub(crate) async fn ensure(
        &self,
        environment: &Environment,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(), EnvironmentError> {
        let image = &environment.image;
        if self.is_present(image).await? {
            return Ok(());
        }
        progress(format!("pulling {image}"));
        let not_pulled = match self.client.pull(image, progress).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure.reason(),
        };
        let Some(build) = &environment.build else {
            let reason = format!("it is not on this machine and cannot be pulled ({not_pulled})");
            return Err(EnvironmentError::image_missing(image, reason));
        };
        progress(format!(
            "{image} cannot be pulled ({not_pulled}); building it from {}",
            build.dockerfile.display()
        ));
        self.client
            .build(image, build, progress)
            .await
            .map_err(|reason| EnvironmentError::ImageMissing {
                image: image.clone(),
                reason: format!("it cannot be pulled ({not_pulled}), and building it failed ({reason})"),
                hint: format!("correct {} or name another image", build.dockerfile.display()),
            })
    }

    /// Returns true if the image is present.
    pub(crate) async fn is_present(&self, image: &str) -> Result<bool, EnvironmentError> {
        match self.client.image(image).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.is_absent() => Ok(false),
            Err(failure) => Err(self.client.error("looking for an image", failure)),
        }
    }

    /// Returns why the image cannot be pulled, in the registry's or the engine's words. `None` if
    /// its registry has it, or if it cannot be asked: it does not answer, or the engine has no way
    /// to ask (podman).
    pub(crate) async fn why_not_in_registry(&self, image: &str) -> Option<String> {
        match timeout(REGISTRY_LIMIT, self.client.ask_registry(image)).await {
            Ok(Err(Failure::Refused { message, .. })) if !message.contains("is not supported") => Some(message),
            Ok(Ok(()) | Err(_)) | Err(_) => None,
        }
    }
}
