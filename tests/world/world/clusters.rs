//! A cluster as the engine of all worlds, where variables name one (`scripts/with-kubernetes`).

#[cfg(feature = "kubernetes")]
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};
use tokio::process::Command;

/// The variables of a cluster of the tests.
const KUBECONFIG: &str = "KUBECONFIG";
const PREFIX: &str = "CODING_AGENT_TEST_KUBERNETES_";

/// Returns a variable of the cluster, such as `PROXIED`; `None` without a cluster.
fn variable(name: &str) -> Option<String> {
    std::env::var(format!("{PREFIX}{name}")).ok()
}

/// Returns a variable of the cluster; fails where there is none.
pub fn named(name: &str) -> String {
    variable(name).unwrap_or_else(|| panic!("there is no cluster: start this with scripts/with-kubernetes"))
}

/// Returns whether the worlds have their containers in a cluster.
pub fn is_used() -> bool {
    variable("NAMESPACE").is_some()
}

/// Returns the section `environment` of all worlds, if they have their containers in a cluster.
pub(super) fn engine_of_all() -> Option<Value> {
    let namespace = variable("NAMESPACE")?;
    let kubeconfig = std::env::var(KUBECONFIG).unwrap();
    Some(json!({
        "engine": "kubernetes",
        "kubernetes": { "namespace": namespace, "kubeconfig": kubeconfig },
    }))
}

/// Prepares the cluster's own client, as an administrator in the namespace of the pods.
pub fn client() -> Command {
    let mut command = client_of_all();
    command.args(["--namespace", &named("NAMESPACE")]);
    command
}

/// Prepares the cluster's own client, as an administrator who says the namespace of each object.
pub fn client_of_all() -> Command {
    let mut command = Command::new(named("KUBECTL"));
    command
        .args(["--kubeconfig", &named("ADMIN"), "--cache-dir", "/dev/null"])
        // With it and nothing else a client believes that it is in a pod.
        .env_remove("KUBERNETES_SERVICE_HOST")
        .kill_on_drop(true);
    command
}

/// Runs the cluster's own client, and returns what it says.
pub async fn kubectl(arguments: &[&str]) -> String {
    printed(client().args(arguments).output().await.unwrap(), arguments)
}

/// Does something to the cluster, as `scripts/kubernetes/control` lists it.
#[cfg(feature = "kubernetes")]
pub async fn control(arguments: &[&str]) -> String {
    let command = named("CONTROL");
    let words: Vec<&str> = command.split(' ').collect();
    let output = Command::new(words[0])
        .args(&words[1..])
        .args(arguments)
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    printed(output, arguments)
}

fn printed(output: Output, arguments: &[&str]) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the names of an installation's pods, without those that their node is removing.
pub(super) async fn pods_of(instance: &str) -> Vec<String> {
    const NAMES: &str =
        "go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}}{{\"\\n\"}}{{end}}{{end}}";
    let selector = format!("coding-agent.instance={instance}");
    let printed = kubectl(&["get", "pods", "--selector", &selector, "--output", NAMES]).await;
    printed.lines().map(str::to_owned).collect()
}

/// Returns the ids of the containers in which a run works, at the engine of the pod's node.
async fn containers_of(pod: &str) -> Vec<String> {
    let of_pod = format!("label=io.kubernetes.pod.name={pod}");
    let filters = [
        "--filter",
        of_pod.as_str(),
        "--filter",
        "label=io.kubernetes.container.name=work",
    ];
    let printed = at_the_node(&[&["ps", "--quiet"][..], &filters].concat()).await;
    printed.lines().map(str::to_owned).collect()
}

/// Does something to the containers in which runs work in these pods, with the engine of their node.
pub(super) async fn each(pods: &[String], does: &str) {
    for pod in pods {
        for container in containers_of(pod).await {
            at_the_node(&[does, &container]).await;
        }
    }
}

/// Runs the client of the engine of the cluster's node, and returns what it says.
pub async fn at_the_node(arguments: &[&str]) -> String {
    let output = Command::new("docker")
        .args(["--host", &named("ENGINE")])
        // Its own builder would want a network, which that engine has none of.
        .env("DOCKER_BUILDKIT", "0")
        .args(arguments)
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    printed(output, arguments)
}

/// Returns the file by which the cluster is reached through a load balancer, whose connections can
/// be cut.
#[cfg(feature = "kubernetes")]
pub fn behind_a_load_balancer() -> PathBuf {
    named("PROXIED").into()
}

/// Has the cluster whole again after a test that breaks it, however the test ends.
#[cfg(feature = "kubernetes")]
pub struct Mended(());

#[cfg(feature = "kubernetes")]
impl Mended {
    pub fn when_dropped() -> Self {
        Self(())
    }
}

#[cfg(feature = "kubernetes")]
impl Drop for Mended {
    fn drop(&mut self) {
        let command = named("CONTROL");
        let wishes = [
            "thaw api",
            "start api",
            "start kubelet",
            "start controllers",
            "start scheduler",
            "start policies",
        ];
        for wish in wishes.iter().chain(&["proxy stall off", "proxy idle 0"]) {
            let words: Vec<&str> = command.split(' ').chain(wish.split(' ')).collect();
            // What runs already says so, and that is all.
            let _ = std::process::Command::new(words[0]).args(&words[1..]).output();
        }
    }
}
