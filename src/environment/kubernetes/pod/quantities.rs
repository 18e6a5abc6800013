//! Requests and limits of a pod's containers, in the units of a cluster.

use serde_json::{Value, json};

use crate::environment::config::Config;
use crate::environment::config::size::parse_size;
use crate::environment::error::EnvironmentError;

/// Returns limits, with requests of the same size: what a run may use is there for it, and no other
/// pod is thrown out for it.
pub(super) fn resources(config: &Config, memory: u64) -> Result<Value, EnvironmentError> {
    let mut limits = json!({
        "cpu": format!("{}m", thousandths(config.resources.cpu_limit)),
        "memory": memory.to_string(),
    });
    if let Some(disk) = disk(config)? {
        limits["ephemeral-storage"] = json!(disk.to_string());
    }
    Ok(same(&limits))
}

pub(super) fn same(limits: &Value) -> Value {
    json!({ "requests": limits, "limits": limits })
}

pub(super) fn disk(config: &Config) -> Result<Option<u64>, EnvironmentError> {
    let limit = Some(&config.resources.disk_limit).filter(|limit| !limit.is_empty());
    limit.map(|limit| bytes("resources.disk_limit", limit)).transpose()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a thousand times the processors of any machine fits, and none has fewer than none"
)]
pub(super) fn thousandths(processors: f64) -> u64 {
    ((processors * 1_000.0) as u64).max(1)
}

/// Parses a size; fails only if the configuration was not validated.
pub(super) fn bytes(key: &str, text: &str) -> Result<u64, EnvironmentError> {
    parse_size(text).map_err(|reason| EnvironmentError::Unexpected {
        what: format!("command_executor.{key}"),
        reason,
    })
}
