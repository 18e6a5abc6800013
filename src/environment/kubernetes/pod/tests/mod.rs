//! Requests to the cluster for a pod, as they are sent.

mod brought; // what the first container brings

use super::*;
use crate::environment::config::engine_choice::{PullPolicy, TaintEffect, Toleration};
use crate::environment::container::name::Purpose;

fn owner() -> Owner {
    Owner {
        name: "coding-agent-here".to_owned(),
        uid: "1-2-3".to_owned(),
    }
}

fn request<'a>(holder: Holder<'a>, owner: &'a Owner) -> PodRequest<'a> {
    PodRequest {
        name: "coding-agent-019aa6b2-0000-7000-8000-000000000000",
        holder,
        instance: "here",
        owner,
        environment: "python",
        image: "image:1",
        executor_bytes: 7_000_000,
        certificates_bytes: 0,
        names: Names::AsConfigured,
    }
}

/// Returns the pod of a run as it is sent.
fn sent(config: &Config, cluster: &Kubernetes) -> Value {
    let task = "github:owner/repo#12".parse().unwrap();
    let run = "019aa6b2-0000-7000-8000-000000000000".parse().unwrap();
    let owner = owner();
    let request = PodRequest {
        certificates_bytes: if config.trust.is_named() { 1_234 } else { 0 },
        ..request(Holder::Run(&task, run, Purpose::Work), &owner)
    };
    let typed = serde_json::to_value(pod(config, cluster, &request).unwrap()).unwrap();
    // A key that the types do not know is dropped without a word.
    assert_eq!(
        without_empty(&typed),
        without_empty(&as_json(config, cluster, &request).unwrap())
    );
    typed
}

/// Returns a value without empty lists, which the types leave out.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| **value != json!([]))
            .map(|(key, value)| (key.clone(), without_empty(value)))
            .collect(),
        Value::Array(list) => list.iter().map(without_empty).collect(),
        other => other.clone(),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "all of a pod is shown")]
fn a_pod_has_every_limit_and_no_way_out() {
    let mut config = Config::default();
    config.network.mode = NetworkMode::None;
    config.resources.disk_limit = "20g".to_owned();
    let mut pod = sent(&config, &Kubernetes::default());
    pod["spec"]["nodeSelector"]["kubernetes.io/arch"] = json!("PROCESSOR");
    insta::assert_json_snapshot!(pod, @r#"
    {
      "apiVersion": "v1",
      "kind": "Pod",
      "metadata": {
        "annotations": {
          "coding-agent.task": "github:owner/repo#12"
        },
        "labels": {
          "app.kubernetes.io/managed-by": "coding-agent",
          "coding-agent.instance": "here",
          "coding-agent.network": "none",
          "coding-agent.purpose": "work",
          "coding-agent.run": "019aa6b2-0000-7000-8000-000000000000"
        },
        "name": "coding-agent-019aa6b2-0000-7000-8000-000000000000",
        "ownerReferences": [
          {
            "apiVersion": "v1",
            "blockOwnerDeletion": false,
            "controller": false,
            "kind": "ConfigMap",
            "name": "coding-agent-here",
            "uid": "1-2-3"
          }
        ]
      },
      "spec": {
        "activeDeadlineSeconds": 691200,
        "automountServiceAccountToken": false,
        "containers": [
          {
            "args": [],
            "command": [
              "/bin/sh",
              "-c",
              "mkdir -p /workspace/project && exec /usr/local/bin/coding-agent-executor init alone"
            ],
            "env": [],
            "image": "image:1",
            "imagePullPolicy": "IfNotPresent",
            "name": "work",
            "resources": {
              "limits": {
                "cpu": "2000m",
                "ephemeral-storage": "21474836480",
                "memory": "4294967296"
              },
              "requests": {
                "cpu": "2000m",
                "ephemeral-storage": "21474836480",
                "memory": "4294967296"
              }
            },
            "securityContext": {
              "allowPrivilegeEscalation": false,
              "capabilities": {
                "drop": [
                  "ALL"
                ]
              },
              "privileged": false,
              "runAsGroup": 1000,
              "runAsNonRoot": true,
              "runAsUser": 1000,
              "seccompProfile": {
                "type": "RuntimeDefault"
              }
            },
            "volumeMounts": [
              {
                "mountPath": "/workspace",
                "name": "workspace"
              },
              {
                "mountPath": "/usr/local/bin/coding-agent-executor",
                "name": "executor",
                "readOnly": true,
                "subPath": "coding-agent-executor"
              }
            ],
            "workingDir": "/workspace"
          }
        ],
        "dnsConfig": {
          "nameservers": [
            "127.0.0.1"
          ]
        },
        "dnsPolicy": "None",
        "enableServiceLinks": false,
        "hostIPC": false,
        "hostNetwork": false,
        "hostPID": false,
        "hostname": "workspace",
        "initContainers": [
          {
            "args": [],
            "command": [
              "/bin/sh",
              "-c",
              "umask 022; cd /executor && head -c 7000000 > part && test \"$(wc -c < part)\" -eq 7000000 && chmod 0711 part && mv part coding-agent-executor"
            ],
            "image": "image:1",
            "imagePullPolicy": "IfNotPresent",
            "name": "executor",
            "resources": {
              "limits": {
                "cpu": "2000m",
                "ephemeral-storage": "21474836480",
                "memory": "4294967296"
              },
              "requests": {
                "cpu": "2000m",
                "ephemeral-storage": "21474836480",
                "memory": "4294967296"
              }
            },
            "securityContext": {
              "allowPrivilegeEscalation": false,
              "capabilities": {
                "drop": [
                  "ALL"
                ]
              },
              "privileged": false,
              "runAsGroup": 65532,
              "runAsNonRoot": true,
              "runAsUser": 65532,
              "seccompProfile": {
                "type": "RuntimeDefault"
              }
            },
            "stdin": true,
            "stdinOnce": true,
            "volumeMounts": [
              {
                "mountPath": "/executor",
                "name": "executor"
              }
            ]
          }
        ],
        "nodeSelector": {
          "kubernetes.io/arch": "PROCESSOR",
          "kubernetes.io/os": "linux"
        },
        "restartPolicy": "Never",
        "securityContext": {
          "runAsGroup": 1000,
          "runAsNonRoot": true,
          "runAsUser": 1000,
          "seccompProfile": {
            "type": "RuntimeDefault"
          }
        },
        "shareProcessNamespace": false,
        "terminationGracePeriodSeconds": 1,
        "volumes": [
          {
            "emptyDir": {
              "sizeLimit": "134217728"
            },
            "name": "executor"
          },
          {
            "emptyDir": {
              "sizeLimit": "21474836480"
            },
            "name": "workspace"
          }
        ]
      }
    }
    "#);
}

#[test]
fn without_a_limit_of_the_disk_no_container_has_one_for_the_whole_pod() {
    let pod = sent(&Config::default(), &Kubernetes::default());
    assert!(!pod.to_string().contains("ephemeral-storage"), "{pod}");
}

#[test]
fn services_are_containers_of_the_same_pod() {
    let mut config = Config::default();
    let service = Service {
        user: Some("999:998".to_owned()),
        command: Some(vec!["postgres".to_owned()]),
        env: [("POSTGRES_PASSWORD".to_owned(), "test".to_owned())].into(),
        ..Service::of_image("postgres:17")
    };
    config.services = [("db".to_owned(), service)].into();
    let pod = sent(&config, &Kubernetes::default());
    insta::assert_json_snapshot!(pod["spec"]["containers"][1], @r#"
    {
      "args": [
        "postgres"
      ],
      "env": [
        {
          "name": "POSTGRES_PASSWORD",
          "value": "test"
        }
      ],
      "image": "postgres:17",
      "imagePullPolicy": "IfNotPresent",
      "name": "service-db",
      "resources": {
        "limits": {
          "cpu": "2000m",
          "memory": "1073741824"
        },
        "requests": {
          "cpu": "2000m",
          "memory": "1073741824"
        }
      },
      "securityContext": {
        "allowPrivilegeEscalation": false,
        "capabilities": {
          "drop": [
            "ALL"
          ]
        },
        "privileged": false,
        "runAsGroup": 998,
        "runAsNonRoot": true,
        "runAsUser": 999,
        "seccompProfile": {
          "type": "RuntimeDefault"
        }
      },
      "volumeMounts": [
        {
          "mountPath": "/usr/local/bin/coding-agent-executor",
          "name": "executor",
          "readOnly": true,
          "subPath": "coding-agent-executor"
        }
      ]
    }
    "#);
    assert_eq!(
        pod["spec"]["hostAliases"],
        json!([{ "ip": "127.0.0.1", "hostnames": ["db"] }])
    );
    let variables = pod["spec"]["containers"][0]["env"].to_string();
    assert!(variables.contains("localhost,127.0.0.1,::1,db"), "{variables}");
}

#[test]
fn what_the_configuration_asks_for_is_in_the_pod() {
    let cluster = Kubernetes {
        runtime_class: Some("gvisor".to_owned()),
        service_account: Some("runs".to_owned()),
        image_pull_secrets: vec!["registry".to_owned()],
        executor_image: Some("registry.example.com/coding-agent:1".to_owned()),
        user: 65_532,
        node_selector: [("pool".to_owned(), "agents".to_owned())].into(),
        node: Some("node-1".to_owned()),
        tolerations: vec![Toleration {
            key: Some("ci".to_owned()),
            effect: Some(TaintEffect::NoExecute),
            toleration_seconds: Some(60),
            ..Toleration::default()
        }],
        priority_class: Some("batch".to_owned()),
        pull_policy: PullPolicy::Always,
        annotations: [("example.com/team".to_owned(), "one".to_owned())].into(),
        labels: [("cost-center".to_owned(), "7".to_owned())].into(),
        ..Kubernetes::default()
    };
    let pod = sent(&Config::default(), &cluster);
    let spec = &pod["spec"];
    assert_eq!(
        pod["metadata"]["annotations"],
        json!({ "coding-agent.task": "github:owner/repo#12", "example.com/team": "one" })
    );
    assert_eq!(pod["metadata"]["labels"]["cost-center"], "7");
    assert_eq!(pod["metadata"]["labels"]["coding-agent.purpose"], "work");
    for (key, wanted) in [
        ("runtimeClassName", json!("gvisor")),
        ("serviceAccountName", json!("runs")),
        ("imagePullSecrets", json!([{ "name": "registry" }])),
        ("nodeSelector", json!({ "pool": "agents" })),
        ("nodeName", json!("node-1")),
        (
            "tolerations",
            json!([{ "key": "ci", "operator": "Equal", "effect": "NoExecute", "tolerationSeconds": 60 }]),
        ),
        ("priorityClassName", json!("batch")),
    ] {
        assert_eq!(spec[key], wanted, "{key}");
    }
    let init_container = &spec["initContainers"][0];
    for container in [init_container, &spec["containers"][0]] {
        assert_eq!(container["imagePullPolicy"], "Always");
    }
    assert_eq!(init_container["image"], "registry.example.com/coding-agent:1");
    assert_eq!(
        init_container["securityContext"]["runAsUser"], 65_533,
        "another user than the pod's owns the executor"
    );
    assert_eq!(init_container["stdin"], false, "nothing is sent");
}

#[test]
fn only_an_open_network_resolves_names() {
    let mut config = Config::default();
    assert_eq!(sent(&config, &Kubernetes::default())["spec"]["dnsPolicy"], "None");
    config.network.mode = NetworkMode::Open;
    let open = sent(&config, &Kubernetes::default());
    assert_eq!(open["spec"]["dnsPolicy"], "ClusterFirst");
    assert_eq!(open["spec"]["dnsConfig"], Value::Null);
    assert_eq!(
        open["metadata"]["labels"]["coding-agent.network"], "open",
        "the policy leaves it out"
    );
}
