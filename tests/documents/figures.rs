//! The figures for Prometheus that the program has are those that operations tells of.

use std::collections::BTreeSet;

use crate::read;

/// Returns the names of figures between these signs.
fn named(text: &str, sign: char) -> BTreeSet<String> {
    let opening = format!("{sign}coding_agent_");
    let names = text.split(opening.as_str()).skip(1);
    let names = names.filter_map(|rest| rest.split_once(sign));
    names.map(|(name, _)| format!("coding_agent_{name}")).collect()
}

#[test]
fn every_figure_of_the_program_is_in_the_table_and_no_other() {
    let program = ["src/web/metrics.rs", "src/web/metrics/forges.rs"].map(read).concat();
    let operations = read("docs/operations.md");
    let rows = operations.lines().filter(|line| line.starts_with("| `coding_agent_"));
    let told: Vec<_> = rows.filter_map(|row| row.split('|').nth(1)).collect();

    let figures = named(&program, '"');

    assert!(figures.len() >= 20, "{figures:?}");
    assert_eq!(figures, named(&told.concat(), '`'));
}
