//! Files of a repository, as the code index reads them.

use coding_agent::plan::evidence::Citation;
use coding_agent::syntax::{self, cited, words};

use super::text;

/// Ends of names by which a file is given to each parser.
const NAMES: [&str; 15] = [
    "a.py", "a.js", "a.ts", "a.tsx", "a.java", "a.go", "a.rs", "a.c", "a.cpp", "a.rb", "a.md", "a.yaml", "a.json",
    "a.toml", "a",
];

/// A file in a language that its first byte chooses: its places lie within it, and no line counts
/// for two of them.
pub fn source(bytes: &[u8]) {
    let (choice, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let source = text(rest);
    let lines = source.lines().count();
    let outline = syntax::outline(NAMES[usize::from(*choice) % NAMES.len()], &source);
    let mut owned = vec![false; lines + 1];
    for chunk in outline.chunks {
        assert!(
            1 <= chunk.first && chunk.first <= chunk.last && chunk.last <= lines.max(1),
            "{chunk:?}"
        );
        for line in chunk.own.iter().flat_map(|(first, last)| *first..=*last) {
            assert!(!std::mem::replace(&mut owned[line], true), "line {line} counts twice");
        }
    }
    words::each(&source, |word| {
        assert!(!word.is_empty() && word.len() <= 4 * words::LONGEST && !word.contains(['"', ' ', '\n']));
    });
    let citation = Citation {
        lines: source.clone(),
        why: source,
        path: String::new(),
    };
    assert!(citation.lines().is_none_or(|(first, _)| first >= 1));
    let names = cited::names(&citation.why, "a.py");
    assert!(names.iter().all(|name| !name.is_empty()));
    assert!(cited::missing(&names, &citation.why).is_none());
}
