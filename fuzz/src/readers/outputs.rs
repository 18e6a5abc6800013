//! Readers of the outputs of tools and tests, and of changes.

use coding_agent::conversation::excerpt;
use coding_agent::evidence::check::{Checked, Ended};
use coding_agent::evidence::{difference, digest, failures, test_lines};

use super::text;

/// Reads the output of a test run. What the model is told of it is bounded, whatever it was.
pub fn test_output(bytes: &[u8]) {
    let output = text(bytes);
    assert!(failures::read(&output, "/workspace/project").len() <= 100);
    let cut = excerpt::middle_cut(&output, 1000, Some("a file"));
    assert!(cut.len() <= 1000 || output.len() <= 1000);
    let ended = Ended::new(Some(1), output.clone(), "/workspace/project");
    let checked = [Checked::new("make test", 0, &ended)];
    assert!(digest::digest(&checked, "").len() < 64 * 1024);
    let files = ["tests/test_a.py".to_owned(), "a_test.go".to_owned()];
    for place in test_lines::places(&checked, "/workspace/project", &files) {
        if let Some(lines) = test_lines::around(&place, &output) {
            assert!((lines.first..=lines.last).contains(&place.line) && lines.text.len() < 4 * 1024);
        }
    }
}

/// Reads a difference between two commits, and what it shows besides.
pub fn difference(bytes: &[u8]) {
    let findings = difference::inspect(&text(bytes));
    assert!(findings.len() <= 50);
    if !findings.is_empty() {
        let paths: usize = findings.iter().map(|finding| finding.path.len()).sum();
        assert!(difference::question(&findings).len() < paths + 32 * 1024);
    }
}
