//! The operations that each kind of engine has a way of its own for: looking up images, making
//! containers and finding them. Those on a container that exists are in `processes`.
//!
//! An engine that has no images in its hands (a cluster's nodes pull them) answers that every image
//! is there, and keeps no set-up: none of it is an error.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::config::Environment;
use super::container::Container;
use super::container::name::Purpose;
use super::container::user::User;
use super::error::EnvironmentError;
use super::executor::Architecture;
use super::processes::Processes;
use super::rights::Rights;
use crate::task::id::{RunId, TaskId};

/// Time limit of one readiness check of a service.
pub(crate) const READINESS_CHECK: Duration = Duration::from_secs(20);

/// Most bytes of a service's log that are shown.
const MOST_SHOWN: usize = 1_000;

/// Returns the end of what a service said, as it is shown.
pub(crate) fn end_of_log(said: &str) -> String {
    let start = said.floor_char_boundary(said.len().saturating_sub(MOST_SHOWN));
    said[start..].trim().to_owned()
}

/// Describes the container to start.
#[derive(Debug, Clone, Copy)]
pub struct StartRequest<'a> {
    pub task: &'a TaskId,
    pub run: RunId,
    pub purpose: Purpose,
    /// The environment's name, which selects the services.
    pub environment: &'a str,
    pub image: &'a str,
    pub executor: &'a Path,
    /// The place whose kept set-ups may be started from, and which of them.
    pub set_up: Option<(&'a str, WantedSetUp<'a>)>,
}

/// Describes the container to start for the warm pool.
#[derive(Debug, Clone, Copy)]
pub struct WarmRequest<'a> {
    /// The container's name.
    pub name: &'a str,
    /// The environment's name, by which its settings are found.
    pub environment: &'a str,
    pub image: &'a str,
    pub executor: &'a Path,
    /// The worker whose pool it is for.
    pub worker: Uuid,
}

/// The kept set-up that a container should start from, if it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedSetUp<'a> {
    /// The set-up with this name.
    Only(&'a str),
    /// The newest one of the place, because the plan is not known yet.
    Newest,
}

/// The content that a run's container will start from.
pub struct StartImages {
    /// Identifies the content of a container without a kept set-up.
    pub(crate) content: String,
    /// The images that were looked up; `None` where the engine has none in its hands.
    pub(crate) local: Option<LocalImages>,
}

/// The images that a container is made of.
pub(crate) struct LocalImages {
    pub(crate) base: BaseImage,
    /// The image with the executor in it; `None` if the engine refuses to make images.
    pub(crate) prepared: Option<String>,
    /// The place under which its set-up may be kept.
    pub(crate) place: Option<String>,
    /// The kept set-up to start from.
    pub(crate) kept: Option<KeptSetUp>,
}

/// The properties of an image that its containers need.
pub(crate) struct BaseImage {
    pub(crate) id: String,
    /// The registry's digest with its name, or the id if the image is in no registry.
    pub(crate) digest: String,
    /// The image's user, or an unprivileged one instead of root.
    pub(crate) user: User,
    /// The image's environment variables, as `NAME=value`.
    pub(crate) variables: Vec<String>,
    /// The folders that are volumes of their own in each container. An image that is made of the
    /// container lacks what is in them.
    pub(crate) volumes: Vec<String>,
}

/// A kept set-up.
pub(crate) struct KeptSetUp {
    pub(crate) image: String,
    pub(crate) place: String,
    pub(crate) done: String,
    /// Seconds since 1970.
    pub(crate) created: i64,
}

/// The result of keeping a set-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepResult {
    Kept,
    /// The container has no place, so its set-up is not kept.
    NoPlace,
    TooLarge {
        bytes: u64,
    },
    /// Its image declares these folders to be volumes, and what is in them cannot be kept.
    HasVolumes {
        volumes: Vec<String>,
    },
}

/// A started container of the warm pool.
pub struct WarmContainer {
    pub container: Container,
    pub(crate) content: String,
}

/// A listed container of this installation.
#[derive(Debug)]
pub struct ListedContainer {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) run: Option<RunId>,
    pub(crate) purpose: Purpose,
    /// The worker that started it for the warm pool.
    pub(crate) warmed_by: Option<Uuid>,
    /// The service's name, if it is a service container.
    pub(crate) service: Option<String>,
    pub(crate) network: Option<String>,
    /// Seconds since 1970.
    pub(crate) created: i64,
    /// It is removed by this as long as it is as it was listed: a run that takes a waiting
    /// container at this moment makes this handle invalid, so that the removal does not hit it.
    pub(crate) handle: String,
}

/// The containers that a list holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    All,
    Running,
}

/// A kind of engine, connected.
#[async_trait]
pub(crate) trait Driver: fmt::Debug + Send + Sync {
    /// Returns a description for people, such as `Engine 20.10.24, API 1.41`.
    fn description(&self) -> &str;

    /// Returns the architecture of the engine's machine, if it is known.
    fn architecture(&self) -> Option<Architecture>;

    /// Returns an error if the engine does not have the configured runtime.
    fn missing_runtime(&self) -> Option<EnvironmentError>;

    /// Returns the keys of the configured limits that the engine says it cannot keep.
    fn unkept_limits(&self) -> Vec<&'static str>;

    /// Returns what the program may do; `None` if the engine knows no rights.
    async fn rights(&self) -> Result<Option<Rights>, EnvironmentError>;

    /// Fails unless containers are cut off as configured. Returns what they reach all the same,
    /// which nothing closes. An engine that gives them no network has nothing to try.
    async fn try_network(&self) -> Result<Vec<String>, EnvironmentError>;

    /// Returns true if the removal of a container failed since [`Self::forget_leftovers`].
    fn has_leftovers(&self) -> bool;

    fn forget_leftovers(&self);

    fn processes(&self) -> &dyn Processes;

    /// Returns a container that exists.
    fn container(&self, id: String) -> Container;

    /// Lists this installation's containers.
    async fn list(&self, which: Listed) -> Result<Vec<ListedContainer>, EnvironmentError>;

    /// Returns the executor for containers of `image`.
    async fn find_executor(&self, image: &str) -> Result<PathBuf, EnvironmentError>;

    /// Ensures that the image is present. `progress` gets short lines for people.
    async fn ensure_image(
        &self,
        environment: &Environment,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(), EnvironmentError>;

    /// Returns true if a container of the image can be started without bringing it first.
    async fn has_image(&self, image: &str) -> Result<bool, EnvironmentError>;

    /// Returns why the image cannot be pulled, in the registry's or the engine's words. `None` if
    /// its registry has it, or if it cannot be asked: it does not answer, or there is no way to ask
    /// (podman, a cluster's nodes).
    async fn why_not_pullable(&self, image: &str) -> Option<String>;

    /// Looks up what the container of `start` will start from.
    async fn start_images(&self, start: &StartRequest<'_>) -> Result<StartImages, EnvironmentError>;

    /// Starts the container of a run, and removes older ones of the same run and purpose first.
    async fn start_on(&self, start: &StartRequest<'_>, images: StartImages) -> Result<Container, EnvironmentError>;

    /// Starts a container for the warm pool.
    async fn start_warm(&self, warm: &WarmRequest<'_>) -> Result<WarmContainer, EnvironmentError>;

    /// Makes a container of the warm pool the run's, and removes older ones of the same run and
    /// purpose first.
    async fn adopt(
        &self,
        start: &StartRequest<'_>,
        images: &StartImages,
        warm: Container,
    ) -> Result<Container, EnvironmentError>;

    /// Starts the services of `start`'s environment beside `main`, with which they are removed.
    /// Returns them by their names.
    async fn start_services(
        &self,
        start: &StartRequest<'_>,
        main: &Container,
    ) -> Result<Vec<(String, Container)>, EnvironmentError>;

    /// Tries whether services can run beside `main`.
    async fn try_service(&self, start: &StartRequest<'_>, main: &Container) -> Result<(), EnvironmentError>;

    /// Returns the end of what a service said; empty if it cannot be read.
    async fn said_last(&self, service: &Container) -> String;

    /// Keeps `container` as the set-up `done` of its place, if it has one.
    async fn keep_set_up(&self, container: &Container, done: &str) -> Result<KeepResult, EnvironmentError>;
}

impl StartImages {
    /// Returns true if the container will start from a kept set-up.
    pub fn has_set_up(&self) -> bool {
        self.local.as_ref().is_some_and(|local| local.kept.is_some())
    }

    /// Returns true if `warm` has the same content as a container that is started now without a
    /// set-up.
    pub fn is_that_of(&self, warm: &WarmContainer) -> bool {
        self.content == warm.content
    }
}

impl ListedContainer {
    /// Returns the run that the container belongs to; `None` while it waits in the warm pool.
    pub fn run(&self) -> Option<RunId> {
        self.run
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the worker whose warm pool the container waits in, if any.
    pub fn waits_with(&self) -> Option<Uuid> {
        self.warmed_by.filter(|_| self.run.is_none())
    }

    /// Returns true if its run is known and it is not older than `oldest`.
    pub(crate) fn is_kept(&self, keep: &HashSet<RunId>, oldest: i64) -> bool {
        self.run.is_some_and(|run| keep.contains(&run)) && self.created >= oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_kept_while_its_run_is_known_and_it_is_not_stale() {
        let run = RunId::new();
        let found = |run, created| ListedContainer {
            id: String::new(),
            name: String::new(),
            run,
            purpose: Purpose::Work,
            warmed_by: None,
            service: None,
            network: None,
            created,
            handle: String::new(),
        };
        let keep = HashSet::from([run]);
        assert!(found(Some(run), 100).is_kept(&keep, 100));
        assert!(!found(Some(run), 99).is_kept(&keep, 100));
        assert!(!found(Some(RunId::new()), 100).is_kept(&keep, 100));
        assert!(!found(None, 100).is_kept(&keep, 100));
    }
}
