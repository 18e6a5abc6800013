//! How times and states are written in a line of the journal.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serializer;

/// Writes a time in UTC, with milliseconds.
pub(super) fn with_milliseconds<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// A state as people write it.
pub(super) mod as_text {
    use crate::task::state::State;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this signature")]
    pub(in super::super) fn serialize<S: Serializer>(state: &State, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(state)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<State, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
