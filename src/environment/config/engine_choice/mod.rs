//! The section `environment` of the configuration: which kind of engine runs the containers.

mod names; // the forms of names and labels in a cluster
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Config, image_name};
use names::{Fault, is_label, is_label_value, is_name, is_qualified};

/// The longest id of an installation, which is a part of names of at most 63 characters.
const LONGEST_INSTALLATION: usize = 40;

/// The highest number of a user or group in a cluster.
const HIGHEST_NUMBER: u32 = i32::MAX.unsigned_abs();

/// Prefix of the program's own labels and annotations, which no configured one may have.
pub(crate) const LABEL_PREFIX: &str = "coding-agent.";

/// Label that says which program made an object; no configured label may have its name.
pub(crate) const LABEL_MANAGER: &str = "app.kubernetes.io/managed-by";

/// The engine that runs the containers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EngineChoice {
    /// `docker`, or `kubernetes` for a pod per run.
    pub engine: EngineKind,
    /// Used with `engine: kubernetes`.
    pub kubernetes: Kubernetes,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// An engine with Docker's API, of this machine or another one.
    #[default]
    Docker,
    /// A cluster. Only in a program that was built with the feature `kubernetes`.
    Kubernetes,
}

/// How the cluster is reached, and what its pods are like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Kubernetes {
    /// The namespace of the pods, which must exist. Nothing outside of it is touched.
    pub namespace: String,
    /// The id of this installation in the cluster, which is a part of names and labels there; if
    /// left out, one that lies in `state_dir`. Programs that share a store have the same, those
    /// with different stores in the same namespace different ones.
    pub installation: Option<String>,
    /// File that says how the cluster is reached; if left out, `KUBECONFIG`, else `.kube/config` in
    /// the home, else the service account of the pod that the program runs in.
    pub kubeconfig: Option<PathBuf>,
    /// The context in that file; if left out, its current one.
    pub context: Option<String>,
    /// The `RuntimeClass` of the pods, such as one of gVisor or Kata.
    pub runtime_class: Option<String>,
    /// The service account of the pods, which gets no token; if left out, the namespace's default.
    pub service_account: Option<String>,
    /// Names of the secrets with which the nodes pull private images.
    pub image_pull_secrets: Vec<String>,
    /// When the nodes pull images.
    pub pull_policy: PullPolicy,
    /// Image with the executor at `/usr/local/bin/coding-agent-executor-static`, of the same
    /// version as the program, such as the program's own; if left out, the executor is sent to each
    /// pod.
    pub executor_image: Option<String>,
    /// The user of the processes in the pods, by its number: the cluster does not say which user an
    /// image has.
    pub user: u32,
    /// The group of the processes in the pods, by its number.
    pub group: u32,
    /// Labels of the nodes that the pods may run on, besides `kubernetes.io/os: linux` and
    /// `kubernetes.io/arch` of the program, which labels of the same name replace.
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that the pods may run on all the same.
    pub tolerations: Vec<Toleration>,
    /// The `PriorityClass` of the pods; if left out, the cluster's default.
    pub priority_class: Option<String>,
    /// Labels of the pods, besides the program's own.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pods.
    pub annotations: BTreeMap<String, String>,
    /// The one node that all pods run on, without asking the scheduler.
    pub node: Option<String>,
    /// Seconds within which a pod must run, pulling its images included.
    pub start_seconds: u64,
}

/// When the nodes pull an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PullPolicy {
    /// The nodes pull it if they do not have it. A tag that is moved to another image stays the
    /// old one there.
    #[default]
    IfNotPresent,
    /// The nodes pull it for each pod. Only what changed is fetched.
    Always,
    /// The nodes never pull it: they must have it.
    Never,
}

/// A toleration of a taint, as Kubernetes writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Toleration {
    /// The key of the taint; if left out, with `Exists`, every taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether the taint must have `value`.
    pub operator: TolerationOperator,
    /// The value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The effect of the taint; if left out, every effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// Seconds for which a pod stays on a node with the effect `NoExecute`; if left out, for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    /// It must have that value.
    #[default]
    Equal,
    /// It may have any value.
    Exists,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self {
            namespace: "coding-agent".to_owned(),
            installation: None,
            kubeconfig: None,
            context: None,
            runtime_class: None,
            service_account: None,
            image_pull_secrets: Vec::new(),
            pull_policy: PullPolicy::default(),
            executor_image: None,
            user: 1000,
            group: 1000,
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            priority_class: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            node: None,
            start_seconds: 300,
        }
    }
}

impl EngineChoice {
    /// Returns the cluster's section, if the containers run in a cluster.
    pub fn cluster(&self) -> Option<&Kubernetes> {
        (self.engine == EngineKind::Kubernetes).then_some(&self.kubernetes)
    }

    /// Returns a sentence for each fault, with its key in the file. `containers` is the section
    /// `command_executor`, of which a cluster cannot do everything. Does no I/O.
    pub fn validate(&self, containers: &Config) -> Vec<(String, String)> {
        if self.engine == EngineKind::Docker {
            return Vec::new();
        }
        let mut faults = Vec::new();
        if !cfg!(feature = "kubernetes") {
            let reason = "this program was built without clusters; build it with `cargo build --release --features kubernetes`, or \
                          write docker";
            faults.push(("environment.engine".to_owned(), reason.to_owned()));
        }
        let own = self.kubernetes.faults().into_iter();
        faults.extend(own.map(|(key, reason)| (format!("environment.kubernetes.{key}"), reason)));
        let theirs = beyond_a_cluster(containers).into_iter();
        faults.extend(theirs.map(|(key, reason)| (format!("command_executor.{key}"), reason)));
        faults
    }
}

/// Returns what a cluster cannot do of the section `command_executor`, by its keys.
fn beyond_a_cluster(containers: &Config) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    if !containers.runtime.is_empty() {
        let reason = "names a runtime of Docker's; write environment.kubernetes.runtime_class instead";
        faults.push(("runtime".to_owned(), reason.to_owned()));
    }
    for (name, environment) in &containers.environments {
        if environment.build.is_some() {
            let reason = "a cluster builds no images; push the image to a registry, and leave build out";
            faults.push((format!("environments.{name}.build"), reason.to_owned()));
        }
    }
    for (name, service) in &containers.services {
        if service.user.as_deref().is_some_and(|user| numbers(user).is_none()) {
            let reason = "must be a number in a cluster, which looks no names up, such as 999 or 999:999";
            faults.push((format!("services.{name}.user"), reason.to_owned()));
        }
    }
    faults
}

/// Parses the user of a service as numbers, `999` or `999:999`; `None` for a name, for root and for
/// numbers that a cluster does not take.
pub(crate) fn numbers(user: &str) -> Option<(i64, Option<i64>)> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number <= HIGHEST_NUMBER);
    let (user, group) = match user.split_once(':') {
        Some((user, group)) => (user, Some(number(group)?)),
        None => (user, None),
    };
    Some((number(user).filter(|user| *user > 0)?.into(), group.map(i64::from)))
}

impl Kubernetes {
    fn faults(&self) -> Vec<Fault> {
        let mut faults = self.faults_of_names();
        if let Some(image) = &self.executor_image
            && let Some(fault) = image_name::fault_of_name(image, "registry.example.com/coding-agent:0.2.0")
        {
            faults.push(("executor_image", fault));
        }
        for (key, number) in [("user", self.user), ("group", self.group)] {
            if number == 0 {
                let reason = "0 is root, and nothing runs as root; write another number, such as 1000";
                faults.push((key, reason.to_owned()));
            } else if number > HIGHEST_NUMBER {
                let reason = format!("{number} is more than a cluster takes; write at most {HIGHEST_NUMBER}");
                faults.push((key, reason));
            }
        }
        for (label, value) in &self.node_selector {
            if !is_qualified(label) || !is_label_value(value) {
                let reason = format!(
                    "'{label}: {value}' is not a label of a node; write it as `kubectl get nodes --show-labels` does"
                );
                faults.push(("node_selector", reason));
            }
        }
        for (label, value) in &self.labels {
            if !is_qualified(label) || !is_label_value(value) {
                let reason = format!("'{label}: {value}' is not a label; write one such as cost-center: agents");
                faults.push(("labels", reason));
            } else if label.starts_with(LABEL_PREFIX) || label == LABEL_MANAGER {
                let reason = format!("'{label}' is the program's own; write another name");
                faults.push(("labels", reason));
            }
        }
        faults.extend(self.tolerations.iter().filter_map(Toleration::fault));
        for name in self.annotations.keys() {
            if !is_qualified(&name.to_ascii_lowercase()) {
                let reason = format!("'{name}' is not the name of an annotation; write one such as example.com/team");
                faults.push(("annotations", reason));
            } else if name.starts_with(LABEL_PREFIX) {
                let reason = format!("'{name}' is the program's own; write another name");
                faults.push(("annotations", reason));
            }
        }
        if self.start_seconds == 0 {
            let reason = "0 would give up every pod at once; write at least 1";
            faults.push(("start_seconds", reason.to_owned()));
        }
        faults
    }

    fn faults_of_names(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if !is_label(&self.namespace) {
            let reason = format!(
                "'{}' is not a namespace; write at most 63 small letters, digits and `-`",
                self.namespace
            );
            faults.push(("namespace", reason));
        }
        if let Some(id) = &self.installation
            && (!is_label(id) || id.len() > LONGEST_INSTALLATION)
        {
            let reason = format!(
                "'{id}' cannot be a part of names in a cluster; write at most {LONGEST_INSTALLATION} small letters, digits and `-`"
            );
            faults.push(("installation", reason));
        }
        let named = [
            ("runtime_class", self.runtime_class.as_ref()),
            ("service_account", self.service_account.as_ref()),
            ("priority_class", self.priority_class.as_ref()),
            ("node", self.node.as_ref()),
        ];
        let secrets = self
            .image_pull_secrets
            .iter()
            .map(|name| ("image_pull_secrets", Some(name)));
        for (key, name) in named.into_iter().chain(secrets) {
            if let Some(name) = name.filter(|name| !is_name(name)) {
                let reason = format!("'{name}' is not a name in a cluster; write small letters, digits, `-` and `.`");
                faults.push((key, reason));
            }
        }
        faults
    }
}

impl Toleration {
    fn fault(&self) -> Option<Fault> {
        let of = |reason: &str| Some(("tolerations", reason.to_owned()));
        if let Some(key) = self.key.as_ref().filter(|key| !is_qualified(key)) {
            return of(&format!("'{key}' is not the key of a taint"));
        }
        if let Some(value) = self.value.as_ref().filter(|value| !is_label_value(value)) {
            return of(&format!("'{value}' is not the value of a taint"));
        }
        match self.operator {
            TolerationOperator::Equal if self.key.is_none() => {
                return of("one has no key; write it, or operator: Exists");
            }
            TolerationOperator::Exists if self.value.as_ref().is_some_and(|value| !value.is_empty()) => {
                return of("one has a value and the operator Exists, which takes any; leave one of them out");
            }
            TolerationOperator::Equal | TolerationOperator::Exists => {}
        }
        if self.toleration_seconds.is_some() && self.effect != Some(TaintEffect::NoExecute) {
            return of("one has tolerationSeconds without effect: NoExecute, for which alone they count");
        }
        None
    }
}
