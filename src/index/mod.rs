//! The code index of a mirror: which places its commits have, found by the words of a question.
//!
//! It is a cache beside the objects that it was made of, in a `SQLite` file within the mirror, and
//! goes with it. Everything is addressed by the id of a file's content: a file that moves, or that
//! another branch has too, is not read again. Whatever is wrong with the file, it is made anew, and
//! whoever asks goes on without it.
//!
//! The modules are listed in reading order, which is import order.

pub mod config; // the section `index`
mod error; // why there is no answer
mod stored; // places, words and paths as bytes
mod tree; // the files of a commit with their places, as the index knows them
mod left_out; // paths that somebody pruned
mod file; // the database: tables, opening, making anew
mod parsed; // a file of the repository as rows of the database
mod filling; // bringing the index up to a commit
mod searching; // from a question to places with their text
mod names; // definitions, uses, and what is referred to most
mod ingesting; // paths that are taken in, or left out
mod folder; // the index of a plain folder
pub mod evidence; // whether cited places exist

pub use config::Config;
pub use error::IndexError;
pub use filling::{Counts, Filled};
pub use folder::{FOLDER, FolderIndex, MARK};
pub use ingesting::{Diff, Ingest, Ingested, NotDone, Pruned, TakenIn};
pub use names::{Definition, Use};
pub use searching::{Hit, PLACES, Reranker, Wanted, check_query, places};

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sqlx::SqlitePool;

use crate::repository::mirror::Mirror;
use crate::repository::reading::content_reader::ContentReader;
use left_out::LeftOut;
use tree::Tree;

/// The open index of one mirror.
#[derive(Debug, Clone)]
pub struct Index {
    mirror: Mirror,
    config: Config,
    pool: SqlitePool,
    left_out: LeftOut,
    texts: ContentReader,
    reranker: Option<Reranker>,
    /// The files of the commits that were asked about, by the id of the commit.
    trees: Arc<Mutex<HashMap<String, Arc<Tree>>>>,
}

#[cfg(test)]
mod tests;
