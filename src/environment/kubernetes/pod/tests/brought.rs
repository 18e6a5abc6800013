//! What the first container of a pod brings: the executor and certificates; and the pods of a
//! trial, in which nothing else runs.

use super::*;
use crate::certificates::Trust;

#[test]
fn certificates_come_with_the_executor_and_programs_are_told_of_them() {
    let config = Config {
        trust: Trust::new(vec![b"one".to_vec().into()], Some("bundles".into())),
        ..Config::default()
    };
    let pod = sent(&config, &Kubernetes::default());
    let work = &pod["spec"]["containers"][0];
    assert!(work["env"].to_string().contains("SSL_CERT_FILE"), "{work}");
    assert!(work["volumeMounts"].to_string().contains(CERTIFICATES), "{work}");
    assert_eq!(pod["spec"]["initContainers"][0]["stdin"], true);
    let of_image = Kubernetes {
        executor_image: Some("registry.example.com/coding-agent:1".to_owned()),
        ..Kubernetes::default()
    };
    let init_container = &sent(&config, &of_image)["spec"]["initContainers"][0];
    assert_eq!(init_container["stdin"], true, "the certificates are sent alone");
}

#[test]
fn the_files_that_are_sent_come_apart_again_and_half_of_them_is_an_error() {
    let (executor, own, owner) = ("x".repeat(10_000), "own", owner());
    let request = PodRequest {
        executor_bytes: 10_000,
        certificates_bytes: own.len(),
        ..request(Holder::Trial, &owner)
    };
    let run = |bytes: &str| {
        let folder = tempfile::tempdir().unwrap();
        let sent = folder.path().join("sent");
        std::fs::write(&sent, bytes).unwrap();
        let status = std::process::Command::new("/bin/sh")
            .args(["-c", &gets(&Kubernetes::default(), &request)])
            .current_dir(&folder)
            .stdin(std::fs::File::open(&sent).unwrap())
            .status()
            .unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        (status.success(), read("part"), read(BUNDLE))
    };
    let (is_whole, part, bundle) = run(&format!("{executor}{own}, and more"));
    assert!(is_whole);
    assert_eq!(part, executor);
    assert!(bundle.ends_with(own), "{bundle}");
    let (is_whole, part, bundle) = run(&executor);
    assert_eq!((is_whole, part, bundle), (false, String::new(), String::new()));
}

#[test]
fn a_trial_takes_little_and_not_for_long() {
    let mut config = Config::default();
    config.resources.disk_limit = "20g".to_owned();
    let owner = owner();
    let spec = |start_seconds| {
        let cluster = Kubernetes {
            start_seconds,
            ..Kubernetes::default()
        };
        as_json(&config, &cluster, &request(Holder::Trial, &owner)).unwrap()["spec"].clone()
    };
    // As long as its start may take, and the trial behind that.
    assert_eq!(spec(1_200)["activeDeadlineSeconds"], 1_800);
    let spec = spec(300);
    assert_eq!(spec["activeDeadlineSeconds"], 900);
    let little = json!({ "cpu": "100m", "memory": "134217728", "ephemeral-storage": "134217728" });
    for kind in ["initContainers", "containers"] {
        let resources = json!({ "requests": little, "limits": little });
        assert_eq!(spec[kind][0]["resources"], resources, "{kind}");
    }
}
