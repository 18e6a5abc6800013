//! Facts about set-ups that later runs could begin with.

use serde::{Deserialize, Serialize};

/// Why a set-up was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NotKept {
    /// Its container had grown larger than `max_bytes`.
    TooLarge { bytes: u64, max_bytes: u64 },
    /// Its image declares these folders to be volumes, and what is in them cannot be kept.
    HasVolumes { volumes: Vec<String> },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::fact::Fact;

    #[test]
    fn each_reason_stands_beside_the_fact_and_is_read_again() {
        for (reason, line) in [
            (
                NotKept::TooLarge { bytes: 2, max_bytes: 1 },
                r#"{"fact":"set_up_not_kept","bytes":2,"max_bytes":1}"#,
            ),
            (
                NotKept::HasVolumes {
                    volumes: vec!["/cache".to_owned()],
                },
                r#"{"fact":"set_up_not_kept","volumes":["/cache"]}"#,
            ),
        ] {
            let fact = Fact::SetUpNotKept(reason);
            assert_eq!(serde_json::to_string(&fact).unwrap(), line);
            assert_eq!(serde_json::from_str::<Fact>(line).unwrap(), fact);
        }
    }
}
