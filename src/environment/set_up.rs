//! Containers that were set up, kept as images, so that the next run with the same project begins where this one was after its set-up.
//!
//! An image belongs to one installation and one place (a project with certain dependencies), and bears no name. It is found by its labels
//! alone, like containers; how many there are and how old they become is bounded.

use std::collections::HashMap;

use bollard::models::ContainerConfig;
use bollard::query_parameters::{CommitContainerOptionsBuilder, ListImagesOptionsBuilder};
use chrono::Utc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::EnvironmentError;
use super::container::Container;
use super::docker::{Docker, Start, Wanted};
use super::furnished::{LABEL_FURNISHED, LABEL_OF};
use super::specification::{self, LABEL_INSTANCE, LABEL_RUN, LABEL_TASK};

/// Where it can be used: the installation's container of the same kind, for a project with the same dependencies.
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
}

impl Default for Snapshots {
    fn default() -> Self {
        Self {
            keep: 10,
            max_age_days: 14,
            after_seconds: 5,
        }
    }
}

/// A kept one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) image: String,
    pub(super) done: String,
}

impl Docker {
    /// Looks for what `start` wants. `furnished` is the image that its containers are made of without it.
    pub(super) async fn kept(&self, start: &Start<'_>, furnished: &str) -> Result<Option<Kept>, EnvironmentError> {
        let Some((place, wanted)) = start.set_up.filter(|_| self.config().snapshots.keep > 0) else {
            return Ok(None);
        };
        let place = self.place(start, furnished, place);
        let mut found = self.pruned().await?;
        found.retain(|image| image.place == place);
        if let Wanted::Only(done) = wanted {
            found.retain(|image| image.done == done);
        }
        Ok(found.into_iter().next().map(|image| Kept {
            image: image.id,
            done: image.done,
        }))
    }

    /// Keeps `container` as it is, as the set-up `done` of its place; removes what is too much or too old. Nothing runs in it meanwhile.
    /// Does nothing where the engine makes no images.
    pub async fn keep_set_up(
        &self,
        start: &Start<'_>,
        container: &Container,
        done: &str,
    ) -> Result<(), EnvironmentError> {
        let said = self.said_by(start.image).await?;
        let furnished = self.furnished(start.image, &said, start.executor).await?;
        let (Some(furnished), Some((place, _))) = (furnished, start.set_up) else {
            return Ok(());
        };
        let place = self.place(start, &furnished, place);
        let options = CommitContainerOptionsBuilder::default()
            .container(container.id())
            .pause(true)
            .build();
        let labels = [
            (LABEL_PLACE, place.as_str()),
            (LABEL_DONE, done),
            (LABEL_INSTANCE, self.instance()),
            // An image inherits the labels of its container, and it is neither a run's any more nor empty.
            (LABEL_RUN, ""),
            (LABEL_TASK, ""),
            (LABEL_FURNISHED, ""),
            (LABEL_OF, ""),
        ];
        let config = ContainerConfig {
            labels: Some(labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
            ..ContainerConfig::default()
        };
        let kept = self
            .engine
            .ask(self.engine.client.commit_container(options, config))
            .await;
        kept.map_err(|failure| self.engine.error("keeping the environment", failure))?;
        self.pruned().await.map(|_| ())
    }

    /// Removes what is too much or too old, and returns the others, newest first. What a container uses at this moment goes another time.
    async fn pruned(&self) -> Result<Vec<SetUp>, EnvironmentError> {
        let limits = &self.config().snapshots;
        let oldest = Utc::now().timestamp() - i64::from(limits.max_age_days) * 24 * 60 * 60;
        let mut kept = self.set_ups().await?;
        let first_old = kept.iter().position(|image| image.created < oldest);
        let end = first_old.unwrap_or(kept.len()).min(limits.keep);
        for image in kept.split_off(end.min(kept.len())) {
            self.remove_image(&image.id).await;
        }
        Ok(kept)
    }

    /// What is in the image, what its variables were taken from, and whose it is.
    fn place(&self, start: &Start<'_>, furnished: &str, place: &str) -> String {
        let parts = serde_json::json!([
            self.instance(),
            furnished,
            start.environment,
            specification::network(self.config()),
            place
        ]);
        Uuid::new_v5(&Uuid::NAMESPACE_OID, parts.to_string().as_bytes()).to_string()
    }

    /// Returns the set-ups of this installation, newest first.
    async fn set_ups(&self) -> Result<Vec<SetUp>, EnvironmentError> {
        let ours = format!("{LABEL_INSTANCE}={}", self.instance());
        let filters = HashMap::from([("label", vec![ours, LABEL_DONE.to_owned()])]);
        // All: an image without a name that others were made of is not listed otherwise.
        let options = ListImagesOptionsBuilder::default().all(true).filters(&filters).build();
        let listed = self.engine.ask(self.engine.client.list_images(Some(options))).await;
        let listed = listed.map_err(|failure| self.engine.error("listing images", failure))?;
        let mut found: Vec<SetUp> = listed
            .into_iter()
            .filter_map(|mut image| {
                Some(SetUp {
                    place: image.labels.remove(LABEL_PLACE)?,
                    done: image.labels.remove(LABEL_DONE).filter(|done| !done.is_empty())?,
                    id: image.id,
                    created: image.created,
                })
            })
            .collect();
        found.sort_by_key(|image| std::cmp::Reverse(image.created));
        Ok(found)
    }
}

struct SetUp {
    id: String,
    place: String,
    done: String,
    /// Seconds since 1970.
    created: i64,
}
