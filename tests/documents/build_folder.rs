//! `make` works wherever cargo builds: the Makefile and the scripts never take `target/` for
//! granted. And it builds executors for other processors, where their target and a linker are there.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::{read, root};

/// Returns what `scripts/target-dir` prints where `CARGO_TARGET_DIR` is `named`.
fn target_dir(named: Option<&str>) -> String {
    let mut script = Command::new(root().join("scripts/target-dir"));
    script.current_dir("/");
    match named {
        Some(named) => script.env("CARGO_TARGET_DIR", named),
        None => script.env_remove("CARGO_TARGET_DIR"),
    };
    let output = script.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_folder_that_cargo_builds_into_is_found() {
    assert_eq!(target_dir(Some("/somewhere/else")), "/somewhere/else");
    let relative = root().join("elsewhere");
    assert_eq!(Path::new(&target_dir(Some("elsewhere"))), relative);
    assert!(Path::new(&target_dir(None)).is_absolute());
}

#[test]
fn no_command_of_make_names_the_build_folder_itself() {
    for file in [
        "Makefile",
        "scripts/setup",
        "scripts/fuzz",
        "scripts/with-docker",
        "scripts/dist",
        "scripts/documents",
        "scripts/package-debian",
        "scripts/images",
        "scripts/site",
        "scripts/test-dist",
    ] {
        let text = read(file);
        let named: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#') && line.contains("target/"))
            .collect();
        assert!(named.is_empty(), "{file} takes the folder for granted: {named:?}");
    }
}

/// Returns the commands that `make` would run for these words.
fn dry_run(words: &[&str]) -> String {
    let mut make = Command::new("make");
    let output = make
        .arg("--dry-run")
        .args(words)
        .current_dir(root())
        .env_remove("PROGRAMS")
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// `make test-dist` installs programs that are built; a release is too long for a test.
#[test]
fn an_installation_takes_what_it_has_built_unless_programs_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let destination = format!("DESTDIR={}", folder.path().display());
    let target = target_dir(None);
    let expected = [
        "cargo build --release --locked --bin coding-agent\n".to_owned(),
        "cargo rustc --release --locked --bin coding-agent-executor -- -C target-feature=+crt-static\n".to_owned(),
        format!("install -D \"{target}/release/coding-agent\" "),
        format!("install -D \"{target}/release/coding-agent-executor\" "),
        format!("scripts/shipped \"{target}/release/coding-agent\" "),
    ];

    let does = dry_run(&["install", &destination]);
    let named = dry_run(&["install", &destination, "PROGRAMS=/built"]);

    for step in expected {
        assert!(does.contains(&step), "{step:?} is not in\n{does}");
    }
    assert!(
        !named.contains("cargo build") && !named.contains("cargo rustc"),
        "{named}"
    );
    assert!(named.contains("install -D \"/built/coding-agent\" "), "{named}");
}

/// The message about an executor for another processor names a command; so does the documentation.
#[test]
fn the_command_that_builds_for_another_processor_is_one_that_make_has() {
    let message = read("src/environment/executor/file.rs");
    assert!(message.contains("`make build TARGET={name}-unknown-linux-musl`"));
    let command = "make build TARGET=aarch64-unknown-linux-musl";
    assert!(read("docs/configuration.md").contains(&format!("`{command}`")));

    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let does = dry_run(&words);

    assert!(
        does.contains("TARGET_TRIPLE=aarch64-unknown-linux-musl scripts/setup executor"),
        "{does}"
    );
}

/// Variables that a set-up looks at.
const LOOKED_AT: [&str; 8] = [
    "PROFILE",
    "OPENAI_BASE_URL",
    "OPENAI_MODEL",
    "OLLAMA_HOST",
    "OLLAMA_MODEL",
    "MODEL_FILE",
    "PROVE",
    "COMPARE",
];

/// A machine for whose toolchain there are stubs: they say what they are asked for.
struct Machine(tempfile::TempDir);

impl Machine {
    fn with(programs: &[&str]) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        // Where the target's library lies, whether it does or not.
        machine.has("rustc", "echo \"$(dirname \"$0\")/library\"");
        let cargo = "case $1 in --version) echo 'cargo 99.0.0' ;; metadata) exit 1 ;; *) echo \"$@\" with \
            \"$CARGO_TARGET_ODD64_UNKNOWN_LINUX_MUSL_LINKER\" && folder=\"$CARGO_TARGET_DIR/odd64-unknown-linux-musl/debug\" && \
            mkdir -p \"$folder\" \"$CARGO_TARGET_DIR/debug\" && echo program >\"$folder/coding-agent-executor\" ;; esac";
        machine.has("cargo", cargo);
        for program in programs {
            machine.has(program, "exit 1");
        }
        machine
    }

    fn has(&self, program: &str, does: &str) {
        let file = self.0.path().join(program);
        std::fs::write(&file, format!("#!/bin/sh\n{does}\n")).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn builds(&self) -> Output {
        self.sets_up("executor", &[("TARGET_TRIPLE", "odd64-unknown-linux-musl")])
    }

    /// Calls `scripts/setup` with these variables.
    fn sets_up(&self, what: &str, variables: &[(&str, &str)]) -> Output {
        let mut setup = Command::new("sh");
        setup
            .args(["-c", r#"PATH="$0:$PATH" exec "$1" "$2""#])
            .arg(self.0.path())
            .arg(root().join("scripts/setup"))
            .arg(what)
            .env("CARGO_TARGET_DIR", self.0.path().join("target"));
        for name in LOOKED_AT {
            setup.env_remove(name);
        }
        setup.envs(variables.iter().copied()).output().unwrap()
    }
}

/// Returns what a set-up that fails complains of.
fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn building_for_another_processor_says_what_is_missing() {
    let machine = Machine::with(&[]);
    let said = complaint(&machine.builds());
    assert!(
        said.contains("run `rustup target add odd64-unknown-linux-musl` and this again"),
        "{said}"
    );

    std::fs::create_dir(machine.0.path().join("library")).unwrap();
    let said = complaint(&machine.builds());
    assert!(
        said.contains("Debian's gcc-odd64-linux-gnu") && said.contains("CARGO_TARGET_ODD64_UNKNOWN_LINUX_MUSL_LINKER"),
        "{said}"
    );
}

#[test]
fn with_target_and_linker_the_executor_for_another_processor_lies_beside_the_program() {
    let machine = Machine::with(&["odd64-linux-gnu-gcc"]);
    std::fs::create_dir(machine.0.path().join("library")).unwrap();

    let output = machine.builds();

    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let asked = "--target odd64-unknown-linux-musl --bin coding-agent-executor -- -C target-feature=+crt-static -C strip=symbols with \
        odd64-linux-gnu-gcc";
    assert!(said.contains(asked), "{said}");
    assert!(
        machine
            .0
            .path()
            .join("target/debug/coding-agent-executor-odd64")
            .is_file(),
        "{said}"
    );
}

#[test]
fn what_is_wanted_for_chosen_tests_is_said_before_anything_is_set_up() {
    let machine = Machine::with(&[]);
    machine.has(
        "cargo",
        "case $1 in --version) echo 'cargo 99.0.0' ;; *) exit 1 ;; esac",
    );
    for what in ["nextest", "test-engines", "test-kubernetes", "test-postgres"] {
        let output = machine.sets_up(what, &[]);
        assert!(output.stdout.is_empty(), "{what} has begun: {output:?}");
        let said = complaint(&output);
        assert!(said.contains("cargo install --locked cargo-nextest"), "{what}: {said}");
    }
}

#[test]
fn a_model_that_is_missing_is_said_before_anything_is_set_up() {
    let machine = Machine::with(&[]);
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[], "no model is named: set OPENAI_BASE_URL with OPENAI_MODEL"),
        (&[("OPENAI_BASE_URL", "http://127.0.0.1:1")], "OPENAI_MODEL is not set"),
        (&[("OLLAMA_HOST", "127.0.0.1:1")], "OLLAMA_MODEL is not set"),
        (
            &[("MODEL_FILE", "/nowhere/model.gguf")],
            "MODEL_FILE=/nowhere/model.gguf is no file",
        ),
    ];
    for (variables, wanted) in cases {
        let output = machine.sets_up("solve-rate", variables);
        assert!(output.stdout.is_empty(), "{variables:?}: it has begun: {output:?}");
        let said = complaint(&output);
        assert!(said.contains(wanted), "{variables:?}: {said}");
    }
}

/// A user who is put into the group docker in the middle of a command has its rights only in the
/// next one.
#[test]
fn whatever_needs_the_engine_has_it_set_up_before() {
    let (makefile, setup) = (read("Makefile"), read("scripts/setup"));
    let (_, arms) = setup.split_once("  case $what in\n").unwrap();
    let has_engine = |what: &str| {
        let is_its_own = |line: &&str| {
            let names = line.trim_start().split_once(')').map(|(names, _)| names);
            names.is_some_and(|names| names.split('|').any(|name| name.trim() == what))
        };
        let lines: Vec<&str> = arms.lines().skip_while(|line| !is_its_own(line)).collect();
        let arm = lines.join("\n");
        arm.split(";;").next().unwrap().contains("system")
    };
    let mut needing = 0;
    for rule in makefile.split("\n\n") {
        let Some((before, _)) = rule.split_once("scripts/with-docker") else {
            continue;
        };
        needing += 1;
        let set_up = before.split("scripts/setup ").skip(1);
        let mut set_up = set_up.filter_map(|rest| rest.split_whitespace().next());
        assert!(set_up.any(has_engine), "{rule}");
    }
    assert!(needing > 10, "the rules were not read: {needing}");
}

#[test]
fn what_was_installed_is_removed_and_nothing_beside_it() {
    let machine = Machine::with(&[]);
    machine.has(
        "coding-agent",
        "case $1 in manual) touch \"$2/coding-agent.1\" \"$2/coding-agent-run.1\" ;; completions) echo \"$2\" ;; esac",
    );
    machine.has("coding-agent-executor", "exit 1");
    let folder = tempfile::tempdir().unwrap();
    let make = |target: &str| {
        let mut make = Command::new("make");
        let output = make
            .args(["--no-print-directory", target])
            .arg(format!("DESTDIR={}", folder.path().display()))
            .arg(format!("PROGRAMS={}", machine.0.path().display()))
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let files = || {
        let mut found = Command::new("find");
        let output = found.arg(folder.path()).args(["-type", "f"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };

    make("install");
    assert_eq!(files().len(), 7, "{:?}", files());
    let other = folder.path().join("usr/local/share/man/man1/other.1");
    std::fs::write(&other, "").unwrap();
    make("uninstall");

    assert_eq!(files(), [other.display().to_string()]);
}
