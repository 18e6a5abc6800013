//! Describes containers to the engine, as pure functions of the configuration.

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig};

use uuid::Uuid;

use super::engine::Facts;
use super::service::Service;
use super::size::parse_size;
use super::user::User;
use super::{Config, EnvironmentError, NetworkMode, way_out};
use crate::task::id::{RunId, TaskId};

pub(super) const LABEL_TASK: &str = "coding-agent.task";
pub(super) const LABEL_RUN: &str = "coding-agent.run";
/// Label with the installation: several may use one engine, and none may sweep another's
/// containers.
pub(super) const LABEL_INSTANCE: &str = "coding-agent.instance";

pub(super) const WORKSPACE: &str = "/workspace";
/// Path of the executor in every container.
pub const EXECUTOR: &str = "/usr/local/bin/coding-agent-executor";

/// Label with the network mode; a container with another mode than configured is not resumed.
pub(super) const LABEL_NETWORK: &str = "coding-agent.network";
/// Label with the service's name, on service containers.
pub(super) const LABEL_SERVICE: &str = "coding-agent.service";

/// Label with the worker, on containers of a warm pool. Labels cannot be changed when such a
/// container gets its run: from then on only its name identifies the run.
pub(super) const LABEL_WARM: &str = "coding-agent.warm";

/// Prefix of every container's name.
const PREFIX: &str = "coding-agent-";
/// Second prefix in the name of a container for checks. It is in the name because a container from
/// the warm pool cannot get another label.
const CHECKS: &str = "checks-";

/// What a run uses a container for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The model works in it.
    Work,
    /// The result is checked in it.
    Checks,
}

/// Properties of one container that are not in the configuration.
pub(super) struct Order<'a> {
    pub(super) holder: Holder<'a>,
    pub(super) instance: &'a str,
    pub(super) image: &'a str,
    pub(super) user: &'a User,
    /// The image's environment variables, as `NAME=value`.
    pub(super) image_variables: &'a [String],
    /// The names of its services.
    pub(super) services: Vec<&'a str>,
}

/// The run that a container is started for, or none.
#[derive(Clone, Copy)]
pub(super) enum Holder<'a> {
    Run(&'a TaskId, RunId),
    /// No run yet: it waits in this worker's warm pool.
    Nobody(Uuid),
}

pub(super) fn container_name(run: RunId, purpose: Purpose) -> String {
    match purpose {
        Purpose::Work => format!("{PREFIX}{run}"),
        Purpose::Checks => format!("{PREFIX}{CHECKS}{run}"),
    }
}

/// Returns the run that the container with this name belongs to.
pub(super) fn run_of_name(name: &str) -> Option<RunId> {
    let name = name.strip_prefix(PREFIX)?;
    name.strip_prefix(CHECKS).unwrap_or(name).parse().ok()
}

/// Returns the purpose of the container with this name, or of the one that it is a service of.
pub(super) fn purpose_of_name(name: &str) -> Purpose {
    match name.strip_prefix(PREFIX) {
        Some(rest) if rest.starts_with(CHECKS) => Purpose::Checks,
        _ => Purpose::Work,
    }
}

pub(super) fn companion_name(run: RunId, purpose: Purpose, service: &str) -> String {
    format!("{}-{service}", container_name(run, purpose))
}

/// Describes a container that only sleeps: all work runs as attached processes.
pub(super) fn container(
    config: &Config,
    facts: &Facts,
    order: &Order<'_>,
) -> Result<ContainerCreateBody, EnvironmentError> {
    let mut labels = labels(order);
    labels.insert(LABEL_NETWORK.to_owned(), network(config).to_owned());
    let is_apart = config.network.mode != NetworkMode::Open;
    let host_config = HostConfig {
        network_mode: Some(
            match config.network.mode {
                NetworkMode::Open => "bridge",
                // The way out is a stream of an attached process, not a network device.
                NetworkMode::Allowlist | NetworkMode::None => "none",
            }
            .to_owned(),
        ),
        // Otherwise the engine would copy the host's name servers and search domains.
        dns: is_apart.then(|| vec!["127.0.0.1".to_owned()]),
        dns_search: is_apart.then(|| vec![".".to_owned()]),
        extra_hosts: Some(order.services.iter().map(|name| format!("{name}:127.0.0.1")).collect()),
        ..limits(
            config,
            facts,
            ("resources.memory_limit", &config.resources.memory_limit),
        )?
    };
    Ok(ContainerCreateBody {
        image: Some(order.image.to_owned()),
        user: Some(order.user.name.clone()),
        env: Some(variables(config, order)),
        working_dir: Some(WORKSPACE.to_owned()),
        entrypoint: Some(vec!["sleep".to_owned()]),
        cmd: Some(vec!["infinity".to_owned()]),
        labels: Some(labels),
        host_config: Some(host_config),
        ..ContainerCreateBody::default()
    })
}

/// Returns the network mode as in [`LABEL_NETWORK`].
pub(super) fn network(config: &Config) -> &'static str {
    match config.network.mode {
        NetworkMode::Allowlist => "allowlist",
        NetworkMode::None => "none",
        NetworkMode::Open => "open",
    }
}

/// Describes a service in the network of the container `main`, with the same restrictions.
pub(super) fn companion(
    config: &Config,
    facts: &Facts,
    order: &Order<'_>,
    main: &str,
    (name, service): (&str, &Service),
) -> Result<ContainerCreateBody, EnvironmentError> {
    let mut labels = labels(order);
    labels.insert(LABEL_SERVICE.to_owned(), name.to_owned());
    let key = format!("services.{name}.memory_limit");
    let host_config = HostConfig {
        network_mode: Some(format!("container:{main}")),
        // The main container logs nothing, but a service may write for hours.
        log_config: Some(HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some([("max-size".to_owned(), "4m".to_owned())].into()),
        }),
        ..limits(config, facts, (&key, &service.memory_limit))?
    };
    let variables = service.env.iter().map(|(name, value)| format!("{name}={value}"));
    Ok(ContainerCreateBody {
        image: Some(service.image.clone()),
        user: Some(service.user.clone().unwrap_or_else(|| order.user.name.clone())),
        env: Some(variables.collect()),
        entrypoint: service.entrypoint.clone(),
        cmd: service.command.clone(),
        labels: Some(labels),
        host_config: Some(host_config),
        ..ContainerCreateBody::default()
    })
}

fn labels(order: &Order<'_>) -> HashMap<String, String> {
    let mut labels = vec![(LABEL_INSTANCE, order.instance.to_owned())];
    match order.holder {
        Holder::Run(task, run) => labels.extend([(LABEL_TASK, task.to_string()), (LABEL_RUN, run.to_string())]),
        Holder::Nobody(worker) => labels.push((LABEL_WARM, worker.to_string())),
    }
    labels
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Returns the environment variables of the container, without the image's own.
fn variables(config: &Config, order: &Order<'_>) -> Vec<String> {
    let mut variables = Vec::new();
    if order.user.is_foreign {
        // The image has no home directory for a user that it does not know.
        variables.push(format!("HOME={WORKSPACE}"));
    }
    if config.network.mode == NetworkMode::Allowlist {
        variables.extend(way_out::variables(order.image_variables, &order.services));
    }
    variables
}

/// Returns the limits of every container. Sets explicitly whatever an engine or its administrator
/// may have other defaults for.
fn limits(config: &Config, facts: &Facts, memory: (&str, &str)) -> Result<HostConfig, EnvironmentError> {
    let resources = &config.resources;
    let memory = bytes(memory.0, memory.1)?;
    let storage = if resources.disk_limit.is_empty() || !facts.can_limit_disk {
        None
    } else {
        let size = bytes("resources.disk_limit", &resources.disk_limit)?;
        Some(HashMap::from([("size".to_owned(), size.to_string())]))
    };
    Ok(HostConfig {
        privileged: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        init: Some(true),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        runtime: Some(config.runtime.clone()).filter(|runtime| !runtime.is_empty()),
        memory: Some(memory),
        // The sum of memory and swap; equal to the memory means no swap.
        memory_swap: Some(memory),
        nano_cpus: Some(nano_processors(resources.cpu_limit, facts.processors)),
        pids_limit: Some(resources.pids_limit),
        storage_opt: storage,
        ..HostConfig::default()
    })
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
    use crate::environment::user;

    fn facts(processors: i64, can_limit_disk: bool) -> Facts {
        Facts {
            description: String::new(),
            processors: Some(processors),
            can_limit_disk,
            runtimes: Vec::new(),
        }
    }

    #[test]
    fn a_container_has_every_limit_and_no_way_out() {
        let mut config = Config::default();
        config.network.mode = NetworkMode::None;
        config.resources.disk_limit = "20g".to_owned();
        let task = "github:owner/repo#12".parse().unwrap();
        let order = Order {
            holder: Holder::Run(&task, "019aa6b2-0000-7000-8000-000000000000".parse().unwrap()),
            instance: "here",
            image: "image:1",
            user: &user::of_image(""),
            image_variables: &[],
            services: Vec::new(),
        };
        let body = container(&config, &facts(8, true), &order).unwrap();
        // Through a JSON value, which sorts the labels.
        let body = serde_json::to_value(body).unwrap();
        insta::assert_json_snapshot!(body, @r#"
        {
          "Cmd": [
            "infinity"
          ],
          "Entrypoint": [
            "sleep"
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
            "Init": true,
            "IpcMode": "private",
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
          "User": "1000:1000",
          "WorkingDir": "/workspace"
        }
        "#);
    }

    #[test]
    fn a_limit_that_the_engine_cannot_keep_is_left_out() {
        let mut config = Config::default();
        config.resources.disk_limit = "20g".to_owned();
        let limits = limits(&config, &facts(1, false), ("x", "1g")).unwrap();
        assert_eq!(limits.storage_opt, None);
        assert_eq!(limits.nano_cpus, Some(1_000_000_000));
    }
}
