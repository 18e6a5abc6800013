//! Resource limits of a container.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::size::{fault_of_memory, parse_size};

/// Limits of each container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "these are the keys of the configuration")]
pub struct Resources {
    /// Number of processors, e.g. 2 or 0.5; never more than the engine has.
    pub cpu_limit: f64,
    /// Memory, e.g. `4g`, `512m`; there is no swap beyond it.
    pub memory_limit: String,
    /// Most processes and threads at a time, at least 8.
    pub pids_limit: i64,
    /// Size of the container's writable layer, e.g. `20g`, if the storage driver can limit it;
    /// empty for no limit.
    pub disk_limit: String,
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            cpu_limit: 2.0,
            memory_limit: "4g".to_owned(),
            pids_limit: 512,
            disk_limit: String::new(),
        }
    }
}

impl Resources {
    /// Returns a sentence per fault, each beginning with its key.
    pub(crate) fn validate(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.cpu_limit.is_finite() || self.cpu_limit < 0.01 {
            faults.push(format!(
                "resources.cpu_limit: {} is not a number of processors; write at least 0.01",
                self.cpu_limit
            ));
        }
        if let Some(fault) = fault_of_memory(&self.memory_limit) {
            faults.push(format!("resources.memory_limit: {fault}"));
        }
        if self.pids_limit < 8 {
            faults.push(format!(
                "resources.pids_limit: {} is too few to run a command; write at least 8",
                self.pids_limit
            ));
        }
        if !self.disk_limit.is_empty()
            && let Err(reason) = parse_size(&self.disk_limit)
        {
            faults.push(format!("resources.disk_limit: {reason}"));
        }
        faults
    }
}
