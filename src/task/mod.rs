//! What is worked on: the item on the forge (a task), one attempt at it (a run), and the stages it
//! goes through.

pub mod command;
pub mod id;
pub mod labels;
pub mod state;
