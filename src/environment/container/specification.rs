//! Describes containers, as pure functions of the configuration.

use std::collections::HashMap;

use uuid::Uuid;

use super::name::{LABEL_INSTANCE, LABEL_NETWORK, LABEL_RUN, LABEL_SERVICE, LABEL_TASK, LABEL_WARM};
use super::user::User;
use super::{certificates, way_out};
use crate::environment::config::service::Service;
use crate::environment::config::size::parse_size;
use crate::environment::config::{Config, NetworkMode};
use crate::environment::docker::{ContainerNetwork, ContainerSpec, EngineInfo, Limits};
use crate::environment::error::EnvironmentError;
use crate::environment::processes::{EXECUTOR, WORKSPACE};
use crate::task::id::{RunId, TaskId};

/// Maximum size of a service's log. The main container logs nothing, but a service may write for
/// hours.
const SERVICE_LOG: &str = "4m";

/// Properties of one container that are not in the configuration.
pub(crate) struct ContainerRequest<'a> {
    pub(crate) holder: Holder<'a>,
    pub(crate) instance: &'a str,
    pub(crate) image: &'a str,
    pub(crate) user: &'a User,
    /// The image's environment variables, as `NAME=value`.
    pub(crate) image_variables: &'a [String],
    /// The names of its services.
    pub(crate) services: Vec<&'a str>,
}

/// The run that a container is started for, or none.
#[derive(Clone, Copy)]
pub(crate) enum Holder<'a> {
    Run(&'a TaskId, RunId),
    /// No run yet: the container waits in this worker's warm pool.
    Nobody(Uuid),
}

/// Describes a container whose first process is the executor: it does what a run needs from the
/// beginning; all other work runs as attached processes.
pub(crate) fn container(
    config: &Config,
    engine: &EngineInfo,
    request: &ContainerRequest<'_>,
) -> Result<ContainerSpec, EnvironmentError> {
    let mut labels = labels(request);
    labels.insert(LABEL_NETWORK.to_owned(), network(config).to_owned());
    let names = request.services.iter().map(|name| (*name).to_owned()).collect();
    let memory = ("resources.memory_limit", config.resources.memory_limit.as_str());
    Ok(ContainerSpec {
        image: request.image.to_owned(),
        user: Some(request.user.name.clone()),
        variables: variables(config, request),
        folder: Some(WORKSPACE.to_owned()),
        entrypoint: Some(vec![EXECUTOR.to_owned()]),
        command: Some(vec!["init".to_owned()]),
        labels,
        network: match config.network.mode {
            NetworkMode::Open => ContainerNetwork::Open { names },
            // The way out is a stream of an attached process, not a network device.
            NetworkMode::Allowlist | NetworkMode::None => ContainerNetwork::Loopback { names },
        },
        runtime: runtime(config),
        limits: limits(config, engine, memory)?,
        is_attached: true,
        log_size: None,
    })
}

/// Returns the network mode as in [`LABEL_NETWORK`].
pub(crate) fn network(config: &Config) -> &'static str {
    match config.network.mode {
        NetworkMode::Allowlist => "allowlist",
        NetworkMode::None => "none",
        NetworkMode::Open => "open",
    }
}

/// Describes a service in the network of the container `main`, with the same restrictions.
pub(crate) fn service_container(
    config: &Config,
    engine: &EngineInfo,
    request: &ContainerRequest<'_>,
    main: &str,
    (name, service): (&str, &Service),
) -> Result<ContainerSpec, EnvironmentError> {
    let mut labels = labels(request);
    labels.insert(LABEL_SERVICE.to_owned(), name.to_owned());
    let key = format!("services.{name}.memory_limit");
    let variables = service.env.iter().map(|(name, value)| format!("{name}={value}"));
    Ok(ContainerSpec {
        image: service.image.clone(),
        user: Some(service.user.clone().unwrap_or_else(|| request.user.name.clone())),
        variables: variables.collect(),
        folder: None,
        entrypoint: service.entrypoint.clone(),
        command: service.command.clone(),
        labels,
        network: ContainerNetwork::Of(main.to_owned()),
        runtime: runtime(config),
        limits: limits(config, engine, (&key, &service.memory_limit))?,
        is_attached: false,
        log_size: Some(SERVICE_LOG.to_owned()),
    })
}

fn labels(request: &ContainerRequest<'_>) -> HashMap<String, String> {
    let mut labels = vec![(LABEL_INSTANCE, request.instance.to_owned())];
    match request.holder {
        Holder::Run(task, run) => labels.extend([(LABEL_TASK, task.to_string()), (LABEL_RUN, run.to_string())]),
        Holder::Nobody(worker) => labels.push((LABEL_WARM, worker.to_string())),
    }
    labels
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Returns the environment variables of the container, without the image's own.
fn variables(config: &Config, request: &ContainerRequest<'_>) -> Vec<String> {
    let mut variables = Vec::new();
    if request.user.is_foreign {
        // The image has no home directory for a user that it does not know.
        variables.push(format!("HOME={WORKSPACE}"));
    }
    if config.network.mode == NetworkMode::Allowlist {
        variables.extend(way_out::variables(request.image_variables, &request.services));
    }
    variables.extend(certificates::variables(&config.trust, request.image_variables));
    variables
}

fn runtime(config: &Config) -> Option<String> {
    Some(config.runtime.clone()).filter(|runtime| !runtime.is_empty())
}

/// Returns the limits of a container.
fn limits(config: &Config, engine: &EngineInfo, memory: (&str, &str)) -> Result<Limits, EnvironmentError> {
    let resources = &config.resources;
    let disk = Some(&resources.disk_limit).filter(|limit| !limit.is_empty());
    let mut limits = Limits {
        memory: Some(bytes(memory.0, memory.1)?),
        nano_cpus: Some(nano_processors(resources.cpu_limit, engine.processors)),
        processes: Some(resources.pids_limit),
        disk: disk.map(|limit| bytes("resources.disk_limit", limit)).transpose()?,
    };
    for limit in &engine.unlimited {
        limits.remove(*limit);
    }
    Ok(limits)
}

/// Caps the processors at the engine's, which refuses more: the default must work on a machine with
/// one.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a billion times the processors of any machine fits"
)]
fn nano_processors(wanted: f64, available: Option<i64>) -> i64 {
    let nano = (wanted * 1e9) as i64;
    available.map_or(nano, |processors| nano.min(processors.saturating_mul(1_000_000_000)))
}

/// Parses a size; fails only if the configuration was not validated.
fn bytes(key: &str, text: &str) -> Result<i64, EnvironmentError> {
    parse_size(text)
        .and_then(|bytes| i64::try_from(bytes).map_err(|error| error.to_string()))
        .map_err(|reason| EnvironmentError::Unexpected {
            what: format!("command_executor.{key}"),
            reason,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::container::user;
    use crate::environment::docker::{Limit, create_body};

    fn engine(processors: i64, can_limit_disk: bool) -> EngineInfo {
        EngineInfo {
            description: String::new(),
            processors: Some(processors),
            unlimited: if can_limit_disk { Vec::new() } else { vec![Limit::Disk] },
            architecture: String::new(),
            runtimes: Vec::new(),
        }
    }

    #[test]
    fn a_container_has_every_limit_and_no_way_out() {
        let mut config = Config::default();
        config.network.mode = NetworkMode::None;
        config.resources.disk_limit = "20g".to_owned();
        let task = "github:owner/repo#12".parse().unwrap();
        let request = ContainerRequest {
            holder: Holder::Run(&task, "019aa6b2-0000-7000-8000-000000000000".parse().unwrap()),
            instance: "here",
            image: "image:1",
            user: &user::of_image(""),
            image_variables: &[],
            services: Vec::new(),
        };
        let spec = container(&config, &engine(8, true), &request).unwrap();
        // Through a JSON value, which sorts the labels.
        let body = serde_json::to_value(create_body(&spec)).unwrap();
        insta::assert_json_snapshot!(body, @r#"
        {
          "Cmd": [
            "init"
          ],
          "Entrypoint": [
            "/usr/local/bin/coding-agent-executor"
          ],
          "Env": [
            "HOME=/workspace"
          ],
          "HostConfig": {
            "CapDrop": [
              "ALL"
            ],
            "CgroupnsMode": "private",
            "Dns": [
              "127.0.0.1"
            ],
            "DnsSearch": [
              "."
            ],
            "ExtraHosts": [],
            "Init": false,
            "IpcMode": "private",
            "LogConfig": {
              "Type": "none"
            },
            "Memory": 4294967296,
            "MemorySwap": 4294967296,
            "NanoCpus": 2000000000,
            "NetworkMode": "none",
            "PidsLimit": 512,
            "Privileged": false,
            "SecurityOpt": [
              "no-new-privileges"
            ],
            "StorageOpt": {
              "size": "21474836480"
            }
          },
          "Image": "image:1",
          "Labels": {
            "coding-agent.instance": "here",
            "coding-agent.network": "none",
            "coding-agent.run": "019aa6b2-0000-7000-8000-000000000000",
            "coding-agent.task": "github:owner/repo#12"
          },
          "OpenStdin": true,
          "StdinOnce": true,
          "StopSignal": "SIGKILL",
          "User": "1000:1000",
          "WorkingDir": "/workspace"
        }
        "#);
    }

    #[test]
    fn a_limit_that_the_engine_cannot_keep_is_left_out() {
        let mut config = Config::default();
        config.resources.disk_limit = "20g".to_owned();
        let limits = limits(&config, &engine(1, false), ("x", "1g")).unwrap();
        assert_eq!(limits.disk, None);
        assert_eq!(limits.nano_cpus, Some(1_000_000_000));
    }
}
