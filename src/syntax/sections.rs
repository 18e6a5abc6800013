//! Sections of Markdown and keys of configuration files, by their lines.

use super::{Definition, Kind};

const MOST: usize = 2_000;
const LONGEST_NAME: usize = 120;

/// Returns the sections of a Markdown file, each up to the next heading of whatever level.
pub(super) fn of_markdown(text: &str) -> Vec<Definition> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let opens = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
        match (fence, opens) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            (Some(_), _) => {}
            (None, None) => {
                let level = line.bytes().take_while(|byte| *byte == b'#').count();
                let title = line.trim_matches(['#', ' ', '\t']);
                if (1..=6).contains(&level) && line[level..].starts_with([' ', '\t']) && !title.is_empty() {
                    begin(&mut found, number, title, Kind::Section);
                }
            }
        }
    }
    finish(found, text)
}

/// Returns the top-level keys and sections of a configuration file.
pub(super) fn of_configuration(path: &str, text: &str) -> Vec<Definition> {
    let is_json = path.rsplit('.').next() == Some("json");
    let indent = text
        .lines()
        .nth(1)
        .map_or(0, |line| line.len() - line.trim_start().len());
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let name = if is_json { json_key(line, indent) } else { key(line) };
        if let Some(name) = name {
            begin(&mut found, number, name, Kind::Key);
        }
    }
    finish(found, text)
}

fn key(line: &str) -> Option<&str> {
    if let Some(section) = line.strip_prefix('[') {
        return Some(section.trim_matches(['[', ']', ' ', '\r'])).filter(|name| !name.is_empty());
    }
    let end = line.find([':', '='])?;
    let name = line[..end].trim_end();
    let is_key = |letter: char| letter.is_alphanumeric() || "_-.\"'/ ".contains(letter);
    let begins = line.starts_with(|first: char| first.is_alphanumeric() || "_\"'".contains(first));
    (begins && name.chars().all(is_key)).then(|| name.trim_matches(['"', '\'']))
}

fn json_key(line: &str, indent: usize) -> Option<&str> {
    let rest = line.trim_start();
    if line.len() - rest.len() != indent {
        return None;
    }
    let (name, after) = rest.strip_prefix('"')?.split_once('"')?;
    (after.trim_start().starts_with(':') && !name.is_empty()).then_some(name)
}

fn begin(found: &mut Vec<Definition>, number: usize, name: &str, kind: Kind) {
    if found.len() == MOST {
        return;
    }
    if let Some(before) = found.last_mut() {
        before.last = number.saturating_sub(1);
    }
    found.push(Definition {
        name: name.chars().take(LONGEST_NAME).collect(),
        parent: String::new(),
        kind,
        first: number,
        last: number,
    });
}

fn finish(mut found: Vec<Definition>, text: &str) -> Vec<Definition> {
    if let Some(last) = found.last_mut() {
        last.last = text.lines().count().saturating_sub(1).max(last.first);
    }
    found
}
