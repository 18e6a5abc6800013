//! The cells of docs/compatibility.md say something, and those that say *tested by* name tests that
//! exist.

use std::path::Path;

use crate::{read, root};

#[test]
fn every_test_that_shows_a_compatibility_exists() {
    let text = read("docs/compatibility.md");
    let cells = text
        .lines()
        .filter(|line| line.starts_with('|'))
        .flat_map(|line| line.split('|'));
    let mut named = 0;
    for cell in cells.filter(|cell| cell.contains("tested by")) {
        let files = cell.split('`').skip(1).step_by(2).filter(|name| is_source(name));
        let mut has_test = false;
        for file in files {
            assert!(root().join("tests").join(file).is_file(), "{cell}: there is no {file}");
            has_test = true;
            named += 1;
        }
        assert!(has_test, "no test is named: {cell}");
    }
    assert!(named > 10, "the tables were not read: {named} tests are named");
}

#[test]
fn every_command_that_shows_a_compatibility_is_there() {
    let (text, makefile) = (read("docs/compatibility.md"), read("Makefile"));
    let commands = text
        .split("`make ")
        .skip(1)
        .filter_map(|rest| rest.split(['`', ' ']).next());
    for command in commands {
        assert!(
            makefile.contains(&format!("\n{command}:")),
            "there is no `make {command}`"
        );
    }
}

#[test]
fn no_cell_is_empty() {
    let text = read("docs/compatibility.md");
    let mut rows = 0;
    for row in text.lines().filter_map(|line| line.strip_prefix('|')) {
        let row = row.trim_end();
        let mut cells = row.strip_suffix('|').unwrap_or(row).split('|');
        assert!(cells.all(|cell| !cell.trim().is_empty()), "a cell is empty: {row}");
        rows += 1;
    }
    assert!(rows > 60, "the tables were not read: {rows} rows");
}

/// Tells files from names of packages, which have a slash, too.
fn is_source(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "rs")
}
