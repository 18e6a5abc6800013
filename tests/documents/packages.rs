//! The parts of the packages fit the program and the documents. `make test-dist` builds and
//! installs them.

use std::collections::BTreeSet;

use coding_agent::config::Config;

use crate::{documents, is_markdown, is_taken, read, root, words};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Seconds that a stop must leave the program beyond its own grace period, to remove its
/// containers.
const MARGIN: u64 = 10;

fn of(unit: &str, key: &str) -> String {
    let value = unit.lines().find_map(|line| line.strip_prefix(&format!("{key}=")));
    value
        .unwrap_or_else(|| panic!("{key} is missing in\n{unit}"))
        .to_owned()
}

#[test]
fn the_units_of_the_package_fit_the_program() {
    for (file, command) in [("coding-agent.service", "serve"), ("coding-agent-run.service", "run")] {
        let unit = read(&format!("packaging/{file}"));
        let start = words(&of(&unit, "ExecStart"));
        assert_eq!(start, ["/usr/bin/coding-agent", command]);
        is_taken(&start[1..]).unwrap();
        let grace: u64 = of(&unit, "TimeoutStopSec").parse().unwrap();
        assert!(grace >= Config::default().shutdown_grace_seconds + MARGIN, "{grace} s");
        assert_eq!(of(&unit, "User"), "coding-agent");
    }
    let timer = read("packaging/coding-agent-run.timer");
    assert_eq!(of(&timer, "WantedBy"), "timers.target");
}

#[test]
fn the_configuration_of_the_package_keeps_everything_where_its_units_allow_it() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("github-token");
    std::fs::write(&token, "a-token").unwrap();
    let text = read("packaging/config.yaml").replace("/etc/coding-agent/github-token", token.to_str().unwrap());
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, text).unwrap();
    let config = Config::load(&file, &|_| None).unwrap();
    assert_eq!(config.missing_source(), None);
    for unit in ["packaging/coding-agent.service", "packaging/coding-agent-run.service"] {
        let unit = read(unit);
        let writable = of(&unit, "ReadWritePaths");
        for path in [&config.state_dir, &config.logs.directory] {
            let is_allowed = writable.split(' ').any(|folder| path.starts_with(folder));
            assert!(is_allowed, "{} cannot be written: {writable}", path.display());
        }
    }
    let folders = read("packaging/coding-agent.tmpfiles");
    let made: BTreeSet<_> = folders.lines().filter_map(|line| line.strip_prefix("d ")).collect();
    assert_eq!(made.len(), 2, "{made:?}");
    assert!(
        made.iter()
            .all(|line| line.contains(" 0700 coding-agent coding-agent ")),
        "{made:?}"
    );
}

#[test]
fn every_configuration_file_of_the_package_is_kept_by_updates() {
    let kept = read("packaging/debian/conffiles");
    let script = read("scripts/package-debian");
    let shipped: BTreeSet<String> = script
        .lines()
        .filter(|line| line.starts_with("put "))
        .filter_map(|line| line.split(' ').next_back())
        .filter(|path| path.starts_with("etc/"))
        .map(|path| format!("/{path}"))
        .collect();
    assert!(!shipped.is_empty());
    assert_eq!(shipped, kept.lines().map(str::to_owned).collect());
}

#[test]
fn no_configuration_file_of_the_package_is_open_to_everybody() {
    let modes = read("packaging/coding-agent.tmpfiles");
    for file in read("packaging/debian/conffiles").lines() {
        let line = modes.lines().find(|line| line.starts_with(&format!("z {file} ")));
        let mode = line.and_then(|line| line.split(' ').nth(2));
        assert!(mode.is_some_and(|mode| mode.ends_with('0')), "{file}: {line:?}");
    }
}

/// Of a remark behind a value systemd makes a part of the value.
#[test]
fn the_variables_of_the_package_are_proposed_without_remarks_behind_them() {
    let file = read("packaging/coding-agent.default");
    let proposed = file.lines().filter_map(|line| line.strip_prefix('#')?.split_once('='));
    let proposed: Vec<_> = proposed.filter(|(name, _)| !name.contains(' ')).collect();
    let names: Vec<_> = proposed.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["DOCKER_HOST", "HTTPS_PROXY", "http_proxy", "NO_PROXY"]);
    for (name, value) in proposed {
        assert!(!value.contains([' ', '#', '"']), "{name}={value}");
    }
}

#[test]
fn the_service_s_image_can_be_made_of_built_programs() {
    let dockerfile = read("docker/Dockerfile");
    let (_, runtime) = dockerfile.split_once("\nFROM ${RUNTIME_IMAGE}\n").unwrap();
    let copied: Vec<_> = runtime.lines().filter(|line| line.starts_with("COPY")).collect();
    assert_eq!(
        copied,
        ["COPY --from=build /coding-agent /coding-agent-executor-static /usr/local/bin/"],
        "scripts/setup takes this line for programs that are built already"
    );
}

#[test]
fn an_image_on_a_stand_in_is_told_from_a_release() {
    let label = "coding-agent.stand-in";
    let stand_in = read("scripts/stand-ins/common.Dockerfile");
    assert!(stand_in.contains(&format!("\nLABEL {label}=true\n")));
    for file in ["scripts/images", "docs/install.md"] {
        assert!(read(file).contains(label), "{file}");
    }
    for name in ["go", "java", "node", "python"] {
        let dockerfile = read(&format!("scripts/stand-ins/{name}.Dockerfile"));
        let base = dockerfile.lines().rfind(|line| line.starts_with("FROM "));
        assert_eq!(base, Some("FROM ${BASE_IMAGE}"), "{name}");
    }
}

#[test]
fn the_version_is_the_same_wherever_it_stands() {
    let changelog = read("CHANGELOG.md");
    let released = changelog
        .lines()
        .filter_map(|line| line.strip_prefix("## ["))
        .nth(1)
        .unwrap();
    let (version, date) = released.split_once("] - ").unwrap();
    assert_eq!(version, VERSION, "the newest release of CHANGELOG.md");
    assert_eq!(date.len(), "2026-01-01".len());
    let install = read("docs/install.md");
    for name in [
        format!("coding-agent-{VERSION}-x86_64-unknown-linux-gnu.tar.gz"),
        format!("coding-agent_{VERSION}_amd64.deb"),
        format!("coding-agent:{VERSION}-mcp"),
    ] {
        assert!(install.contains(&name), "docs/install.md does not name {name}");
    }
}

#[test]
fn what_the_package_ships_and_the_archive_too_is_there() {
    for script in ["scripts/package-debian", "scripts/dist", "scripts/documents"] {
        for word in read(script).split_whitespace() {
            let is_document = is_markdown(word) && !word.contains(['*', '$']);
            assert!(
                !is_document || root().join(word).is_file(),
                "{script} ships {word}, which is not there"
            );
        }
    }
    assert!(documents().contains(&"docs/install.md".to_owned()));
}
