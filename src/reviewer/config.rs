//! The section `review` of the configuration.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::review::Mode;

/// The longest time-out of a review.
pub const LONGEST_SECONDS: u64 = 1_800;

/// Reviews by a second model: the one that has the role `reviewer`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Plans, before they are carried out.
    pub plan: PlanReview,
    /// Results, before they are delivered.
    pub result: ResultReview,
    /// How answers are read: `flexible` finds JSON, headings and labels, `strict` wants JSON alone.
    pub mode: Mode,
    /// The reviewer's prompt, a file in which `{{document_content}}` stands for the document.
    pub prompt_file: Option<PathBuf>,
    /// How long one answer may take, at most 1800.
    pub timeout_seconds: u64,
}

/// The review of plans.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PlanReview {
    /// Whether plans are reviewed.
    pub enabled: bool,
    /// The least score, from 0 to 10, with which a plan passes.
    pub target_score: f64,
    /// How often a plan is reviewed.
    pub max_rounds: usize,
    /// The action if the plan still has not passed after the last round: people are asked, the run
    /// fails, or the plan is carried out and the comment says so.
    pub on_unready: OnUnreadyPlan,
}

/// The review of results.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResultReview {
    /// Whether results are reviewed.
    pub enabled: bool,
    /// The least score, from 0 to 10, with which a result passes.
    pub target_score: f64,
    /// How often a result is reviewed.
    pub max_rounds: usize,
    /// The action if the result still has not passed after the last round: it is delivered as a
    /// draft that says so, people are asked, or the run fails.
    pub on_unready: OnUnreadyResult,
}

/// The action after a plan that did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnUnreadyPlan {
    /// People are asked.
    Ask,
    /// The run fails.
    Fail,
    /// It is carried out, and the comment says so.
    Proceed,
}

/// The action after a result that did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnUnreadyResult {
    /// It is delivered as a draft that says so.
    Draft,
    /// People are asked.
    Ask,
    /// The run fails.
    Fail,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            plan: PlanReview::default(),
            result: ResultReview::default(),
            mode: Mode::Flexible,
            prompt_file: None,
            timeout_seconds: 300,
        }
    }
}

impl Default for PlanReview {
    fn default() -> Self {
        Self {
            enabled: false,
            target_score: 8.0,
            max_rounds: 5,
            on_unready: OnUnreadyPlan::Ask,
        }
    }
}

impl Default for ResultReview {
    fn default() -> Self {
        Self {
            enabled: false,
            target_score: 8.0,
            max_rounds: 2,
            on_unready: OnUnreadyResult::Draft,
        }
    }
}
