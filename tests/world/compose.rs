//! The service as the compose file starts it: the image that its Dockerfile describes, with this
//! checkout's programs, brings an issue to a pull request.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

use crate::fake::tls::Tls;
use crate::worker_in_a_container::{built, gateway};
use crate::world::World;
use crate::world::scripts::{greets, plan};

/// Debian's packages of this machine's release, made by `scripts/setup`: what was built here runs
/// there.
const RUNTIME: &str = "coding-agent-service-base:local";
/// Stands in for the Rust image: its cargo hands out what was built here.
const TOOLCHAIN: &str = "FROM coding-agent-service-base:local
RUN printf '#!/bin/sh\\nmkdir -p target/release && cp coding-agent coding-agent-executor target/release/\\n' >/usr/local/bin/cargo \\
 && chmod 0755 /usr/local/bin/cargo
";

/// A project of Compose. Dropping it removes its containers, volumes, network and image.
struct Compose {
    folder: PathBuf,
    project: String,
}

impl Compose {
    /// Lays out a project as a checkout has it, with a name of its own and these files beside the
    /// configuration.
    fn new(folder: &Path, files: &[&str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        std::fs::create_dir_all(folder.join("docker")).unwrap();
        for file in ["docker-compose.yml", "docker/Dockerfile"] {
            std::fs::copy(root.join(file), folder.join(file)).unwrap();
        }
        let programs = [
            ("coding-agent", "coding-agent"),
            ("coding-agent-executor-static", "coding-agent-executor"),
        ];
        for (program, name) in programs {
            // What is for debuggers is three quarters of it.
            let mut strip = Command::new("strip");
            succeeds(strip.arg("-o").arg(folder.join(name)).arg(built(program)));
        }
        let project = format!("coding-agent-world-{}", uuid::Uuid::new_v4().simple());
        // As docs/operations.md says it.
        let beside = |file: &&str| format!("./{file}:/var/lib/coding-agent/{file}:ro");
        let volumes: Vec<String> = files.iter().map(beside).collect();
        let other = json!({ "services": { "coding-agent": { "image": project, "volumes": volumes } } });
        std::fs::write(folder.join("own.yml"), other.to_string()).unwrap();
        let folder = folder.to_owned();
        Self { folder, project }
    }

    /// Prepares a command of Compose: the engine's plugin, or the program of its own that came
    /// before it.
    fn command(&self, arguments: &[&str]) -> Command {
        let has_plugin = Command::new("docker").args(["compose", "version"]).output();
        let mut command = if has_plugin.is_ok_and(|output| output.status.success()) {
            let mut command = Command::new("docker");
            command.arg("compose");
            command
        } else {
            Command::new("docker-compose")
        };
        command
            .args(["--project-name", &self.project])
            .args(["--file", "docker-compose.yml", "--file", "own.yml"])
            .args(arguments)
            .env("BUILD_IMAGE", "coding-agent-test-build:local")
            .env("RUNTIME_IMAGE", RUNTIME)
            .current_dir(&self.folder);
        command
    }

    fn does(&self, arguments: &[&str]) -> String {
        succeeds(&mut self.command(arguments))
    }
}

impl Drop for Compose {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Ok(logs) = self.command(&["logs", "--no-color"]).output()
        {
            show(&logs);
        }
        let down = self.command(&["down", "--volumes", "--timeout", "60"]).output();
        // Compose would remove all images that the file names, and the environments are everybody's.
        let image = Command::new("docker").args(["rmi", &self.project]).output();
        for ended in [down, image]
            .into_iter()
            .flatten()
            .filter(|ended| !ended.status.success())
        {
            show(&ended);
        }
    }
}

/// Shows what Compose said beside the test's own failure.
fn show(output: &Output) {
    let _ = std::io::stderr().write_all(told(output).as_bytes());
}

fn told(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Runs a command to its end, and returns what it printed.
fn succeeds(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}: run `make setup`"));
    assert!(output.status.success(), "{command:?}: {}", told(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn build_toolchain(folder: &Path) {
    let file = folder.join("toolchain.Dockerfile");
    std::fs::write(&file, TOOLCHAIN).unwrap();
    let mut build = Command::new("docker");
    build.args(["build", "--quiet", "--tag", "coding-agent-test-build:local", "-"]);
    succeeds(build.stdin(std::fs::File::open(file).unwrap()));
}

#[tokio::test]
async fn the_service_in_its_own_image_brings_an_issue_to_a_pull_request() {
    brings_an_issue_to_a_pull_request(World::at(&gateway().await), &[]).await;
}

/// Forge, git and model behind TLS; `ca_file` stands beside the configuration.
#[tokio::test]
async fn the_service_in_its_own_image_trusts_a_private_authority() {
    let tls = Tls::by_an_authority_at(&gateway().await);
    let mut world = World::behind(&tls).await;
    world.keeps("project/acme-ca.pem", tls.trusted());
    world.configure(|config| config["ca_file"] = json!("./acme-ca.pem"));
    brings_an_issue_to_a_pull_request(world, &["acme-ca.pem"]).await;
}

async fn brings_an_issue_to_a_pull_request(mut world: World, files: &[&str]) {
    let project = world.folder().join("project");
    let compose = Compose::new(&project, files);
    build_toolchain(&project);
    world.configure(|config| {
        // The image has it where the program looks for it.
        let section = config["command_executor"].as_object_mut().unwrap();
        section.remove("executor_path");
    });
    let config = project.join("config.yaml");
    std::fs::copy(world.writes_its_configuration(), &config).unwrap();
    // The worker is root there without root's right to read what is closed to it.
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o644)).unwrap();
    greets(world.model.plans(plan()));
    let issue = world
        .github
        .open_issue("Greet the reader")
        .body("Say hello.")
        .label("coding agent");

    compose.does(&["up", "--detach", "--build", "coding-agent"]);
    issue
        .until(|issue| issue.labels().contains(&"coding agent done".to_owned()))
        .await;

    let pull = &world.github.pulls()[0];
    assert_eq!(pull.file("README.md").as_deref(), Some("Hello\n"));
    let exec = |command: &[&str]| compose.does(&[&["exec", "-T", "coding-agent"], command].concat());
    let status = exec(&["coding-agent", "status"]);
    assert!(status.contains("github:acme/widgets#1"), "{status}");
    exec(&["coding-agent", "status", "--quiet"]);
    let instance = exec(&["cat", "state/instance"]);
    compose.does(&["stop", "--timeout", "60"]);
    let label = format!("label=coding-agent.instance={}", instance.trim());
    let left = succeeds(Command::new("docker").args(["ps", "--all", "--quiet", "--filter", &label]));
    assert_eq!(left, "");
    drop(compose);
    world.finish().await;
}
