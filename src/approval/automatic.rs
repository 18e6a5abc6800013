//! Whether a result may pass without a person: a decision over what git and the program itself know
//! of it.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};

use super::config::{Config, Operation, TaskType};
use super::difference::{Circumstances, Difference};

/// Automatic approval as an operator has switched it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    pub by: String,
    pub until: DateTime<Utc>,
}

/// A result that waits.
#[derive(Debug, Clone)]
pub struct WaitingResult<'a> {
    pub task: TaskType,
    /// Tools of MCP servers that the work used.
    pub tools: &'a BTreeSet<String>,
    pub difference: &'a Difference,
    pub circumstances: Circumstances,
    /// Whether the result waits for another reason than that all do: a protected file, say.
    pub is_held: bool,
}

/// Why a result does not pass by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    NotEnabled,
    Held,
    Task(TaskType),
    Tool(String),
    Operation(Operation),
    Path(String),
    Special(String),
}

/// Most obstacles of one kind that are listed.
const MOST: usize = 5;

/// Returns all that stands against passing a result without a person; it passes if there is
/// nothing.
pub fn obstacles(config: &Config, result: &WaitingResult<'_>) -> Vec<Obstacle> {
    let auto = &config.auto_approve;
    if !auto.enabled {
        return vec![Obstacle::NotEnabled];
    }
    let mut found = Vec::new();
    if result.is_held {
        found.push(Obstacle::Held);
    }
    if !auto.task_types.contains(&result.task) {
        found.push(Obstacle::Task(result.task));
    }
    let tools = result.tools.difference(&auto.tools);
    found.extend(tools.take(MOST).cloned().map(Obstacle::Tool));
    let operations = result.difference.operations(config, result.circumstances);
    let is_refused =
        |operation: &Operation| config.hard_require.contains(operation) || auto.deny_operations.contains(operation);
    found.extend(operations.into_iter().filter(is_refused).map(Obstacle::Operation));
    let is_allowed = |path: &str| {
        let prefixes = &auto.allowed_paths_prefix;
        prefixes
            .iter()
            .any(|prefix| !prefix.is_empty() && path.starts_with(prefix.as_str()))
    };
    let outside = result.difference.paths().into_iter().filter(|path| !is_allowed(path));
    found.extend(outside.take(MOST).map(|path| Obstacle::Path(path.to_owned())));
    let special = result.difference.special().into_iter();
    found.extend(special.take(MOST).map(|path| Obstacle::Special(path.to_owned())));
    found
}

impl Started {
    /// Returns true if it is still on.
    pub fn is_on(&self, now: DateTime<Utc>) -> bool {
        now < self.until
    }
}

impl Operation {
    /// Returns what a result does, as part of a sentence.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Delete => "a file is deleted (`delete`)",
            Self::Rename => "a file is renamed (`rename`)",
            Self::BroadOverwrite => "much of what exists is overwritten (`broad_overwrite`)",
            Self::SendSensitive => "something looks like a secret (`send_sensitive`)",
            Self::PushPublic => "the repository is public (`push_public`)",
            Self::CostOverLimit => "the run cost more than `approval.cost_limit_usd` (`cost_over_limit`)",
        }
    }
}

/// Writes the obstacle without the path or tool, which are others' words.
impl fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotEnabled => "`approval.auto_approve.enabled` is false",
            Self::Held => "a person must look at what is named above",
            Self::Task(_) => "tasks of this kind are not among `task_types`",
            Self::Tool(_) => "a tool was used that is not among `tools`",
            Self::Operation(operation) => operation.in_words(),
            Self::Path(_) => "a path is outside of `allowed_paths_prefix`",
            Self::Special(_) => "there is a link or another repository",
        })
    }
}

impl Obstacle {
    /// Returns the path or the tool that it is about.
    pub fn about(&self) -> Option<&str> {
        match self {
            Self::Tool(name) | Self::Path(name) | Self::Special(name) => Some(name),
            Self::NotEnabled | Self::Held | Self::Task(_) | Self::Operation(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::config::AutoApprove;
    use crate::approval::difference::{Change, Kind};
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = Kind> {
        prop_oneof![
            Just(Kind::Added),
            Just(Kind::Modified),
            Just(Kind::Deleted),
            Just(Kind::Renamed),
            Just(Kind::Retyped),
        ]
    }

    fn paths() -> impl Strategy<Value = String> {
        prop_oneof![
            "docs/[a-c]{1,2}",
            "src/[a-c]{1,2}",
            Just("docs".to_owned()),
            Just("Docs/a".to_owned()),
            Just("documents".to_owned()),
            Just(".github/workflows/ci.yml".to_owned()),
        ]
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let change = (kinds(), paths(), paths(), any::<bool>()).prop_map(|(kind, path, from, is_file)| Change {
            from: (kind == Kind::Renamed).then_some(from),
            kind,
            path,
            is_file,
        });
        proptest::collection::vec(change, 0..4)
    }

    fn differences() -> impl Strategy<Value = Difference> {
        (changes(), changes(), 0_u64..20).prop_map(|(changes, steps, lines)| Difference {
            removed: changes.iter().map(|change| (change.path.clone(), lines)).collect(),
            changes,
            steps,
        })
    }

    fn operations() -> impl Strategy<Value = BTreeSet<Operation>> {
        proptest::collection::btree_set(proptest::sample::select(Operation::ALL.to_vec()), 0..=6)
    }

    fn task_types() -> impl Strategy<Value = TaskType> {
        proptest::sample::select(vec![TaskType::Issue, TaskType::Change, TaskType::Local])
    }

    fn tools() -> impl Strategy<Value = BTreeSet<String>> {
        let names = proptest::sample::select(vec!["time/now".to_owned(), "web/get".to_owned()]);
        proptest::collection::btree_set(names, 0..=2)
    }

    fn prefixes() -> impl Strategy<Value = Vec<String>> {
        let prefix = proptest::sample::select(vec!["docs/", "src/", "docs", "src/a", ""]).prop_map(str::to_owned);
        proptest::collection::vec(prefix, 0..3)
    }

    fn configs() -> impl Strategy<Value = Config> {
        let auto = (
            any::<bool>(),
            proptest::collection::btree_set(task_types(), 0..=3),
            tools(),
            prefixes(),
            operations(),
        );
        (auto, operations(), 0_usize..4, 0_u64..30).prop_map(|(auto, hard_require, files, lines)| {
            let (enabled, task_types, tools, allowed_paths_prefix, deny_operations) = auto;
            Config {
                auto_approve: AutoApprove {
                    enabled,
                    task_types,
                    tools,
                    allowed_paths_prefix,
                    deny_operations,
                    ttl_minutes: 60,
                },
                hard_require,
                broad_overwrite_files: files,
                broad_overwrite_lines: lines,
                ..Config::default()
            }
        })
    }

    fn circumstances() -> impl Strategy<Value = Circumstances> {
        any::<[bool; 3]>().prop_map(|[has_secrets, is_public, is_over_cost_limit]| Circumstances {
            has_secrets,
            is_public,
            is_over_cost_limit,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        /// Written anew from the words of the configuration, not by calling what decides.
        #[test]
        fn nothing_passes_outside_the_scope_or_in_what_a_person_must_allow(
            config in configs(),
            difference in differences(),
            circumstances in circumstances(),
            used in tools(),
            task in task_types(),
            is_held in any::<bool>(),
        ) {
            let result = WaitingResult { task, tools: &used, difference: &difference, circumstances, is_held };
            if !obstacles(&config, &result).is_empty() {
                return Ok(());
            }
            let auto = &config.auto_approve;
            prop_assert!(auto.enabled && !is_held && auto.task_types.contains(&task));
            prop_assert!(used.is_subset(&auto.tools));
            let refused = |operation| config.hard_require.contains(&operation)
                || auto.deny_operations.contains(&operation);
            for change in difference.changes.iter().chain(&difference.steps) {
                prop_assert!(change.is_file && change.kind != Kind::Retyped);
                for path in [Some(&change.path), change.from.as_ref()].into_iter().flatten() {
                    prop_assert!(auto.allowed_paths_prefix.iter().any(|prefix| {
                        !prefix.is_empty() && path.starts_with(prefix)
                    }), "{path}");
                }
            }
            let mut existing = 0;
            for change in &difference.changes {
                match change.kind {
                    Kind::Deleted => prop_assert!(!refused(Operation::Delete)),
                    Kind::Renamed => prop_assert!(!refused(Operation::Rename) && !refused(Operation::Delete)),
                    Kind::Added | Kind::Modified | Kind::Retyped => {}
                }
                existing += usize::from(change.kind != Kind::Added);
            }
            if existing > config.broad_overwrite_files
                || difference.removed.values().sum::<u64>() > config.broad_overwrite_lines
            {
                prop_assert!(!refused(Operation::BroadOverwrite));
            }
            prop_assert!(!(circumstances.has_secrets && refused(Operation::SendSensitive)));
            prop_assert!(!(circumstances.is_public && refused(Operation::PushPublic)));
            prop_assert!(!(circumstances.is_over_cost_limit && refused(Operation::CostOverLimit)));
        }
    }

    #[test]
    fn a_change_of_documents_passes_the_usual_scope_and_each_obstacle_is_named() {
        let mut config = Config::default();
        config.auto_approve.enabled = true;
        let change = |path: &str| Change {
            kind: Kind::Modified,
            path: path.to_owned(),
            from: None,
            is_file: true,
        };
        let difference = |paths: &[&str]| Difference {
            changes: paths.iter().map(|path| change(path)).collect(),
            ..Difference::default()
        };
        let found = |config: &Config, paths: &[&str], tools: &[&str]| {
            let result = WaitingResult {
                task: TaskType::Issue,
                tools: &tools.iter().map(|tool| (*tool).to_owned()).collect(),
                difference: &difference(paths),
                circumstances: Circumstances::default(),
                is_held: false,
            };
            obstacles(config, &result)
        };
        assert_eq!(found(&config, &["docs/a.md"], &[]), []);
        assert_eq!(
            found(&config, &["docs/a.md", "src/a.rs"], &["web/get"]),
            [
                Obstacle::Tool("web/get".to_owned()),
                Obstacle::Path("src/a.rs".to_owned())
            ]
        );
        assert_eq!(found(&Config::default(), &["docs/a.md"], &[]), [Obstacle::NotEnabled]);
        config.auto_approve.task_types.clear();
        assert_eq!(found(&config, &["docs/a.md"], &[]), [Obstacle::Task(TaskType::Issue)]);
    }
}
