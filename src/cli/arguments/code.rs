//! `index` and `search`: the code index of a folder.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::index::PLACES;

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum IndexCommand {
    /// Say where the index is, how large, and whether something was committed since
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Install git hooks that mark the repository as changed
    InstallHook,
    /// Take files and folders in now, also ones that were left out, and say what is known of them
    Ingest {
        /// Files, and folders with all that is in them, below the root
        #[arg(value_name = "PATH", required_unless_present = "diff")]
        paths: Vec<String>,

        /// File with what changed, as JSON: added, modified, deleted, renamed ({from, to}); - for
        /// stdin
        #[arg(long, value_name = "FILE")]
        diff: Option<PathBuf>,

        /// Print JSON: `files` with their places, `gone`, and how many were `parsed`
        #[arg(long)]
        json: bool,
    },
    /// Leave files and folders out of every answer, until they are taken in again
    Prune {
        /// Files, and folders with all that is in them, below the root
        #[arg(value_name = "PATH", required = true)]
        paths: Vec<String>,

        /// Print JSON: `paths`, and how many `files` that are
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Search {
    /// Words, names, or the whole question
    pub query: String,

    /// The folder [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,

    /// Number of places
    #[arg(long, value_name = "N", default_value_t = PLACES)]
    pub top_k: usize,

    /// Only files whose paths begin so
    #[arg(long, value_name = "PREFIX")]
    pub path_prefix: Option<String>,

    /// Print JSON: `chunks`, each with path, span, name, kind, score and text
    #[arg(long)]
    pub json: bool,
}
