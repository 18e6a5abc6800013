//! Describes a container to the engine.

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig};

/// A container to create. What is the same for all containers is not in it: no capability, no new
/// privileges, no mount, namespaces of its own.
#[derive(Debug, Clone)]
pub(crate) struct ContainerSpec {
    pub(crate) image: String,
    /// The user; `None` for the image's own.
    pub(crate) user: Option<String>,
    /// Environment variables as `NAME=value`.
    pub(crate) variables: Vec<String>,
    pub(crate) folder: Option<String>,
    /// The entrypoint; `None` for the image's own.
    pub(crate) entrypoint: Option<Vec<String>>,
    /// The command; `None` for the image's own.
    pub(crate) command: Option<Vec<String>>,
    pub(crate) labels: HashMap<String, String>,
    pub(crate) network: ContainerNetwork,
    /// The engine's runtime, if it is not its default.
    pub(crate) runtime: Option<String>,
    pub(crate) limits: Limits,
    /// True if its first process is attached to. Such a process is an init, so that the engine need
    /// not add one, and what it says is no log.
    pub(crate) is_attached: bool,
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
    /// The network of the container with this id.
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

/// The kind of a limit in [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Limit {
    Processors,
    Memory,
    Processes,
    Disk,
}

impl Limit {
    pub(crate) const ALL: [Self; 4] = [Self::Processors, Self::Memory, Self::Processes, Self::Disk];

    /// Returns the key of the limit in the section `command_executor.resources`.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Processors => "cpu_limit",
            Self::Memory => "memory_limit",
            Self::Processes => "pids_limit",
            Self::Disk => "disk_limit",
        }
    }

    /// Returns the limit that an engine's error message is about. Docker drops limits of memory and
    /// processes by itself, and refuses the others; podman passes on what its runtime says.
    pub(crate) fn complained_of(complaint: &str) -> Option<Self> {
        const WORDS: [(Limit, &[&str]); 4] = [
            (
                Limit::Processors,
                &["nanocpus", "cpu cfs", "cpu.max", "cpu.cfs", "controller `cpu`"],
            ),
            (Limit::Disk, &["storage-opt", "pquota", "quota"]),
            (Limit::Processes, &["pids limit", "pids.max", "controller `pids`"]),
            (
                Limit::Memory,
                &[
                    "memory limit",
                    "swap limit",
                    "memory.max",
                    "memory.limit_in_bytes",
                    "controller `memory`",
                ],
            ),
        ];
        let complaint = complaint.to_ascii_lowercase();
        // This one could be kept, if more were written.
        if complaint.contains("minimum memory limit") {
            return None;
        }
        let is_about = |words: &[&str]| words.iter().any(|word| complaint.contains(word));
        WORDS
            .into_iter()
            .find(|(_, words)| is_about(words))
            .map(|(limit, _)| limit)
    }
}

impl Limits {
    /// Removes one limit; returns false if it was not set.
    pub(crate) fn remove(&mut self, limit: Limit) -> bool {
        match limit {
            Limit::Processors => self.nano_cpus.take().is_some(),
            Limit::Memory => self.memory.take().is_some(),
            Limit::Processes => self.processes.take().is_some(),
            Limit::Disk => self.disk.take().is_some(),
        }
    }
}

/// Returns the request for a container. It sets explicitly whatever an engine or its administrator
/// may have other defaults for.
pub(crate) fn create_body(spec: &ContainerSpec) -> ContainerCreateBody {
    ContainerCreateBody {
        open_stdin: Some(spec.is_attached),
        // Its input ends with the worker that attached.
        stdin_once: Some(spec.is_attached),
        // The kernel gives an init no other signal that it has not asked for.
        stop_signal: spec.is_attached.then(|| "SIGKILL".to_owned()),
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
    let log = |kind: &str, config| HostConfigLogConfig {
        typ: Some(kind.to_owned()),
        config,
    };
    let bounded_log = |size: &String| log("json-file", Some([("max-size".to_owned(), size.clone())].into()));
    let no_log = || spec.is_attached.then(|| log("none", None));
    HostConfig {
        network_mode: Some(mode),
        // Otherwise the engine would copy the host's name servers and search domains.
        dns: is_apart.then(|| vec!["127.0.0.1".to_owned()]),
        dns_search: is_apart.then(|| vec![".".to_owned()]),
        extra_hosts: names.map(|names| names.iter().map(|name| format!("{name}:127.0.0.1")).collect()),
        log_config: spec.log_size.as_ref().map(bounded_log).or_else(no_log),
        privileged: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        init: Some(!spec.is_attached),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_an_engine_refuses_is_known_by_its_words() {
        for (complaint, limit) in [
            (
                "NanoCPUs can not be set, as your kernel does not support CPU CFS scheduler or the cgroup is not mounted",
                Some(Limit::Processors),
            ),
            (
                "--storage-opt is supported only for overlay over xfs with 'pquota' mount option",
                Some(Limit::Disk),
            ),
            (
                "crun: opening file `memory.max` for writing: No such file or directory",
                Some(Limit::Memory),
            ),
            (
                "the requested cgroup controller `cpu` is not available",
                Some(Limit::Processors),
            ),
            ("Minimum memory limit allowed is 6MB", None),
            ("no such image", None),
        ] {
            assert_eq!(Limit::complained_of(complaint), limit, "{complaint}");
        }
    }

    #[test]
    fn a_limit_is_removed_once() {
        let mut limits = Limits {
            disk: Some(1),
            ..Limits::default()
        };
        assert!(limits.remove(Limit::Disk));
        assert!(!limits.remove(Limit::Disk), "there is nothing left to try");
    }
}
