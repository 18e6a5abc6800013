//! Containers of an engine that serves Docker's API. Knows images, containers and streams; nothing
//! about repositories or tools.
//!
//! Guarantees: a process in a container has no capability, no more memory, processors and processes
//! than configured, no mount, no access to the engine and, unless the configuration opens it, no
//! network; every container carries labels by which a later process finds and removes it. Not here:
//! the protocol over the streams, and any decision about a run.
//!
//! The rest of the program uses [`Engine`] and [`Container`], which say nothing about the kind of
//! engine; that is known in `docker` alone.

mod error; // errors, by who must act
pub mod config; // the section `command_executor`
mod docker; // the client of the engine's API
mod container; // a container, its processes, name, user and limits
mod executor; // the file of the executor, and how it gets in
mod engine; // connects, finds, lists and sweeps containers
mod image; // pulled, built, and made of containers
mod starting; // starts containers
mod services; // service containers

pub use config::{Build, Config, During, Environment, Network, NetworkMode};
pub use container::name::Purpose;
pub use container::{Attached, Container, EXECUTOR, Ending, Streams};
pub use docker::EngineAccess;
pub use engine::{Engine, ListedContainer, StartRequest, WantedSetUp};
pub use error::EnvironmentError;
pub use executor::{Architecture, find_executor};
pub use image::KeepResult;
pub use services::ServiceContainers;
pub use starting::{StartImages, WarmContainer};
