//! The commands of the command line. What each is called and takes is defined in
//! [`crate::cli::arguments`].

pub mod auto_approve;
pub mod completions;
pub mod configuration;
pub mod doctor;
pub mod evaluations;
pub mod forget;
pub mod local;
pub mod logs;
pub mod mcp;
pub mod order; // `stop`, `pause`, `resume`, `approve`, `deny`, `budget`
pub mod stats;
pub mod status;
pub mod store;
pub mod work; // `run`, `serve`, `produce`, `consume`
