//! The compose file, the crontab line and the systemd units say what the program needs.

use std::collections::BTreeMap;
use std::process::Command;

use coding_agent::config::Config;
use serde_yaml::Value;

use crate::{blocks, is_taken, read, root, words};

/// Seconds that a stop from outside must leave the program beyond its own grace period, to remove
/// its containers.
const MARGIN: u64 = 10;

fn compose() -> Value {
    serde_yaml::from_str(&read("docker-compose.yml")).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_sequence().unwrap().iter();
    texts.map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn seconds(text: &str) -> u64 {
    text.trim_end_matches('s').parse().unwrap()
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_service_of_the_compose_file_is_the_program_as_it_is() {
    let compose = compose();
    let service = &compose["services"]["coding-agent"];
    is_taken(&texts(&service["command"])).unwrap();
    let check = texts(&service["healthcheck"]["test"]);
    assert_eq!(check[..2], ["CMD", "coding-agent"]);
    is_taken(&check[2..]).unwrap();

    let config = Config::default();
    let grace = seconds(service["stop_grace_period"].as_str().unwrap());
    assert!(grace >= config.shutdown_grace_seconds + MARGIN, "{grace} s");

    // What must outlive the container lies on volumes: where the relative paths of the
    // configuration lead.
    let folder = service["working_dir"].as_str().unwrap();
    let volumes: Vec<_> = service["volumes"].as_sequence().unwrap().iter().collect();
    let mounts: Vec<_> = volumes.iter().filter_map(|volume| volume.as_str()).collect();
    let place = |path: &std::path::Path| {
        let path = path.strip_prefix("./").unwrap_or(path);
        format!("{folder}/{}", path.display())
    };
    for (volume, path) in [("state", &config.state_dir), ("logs", &config.logs.directory)] {
        let mount = format!("{volume}:{}", place(path));
        assert!(mounts.contains(&mount.as_str()), "{mount} is not among {mounts:?}");
        assert!(compose["volumes"].as_mapping().unwrap().contains_key(volume));
    }
    let file = volumes
        .iter()
        .find(|volume| volume["source"] == "./config.yaml")
        .unwrap();
    assert_eq!(file["target"], place("config.yaml".as_ref()).as_str());
    assert_eq!(file["read_only"], true);
}

/// The files that the documents have people put beside the compose file, in a checkout.
#[test]
fn what_is_one_s_own_beside_the_compose_file_gets_into_no_commit_and_no_image() {
    let (for_git, for_images) = (read(".gitignore"), read(".dockerignore"));
    for own in [
        ".env",
        "config.yaml",
        "*.pem",
        "*-token",
        "secrets",
        "our-cluster",
        "state",
        "logs",
    ] {
        let is_own = |line: &str| line.trim_matches('/') == own;
        assert!(for_git.lines().any(is_own), "git takes {own}");
        assert!(for_images.lines().any(is_own), "{own} gets into the image");
    }
}

#[test]
fn the_socket_is_given_to_the_worker_alone_and_no_environment_needs_more_than_building() {
    let compose = compose();
    for (name, service) in compose["services"].as_mapping().unwrap() {
        let text = serde_yaml::to_string(service).unwrap();
        let is_worker = name == "coding-agent";
        assert_eq!(text.contains("docker.sock"), is_worker, "{name:?}");
        // Rootless engines and podman have theirs elsewhere.
        let mount = "${DOCKER_SOCKET:-/var/run/docker.sock}:/var/run/docker.sock";
        assert_eq!(text.contains(mount), is_worker, "{name:?}");
        assert_eq!(
            texts_or_none(&service["profiles"]),
            if is_worker { vec![] } else { vec!["executor-build"] }
        );
    }
}

fn texts_or_none(value: &Value) -> Vec<&str> {
    let texts = value.as_sequence().into_iter().flatten();
    texts.filter_map(Value::as_str).collect()
}

#[test]
fn the_profile_builds_the_image_of_each_environment() {
    let compose = compose();
    let environments = Config::default().command_executor.environments;
    let services = compose["services"].as_mapping().unwrap();
    let images: BTreeMap<_, _> = services
        .iter()
        .filter_map(|(name, service)| Some((name.as_str()?.strip_prefix("executor-")?, service)))
        .collect();
    assert_eq!(
        images.keys().copied().collect::<Vec<_>>(),
        environments.keys().map(String::as_str).collect::<Vec<_>>()
    );
    for (name, environment) in &environments {
        let service = images[name.as_str()];
        for key in ["build", "image", "profiles", "command"] {
            assert!(service.get(key).is_some(), "executor-{name} has no {key}");
        }
        // The image's own entry point sleeps.
        let parts = ["entrypoint", "command"].map(|key| texts_or_none(&service[key]));
        assert_eq!(parts.concat(), ["env", "true"], "executor-{name}");
        assert_eq!(service["image"], environment.image.as_str());
        let build = &service["build"];
        let file = format!(
            "{}/{}",
            build["context"].as_str().unwrap(),
            build["dockerfile"].as_str().unwrap()
        );
        let base = build["args"]["BASE_IMAGE"].as_str().unwrap();
        let (_, default) = base.trim_end_matches('}').split_once(":-").unwrap();
        let dockerfile = read(&file);
        assert!(
            dockerfile.contains(&format!("ARG BASE_IMAGE={default}\n")),
            "{file} has another base than {default}"
        );
    }
}

#[test]
fn compose_itself_reads_the_file() {
    let has_plugin = Command::new("docker").args(["compose", "version"]).output();
    let compose: &[&str] = if has_plugin.is_ok_and(|output| output.status.success()) {
        &["docker", "compose"]
    } else {
        &["docker-compose"]
    };
    for arguments in [
        &["config", "--quiet"][..],
        &["--profile", "executor-build", "config", "--quiet"],
    ] {
        let mut command = Command::new(compose[0]);
        succeeds(command.args(&compose[1..]).args(arguments).current_dir(root()));
    }
}

#[test]
fn the_crontab_line_has_five_times_and_a_command() {
    let operations = read("docs/operations.md");
    let lines: Vec<_> = blocks(&operations)
        .into_iter()
        .flat_map(|(_, block)| block.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.starts_with("*/"))
        .collect();
    let [line] = lines.as_slice() else {
        panic!("not one crontab line: {lines:?}");
    };
    assert!(read("README.md").contains(line), "the README has another line");
    let words = words(line);
    for time in &words[..5] {
        assert!(time.chars().all(|letter| "*/,-0123456789".contains(letter)), "{time}");
    }
    // cron takes `%` for a line break, and its `cd` must lead to where the configuration lies.
    assert!(!line.contains('%'));
    assert_eq!(
        words[5..],
        ["cd", "/srv/coding-agent", "&&", "/usr/local/bin/coding-agent", "run"]
    );
    assert!(operations.contains("/srv/coding-agent/config.yaml"));
}

/// Whether systemd understands them, `make test-dist` asks in a container that has it.
#[test]
fn the_systemd_units_fit_the_program() {
    let operations = read("docs/operations.md");
    let units: Vec<_> = blocks(&operations)
        .into_iter()
        .filter(|(kind, _)| kind == "ini")
        .collect();
    let [(_, service), (_, timer)] = units.as_slice() else {
        panic!("not two units: {units:?}");
    };
    let of = |unit: &str, key: &str| {
        let value = unit.lines().find_map(|line| line.strip_prefix(&format!("{key}=")));
        value.unwrap_or_else(|| panic!("{key} is missing")).to_owned()
    };
    let start = words(&of(service, "ExecStart"));
    assert_eq!(start[0], "/usr/local/bin/coding-agent");
    is_taken(&start[1..]).unwrap();
    assert_eq!(of(service, "WorkingDirectory"), "/srv/coding-agent");
    let grace = of(service, "TimeoutStopSec").parse::<u64>().unwrap();
    assert!(grace >= Config::default().shutdown_grace_seconds + MARGIN, "{grace} s");
    // With systemd's default the git and the tool servers of a run would get the signal, too.
    assert_eq!(of(service, "KillMode"), "mixed");
    assert_eq!(of(timer, "WantedBy"), "timers.target");
}

#[test]
fn programs_that_tool_servers_fetch_have_a_place_in_the_worker_s_container() {
    let compose = compose();
    let service = &compose["services"]["coding-agent"];
    assert_eq!(service["read_only"].as_bool(), Some(true));
    let home = service["environment"]["HOME"].as_str().unwrap();
    // A named volume can be written, and what lies in it can be run; neither holds for the rest.
    let volumes = service["volumes"].as_sequence().unwrap().iter();
    let named: Vec<_> = volumes
        .filter_map(|volume| volume.as_str()?.split_once(':'))
        .filter(|(source, _)| !source.starts_with(['.', '/']))
        .collect();
    let (name, _) = named.iter().find(|(_, target)| *target == home).unwrap();
    assert!(compose["volumes"].as_mapping().unwrap().contains_key(*name));
}
