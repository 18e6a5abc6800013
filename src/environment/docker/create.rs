//! Describes a container to the engine.

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig};

/// A container to create. What is the same for all containers is not in it: no capability, no new
/// privileges, no mount, namespaces of its own.
#[derive(Debug, Clone)]
pub(crate) struct ContainerSpec {
    pub(crate) image: String,
    /// `None` for the image's own.
    pub(crate) user: Option<String>,
    /// Environment variables as `NAME=value`.
    pub(crate) variables: Vec<String>,
    pub(crate) folder: Option<String>,
    /// `None` for the image's own.
    pub(crate) entrypoint: Option<Vec<String>>,
    /// `None` for the image's own.
    pub(crate) command: Option<Vec<String>>,
    pub(crate) labels: HashMap<String, String>,
    pub(crate) network: ContainerNetwork,
    /// The engine's runtime, if it is not its default.
    pub(crate) runtime: Option<String>,
    pub(crate) limits: Limits,
    /// Maximum size of its log, for a container that writes one.
    pub(crate) log_size: Option<String>,
}

/// The network of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContainerNetwork {
    /// No device except loopback, at which the hosts of these names are reached.
    Loopback { names: Vec<String> },
    /// The engine's usual network.
    Open { names: Vec<String> },
    /// That of the container with this id.
    Of(String),
}

/// Limits of a container; `None` for no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes, with no swap beyond them.
    pub(crate) memory: Option<i64>,
    /// Billionths of a processor.
    pub(crate) nano_cpus: Option<i64>,
    /// Number of processes.
    pub(crate) processes: Option<i64>,
    /// Bytes of the writable layer.
    pub(crate) disk: Option<i64>,
}

/// Sets explicitly whatever an engine or its administrator may have other defaults for.
pub(crate) fn create_body(spec: &ContainerSpec) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        user: spec.user.clone(),
        env: Some(spec.variables.clone()),
        working_dir: spec.folder.clone(),
        entrypoint: spec.entrypoint.clone(),
        cmd: spec.command.clone(),
        labels: Some(spec.labels.clone()),
        host_config: Some(host_config(spec)),
        ..ContainerCreateBody::default()
    }
}

fn host_config(spec: &ContainerSpec) -> HostConfig {
    let limits = &spec.limits;
    let (mode, names) = match &spec.network {
        ContainerNetwork::Loopback { names } => ("none".to_owned(), Some(names)),
        ContainerNetwork::Open { names } => ("bridge".to_owned(), Some(names)),
        ContainerNetwork::Of(container) => (format!("container:{container}"), None),
    };
    let is_apart = matches!(spec.network, ContainerNetwork::Loopback { .. });
    let bounded_log = |size: &String| HostConfigLogConfig {
        typ: Some("json-file".to_owned()),
        config: Some([("max-size".to_owned(), size.clone())].into()),
    };
    HostConfig {
        network_mode: Some(mode),
        // Otherwise the engine would copy the host's name servers and search domains.
        dns: is_apart.then(|| vec!["127.0.0.1".to_owned()]),
        dns_search: is_apart.then(|| vec![".".to_owned()]),
        extra_hosts: names.map(|names| names.iter().map(|name| format!("{name}:127.0.0.1")).collect()),
        log_config: spec.log_size.as_ref().map(bounded_log),
        privileged: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        init: Some(true),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        runtime: spec.runtime.clone(),
        memory: limits.memory,
        // The sum of memory and swap; equal to the memory means no swap.
        memory_swap: limits.memory,
        nano_cpus: limits.nano_cpus,
        pids_limit: limits.processes,
        storage_opt: limits
            .disk
            .map(|size| HashMap::from([("size".to_owned(), size.to_string())])),
        ..HostConfig::default()
    }
}
