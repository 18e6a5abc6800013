//! `make` works wherever cargo builds: the Makefile and the scripts never take `target/` for
//! granted.

use std::path::Path;
use std::process::Command;

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
