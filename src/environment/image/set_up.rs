//! Keeps containers as images after their set-up, so that the next run of the same project starts
//! from there.
//!
//! An image belongs to one installation and one place (a project with certain dependencies), has no
//! tag, and is found by its labels. The number and age of these images are bounded.

use chrono::Utc;
use uuid::Uuid;

use super::prepared::{LABEL_CONTENT, LABEL_OF, PreparedImage};
use crate::environment::container::name::{LABEL_INSTANCE, LABEL_RUN, LABEL_TASK, LABEL_WARM};
use crate::environment::container::{Container, specification};
use crate::environment::docker_engine::DockerEngine;
use crate::environment::driver::{KeepResult, KeptSetUp, StartRequest, WantedSetUp};
use crate::environment::error::EnvironmentError;

/// Label with the place: a hash of installation, base image, environment, network mode and the
/// project's dependencies.
const LABEL_PLACE: &str = "coding-agent.set-up.place";
/// Label with the name of the set-up.
const LABEL_DONE: &str = "coding-agent.set-up";

impl DockerEngine {
    /// Returns the place of `start`'s set-ups, or `None` if none are to be kept. `prepared` is the
    /// image that its containers start from without a kept set-up.
    pub(crate) fn place(&self, start: &StartRequest<'_>, prepared: &PreparedImage) -> Option<String> {
        // An engine that refuses to make images keeps none.
        prepared.id.as_ref()?;
        let (place, _) = start.set_up.filter(|_| self.config().snapshots.keep > 0)?;
        // The image's owner, its content, and what its variables depend on.
        let parts = serde_json::json!([
            self.instance(),
            prepared.content,
            start.environment,
            specification::network(self.config()),
            place
        ]);
        Some(Uuid::new_v5(&Uuid::NAMESPACE_OID, parts.to_string().as_bytes()).to_string())
    }

    /// Returns the wanted set-up of a place, if it is kept.
    pub(crate) async fn kept(
        &self,
        place: &str,
        wanted: WantedSetUp<'_>,
    ) -> Result<Option<KeptSetUp>, EnvironmentError> {
        let found = self.pruned().await?.into_iter().find(|kept| {
            let is_wanted = match wanted {
                WantedSetUp::Only(done) => kept.done == done,
                WantedSetUp::Newest => true,
            };
            kept.place == place && is_wanted
        });
        Ok(found)
    }

    /// Keeps `container` as the set-up `done` of its place, unless it grew too large or has
    /// volumes, and removes excess and old set-ups. The container is paused meanwhile.
    pub(crate) async fn keep(&self, container: &Container, done: &str) -> Result<KeepResult, EnvironmentError> {
        let Some(place) = container.place() else {
            return Ok(KeepResult::NoPlace);
        };
        if !container.volumes().is_empty() {
            let volumes = container.volumes().to_vec();
            return Ok(KeepResult::HasVolumes { volumes });
        }
        let bytes = self.grown(container).await?;
        if bytes > self.config().snapshots.max_bytes {
            return Ok(KeepResult::TooLarge { bytes });
        }
        let labels = [
            (LABEL_PLACE, place),
            (LABEL_DONE, done),
            (LABEL_INSTANCE, self.instance()),
            // Clears the labels that the image would inherit from its container: it belongs to no
            // run.
            (LABEL_RUN, ""),
            (LABEL_TASK, ""),
            (LABEL_WARM, ""),
            (LABEL_CONTENT, ""),
            (LABEL_OF, ""),
        ];
        let kept = self.client.commit(container.id(), true, &labels).await;
        kept.map_err(|failure| self.client.error("keeping the environment", failure))?;
        self.pruned().await.map(|_| KeepResult::Kept)
    }

    /// Returns how many bytes a container adds to its image. Fails if the engine does not say:
    /// without a bound its disk would fill up.
    async fn grown(&self, container: &Container) -> Result<u64, EnvironmentError> {
        let what = "asking how large the container is";
        let size = self.client.size(container.id()).await;
        size.map_err(|failure| self.client.error(what, failure))?
            .ok_or_else(|| EnvironmentError::Unexpected {
                what: what.to_owned(),
                reason: "the engine did not say".to_owned(),
            })
    }

    /// Removes excess and old set-ups and returns the others, newest first. An image that a
    /// container uses is left for the next time.
    async fn pruned(&self) -> Result<Vec<KeptSetUp>, EnvironmentError> {
        let limits = &self.config().snapshots;
        let oldest = Utc::now().timestamp() - i64::from(limits.max_age_days) * 24 * 60 * 60;
        let mut kept = self.set_ups().await?;
        let first_old = kept.iter().position(|image| image.created < oldest);
        let end = first_old.unwrap_or(kept.len()).min(limits.keep);
        for image in kept.split_off(end.min(kept.len())) {
            self.remove_image(&image.image).await;
        }
        Ok(kept)
    }

    /// Returns the set-ups of this installation, newest first.
    async fn set_ups(&self) -> Result<Vec<KeptSetUp>, EnvironmentError> {
        let ours = format!("{LABEL_INSTANCE}={}", self.instance());
        let listed = self.images_with(vec![ours, LABEL_DONE.to_owned()]).await?;
        let mut found: Vec<KeptSetUp> = listed
            .into_iter()
            .filter_map(|mut image| {
                Some(KeptSetUp {
                    place: image.labels.remove(LABEL_PLACE)?,
                    done: image.labels.remove(LABEL_DONE).filter(|done| !done.is_empty())?,
                    image: image.id,
                    created: image.created,
                })
            })
            .collect();
        found.sort_by_key(|image| std::cmp::Reverse(image.created));
        Ok(found)
    }
}
