//! The section `approval` of the configuration: what waits for a person, and what need not.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The steps that people are asked to allow before the program goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Short for `plan: true` and `result: always` where these are left out.
    pub required_by_default: bool,
    /// Whether every plan waits before it is carried out; false if left out.
    pub plan: Option<bool>,
    /// The results that wait before they are delivered; `guarded` if left out.
    pub result: Option<Results>,
    /// The limits of automatic approval, which passes runs without a person while an operator has
    /// switched it on.
    pub auto_approve: AutoApprove,
    /// Operations that a person must allow even while automatic approval is switched on.
    pub hard_require: BTreeSet<Operation>,
    /// Number of existing files above which their change is a broad overwrite.
    pub broad_overwrite_files: usize,
    /// Number of lines removed from existing files above which their change is a broad overwrite.
    pub broad_overwrite_lines: u64,
    /// Cost in US dollars above which a plan waits for a person, by its estimate; needs prices.
    pub cost_limit_usd: Option<f64>,
}

/// The results that wait for a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Results {
    /// Those with a secret or a change of a protected file.
    #[default]
    Guarded,
    /// All that would be pushed.
    Always,
}

/// The most that automatic approval may pass, and for how long. It is started on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AutoApprove {
    /// Whether automatic approval may be switched on at all.
    pub enabled: bool,
    /// Kinds of tasks whose results may pass.
    pub task_types: BTreeSet<TaskType>,
    /// Tools of MCP servers, as `server/tool`, that the work may have used.
    pub tools: BTreeSet<String>,
    /// Beginnings of the paths, from the top of the repository, that a result may touch.
    pub allowed_paths_prefix: Vec<String>,
    /// Operations that never pass.
    pub deny_operations: BTreeSet<Operation>,
    /// Most minutes for which it can be switched on.
    pub ttl_minutes: u32,
}

/// A kind of task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskType {
    Issue,
    /// A pull/merge request.
    Change,
    /// A task from the command line.
    Local,
}

/// An operation of a result that may need a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A file is deleted.
    Delete,
    /// A file has another path.
    Rename,
    /// Many existing files, or many lines of them, are replaced.
    BroadOverwrite,
    /// Something that looks like a secret would leave the worker.
    SendSensitive,
    /// Everybody can read what would be pushed.
    PushPublic,
    /// The run has cost more than `cost_limit_usd`.
    CostOverLimit,
}

impl Operation {
    pub const ALL: [Self; 6] = [
        Self::Delete,
        Self::Rename,
        Self::BroadOverwrite,
        Self::SendSensitive,
        Self::PushPublic,
        Self::CostOverLimit,
    ];
}

impl Config {
    /// Returns true if every plan waits for a person.
    pub fn asks_for_plans(&self) -> bool {
        self.plan.unwrap_or(self.required_by_default)
    }

    /// Returns which results wait for a person.
    pub fn results(&self) -> Results {
        let usual = if self.required_by_default {
            Results::Always
        } else {
            Results::Guarded
        };
        self.result.unwrap_or(usual)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            required_by_default: false,
            plan: None,
            result: None,
            auto_approve: AutoApprove::default(),
            hard_require: Operation::ALL.into(),
            broad_overwrite_files: 20,
            broad_overwrite_lines: 500,
            cost_limit_usd: None,
        }
    }
}

impl Default for AutoApprove {
    fn default() -> Self {
        Self {
            enabled: false,
            task_types: [TaskType::Issue, TaskType::Change, TaskType::Local].into(),
            tools: BTreeSet::new(),
            allowed_paths_prefix: vec!["docs/".to_owned()],
            deny_operations: [Operation::Delete, Operation::Rename, Operation::PushPublic].into(),
            ttl_minutes: 60,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_follows_the_short_form_and_what_is_given_does_not() {
        let config = |required_by_default, plan, result| Config {
            required_by_default,
            plan,
            result,
            ..Config::default()
        };
        for (config, plans, results) in [
            (config(false, None, None), false, Results::Guarded),
            (config(true, None, None), true, Results::Always),
            (config(true, Some(false), None), false, Results::Always),
            (config(true, None, Some(Results::Guarded)), true, Results::Guarded),
            (config(false, Some(true), Some(Results::Always)), true, Results::Always),
        ] {
            assert_eq!(
                (config.asks_for_plans(), config.results()),
                (plans, results),
                "{config:?}"
            );
        }
    }
}
