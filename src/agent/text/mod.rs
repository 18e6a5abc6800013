//! What people read: one function a text, so that all of them can be seen in one place.

pub mod verification; // how the result was checked
pub(crate) mod refused_hosts; // hosts that the container could not reach
pub mod comments; // progress and final comments, texts of change requests
pub mod replies; // answers to commands, and questions to people
pub mod local_report; // the end of a task from the command line
