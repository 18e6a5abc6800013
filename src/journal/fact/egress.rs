//! Facts about what programs in containers reach.

use serde::{Deserialize, Serialize};

/// A host that a program may not reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub host: String,
    pub port: u16,
    pub reason: String,
}

/// Connections to a host that programs may reach. `sent` and `received` are bytes, as the container
/// sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    pub host: String,
    pub port: u16,
    pub connections: u64,
    pub sent: u64,
    pub received: u64,
}
