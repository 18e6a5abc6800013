//! What a result may hold that is not delivered without a person's word.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::markdown::code::code;

/// One reason why the program does not push a result by itself. It never holds the value it is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Objection {
    /// `git.protected_paths` names the file.
    Protected { path: String },
    /// A line looks like a secret; `path` is empty for the message of a commit.
    Secret {
        path: String,
        /// Counted from 1.
        line: usize,
        /// Such as `github-token`; none for a value of the configuration.
        kind: Option<String>,
    },
    /// The name of a file or a folder looks like a secret; `folder` is where it lies, empty for the topmost.
    Name { folder: String, kind: Option<String> },
}

impl Objection {
    /// Returns the rule it comes from, in a word for the journal.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Protected { .. } => "protected_path",
            Self::Secret { .. } | Self::Name { .. } => "secret",
        }
    }
}

/// Markdown, fit to be shown.
impl fmt::Display for Objection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protected { path } => write!(
                formatter,
                "{} is changed, which `git.protected_paths` names",
                code(path)
            ),
            Self::Name { folder, kind } => {
                let kind = described(kind.as_deref());
                if folder.is_empty() {
                    write!(formatter, "the name of a file or folder holds {kind}")
                } else {
                    write!(
                        formatter,
                        "in {} the name of a file or folder holds {kind}",
                        code(folder)
                    )
                }
            }
            Self::Secret { path, line, kind } => {
                let kind = described(kind.as_deref());
                if path.is_empty() {
                    write!(formatter, "a commit message holds {kind}")
                } else {
                    write!(formatter, "{}, line {line}, holds {kind}", code(path))
                }
            }
        }
    }
}

fn described(kind: Option<&str>) -> String {
    kind.map_or_else(
        || "a secret value of this program's configuration".to_owned(),
        |kind| format!("what looks like a secret ({kind})"),
    )
}
