//! The documents that pages and API show, the same for both, made anew from the store for each
//! request.

pub(super) mod evaluations; // documents that other programs had evaluated
pub(super) mod runs; // lists of runs
pub(super) mod detail; // all of one run
pub(super) mod statistics; // figures over many runs
pub(super) mod examination; // forges, engine and models

use chrono::{DateTime, SecondsFormat, Utc};

/// Formats a time for programs.
pub(super) fn at(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
