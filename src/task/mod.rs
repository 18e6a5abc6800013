//! Units of work: the item on the forge (a task), one attempt at it (a run), and the stages of the
//! attempt.

pub mod command;
pub mod forge_claim;
pub mod id;
pub mod labels;
pub mod state;
