//! Recognises tests that only have another name: what they do is the same.

use std::collections::{BTreeMap, HashMap};

use super::hunks::{Line, Side};

/// Number of unchanged lines behind the last change of a hunk, unless the file ends before.
const CONTEXT: usize = 3;

/// A test on one side of a diff.
#[derive(Debug)]
struct Body {
    name: String,
    path: String,
    /// Its lines, without the name and without white space.
    text: String,
    /// The hunk that shows only the beginning of it; `None` if the diff shows all of it.
    cut_in: Option<usize>,
}

/// The tests of one side, and the one that the lines read last belong to, with its indentation.
#[derive(Debug, Default)]
struct Sighted {
    bodies: Vec<Body>,
    open: Option<(Body, usize)>,
}

/// The tests that a diff shows, on both sides.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    old: Sighted,
    new: Sighted,
    hunk: usize,
    /// Number of unchanged lines in a row at the end of what was read of the hunk.
    unchanged: usize,
}

impl Bodies {
    pub(super) fn line(&mut self, line: &Line<'_>) {
        if line.hunk != self.hunk {
            self.end_hunk();
            self.hunk = line.hunk;
        }
        match line.side {
            Side::Old => self.old.line(line),
            Side::New => self.new.line(line),
        }
        if line.is_context {
            self.unchanged += usize::from(line.side == Side::New);
        } else {
            self.unchanged = 0;
        }
    }

    /// Ends the tests that reach to the end of the hunk, which may be longer than that.
    fn end_hunk(&mut self) {
        let cut_in = (self.unchanged >= CONTEXT).then_some(self.hunk);
        self.old.end(cut_in);
        self.new.end(cut_in);
        self.unchanged = 0;
    }

    /// Takes tests with another name out of `tests`, which counts those on the old side less those
    /// on the new one, and out of those that were added to each file.
    pub(super) fn settle(
        mut self,
        tests: &mut BTreeMap<String, (i64, String)>,
        tests_added: &mut BTreeMap<String, usize>,
    ) {
        self.end_hunk();
        let mut same: HashMap<(&str, Option<usize>), Vec<&Body>> = HashMap::new();
        for body in &self.new.bodies {
            same.entry((body.text.as_str(), body.cut_in)).or_default().push(body);
        }
        for body in &self.old.bodies {
            let count = |name: &String| tests.get(name).map_or(0, |(count, _)| *count);
            let Some(others) = same.get_mut(&(body.text.as_str(), body.cut_in)) else {
                continue;
            };
            let renamed = others.iter().position(|other| count(&other.name) < 0);
            let Some(place) = renamed.filter(|_| count(&body.name) > 0) else {
                continue;
            };
            let other = others.swap_remove(place);
            for (name, change) in [(&body.name, -1), (&other.name, 1)] {
                tests.entry(name.clone()).and_modify(|(count, _)| *count += change);
            }
            tests_added
                .entry(other.path.clone())
                .and_modify(|added| *added = added.saturating_sub(1));
        }
    }
}

impl Sighted {
    fn line(&mut self, line: &Line<'_>) {
        let indentation = line.text.len() - line.text.trim_start().len();
        if let Some(name) = &line.test {
            self.end(None);
            let head = line.text.replacen(name.as_str(), "", 1);
            let body = Body {
                name: name.clone(),
                path: line.path.to_owned(),
                text: head.split_whitespace().collect(),
                cut_in: None,
            };
            self.open = Some((body, indentation));
            return;
        }
        let Some((body, of_head)) = &mut self.open else {
            return;
        };
        let text = line.text.trim();
        // The end of a list of parameters on several lines stands where the test begins.
        if text.is_empty() || indentation > *of_head || text.starts_with([')', ']']) {
            body.text.extend(text.split_whitespace());
        } else {
            self.end(None);
        }
    }

    fn end(&mut self, cut_in: Option<usize>) {
        if let Some((body, _)) = self.open.take() {
            self.bodies.push(Body { cut_in, ..body });
        }
    }
}
