//! The table of claims in docs/security.md names files, tests and classes of attacks that exist.

use std::collections::BTreeSet;

use crate::{read, root};

/// A row of the table: its cells without the claim, each as the names in backticks.
struct Row {
    claim: String,
    mechanism: Vec<String>,
    test: Vec<String>,
    attack: Vec<String>,
}

fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn rows() -> Vec<Row> {
    let text = read("docs/security.md");
    let table = text.split("| claim | mechanism | test | attack |").nth(1).unwrap();
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = lines.map(|line| line.trim_matches('|').split(" | ").collect::<Vec<_>>());
    cells
        .map(|cells| {
            assert_eq!(cells.len(), 4, "a row has four cells: {cells:?}");
            Row {
                claim: cells[0].trim().to_owned(),
                mechanism: names(cells[1]),
                test: names(cells[2]),
                attack: names(cells[3]),
            }
        })
        .collect()
}

/// Tells whether `name` is a file below one of `folders`.
fn is_file(name: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| root().join(folder).join(name).is_file())
}

#[test]
fn every_claim_names_what_holds_it_and_what_shows_it() {
    let rows = rows();
    assert!(rows.len() > 25, "the table was not found whole: {} rows", rows.len());
    for row in &rows {
        for file in row.mechanism.iter().filter(|name| name.contains('.')) {
            assert!(is_file(file, &["src", ""]), "{}: there is no {file}", row.claim);
        }
        assert!(!row.test.is_empty(), "{}: no test is named", row.claim);
        for test in row.test.iter().filter(|name| name.contains('/')) {
            assert!(is_file(test, &["tests", ""]), "{}: there is no {test}", row.claim);
        }
    }
}

#[test]
fn the_classes_of_attacks_that_the_claims_name_are_those_that_are_played() {
    let code = read("harness/attack/class.rs");
    let list = code
        .split("fn name")
        .nth(1)
        .unwrap()
        .split("fn describe")
        .next()
        .unwrap();
    let mut played: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    let door = read("harness/attack/door/mod.rs");
    played.extend(
        door.split("name: \"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap()),
    );
    let rows = rows();
    let claimed: BTreeSet<&str> = rows.iter().flat_map(|row| &row.attack).map(String::as_str).collect();
    assert_eq!(claimed, played);
}
