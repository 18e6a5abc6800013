//! Cuts a file into places: each definition with the comment above it, long ones in parts, and
//! whatever is outside of definitions in windows of lines.
//!
//! Each line counts for one place alone, the innermost: a class is found by its own lines, not by
//! those of its methods, which would make long classes answer to every question.

use super::{Chunk, Definition, Kind};

/// Most lines of one place, and lines of the parts of a longer one.
const LONGEST: usize = 100;
const PART: usize = 60;
/// Lines of a window where there are no definitions.
const WINDOW: usize = 40;
/// Most lines of the comment above a definition that belong to it.
const LONGEST_COMMENT: usize = 30;
const MOST: usize = 8_000;
/// Beginnings of lines above a definition that belong to it.
const ABOVE: [&str; 8] = ["//", "#", "*", "/*", "@", "--", "\"\"\"", "template"];

/// Returns the places of a file.
pub(super) fn cut(text: &str, definitions: &[Definition]) -> Vec<Chunk> {
    let lines: Vec<&str> = text.lines().collect();
    // What a parser made up for a broken end may begin behind the last line.
    let is_there = |definition: &&Definition| definition.first < lines.len();
    let definitions: Vec<&Definition> = definitions.iter().filter(is_there).collect();
    let mut owners: Vec<Option<usize>> = vec![None; lines.len()];
    for (index, definition) in definitions.iter().enumerate() {
        let first = with_comment(&lines, &owners, definition);
        let last = definition.last.min(lines.len().saturating_sub(1));
        if let Some(owned) = owners.get_mut(first..=last) {
            owned.fill(Some(index));
        }
    }
    let mut runs: Vec<Vec<(usize, usize)>> = vec![Vec::new(); definitions.len()];
    let mut free = Vec::new();
    let mut at = 0;
    while at < owners.len() {
        let mut end = at;
        while end + 1 < owners.len() && owners[end + 1] == owners[at] {
            end += 1;
        }
        match owners[at] {
            Some(index) => runs[index].push((at, end)),
            None => free.push((at, end)),
        }
        at = end + 1;
    }
    let mut chunks = Vec::new();
    for (definition, runs) in definitions.iter().zip(&runs) {
        of_definition(definition, runs, &mut chunks);
    }
    for run in free {
        windows(&lines, run, &mut chunks);
    }
    chunks.sort_by_key(|chunk| (chunk.first, chunk.last));
    chunks.truncate(MOST);
    chunks
}

/// Returns the first line of a definition, with the comment and the attributes above it.
fn with_comment(lines: &[&str], owners: &[Option<usize>], definition: &Definition) -> usize {
    let mut first = definition.first;
    if matches!(definition.kind, Kind::Section | Kind::Key) {
        return first;
    }
    let owner = owners.get(first).copied().flatten();
    while first > 0 && definition.first - first < LONGEST_COMMENT {
        let above = lines[first - 1].trim_start();
        let belongs = ABOVE.iter().any(|mark| above.starts_with(mark)) && !above.starts_with("#include");
        if !belongs || owners[first - 1] != owner {
            break;
        }
        first -= 1;
    }
    first
}

fn of_definition(definition: &Definition, runs: &[(usize, usize)], chunks: &mut Vec<Chunk>) {
    let chunk = |first: usize, last: usize, own: Vec<(usize, usize)>| Chunk {
        name: definition.name.clone(),
        parent: definition.parent.clone(),
        kind: definition.kind,
        first: first + 1,
        last: last + 1,
        own: own.into_iter().map(|(first, last)| (first + 1, last + 1)).collect(),
    };
    if runs.is_empty() {
        // All its lines are those of its members; its name counts nevertheless.
        chunks.push(chunk(definition.first, definition.first, Vec::new()));
        return;
    }
    let total: usize = runs.iter().map(|(first, last)| last - first + 1).sum();
    if let (true, Some((first, last))) = (total <= LONGEST, runs.first().copied()) {
        chunks.push(chunk(first, last, runs.to_vec()));
        return;
    }
    for &(first, last) in runs {
        let mut at = first;
        while at <= last {
            let end = (at + PART - 1).min(last);
            chunks.push(chunk(at, end, vec![(at, end)]));
            at = end + 1;
        }
    }
}

fn windows(lines: &[&str], (first, last): (usize, usize), chunks: &mut Vec<Chunk>) {
    let mut at = first;
    while at <= last {
        let mut end = (at + WINDOW - 1).min(last);
        // A short rest is no window of its own.
        if last - end < WINDOW / 4 {
            end = last;
        }
        if lines[at..=end]
            .iter()
            .any(|line| line.chars().any(char::is_alphanumeric))
        {
            chunks.push(Chunk {
                name: String::new(),
                parent: String::new(),
                kind: Kind::Lines,
                first: at + 1,
                last: end + 1,
                own: vec![(at + 1, end + 1)],
            });
        }
        at = end + 1;
    }
}
