//! The folder for clusters, as the API server takes it.

use std::process::Stdio;

use tokio::io::AsyncWriteExt;

use crate::world::World;
use crate::world::clusters::{client_of_all, kubectl};

#[tokio::test]
async fn the_server_takes_every_object_of_the_folder() {
    let world = World::start().await;
    let folder = world.folder().join("packaging");
    let copied = std::process::Command::new("cp")
        .args(["-r", concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/kubernetes")])
        .arg(&folder)
        .status();
    assert!(copied.unwrap().success());
    for secret in ["store_password", "forge_token", "model_key"] {
        world.keeps(&format!("packaging/secrets/{secret}"), "not a secret");
    }
    let built = kubectl(&["kustomize", folder.to_str().unwrap()]).await;
    let mut apply = client_of_all()
        .args(["apply", "--dry-run=server", "--output", "name", "--filename", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = apply.stdin.take().unwrap();
    stdin.write_all(built.as_bytes()).await.unwrap();
    drop(stdin);
    let said = apply.wait_with_output().await.unwrap();

    assert!(
        said.status.success(),
        "{}\n{built}",
        String::from_utf8_lossy(&said.stderr)
    );
    let taken = String::from_utf8(said.stdout).unwrap();
    let objects = built.split("\n---\n").count();
    assert_eq!(taken.lines().count(), objects, "{taken}");
    for kind in [
        "deployment.apps/",
        "statefulset.apps/",
        "role.rbac",
        "networkpolicy",
        "secret/",
        "configmap/",
    ] {
        assert!(taken.contains(kind), "{kind} is not in {taken}");
    }
    world.finish().await;
}
