//! Walks through a unified diff line by line, and knows file, side and number of each line, and
//! which test begins there.

use crate::evidence::language::{continues_mark, is_code, marks_test, test_name};

/// Longest part of a line that is read: longer lines were written by a program.
const LONGEST_LINE: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Old,
    New,
}

/// A line of one side of a hunk. A context line is on both, one after the other.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) side: Side,
    pub(super) is_context: bool,
    /// Number of the hunk in the diff, from 1.
    pub(super) hunk: usize,
    pub(super) path: &'a str,
    /// Number of the line in the file of its side, from 1.
    pub(super) number: u32,
    pub(super) text: &'a str,
    /// The line above it on the same side, if the hunk shows it.
    pub(super) before: &'a str,
    /// The name of the test that begins on this line.
    pub(super) test: Option<String>,
    /// Whether a test begins in the same hunk, on this line or above it.
    pub(super) is_among_tests: bool,
    /// Whether the file is new; known only for lines of the new side.
    pub(super) is_in_new_file: bool,
}

/// State of one side of a hunk.
#[derive(Default)]
struct Sight<'a> {
    number: u32,
    before: &'a str,
    is_marked: bool,
    has_test: bool,
}

/// A walk through a diff.
#[derive(Default)]
pub(super) struct Walk<'a> {
    path: &'a str,
    old_path: &'a str,
    old: Sight<'a>,
    new: Sight<'a>,
    /// Number of lines of each side that are left in the hunk.
    left: (u32, u32),
    /// Number of hunks so far.
    hunks: usize,
    deleted: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    /// Returns the files that were deleted.
    pub(super) fn deleted(&self) -> &[&'a str] {
        &self.deleted
    }

    /// Reads one line of the diff, and calls `show` for the lines of the file that it stands for:
    /// none, one of one side, or one of each.
    pub(super) fn step(&mut self, line: &'a str, mut show: impl FnMut(&Line<'a>)) {
        // Inside a hunk the counts decide: a deleted line may look like the head of a file.
        if self.left == (0, 0) {
            self.head(line);
            return;
        }
        let (first, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        let text = &text[..text.floor_char_boundary(LONGEST_LINE)];
        match first {
            "-" => show(&self.old_line(text, false)),
            "+" => show(&self.new_line(text, false)),
            // The line "No newline at end of file".
            "\\" => {}
            _ => {
                show(&self.old_line(text, true));
                show(&self.new_line(text, true));
            }
        }
    }

    fn head(&mut self, line: &'a str) {
        if let Some(path) = line.strip_prefix("--- ") {
            self.old_path = plain(path, "a/");
        } else if let Some(path) = line.strip_prefix("+++ ") {
            let path = plain(path, "b/");
            let is_gone = path == "/dev/null";
            self.path = if is_gone { self.old_path } else { path };
            if is_gone {
                self.deleted.push(self.path);
            }
        } else if let Some((old, new)) = hunk(line) {
            self.left = (old.1, new.1);
            self.hunks += 1;
            self.old = Sight::at(old.0);
            self.new = Sight::at(new.0);
        }
    }

    fn old_line(&mut self, text: &'a str, is_context: bool) -> Line<'a> {
        self.left.0 = self.left.0.saturating_sub(1);
        let line = self.old.see(self.path, Side::Old, text, is_context);
        Line {
            hunk: self.hunks,
            ..line
        }
    }

    fn new_line(&mut self, text: &'a str, is_context: bool) -> Line<'a> {
        self.left.1 = self.left.1.saturating_sub(1);
        let line = self.new.see(self.path, Side::New, text, is_context);
        Line {
            hunk: self.hunks,
            is_in_new_file: self.old_path == "/dev/null",
            ..line
        }
    }
}

impl<'a> Sight<'a> {
    fn at(number: u32) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    fn see(&mut self, path: &'a str, side: Side, text: &'a str, is_context: bool) -> Line<'a> {
        let name = is_code(path).then(|| test_name(path, text, self.is_marked)).flatten();
        self.has_test |= name.is_some();
        let line = Line {
            side,
            is_context,
            hunk: 0,
            path,
            number: self.number,
            text,
            before: self.before,
            test: name,
            is_among_tests: self.has_test,
            is_in_new_file: false,
        };
        self.is_marked = marks_test(text) || self.is_marked && continues_mark(text);
        self.number = self.number.saturating_add(1);
        self.before = text;
        line
    }
}

/// Reads the path in a file header: `a/src/x.rs`, in quotes if it is unusual, and perhaps with a
/// tab behind it.
fn plain<'a>(path: &'a str, prefix: &str) -> &'a str {
    let path = path.trim_end_matches('\t');
    let path = path
        .strip_prefix('"')
        .and_then(|path| path.strip_suffix('"'))
        .unwrap_or(path);
    path.strip_prefix(prefix).unwrap_or(path)
}

/// Reads `@@ -first,count +first,count @@`.
fn hunk(line: &str) -> Option<((u32, u32), (u32, u32))> {
    let mut fields = line.strip_prefix("@@ -")?.split(' ');
    let old = range(fields.next()?)?;
    let new = range(fields.next()?.strip_prefix('+')?)?;
    Some((old, new))
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (first, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((first.parse().ok()?, count.parse().ok()?))
}
