//! How pods stand, by what servers and kubelets really said of them.

use serde_json::{Value, json};

use super::*;

/// Returns how a pod with this status and two containers, `work` and `service-db`, stands.
fn standing(status: &Value) -> Standing {
    let pod = json!({
        "metadata": { "name": "coding-agent-x" },
        "spec": {
            "nodeName": "node-1",
            "containers": [
                { "name": "work", "image": "python:3" },
                { "name": "service-db", "image": "postgres:17" },
            ],
        },
        "status": status,
    });
    judge(&serde_json::from_value(pod).unwrap())
}

fn container(name: &str, image: &str, state: &Value) -> Value {
    json!({
        "name": name, "image": image, "imageID": "", "ready": false, "restartCount": 0, "state": state,
    })
}

fn work(state: &Value) -> Value {
    container("work", "python:3", state)
}

fn database(state: &Value) -> Value {
    container("service-db", "postgres:17", state)
}

fn init_container(state: &Value) -> Value {
    container(INIT_CONTAINER, "python:3", state)
}

fn running() -> Value {
    json!({ "running": { "startedAt": "2026-11-25T18:00:00Z" } })
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({ "waiting": { "reason": reason, "message": message } })
}

fn ended(reason: &str, exit_code: i32) -> Value {
    json!({ "terminated": { "reason": reason, "exitCode": exit_code } })
}

fn condition(kind: &str, status: &str, message: &str) -> Value {
    json!({ "type": kind, "status": status, "reason": "", "message": message })
}

fn other(words: &str) -> Standing {
    Standing::Ended(PodEnd::Other(words.to_owned()))
}

#[test]
fn a_pod_comes_up_step_by_step() {
    assert_eq!(
        standing(&json!({ "phase": "Pending" })),
        Standing::Waiting(Wait::Usual("it has no node yet".to_owned()))
    );
    let creating = json!({
        "phase": "Pending",
        "conditions": [condition("PodScheduled", "True", "")],
        "initContainerStatuses": [init_container(&waiting("PodInitializing", ""))],
        "containerStatuses": [work(&waiting("PodInitializing", ""))],
    });
    assert_eq!(
        standing(&creating),
        Standing::Waiting(Wait::Usual("executor is at PodInitializing".to_owned()))
    );
    let receiving = json!({
        "phase": "Pending",
        "initContainerStatuses": [init_container(&running())],
        "containerStatuses": [work(&waiting("PodInitializing", ""))],
    });
    assert_eq!(standing(&receiving), Standing::Receiving);
    let brought = ended("Completed", 0);
    let one = json!({
        "phase": "Running",
        "initContainerStatuses": [init_container(&brought)],
        "containerStatuses": [work(&running()), database(&waiting("ContainerCreating", ""))],
    });
    assert_eq!(
        standing(&one),
        Standing::Waiting(Wait::Usual("service-db is at ContainerCreating".to_owned()))
    );
    let all = json!({
        "phase": "Running",
        "conditions": [condition("Ready", "True", "")],
        "initContainerStatuses": [init_container(&brought)],
        "containerStatuses": [work(&running()), database(&running())],
    });
    assert_eq!(standing(&all), Standing::Running);
}

#[test]
fn an_image_that_does_not_come_is_told_from_one_that_never_will() {
    let with = |reason: &str, message: &str| {
        standing(&json!({
            "phase": "Pending",
            "initContainerStatuses": [init_container(&waiting(reason, message))],
        }))
    };
    let image = || "python:3".to_owned();
    assert_eq!(
        with("ImagePullBackOff", "Back-off pulling image \"python:3\""),
        Standing::Waiting(Wait::Image {
            image: image(),
            reason: "Back-off pulling image \"python:3\"".to_owned()
        })
    );
    assert!(matches!(
        with("ErrImagePull", "manifest unknown"),
        Standing::Waiting(Wait::Image { .. })
    ));
    assert_eq!(
        with("ErrImageNeverPull", "is not present with pull policy of Never"),
        Standing::Ended(PodEnd::Image {
            image: image(),
            reason: "is not present with pull policy of Never".to_owned()
        })
    );
    assert_eq!(
        with(
            "CreateContainerConfigError",
            "container has runAsNonRoot and image will run as root"
        ),
        Standing::Waiting(Wait::Container(
            "cannot start its container executor: CreateContainerConfigError: container has runAsNonRoot and image will run as root"
                .to_owned()
        ))
    );
}

#[test]
fn a_pod_that_no_node_takes_waits_for_a_place() {
    let message = "0/3 nodes are available: 3 Insufficient cpu.";
    let status = json!({ "phase": "Pending", "conditions": [condition("PodScheduled", "False", message)] });
    assert_eq!(standing(&status), Standing::Waiting(Wait::Place(message.to_owned())));
}

#[test]
fn a_pod_that_its_node_does_not_take_may_find_room_on_another() {
    for reason in [
        "NodeAffinity",
        "OutOfmemory",
        "SMTAlignmentError",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
    ] {
        let refused = standing(&json!({ "phase": "Failed", "reason": reason, "message": "Pod was rejected" }));
        let words = format!("has failed: {reason}: Pod was rejected");
        assert_eq!(refused, Standing::Ended(PodEnd::NoRoom(words)));
    }
}

#[test]
fn why_a_pod_ended_is_said_by_whoever_knows_best() {
    let evicted = json!({
        "phase": "Failed", "reason": "Evicted",
        "message": "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.",
        "containerStatuses": [work(&ended("Error", 137))],
    });
    assert_eq!(
        standing(&evicted),
        Standing::Ended(PodEnd::NoRoom(
            "was thrown out by its node: Pod ephemeral local storage usage exceeds the total limit of containers 1Gi."
                .to_owned()
        ))
    );
    let refused = json!({
        "phase": "Failed", "reason": "OutOfcpu",
        "message": "Pod Node didn't have enough resource: cpu, requested: 2000, used: 1500, capacity: 2000",
    });
    assert!(matches!(standing(&refused), Standing::Ended(PodEnd::NoRoom(_))));
    let old = json!({ "phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline" });
    assert_eq!(standing(&old), other("was older than a pod may become"));
    let memory = json!({ "phase": "Failed", "containerStatuses": [work(&ended("OOMKilled", 137))] });
    assert_eq!(standing(&memory), other("ran out of memory in its container work"));
    let service = json!({ "phase": "Running", "containerStatuses": [work(&running()), database(&ended("Error", 1))] });
    assert_eq!(
        standing(&service),
        other("has ended: its container service-db with exit code 1")
    );
    let cut = json!({ "phase": "Failed", "initContainerStatuses": [init_container(&ended("Error", 1))] });
    let words = "has ended: its container executor with exit code 1".to_owned();
    assert_eq!(standing(&cut), Standing::Ended(PodEnd::NotBrought(words)));
}

#[test]
fn a_service_that_has_ended_does_not_end_the_work() {
    let pod = |work: &Value, phase: &str| {
        let pod = json!({
            "metadata": { "name": "coding-agent-x" },
            "spec": { "containers": [{ "name": "work", "image": "python:3" }, { "name": "service-db", "image": "postgres:17" }] },
            "status": { "phase": phase, "containerStatuses": [work, database(&ended("Error", 1))] },
        });
        serde_json::from_value(pod).unwrap()
    };
    let goes_on = pod(&work(&running()), "Running");
    assert_eq!(judge_one(&goes_on, "work"), Standing::Running);
    assert!(matches!(judge_one(&goes_on, "service-db"), Standing::Ended(_)));
    let is_over = pod(&work(&ended("Error", 137)), "Failed");
    assert!(matches!(judge_one(&is_over, "work"), Standing::Ended(_)));
}

#[test]
fn an_image_without_a_shell_is_no_stream_that_was_cut() {
    for (reason, exit_code) in [("StartError", 128), ("Error", 127), ("ContainerCannotRun", 127)] {
        let status = json!({
            "phase": "Pending",
            "initContainerStatuses": [init_container(&ended(reason, exit_code))],
        });
        let Standing::Ended(PodEnd::Other(words)) = standing(&status) else {
            panic!("{reason}");
        };
        assert!(words.contains("the image needs /bin/sh"), "{words}");
    }
}

#[test]
fn a_pod_on_a_node_that_is_away_may_come_back() {
    let status = json!({
        "phase": "Running",
        "conditions": [condition("Ready", "False", ""), condition("ContainersReady", "True", "")],
        "containerStatuses": [work(&running()), database(&running())],
    });
    assert_eq!(standing(&status), Standing::Away("node-1".to_owned()));
    let probed = json!({
        "phase": "Running",
        "conditions": [condition("Ready", "False", ""), condition("ContainersReady", "False", "")],
        "containerStatuses": [work(&running()), database(&running())],
    });
    assert_eq!(
        standing(&probed),
        Standing::Running,
        "a container of somebody else's is not ready"
    );
}

#[test]
fn a_pod_that_is_being_removed_has_ended() {
    let pod = json!({
        "metadata": { "name": "x", "deletionTimestamp": "2026-11-25T18:00:00Z" },
        "status": { "phase": "Running" },
    });
    let pod = serde_json::from_value(pod).unwrap();
    assert_eq!(judge(&pod), other("is being removed"));
}
