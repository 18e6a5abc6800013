//! The folder for clusters says what the program needs.

use std::collections::{BTreeMap, BTreeSet};

use coding_agent::environment::rights::NEEDED;
use serde::Deserialize;
use serde_yaml::Value;

use crate::{is_taken, read, root};

const FOLDER: &str = "packaging/kubernetes";

/// Returns the objects of a file, of which each is a document.
fn objects(file: &str) -> Vec<Value> {
    let text = read(&format!("{FOLDER}/{file}"));
    let documents = serde_yaml::Deserializer::from_str(&text);
    documents
        .map(|document| Value::deserialize(document).unwrap())
        .collect()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_sequence().unwrap().iter();
    texts.map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Returns all objects that the folder makes, but for those that are generated.
fn all() -> Vec<Value> {
    let kustomization = &objects("kustomization.yaml")[0];
    texts(&kustomization["resources"])
        .iter()
        .flat_map(|file| objects(file))
        .collect()
}

fn of_kind<'a>(all: &'a [Value], kind: &str) -> Vec<&'a Value> {
    all.iter().filter(|object| object["kind"] == kind).collect()
}

#[test]
fn every_file_of_the_folder_is_made_use_of() {
    let kustomization = &objects("kustomization.yaml")[0];
    let mut named: BTreeSet<String> = texts(&kustomization["resources"]).into_iter().collect();
    named.extend(texts(&kustomization["configMapGenerator"][0]["files"]));
    named.insert("kustomization.yaml".to_owned());
    let there: BTreeSet<String> = std::fs::read_dir(root().join(FOLDER))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(there, named);
}

#[test]
fn the_role_grants_what_the_program_does_and_nothing_else() {
    let all = all();
    let roles = of_kind(&all, "Role");
    let mut granted: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for rule in roles[0]["rules"].as_sequence().unwrap() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                let verbs = granted.entry((group.clone(), resource)).or_default();
                verbs.extend(texts(&rule["verbs"]));
            }
        }
    }
    let needed = NEEDED.map(|(group, resource, verbs)| {
        let verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        ((group.to_owned(), resource.to_owned()), verbs)
    });
    assert_eq!(granted, BTreeMap::from(needed));
    assert_eq!(roles.len(), 1);
    assert!(of_kind(&all, "ClusterRole").is_empty() && of_kind(&all, "ClusterRoleBinding").is_empty());
}

#[test]
fn no_pod_of_the_folder_needs_more_than_the_restricted_standard_allows() {
    let all = all();
    let pods = all.iter().filter(|object| !object["spec"]["template"].is_null());
    let mut seen = 0;
    for object in pods {
        let pod = &object["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        assert_eq!(pod["enableServiceLinks"], false);
        for container in pod["containers"].as_sequence().unwrap() {
            assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
            assert_eq!(texts(&container["securityContext"]["capabilities"]["drop"]), ["ALL"]);
            seen += 1;
        }
    }
    assert_eq!(seen, 2, "the program and its store");
    for namespace in of_kind(&all, "Namespace") {
        assert_eq!(
            namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"],
            "restricted"
        );
    }
}

#[test]
fn the_program_is_started_as_it_takes_it_and_finds_what_its_configuration_names() {
    let all = all();
    let deployment = of_kind(&all, "Deployment")[0];
    let pod = &deployment["spec"]["template"]["spec"];
    let program = &pod["containers"][0];
    is_taken(&texts(&program["args"])).unwrap();
    is_taken(&texts(&program["readinessProbe"]["exec"]["command"])[1..]).unwrap();
    let config = &objects("config.yaml")[0];
    assert_eq!(config["environment"]["engine"], "kubernetes");
    // The pods are where the account may make them, and not where the secrets are.
    let runs = &config["environment"]["kubernetes"]["namespace"];
    assert_eq!(runs, &of_kind(&all, "Role")[0]["metadata"]["namespace"]);
    assert_eq!(runs, &of_kind(&all, "RoleBinding")[0]["metadata"]["namespace"]);
    assert_ne!(runs, &deployment["metadata"]["namespace"]);
    // The state folder goes with each pod, and an id in it would, too.
    assert!(config["environment"]["kubernetes"]["installation"].is_string());
    let kustomization = &objects("kustomization.yaml")[0];
    let secrets: Vec<String> = texts(&kustomization["secretGenerator"][0]["files"])
        .iter()
        .map(|file| format!("/run/secrets/coding-agent/{}", file.split('=').next().unwrap()))
        .collect();
    for file in [
        &config["github"]["token_file"],
        &config["llm"]["anthropic"]["api_key_file"],
        &config["store"]["password_file"],
    ] {
        assert!(secrets.contains(&file.as_str().unwrap().to_owned()), "{file:?}");
    }
}
