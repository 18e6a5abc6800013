//! Tasks on a plain folder without a forge.

mod surroundings; // the folder's history and the repository around it
mod listing; // which files belong to it
mod folder; // takes a snapshot and applies the result
