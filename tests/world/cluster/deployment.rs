//! The folder for clusters: as the API server takes it, and the service that it starts.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::worker_in_a_container::built;
use crate::world::clusters::{at_the_node, client_of_all, kubectl, named};
use crate::world::scripts::{greets, plan};
use crate::world::{IMAGE, MODEL_KEY, World};

/// The program's own namespace there.
const NAMESPACE: &str = "coding-agent";

/// The secrets that the folder wants, each in a file.
const SECRETS: [&str; 3] = ["store_password", "forge_token", "model_key"];

/// Objects that the cluster of the tests has anyway.
const KINDS_OF_ALL: [&str; 4] = ["Namespace", "Role", "RoleBinding", "ServiceAccount"];

/// The lines that make an image of the service of that of environments, which has git.
const DOCKERFILE: &str = r#"
COPY coding-agent coding-agent-executor-static /usr/local/bin/
ENTRYPOINT ["coding-agent"]
CMD ["serve"]
"#;

/// Copies the folder, with secrets of these values.
fn copied(world: &World, secrets: [&str; 3]) -> PathBuf {
    let folder = world.folder().join("packaging");
    let copied = std::process::Command::new("cp")
        .args(["-r", concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/kubernetes")])
        .arg(&folder)
        .status();
    assert!(copied.unwrap().success());
    for (secret, value) in SECRETS.iter().zip(secrets) {
        world.keeps(&format!("packaging/secrets/{secret}"), value);
    }
    folder
}

/// Returns the objects that the folder makes, as the cluster's own client puts them together.
async fn objects(folder: &Path) -> (String, Vec<Value>) {
    let made = kubectl(&["kustomize", folder.to_str().unwrap()]).await;
    let documents = serde_yaml::Deserializer::from_str(&made);
    let objects = documents.map(|document| Value::deserialize(document).unwrap());
    let objects = objects.collect();
    (made, objects)
}

/// Has the API server take these objects, and returns what it says.
async fn apply(objects: &str, options: &[&str]) -> String {
    let mut apply = client_of_all()
        .args(["apply", "--filename", "-"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = apply.stdin.take().unwrap();
    stdin.write_all(objects.as_bytes()).await.unwrap();
    drop(stdin);
    let said = apply.wait_with_output().await.unwrap();
    assert!(
        said.status.success(),
        "{}\n{objects}",
        String::from_utf8_lossy(&said.stderr)
    );
    String::from_utf8(said.stdout).unwrap()
}

/// Prepares the cluster's own client for the program's namespace.
fn client_of_the_program(arguments: &[&str]) -> Command {
    let mut client = client_of_all();
    client.args(["--namespace", NAMESPACE]).args(arguments);
    client
}

/// The service in the cluster. Dropping it removes everything that came with it.
struct Service {
    image: String,
    /// The file with the objects that came with it.
    objects: String,
}

impl Service {
    /// Starts what the folder describes, with this build's programs and without a store of its own.
    async fn start(world: &mut World) -> Self {
        let folder = copied(world, ["not a secret", world.github.token(), MODEL_KEY]);
        configure(world, &folder);
        let image = image(world).await;
        let file = folder.join("kustomization.yaml");
        let mut kustomization = yaml(&file);
        let resources = kustomization["resources"].as_array_mut().unwrap();
        resources.retain(|resource| resource != "postgres.yaml");
        let (name, tag) = image.split_once(':').unwrap();
        kustomization["images"][0]["newName"] = json!(name);
        kustomization["images"][0]["newTag"] = json!(tag);
        // JSON is YAML.
        std::fs::write(&file, kustomization.to_string()).unwrap();
        let (made, mut own) = objects(&folder).await;
        own.retain(|object| !KINDS_OF_ALL.iter().any(|kind| object["kind"] == *kind));
        let own = json!({ "apiVersion": "v1", "kind": "List", "items": own });
        let objects = world.keeps("packaging/own.json", &own.to_string());
        let service = Self { image, objects };
        apply(&made, &[]).await;
        service
    }

    /// Does something to the cluster while nothing can be awaited, and shows what did not succeed.
    fn does_at_last(arguments: &[&str]) {
        let mut client = client_of_all();
        client.args(arguments);
        show_failed(client.into_std().output());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let logs = client_of_the_program(&["logs", "deployment/coding-agent", "--tail", "100"]);
            if let Ok(logs) = logs.into_std().output() {
                show(&logs);
            }
        }
        // Until its pod has ended.
        let until_gone = ["--cascade=foreground", "--ignore-not-found", "--timeout", "120s"];
        Self::does_at_last(&[&["delete", "--filename", &self.objects][..], &until_gone].concat());
        // What it has in the cluster goes with the object that is named after the installation.
        let installation = ["delete", "configmap", "coding-agent-coding-agent", "--ignore-not-found"];
        Self::does_at_last(&[&installation[..], &["--namespace", &named("NAMESPACE")]].concat());
        let mut engine = std::process::Command::new("docker");
        engine.args(["--host", &named("ENGINE"), "rmi", "--force", &self.image]);
        show_failed(engine.output());
    }
}

/// Shows what a command said beside the test's own failure.
fn show(output: &Output) {
    for said in [&output.stdout, &output.stderr] {
        let _ = std::io::stderr().write_all(said);
    }
}

fn show_failed(ended: std::io::Result<Output>) {
    if let Ok(ended) = ended
        && !ended.status.success()
    {
        show(&ended);
    }
}

fn yaml(file: &Path) -> Value {
    serde_yaml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Fills in the folder's configuration: forge and model are those of the world, and what is there
/// about the cluster, secrets and places stays as it is.
fn configure(world: &mut World, folder: &Path) {
    let file = folder.join("config.yaml");
    let packaged = yaml(&file);
    world.configure(|config| {
        for section in ["environment", "state_dir", "logs"] {
            config[section] = packaged[section].clone();
        }
        config["github"]["token_file"] = packaged["github"]["token_file"].clone();
        config["llm"]["openai"]["api_key_file"] = packaged["llm"]["anthropic"]["api_key_file"].clone();
        // The image has the executor where the program looks for it.
        for (section, key) in [
            ("/github", "token"),
            ("/llm/openai", "api_key"),
            ("/command_executor", "executor_path"),
            ("", "gitlab"),
            ("", "store"),
        ] {
            let section = config.pointer_mut(section).unwrap();
            section.as_object_mut().unwrap().remove(key);
        }
    });
    std::fs::copy(world.writes_its_configuration(), &file).unwrap();
}

/// Makes an image of this build's programs at the engine of the cluster's node; returns its name.
async fn image(world: &World) -> String {
    let folder = world.folder().join("image");
    std::fs::create_dir_all(&folder).unwrap();
    for program in ["coding-agent", "coding-agent-executor-static"] {
        // What is for debuggers is three quarters of it.
        let stripped = std::process::Command::new("strip")
            .arg("-o")
            .arg(folder.join(program))
            .arg(built(program))
            .status();
        assert!(stripped.unwrap().success(), "{program}");
    }
    std::fs::write(folder.join("Dockerfile"), format!("FROM {IMAGE}{DOCKERFILE}")).unwrap();
    let image = format!("coding-agent-test-service:{}", uuid::Uuid::now_v7().simple());
    at_the_node(&["build", "--quiet", "--tag", &image, folder.to_str().unwrap()]).await;
    image
}

#[tokio::test]
async fn the_server_takes_every_object_of_the_folder() {
    let world = World::start().await;
    let folder = copied(&world, ["not a secret"; 3]);
    let (made, objects) = objects(&folder).await;

    let taken = apply(&made, &["--dry-run=server", "--output", "name"]).await;

    assert_eq!(taken.lines().count(), objects.len(), "{taken}");
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

/// The program finds the cluster as every program in a pod does: by the two variables of the API
/// server's service, and by the token and the certificate that are mounted for the pod's account.
/// The cluster of the tests has no kube-proxy; its machine leads that one service on by itself.
#[tokio::test]
async fn the_service_works_in_the_cluster_by_its_own_account_and_doctor_is_right_about_it() {
    let mut world = World::at(&named("HOST"));
    greets(world.model.plans(plan()));
    let issue = world
        .github
        .open_issue("Greet the reader")
        .body("Say hello.")
        .label("coding agent");

    let service = Service::start(&mut world).await;
    issue
        .until(|issue| issue.labels().contains(&"coding agent done".to_owned()))
        .await;
    // By the probe that the folder describes.
    let ready = ["rollout", "status", "deployment/coding-agent", "--timeout", "180s"];
    let ready = client_of_the_program(&ready).output().await.unwrap();
    let doctor = ["exec", "deployment/coding-agent", "--", "coding-agent", "doctor"];
    let doctor = client_of_the_program(&doctor).output().await.unwrap();

    assert_eq!(world.github.pulls()[0].file("README.md").as_deref(), Some("Hello\n"));
    assert!(ready.status.success(), "{ready:?}");
    let said = String::from_utf8([doctor.stdout, doctor.stderr].concat()).unwrap();
    let server = named("SERVICE");
    let (server, _) = server.split_once(':').unwrap();
    for (subject, finding) in [
        (
            "Kubernetes",
            format!("at https://{server}, namespace coding-agent-runs"),
        ),
        ("rights", "exactly what the program does".to_owned()),
        (
            "network",
            "a pod reached neither others nor the API server, nodes, names or the internet".to_owned(),
        ),
        ("pod", "one was started and removed".to_owned()),
    ] {
        let of_subject = |line: &&str| line.split_whitespace().nth(1) == Some(subject);
        let lines: Vec<&str> = said.lines().filter(of_subject).collect();
        let [line] = lines.as_slice() else {
            panic!("not one line about {subject}: {said}");
        };
        assert!(line.starts_with("ok") && line.contains(&finding), "{subject}: {said}");
    }

    drop(service);
    let pods = ["get", "pods", "--selector", "coding-agent.instance=coding-agent"];
    // Their node removes them a moment after they were deleted.
    let gone = async { while !kubectl(&[&pods[..], &["--output", "name"]].concat()).await.is_empty() {} };
    tokio::time::timeout(Duration::from_mins(2), gone).await.unwrap();
    world.finish().await;
}
