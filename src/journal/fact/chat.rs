//! Facts about a message in a messenger.

use serde::{Deserialize, Serialize};

/// The decision about a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedRoute {
    pub session: String,
    pub messenger: String,
    pub route: String,
    /// `command`, `rule`, `classifier`, `fallback` or `entry`.
    pub source: String,
    /// Confidence, in percent.
    pub confidence: u8,
    pub reason: String,
    pub evidence: Vec<String>,
    #[serde(rename = "near_only")]
    pub local_only: bool,
    /// Whether nothing was done, because the route needs models elsewhere.
    pub is_refused: bool,
    pub classifier_route: String,
    pub classifier_confidence: Option<u8>,
}

/// A change to another route than the one that was decided on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherRoute {
    pub session: String,
    pub from: String,
    pub to: String,
    pub reason: String,
}

/// The end of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRoute {
    pub session: String,
    pub initial_route: String,
    pub final_route: String,
    pub classifier_route: String,
    pub classifier_confidence: Option<u8>,
    pub worker_calls: u32,
    pub needs_next_loop: bool,
    pub risk: String,
    pub fit: Option<bool>,
    pub reroute_used: bool,
    pub stop_reason: String,
    pub error_reason: String,
    pub milliseconds: u64,
}

/// A worker's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerAnswer {
    pub session: String,
    pub route: String,
    /// Confidence, in percent.
    pub confidence: u8,
    pub risk: String,
    pub needs_next_loop: bool,
    pub fit: Option<bool>,
    pub milliseconds: u64,
}

/// A worker without an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoWorkerAnswer {
    pub session: String,
    pub route: String,
    pub reason: String,
}
