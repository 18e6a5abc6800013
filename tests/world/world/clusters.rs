//! A cluster as the engine of all worlds, where variables name one (`scripts/with-kubernetes`).

use serde_json::{Value, json};
use tokio::process::Command;

/// The variables of a cluster of the tests.
const KUBECONFIG: &str = "KUBECONFIG";
const NAMESPACE: &str = "CODING_AGENT_TEST_KUBERNETES_NAMESPACE";
const ADMIN: &str = "CODING_AGENT_TEST_KUBERNETES_ADMIN";
const KUBECTL: &str = "CODING_AGENT_TEST_KUBERNETES_KUBECTL";

/// Returns the section `environment` of all worlds, if they have their containers in a cluster.
pub(super) fn engine_of_all() -> Option<Value> {
    let namespace = std::env::var(NAMESPACE).ok()?;
    let kubeconfig = std::env::var(KUBECONFIG).unwrap();
    Some(json!({
        "engine": "kubernetes",
        "kubernetes": { "namespace": namespace, "kubeconfig": kubeconfig },
    }))
}

/// Returns the names of an installation's pods, if the worlds have their containers in a cluster.
pub(super) async fn pods_of(instance: &str) -> Option<Vec<String>> {
    let namespace = std::env::var(NAMESPACE).ok()?;
    let selector = format!("coding-agent.instance={instance}");
    let names = r#"jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}"#;
    let output = Command::new(std::env::var(KUBECTL).unwrap())
        .args([
            "--kubeconfig",
            &std::env::var(ADMIN).unwrap(),
            "--cache-dir",
            "/dev/null",
        ])
        .args([
            "--namespace",
            &namespace,
            "get",
            "pods",
            "--selector",
            &selector,
            "--output",
            names,
        ])
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(str::to_owned)
            .collect(),
    )
}
