//! Containers of an engine: one that serves Docker's API, or a cluster. Knows images, containers
//! and streams; nothing about repositories or tools.
//!
//! Guarantees: a process in a container has no capability, no more memory, processors and processes
//! than configured, no mount, no access to the engine and, unless the configuration opens it, no
//! network; every container carries labels by which a later process finds and removes it. Not here:
//! the protocol over the streams, and any decision about a run.
//!
//! The rest of the program uses [`Engine`] and [`Container`], which say nothing about the kind of
//! engine; that is known in `docker` and `kubernetes` alone.

mod error; // errors, by who must act
pub mod config; // the section `command_executor`
mod processes; // what an engine does with a container that exists
pub mod rights; // what the program must be allowed to do in a cluster
mod docker; // the client of the engine's API
mod container; // a container, its processes, name, user and limits
mod executor; // the file of the executor, and how it gets in
mod driver; // what each kind of engine does in its own way
mod docker_engine; // an engine that serves Docker's API
mod image; // pulled, built, and made of containers
mod starting; // starts containers
mod services; // service containers
mod docker_driver; // all of it, as every kind of engine is used
#[cfg(feature = "kubernetes")]
mod kubernetes; // a cluster: a pod for each run
mod engine; // connects, finds, lists and sweeps containers, whatever the engine

pub use config::engine_choice::{EngineChoice, EngineKind, Kubernetes};
pub use config::{Build, Config, During, Environment, Network, NetworkMode};
pub use container::name::Purpose;
pub use container::{Attached, Container};
pub use docker::EngineAccess;
pub use driver::{KeepResult, ListedContainer, StartImages, StartRequest, WantedSetUp, WarmContainer, WarmRequest};
pub use engine::Engine;
pub use error::{EnvironmentError, how_to_build};
pub use executor::{Architecture, find_executor};
pub use processes::{EXECUTOR, ProcessExit, Streams};
pub use rights::Rights;
pub use services::ServiceContainers;
