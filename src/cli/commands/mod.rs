//! The commands of the command line. What each is called and takes is defined in
//! [`crate::cli::arguments`].

pub mod auto_approve;
pub mod code; // the code index of a folder
pub mod configuration;
pub mod dashboard; // and the HTTP server of `serve`
pub mod doctor;
pub mod forget;
pub mod local;
pub mod mcp;
pub mod order; // `stop`, `pause`, `resume`, `approve`, `deny`, `budget`
pub mod reports; // `status`, `logs`, `stats`, `evaluations`
pub mod shipped; // completion scripts and manual pages
pub mod store;
pub mod work; // `run`, `serve`, `produce`, `consume`
