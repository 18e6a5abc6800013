//! Describes pods, as pure functions of the configuration.
//!
//! A pod passes the "restricted" standard of Pod Security, has no token of a service account, knows
//! no service of the namespace and resolves no name. What an administrator may have other defaults
//! for is said explicitly.

mod quantities; // what containers may use
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use quantities::{bytes, disk, resources, same, thousandths};

use super::names::{self, Holder, INIT_CONTAINER, WORK};
use crate::environment::config::engine_choice::{Kubernetes, numbers};
use crate::environment::config::service::Service;
use crate::environment::config::{Config, NetworkMode};
use crate::environment::container::certificates::{self, CERTIFICATES, OF_IMAGES};
use crate::environment::container::{specification, way_out};
use crate::environment::error::EnvironmentError;
use crate::environment::processes::{EXECUTOR, WORKSPACE};

/// The user that owns the executor: another one than the pod's processes have, who may run it and
/// not read it. The kernel lets nobody trace a program that he may not read.
const OWNER_OF_EXECUTOR: u32 = 65_532;

/// The folder of the executor's volume, and its file there.
const BROUGHT: &str = "/executor";
const FILE: &str = "coding-agent-executor";

/// The file of certificates there.
const BUNDLE: &str = "certificates.pem";

/// The executor in an image that has it.
const IN_IMAGE: &str = "/usr/local/bin/coding-agent-executor-static";

/// The disk that bringing the executor takes.
const INIT_CONTAINER_DISK: u64 = 128 * 1024 * 1024;

/// Time that a pod may be older than what the sweep removes. It ends those of an installation that
/// nobody sweeps any more.
const BEYOND_THE_SWEEP: Duration = Duration::from_hours(7 * 24);

/// Time for all that a trial does besides starting its pods, and what these may use.
const TRIAL_TIME: Duration = Duration::from_mins(10);
const TRIAL_PROCESSORS: &str = "100m";
const TRIAL_MEMORY: &str = "134217728";

/// The properties of one pod that are not in the configuration.
pub(super) struct PodRequest<'a> {
    pub(super) name: &'a str,
    pub(super) holder: Holder<'a>,
    pub(super) instance: &'a str,
    pub(super) owner: &'a Owner,
    /// The environment's name, which selects the services.
    pub(super) environment: &'a str,
    pub(super) image: &'a str,
    /// The size of the executor that is sent.
    pub(super) executor_bytes: u64,
    /// The size of the certificates that are sent behind it, which programs in the pod are to trust
    /// besides their image's own; 0 if there are none.
    pub(super) certificates_bytes: usize,
    pub(super) names: Names,
}

/// The object that everything of an installation belongs to, and goes with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) name: String,
    pub(super) uid: String,
}

/// The name servers that a pod is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// The name servers of the configuration's network mode: none, unless it is open.
    AsConfigured,
    /// The cluster's own, so that it can be tried whether they answer.
    OfCluster,
}

impl Owner {
    /// Returns the reference that makes an object go when the owner goes.
    pub(super) fn reference(&self) -> Value {
        json!([{
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": self.name,
            "uid": self.uid,
            "blockOwnerDeletion": false,
            "controller": false,
        }])
    }
}

/// Describes a pod whose first process is the executor, with the services of its environment.
pub(super) fn pod(config: &Config, cluster: &Kubernetes, request: &PodRequest<'_>) -> Result<Pod, EnvironmentError> {
    let value = as_json(config, cluster, request)?;
    serde_json::from_value(value).map_err(|error| EnvironmentError::Unexpected {
        what: "describing a pod".to_owned(),
        reason: error.to_string(),
    })
}

fn as_json(config: &Config, cluster: &Kubernetes, request: &PodRequest<'_>) -> Result<Value, EnvironmentError> {
    let is_open = config.network.mode == NetworkMode::Open;
    let services: Vec<(&str, &Service)> = match request.holder {
        Holder::Run(..) | Holder::Pool(_) => config.services_of(request.environment).collect(),
        Holder::Trial => Vec::new(),
    };
    let service_names: Vec<&str> = services.iter().map(|(name, _)| *name).collect();
    let mut containers = vec![work(config, cluster, request, &service_names)?];
    for (name, service) in &services {
        containers.push(of_service(config, cluster, name, service)?);
    }
    let resolves = is_open || request.names == Names::OfCluster;
    let deadline = match request.holder {
        Holder::Run(..) | Holder::Pool(_) => {
            Duration::from_hours(config.cleanup.stale_hours).saturating_add(BEYOND_THE_SWEEP)
        }
        Holder::Trial => trial_limit(cluster),
    };
    let mut spec = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "hostname": "workspace",
        "hostNetwork": false,
        "hostPID": false,
        "hostIPC": false,
        "shareProcessNamespace": false,
        "terminationGracePeriodSeconds": 1,
        "activeDeadlineSeconds": deadline.as_secs().min(i32::MAX as u64),
        "dnsPolicy": if resolves { "ClusterFirst" } else { "None" },
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": cluster.user,
            "runAsGroup": cluster.group,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "initContainers": [init_container(config, cluster, request)?],
        "containers": containers,
        "volumes": [
            { "name": "executor", "emptyDir": { "sizeLimit": INIT_CONTAINER_DISK.to_string() } },
            { "name": "workspace", "emptyDir": workspace_volume(config)? },
        ],
    });
    if !resolves {
        // At least one is asked for, and nothing listens there.
        spec["dnsConfig"] = json!({ "nameservers": ["127.0.0.1"] });
    }
    if !service_names.is_empty() {
        spec["hostAliases"] = json!([{ "ip": "127.0.0.1", "hostnames": service_names }]);
    }
    add_choices(&mut spec, cluster);
    let mut labels = cluster.labels.clone();
    labels.extend(names::labels(
        request.instance,
        specification::network(config),
        request.holder,
    ));
    let mut metadata = json!({
        "name": request.name,
        "labels": labels,
        "ownerReferences": request.owner.reference(),
    });
    let mut annotations = cluster.annotations.clone();
    annotations.extend(names::annotations(request.holder));
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    Ok(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec }))
}

/// Returns how old a pod of a trial may become.
pub(super) fn trial_limit(cluster: &Kubernetes) -> Duration {
    TRIAL_TIME.saturating_add(Duration::from_secs(cluster.start_seconds))
}

/// Adds what the operator chooses for all pods.
fn add_choices(spec: &mut Value, cluster: &Kubernetes) {
    if let Some(class) = &cluster.runtime_class {
        spec["runtimeClassName"] = json!(class);
    }
    if let Some(account) = &cluster.service_account {
        spec["serviceAccountName"] = json!(account);
    }
    if let Some(node) = &cluster.node {
        spec["nodeName"] = json!(node);
    }
    let labels = node_selector(cluster);
    if !labels.is_empty() {
        spec["nodeSelector"] = json!(labels);
    }
    if !cluster.tolerations.is_empty() {
        spec["tolerations"] = json!(cluster.tolerations);
    }
    if let Some(class) = &cluster.priority_class {
        spec["priorityClassName"] = json!(class);
    }
    if !cluster.image_pull_secrets.is_empty() {
        let secrets: Vec<Value> = cluster
            .image_pull_secrets
            .iter()
            .map(|name| json!({ "name": name }))
            .collect();
        spec["imagePullSecrets"] = json!(secrets);
    }
}

/// Returns the labels of nodes that pods may run on: the executor fits one system and one kind of
/// processor. A node that is named is taken as it is.
fn node_selector(cluster: &Kubernetes) -> BTreeMap<String, String> {
    let processor = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64le" => "ppc64le",
        other => other,
    };
    if cluster.node.is_some() {
        return cluster.node_selector.clone();
    }
    let mut labels = BTreeMap::from([
        ("kubernetes.io/os".to_owned(), "linux".to_owned()),
        ("kubernetes.io/arch".to_owned(), processor.to_owned()),
    ]);
    labels.extend(cluster.node_selector.clone());
    labels
}

/// Describes the container in which a run works.
fn work(
    config: &Config,
    cluster: &Kubernetes,
    request: &PodRequest<'_>,
    services: &[&str],
) -> Result<Value, EnvironmentError> {
    let memory = bytes("resources.memory_limit", &config.resources.memory_limit)?;
    let mut variables = match config.network.mode {
        // The image's own values of Java's variables are not known here, and replaced.
        NetworkMode::Allowlist => way_out::variables(&[], services),
        NetworkMode::None | NetworkMode::Open => Vec::new(),
    };
    let mut mounts = vec![json!({ "name": "workspace", "mountPath": WORKSPACE }), executor_mount()];
    if request.certificates_bytes > 0 {
        variables.extend(certificates::variables(&config.trust, &[]));
        mounts.push(json!({ "name": "executor", "mountPath": CERTIFICATES, "subPath": BUNDLE, "readOnly": true }));
    }
    let variables: Vec<Value> = variables
        .iter()
        .filter_map(|variable| variable.split_once('='))
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect();
    let resources = match request.holder {
        Holder::Run(..) | Holder::Pool(_) => resources(config, memory)?,
        Holder::Trial => same(&of_trial(config)?),
    };
    // The project's folder must be its user's, who is not the one of the volume.
    let first = format!("mkdir -p {WORKSPACE}/project && exec {EXECUTOR} init alone");
    Ok(json!({
        "name": WORK,
        "image": request.image,
        "imagePullPolicy": cluster.pull_policy,
        "command": ["/bin/sh", "-c", first],
        "args": [],
        "workingDir": WORKSPACE,
        "env": variables,
        "securityContext": confined(cluster.user.into(), cluster.group.into()),
        "resources": resources,
        "volumeMounts": mounts,
    }))
}

fn of_service(config: &Config, cluster: &Kubernetes, name: &str, service: &Service) -> Result<Value, EnvironmentError> {
    let memory = bytes(&format!("services.{name}.memory_limit"), &service.memory_limit)?;
    let own = service.user.as_deref().and_then(numbers);
    let (user, group) = own.unwrap_or((cluster.user.into(), Some(cluster.group.into())));
    let variables: Vec<Value> = service
        .env
        .iter()
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect();
    let mut container = json!({
        "name": names::service(name),
        "image": service.image,
        "imagePullPolicy": cluster.pull_policy,
        "env": variables,
        "securityContext": confined(user, group.unwrap_or(user)),
        "resources": resources(config, memory)?,
        // Whether it is ready is asked through the executor.
        "volumeMounts": [executor_mount()],
    });
    if let Some(entrypoint) = &service.entrypoint {
        container["command"] = json!(entrypoint);
    }
    if let Some(command) = &service.command {
        container["args"] = json!(command);
    }
    Ok(container)
}

/// Describes the container that brings the executor, before the others start.
fn init_container(config: &Config, cluster: &Kubernetes, request: &PodRequest<'_>) -> Result<Value, EnvironmentError> {
    let owner = if cluster.user == OWNER_OF_EXECUTOR {
        OWNER_OF_EXECUTOR + 1
    } else {
        OWNER_OF_EXECUTOR
    };
    let takes_input = cluster.executor_image.is_none() || request.certificates_bytes > 0;
    let limits = match request.holder {
        // A pod asks for the most that one of them takes, so all that the work may have costs
        // nothing more.
        Holder::Run(..) | Holder::Pool(_) => {
            let memory = bytes("resources.memory_limit", &config.resources.memory_limit)?;
            let mut limits = json!({
                "cpu": format!("{}m", thousandths(config.resources.cpu_limit)),
                "memory": memory.to_string(),
            });
            // Alone it would be the limit of the whole pod, which is thrown out above it.
            if let Some(disk) = disk(config)? {
                limits["ephemeral-storage"] = json!(disk.max(INIT_CONTAINER_DISK).to_string());
            }
            limits
        }
        Holder::Trial => of_trial(config)?,
    };
    let gets = gets(cluster, request);
    let script = format!("umask 022; cd {BROUGHT} && {gets} && chmod 0711 part && mv part {FILE}");
    Ok(json!({
        "name": INIT_CONTAINER,
        "image": cluster.executor_image.as_deref().unwrap_or(request.image),
        "imagePullPolicy": cluster.pull_policy,
        "command": ["/bin/sh", "-c", script],
        "args": [],
        "stdin": takes_input,
        "stdinOnce": takes_input,
        "securityContext": confined(owner.into(), owner.into()),
        "resources": same(&limits),
        "volumeMounts": [{ "name": "executor", "mountPath": BROUGHT }],
    }))
}

/// Returns the commands that take what is sent: the executor, then the certificates.
///
/// The bytes are counted, since the end of the stream says nothing, and by one program alone: the
/// `head` of busybox reads more than it writes, which the next program would miss.
fn gets(cluster: &Kubernetes, request: &PodRequest<'_>) -> String {
    let (executor, own) = (request.executor_bytes, request.certificates_bytes as u64);
    let counted =
        |bytes: u64, file: &str| format!("head -c {bytes} > {file} && test \"$(wc -c < {file})\" -eq {bytes}");
    let takes = match (&cluster.executor_image, own) {
        (Some(_), 0) => return format!("cp {IN_IMAGE} part"),
        (Some(_), _) => format!("cp {IN_IMAGE} part && {}", counted(own, "own")),
        (None, 0) => return counted(executor, "part"),
        (None, _) => format!(
            "{} && head -c {executor} both > part && tail -c {own} both > own && rm both",
            counted(executor + own, "both")
        ),
    };
    // What the image trusts by itself stays trusted, and it has one of these files at most.
    let of_image = OF_IMAGES.map(|file| format!("cat {file} 2>/dev/null")).join(" || ");
    format!("{takes} && {{ {of_image} || :; }} > {BUNDLE} && cat own >> {BUNDLE} && rm own")
}

/// Returns the limits of a trial's containers. A quota may ask for all that a run's pods have.
fn of_trial(config: &Config) -> Result<Value, EnvironmentError> {
    let mut limits = json!({ "cpu": TRIAL_PROCESSORS, "memory": TRIAL_MEMORY });
    if disk(config)?.is_some() {
        limits["ephemeral-storage"] = json!(INIT_CONTAINER_DISK.to_string());
    }
    Ok(limits)
}

fn executor_mount() -> Value {
    json!({ "name": "executor", "mountPath": EXECUTOR, "subPath": FILE, "readOnly": true })
}

fn confined(user: i64, group: i64) -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": user,
        "runAsGroup": group,
        "privileged": false,
        "allowPrivilegeEscalation": false,
        "capabilities": { "drop": ["ALL"] },
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

fn workspace_volume(config: &Config) -> Result<Value, EnvironmentError> {
    Ok(match disk(config)? {
        Some(disk) => json!({ "sizeLimit": disk.to_string() }),
        None => json!({}),
    })
}
