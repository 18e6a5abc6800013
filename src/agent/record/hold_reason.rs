//! Reasons why a result is not delivered without a person's approval.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::approval::extent::rank;
use crate::markdown::code::code;
use crate::plain::{agreeing, counted};

/// A reason why a result is not pushed without approval. It never contains the secret itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum HoldReason {
    /// The review was not passed, for this reason.
    Unready { why: String },
    /// The path matches `git.protected_paths`.
    Protected { path: String },
    /// A line looks like a secret; `path` is empty for the message of a commit.
    Secret {
        path: String,
        /// Line number, from 1.
        line: usize,
        /// Kind of secret, such as `github-token`; `None` for one from the configuration.
        kind: Option<String>,
    },
    /// The name of a file or folder looks like a secret; `folder` is its parent, empty for the
    /// root.
    Name { folder: String, kind: Option<String> },
    /// The configuration has every result wait.
    Always,
}

/// Maximum number of reasons that are listed one by one.
const MOST_SHOWN: usize = 20;

/// All reasons against pushing a result: the first ones listed, the others only counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HoldReasons {
    pub shown: Vec<HoldReason>,
    pub more: Unlisted,
}

/// Number of reasons that are not listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unlisted {
    pub protected: usize,
    pub secrets: usize,
}

impl HoldReasons {
    /// Sorts the reasons: first files that a forge would run by itself, then secrets.
    pub fn of(mut all: Vec<HoldReason>) -> Self {
        all.sort_by_cached_key(|objection| (objection.order(), objection.clone()));
        let rest = all.split_off(all.len().min(MOST_SHOWN));
        let protected = rest
            .iter()
            .filter(|objection| matches!(objection, HoldReason::Protected { .. }));
        let protected = protected.count();
        Self {
            shown: all,
            more: Unlisted {
                protected,
                secrets: rest.len() - protected,
            },
        }
    }

    /// Adds a reason that is none of what was found in the result.
    #[must_use]
    pub fn with(mut self, reason: HoldReason) -> Self {
        self.shown.push(reason);
        self
    }

    /// Returns one line for each listed reason, and one that counts the others.
    pub fn lines(&self) -> Vec<String> {
        let shown = self.shown.iter().map(ToString::to_string);
        shown.chain(self.more.said()).collect()
    }
}

impl Unlisted {
    /// Returns the text that counts the unlisted reasons; `None` if there are none.
    pub fn said(self) -> Option<String> {
        let Self { protected, secrets } = self;
        let look = agreeing(secrets, "looks like a secret", "look like secrets");
        let parts = [
            (protected > 0).then(|| counted(protected, "more protected file")),
            (secrets > 0).then(|| format!("{} that {look}", counted(secrets, "more place"))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("and {}", parts.join(" and ")))
    }
}

impl HoldReason {
    /// Returns the path of the file, if the reason is about a file's content or path.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Protected { path } | Self::Secret { path, .. } if !path.is_empty() => Some(path),
            Self::Unready { .. } | Self::Protected { .. } | Self::Secret { .. } | Self::Name { .. } | Self::Always => {
                None
            }
        }
    }

    fn order(&self) -> u8 {
        match self {
            Self::Unready { .. } => 0,
            Self::Protected { path } => rank(path) * 2,
            Self::Secret { .. } | Self::Name { .. } | Self::Always => 1,
        }
    }

    /// Returns the name of the violated rule, for the journal.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Unready { .. } => "review",
            Self::Protected { .. } => "protected_path",
            Self::Secret { .. } | Self::Name { .. } => "secret",
            Self::Always => "approval",
        }
    }
}

/// Formats the reason as Markdown with all names escaped.
impl fmt::Display for HoldReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unready { why } => write!(formatter, "it did not pass its review: {why}"),
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
            Self::Always => formatter.write_str("every result waits, as the configuration says (`approval.result`)"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_harmless_objections_do_not_hide_a_pipeline() {
        let protected = |path: String| HoldReason::Protected { path };
        let mut all: Vec<_> = (0..25)
            .map(|number| protected(format!(".a/{number:02}/AGENTS.md")))
            .collect();
        all.push(protected(".gitlab-ci.yml".to_owned()));
        all.push(HoldReason::Secret {
            path: "z.txt".to_owned(),
            line: 1,
            kind: None,
        });
        let objections = HoldReasons::of(all);
        let paths: Vec<_> = objections.shown.iter().filter_map(HoldReason::path).collect();
        assert_eq!(paths[..3], [".gitlab-ci.yml", "z.txt", ".a/00/AGENTS.md"]);
        assert_eq!(objections.lines().last().unwrap(), "and 7 more protected files");
        assert_eq!(objections.lines().len(), 21);
    }
}
