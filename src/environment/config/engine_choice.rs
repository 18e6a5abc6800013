//! The section `environment` of the configuration: which kind of engine runs the containers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Config;
use super::image_name;

/// The longest name of an object in a cluster that is also a label's value.
const LONGEST_NAME: usize = 63;

/// The longest name of an installation: it begins the names of objects.
const LONGEST_INSTALLATION: usize = 40;

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
    /// The name of this installation in the namespace; if left out, an id that lies in the state
    /// folder. Programs that share a store need one name, and so does one whose state folder does
    /// not outlive it: by it the pods of an earlier process are found. Those with stores of their
    /// own need names of their own.
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
    /// Image with the executor at `/usr/local/bin/coding-agent-executor-static`, of the same
    /// version as the program, such as the program's own; if left out, the executor is sent to each
    /// pod.
    pub executor_image: Option<String>,
    /// The user of the processes in the pods, by its number: the cluster does not say which user an
    /// image has.
    pub user: u32,
    /// The group of the processes in the pods, by its number.
    pub group: u32,
    /// Labels of the nodes that the pods may run on.
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that the pods tolerate, as a pod has them.
    pub tolerations: Vec<Toleration>,
    /// The `PriorityClass` of the pods.
    pub priority_class: Option<String>,
    /// The one node that all pods run on, without asking the scheduler.
    pub node: Option<String>,
    /// Seconds within which a pod must run, pulling its images included.
    pub start_seconds: u64,
}

/// A taint of nodes that pods tolerate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Toleration {
    /// The key of the taint; if left out, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `Equal` or `Exists`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`; if left out, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
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
            executor_image: None,
            user: 1000,
            group: 1000,
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            priority_class: None,
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

/// Parses the user of a service as numbers, `999` or `999:999`; `None` for a name, and for root.
pub(crate) fn numbers(user: &str) -> Option<(i64, Option<i64>)> {
    let (user, group) = match user.split_once(':') {
        Some((user, group)) => (user, Some(group.parse().ok()?)),
        None => (user, None),
    };
    Some((user.parse().ok().filter(|user| *user > 0)?, group))
}

impl Kubernetes {
    fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let named = [
            ("namespace", Some(&self.namespace)),
            ("installation", self.installation.as_ref()),
            ("priority_class", self.priority_class.as_ref()),
            ("runtime_class", self.runtime_class.as_ref()),
            ("service_account", self.service_account.as_ref()),
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
        if let Some(image) = &self.executor_image
            && let Some(fault) = image_name::fault_of_name(image, "registry.example.com/coding-agent:0.2.0")
        {
            faults.push(("executor_image", fault));
        }
        for (key, number) in [("user", self.user), ("group", self.group)] {
            if number == 0 {
                let reason = "0 is root, and nothing runs as root; write another number, such as 1000";
                faults.push((key, reason.to_owned()));
            }
        }
        if let Some(name) = self
            .installation
            .as_ref()
            .filter(|name| name.len() > LONGEST_INSTALLATION)
        {
            let reason = format!(
                "'{name}' is too long for the names that are made of it; write at most {LONGEST_INSTALLATION} letters"
            );
            faults.push(("installation", reason));
        }
        for (key, number) in [("user", self.user), ("group", self.group)] {
            if i32::try_from(number).is_err() {
                let reason = format!("{number} is beyond what a cluster takes; write at most {}", i32::MAX);
                faults.push((key, reason));
            }
        }
        for toleration in &self.tolerations {
            let is_one_of =
                |word: &Option<String>, words: &[&str]| word.as_ref().is_none_or(|word| words.contains(&word.as_str()));
            if !is_one_of(&toleration.operator, &["Equal", "Exists"])
                || !is_one_of(&toleration.effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"])
            {
                let reason = "operator is Equal or Exists, effect is NoSchedule, PreferNoSchedule or NoExecute";
                faults.push(("tolerations", reason.to_owned()));
            }
        }
        if self.start_seconds == 0 {
            let reason = "0 would give up every pod at once; write at least 1";
            faults.push(("start_seconds", reason.to_owned()));
        }
        faults
    }
}

/// Returns true if `name` can be the name of an object in a cluster.
fn is_name(name: &str) -> bool {
    let is_word = |part: &str| {
        let letters =
            |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
        !part.is_empty() && part.chars().all(letters) && !part.starts_with('-') && !part.ends_with('-')
    };
    name.len() <= LONGEST_NAME && name.split('.').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::super::service::Service;
    use super::*;

    #[test]
    fn what_a_cluster_cannot_have_is_named_with_its_mend() {
        let kubernetes = Kubernetes {
            namespace: "Team A".to_owned(),
            runtime_class: Some("gvisor".to_owned()),
            image_pull_secrets: vec!["registry".to_owned(), "-".to_owned()],
            executor_image: Some("no image".to_owned()),
            user: 0,
            start_seconds: 0,
            ..Kubernetes::default()
        };
        let faults = kubernetes.faults();
        let keys: Vec<&str> = faults.iter().map(|(key, _)| *key).collect();
        assert_eq!(
            keys,
            [
                "namespace",
                "image_pull_secrets",
                "executor_image",
                "user",
                "start_seconds"
            ]
        );
        assert_eq!(Kubernetes::default().faults(), []);
        let docker = EngineChoice {
            engine: EngineKind::Docker,
            kubernetes,
        };
        assert_eq!(
            docker.validate(&Config::default()),
            [],
            "what is not used is not judged"
        );
    }

    #[test]
    fn what_a_cluster_cannot_do_is_refused_before_a_run_finds_out() {
        let mut containers = Config {
            runtime: "runsc".to_owned(),
            ..Config::default()
        };
        let service = |user: &str| Service {
            user: Some(user.to_owned()),
            ..Service::of_image("postgres:17")
        };
        containers.services = [("db", "postgres"), ("ok", "999:999"), ("root", "0")]
            .map(|(name, user)| (name.to_owned(), service(user)))
            .into();
        let faults = beyond_a_cluster(&containers);
        let keys: Vec<&str> = faults.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["runtime", "services.db.user", "services.root.user"]);
    }
}
