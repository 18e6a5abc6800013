//! Containers that were set up, kept as images, so that the next run with the same project begins
//! where this one was after its set-up.
//!
//! An image belongs to one installation and one place (a project with certain dependencies), and
//! bears no name. It is found by its labels alone; how many there are and how old they become is
//! bounded.

use bollard::query_parameters::InspectContainerOptionsBuilder;
use chrono::Utc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::EnvironmentError;
use super::container::Container;
use super::docker::{Docker, Start, Wanted};
use super::furnished::{Furnished, LABEL_FURNISHED, LABEL_OF};
use super::specification::{self, LABEL_INSTANCE, LABEL_RUN, LABEL_TASK, LABEL_WARM};

/// Where it can be used: the installation's container of the same kind, for a project with the same
/// dependencies.
const LABEL_PLACE: &str = "coding-agent.set-up.place";
/// What was done in it.
const LABEL_DONE: &str = "coding-agent.set-up";

/// Environments that are kept after a plan's set-up commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Snapshots {
    /// Most of them; 0 keeps none.
    pub keep: usize,
    /// After how many days one is removed.
    pub max_age_days: u32,
    /// A set-up that took fewer seconds is not kept: it is as quickly done again.
    pub after_seconds: u64,
    /// Largest size, in bytes, of what a kept one adds to the image it began with; a larger one is
    /// not kept.
    pub max_bytes: u64,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self {
            keep: 10,
            max_age_days: 14,
            after_seconds: 5,
            max_bytes: 2 * 1024 * 1024 * 1024,
        }
    }
}

/// What became of a set-up that was to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    Kept,
    /// Its container is of none of the places where set-ups are kept.
    NoPlace,
    TooLarge {
        bytes: u64,
    },
}

/// A kept one.
pub(super) struct Kept {
    pub(super) image: String,
    place: String,
    pub(super) done: String,
    /// Seconds since 1970.
    created: i64,
}

impl Docker {
    /// Returns where set-ups of what `start` starts are kept; `None` where none is to be.
    /// `furnished` is what its containers are made of without one.
    pub(super) fn place(&self, start: &Start<'_>, furnished: &Furnished) -> Option<String> {
        // An engine that makes no images keeps none.
        furnished.id.as_ref()?;
        let (place, _) = start.set_up.filter(|_| self.config().snapshots.keep > 0)?;
        // What is in the image, what its variables were taken from, and whose it is.
        let parts = serde_json::json!([
            self.instance(),
            furnished.content,
            start.environment,
            specification::network(self.config()),
            place
        ]);
        Some(Uuid::new_v5(&Uuid::NAMESPACE_OID, parts.to_string().as_bytes()).to_string())
    }

    /// Looks for what is wanted of a place.
    pub(super) async fn kept(&self, place: &str, wanted: Wanted<'_>) -> Result<Option<Kept>, EnvironmentError> {
        let found = self.pruned().await?.into_iter().find(|kept| {
            let is_wanted = match wanted {
                Wanted::Only(done) => kept.done == done,
                Wanted::Newest => true,
            };
            kept.place == place && is_wanted
        });
        Ok(found)
    }

    /// Keeps `container` as it is, as the set-up `done` of its place, unless it grew too large;
    /// removes what is too much or too old. Nothing runs in it meanwhile.
    pub async fn keep_set_up(&self, container: &Container, done: &str) -> Result<Keeping, EnvironmentError> {
        let Some(place) = container.place() else {
            return Ok(Keeping::NoPlace);
        };
        let bytes = self.grown(container).await?;
        if bytes > self.config().snapshots.max_bytes {
            return Ok(Keeping::TooLarge { bytes });
        }
        let labels = [
            (LABEL_PLACE, place),
            (LABEL_DONE, done),
            (LABEL_INSTANCE, self.instance()),
            // An image inherits the labels of its container, and it is neither a run's any more nor
            // empty.
            (LABEL_RUN, ""),
            (LABEL_TASK, ""),
            (LABEL_WARM, ""),
            (LABEL_FURNISHED, ""),
            (LABEL_OF, ""),
        ];
        let kept = self.make_image(container.id(), true, &labels).await;
        kept.map_err(|failure| self.engine.error("keeping the environment", failure))?;
        self.pruned().await.map(|_| Keeping::Kept)
    }

    /// Returns how many bytes a container holds besides its image. An engine that does not say so
    /// keeps nothing: its disk would fill up without a bound.
    async fn grown(&self, container: &Container) -> Result<u64, EnvironmentError> {
        let what = "asking how large the container is";
        let options = InspectContainerOptionsBuilder::default().size(true).build();
        let inspecting = self.engine.client.inspect_container(container.id(), Some(options));
        let inspected = self.engine.ask(inspecting).await;
        let size = inspected.map_err(|failure| self.engine.error(what, failure))?.size_rw;
        size.and_then(|size| u64::try_from(size).ok())
            .ok_or_else(|| EnvironmentError::Unexpected {
                what: what.to_owned(),
                reason: "the engine did not say".to_owned(),
            })
    }

    /// Removes what is too much or too old, and returns the others, newest first. What a container
    /// uses at this moment goes another time.
    async fn pruned(&self) -> Result<Vec<Kept>, EnvironmentError> {
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
    async fn set_ups(&self) -> Result<Vec<Kept>, EnvironmentError> {
        let ours = format!("{LABEL_INSTANCE}={}", self.instance());
        let listed = self.images_with(vec![ours, LABEL_DONE.to_owned()]).await?;
        let mut found: Vec<Kept> = listed
            .into_iter()
            .filter_map(|mut image| {
                Some(Kept {
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
