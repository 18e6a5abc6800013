//! The schema of the Compose specification, which Compose v2 reads files by, judges the compose file:
//! a machine whose Compose is v1 says nothing of what v2 takes.

use std::path::{Path, PathBuf};

use crate::python::judge;

#[test]
fn the_compose_file_is_one_by_the_specification_too() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docker-compose.yml")).unwrap();
    let file: serde_json::Value = serde_yaml::from_str(&text).unwrap();
    let usual = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges-npm");
    let packages = std::env::var_os("CODING_AGENT_TEST_NODE").map_or_else(usual, PathBuf::from);
    let schema = packages.join("node_modules/dclint/schemas/compose.schema.json");
    assert!(
        schema.exists(),
        "there is no schema at {}: run `make setup`",
        schema.display()
    );
    let environment = [
        ("COMPOSE_FILE", file.to_string()),
        ("SCHEMA", schema.display().to_string()),
    ];
    judge(
        "compose_file.py",
        &environment.each_ref().map(|(name, value)| (*name, value.as_str())),
    );
}
