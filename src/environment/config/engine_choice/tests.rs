//! Faults of the section that are found before a run starts.

use super::*;
use crate::environment::config::service::Service;

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
fn what_the_server_would_refuse_of_a_pod_is_named_at_once() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let toleration = |key: Option<&str>, operator, value: Option<&str>, seconds| Toleration {
        key: key.map(str::to_owned),
        operator,
        value: value.map(str::to_owned),
        effect: Some(TaintEffect::NoSchedule),
        toleration_seconds: seconds,
    };
    let kubernetes = Kubernetes {
        namespace: "team.a".to_owned(),
        installation: Some("i".repeat(41)),
        image_pull_secrets: vec!["s".repeat(253), "s".repeat(254)],
        node: Some("node-1.example.com".to_owned()),
        user: 2_147_483_648,
        group: 2_147_483_647,
        node_selector: [
            pair("example.com/pool", "one_A.b"),
            pair("two words", ""),
            pair("pool", "-"),
        ]
        .into(),
        tolerations: vec![
            toleration(Some("agents"), TolerationOperator::Equal, Some("yes"), None),
            toleration(None, TolerationOperator::Exists, None, None),
            toleration(None, TolerationOperator::Equal, None, None),
            toleration(Some("agents"), TolerationOperator::Exists, Some("yes"), None),
            toleration(Some("agents"), TolerationOperator::Exists, None, Some(60)),
            toleration(Some("/"), TolerationOperator::Exists, None, None),
        ],
        labels: [
            pair("cost-center", "7"),
            pair("cost-center/", "7"),
            pair("app.kubernetes.io/managed-by", "me"),
        ]
        .into(),
        annotations: [
            pair("example.com/team", "any text"),
            pair("a/b/c", ""),
            pair("coding-agent.task", ""),
        ]
        .into(),
        priority_class: Some("High".to_owned()),
        ..Kubernetes::default()
    };
    let faults = kubernetes.faults();
    let keys: Vec<&str> = faults.iter().map(|(key, _)| *key).collect();
    assert_eq!(
        keys,
        [
            "namespace",
            "installation",
            "priority_class",
            "image_pull_secrets",
            "user",
            "node_selector",
            "node_selector",
            "labels",
            "labels",
            "tolerations",
            "tolerations",
            "tolerations",
            "tolerations",
            "annotations",
            "annotations",
        ]
    );
}

#[test]
fn a_toleration_is_written_as_kubernetes_writes_it() {
    let written = "{key: agents, operator: Equal, value: \"yes\", effect: NoExecute, tolerationSeconds: 60}";
    let read: Toleration = serde_yaml::from_str(written).unwrap();
    assert_eq!(read.toleration_seconds, Some(60));
    assert_eq!(read.fault(), None);
    assert!(serde_yaml::from_str::<Toleration>("{key: agents, toleration_seconds: 60}").is_err());
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
    containers.services = [
        ("db", "postgres"),
        ("ok", "999:999"),
        ("root", "0"),
        ("vast", "3000000000"),
    ]
    .map(|(name, user)| (name.to_owned(), service(user)))
    .into();
    let faults = beyond_a_cluster(&containers);
    let keys: Vec<&str> = faults.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "runtime",
            "services.db.user",
            "services.root.user",
            "services.vast.user"
        ]
    );
}
