//! Patterns of lines that report failures, by the programs that write them.

use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet};

use crate::evidence::pattern;

/// The meaning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Names a failing test, perhaps for the second time.
    Names,
    /// Begins a failure without a name.
    Begins,
    /// Gives the failure before it the place or message that it lacks.
    Adds,
    /// Gives the failure before it a better place.
    Replaces,
    /// Begins a stack trace, of the failure before it unless that is complete.
    Traces,
    /// Reports a failure that is complete in itself.
    Stands,
    /// Ends the failure before it.
    Closes,
}

/// Marks, at its end, a pattern of lines whose message is on the next line.
const MESSAGE_FOLLOWS: &str = "(?P<follows>)";

/// The first pattern that matches a line counts. Groups: `name`, `path`, `line`, `message`, and
/// `key` where a name is shown in two forms.
const PATTERNS: [(Role, &str); 38] = [
    // cargo test
    (
        Role::Names,
        r"^thread '(?P<name>[^']+)'(?: \(\d+\))? panicked at (?P<path>[^:]+):(?P<line>\d+):\d+:(?P<follows>)$",
    ),
    (Role::Names, r"^---- (?P<name>\S+) stdout ----$"),
    (Role::Names, r"^test (?P<name>\S+)(?: - .+)? \.\.\. FAILED$"),
    (
        Role::Closes,
        r"^error: (?:could not compile|test failed|aborting due|\d+ target)",
    ),
    (Role::Closes, r"^warning(?:\[\w+\])?: |^failures:$|^test result: "),
    // rustc
    (Role::Begins, r"^error(?:\[E\d+\])?: (?P<message>.+)$"),
    (Role::Adds, r"^\s*--> (?P<path>[^:]+):(?P<line>\d+):\d+$"),
    // pytest
    (
        Role::Names,
        r"^_{3,} (?:ERROR (?:collecting|at setup of|at teardown of) )?(?P<name>\S.*?) _{3,}$",
    ),
    (
        Role::Names,
        r"^(?:FAILED|ERROR) (?P<name>(?P<path>[^\s:]+\.py)(?:::.+?)?)(?: - (?P<message>.+))?$",
    ),
    (Role::Adds, r"^E\s+(?P<message>\S.*)$"),
    (
        Role::Replaces,
        r"^(?P<path>[^\s:]+\.py):(?P<line>\d+): (?:[A-Z]\w+|in .+)$",
    ),
    // unittest and Python's tracebacks
    (Role::Names, r"^(?:FAIL|ERROR): (?P<name>\w+ \(.+\))$"),
    (Role::Traces, r"^Traceback \(most recent call last\):$"),
    (Role::Replaces, r#"^\s*File "(?P<path>[^"]+)", line (?P<line>\d+)"#),
    // node's own runner, in its two forms
    (Role::Closes, r"^✖ failing tests:$"),
    (Role::Names, r"^\s*✖ (?P<name>.+?)(?: \([\d.]+ ?m?s\))?$"),
    (Role::Names, r"^\s*not ok \d+ - (?P<name>.+?)(?: # .*)?$"),
    (Role::Adds, r"^\s+location: '(?P<path>[^']+?):(?P<line>\d+):\d+'$"),
    (Role::Adds, r"^\s+error: \|-(?P<follows>)$"),
    (Role::Adds, r#"^\s+error: ['"](?P<message>.+)['"]$"#),
    // jest, vitest, mocha
    (Role::Names, r"^\s*● (?P<name>.+)$"),
    (Role::Adds, r"^\s+(?P<message>expect\(.*\)\.\S.*)$"),
    (Role::Names, r"^\s*FAIL\s+(?P<name>(?P<path>\S+\.[cm]?[jt]sx?) > .+)$"),
    (Role::Names, r"^\s+(?P<key>\d+\)) (?P<name>\S.*?):?$"),
    (Role::Adds, r"^\s*❯ (?:.* )?\(?(?P<path>[^\s()]+):(?P<line>\d+):\d+\)?$"),
    (
        Role::Adds,
        r"^\s+at (?:.+ \()?(?P<path>(?:file://)?[^\s():]+\.[cm]?[jt]sx?):(?P<line>\d+):\d+\)?(?: \{)?$",
    ),
    // go
    (Role::Names, r"^\s*--- FAIL: (?P<name>\S+)"),
    (Role::Adds, r"^\s*panic: (?P<message>.+?)(?: \[recovered\])?$"),
    (Role::Replaces, r"^\t(?P<path>/\S+_test\.go):(?P<line>\d+) \+0x"),
    (Role::Closes, r"^(?:FAIL|ok|PASS|---|===|#)(?:\s|$)"),
    // maven and gradle
    (
        Role::Stands,
        r"^\[ERROR\] (?P<path>/?[^\s:]+\.(?:java|kt|scala)):\[(?P<line>\d+),\d+\] (?P<message>.+)$",
    ),
    (
        Role::Names,
        r"^\[ERROR\]\s+(?P<name>(?P<path>[A-Z]\w*)\.\w+):(?P<line>\d+)(?:->\S+)*(?: (?P<message>.+))?$",
    ),
    (Role::Names, r"^(?P<name>\S+ > .+) FAILED$"),
    (
        Role::Adds,
        r"^\s+(?P<message>[\w.]+(?:Error|Exception|Failure)) at (?P<path>\w+\.(?:java|kt|groovy|scala)):(?P<line>\d+)$",
    ),
    // tsc
    (
        Role::Stands,
        r"^(?P<path>[^\s(:]+\.[cm]?tsx?)[(:](?P<line>\d+)[,:]\d+\)?(?::| -) error (?P<message>.+)$",
    ),
    // gcc, javac, go, and all that write as they do
    (
        Role::Stands,
        r"^\s*(?:vet: )?(?P<path>[^\s:()]+\.[A-Za-z]\w*):(?P<line>\d+)(?::\d+)?: (?:(?:fatal )?error: )?(?P<message>\S.*)$",
    ),
    // an exception's own message, last because many lines begin like one
    (
        Role::Adds,
        r"^\s*(?P<message>(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Failure)\b.*)$",
    ),
    (Role::Adds, r"^\s*Error: (?P<message>.+)$"),
];

/// A line that matched a pattern.
pub(super) struct Found<'a> {
    pub(super) role: Role,
    pub(super) message_follows: bool,
    pub(super) parts: Captures<'a>,
}

/// The compiled patterns: all are tried in one pass, and only the first match is read.
pub(super) struct Table {
    any: RegexSet,
    each: Vec<Regex>,
}

pub(super) fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(Table::compiled);
    &TABLE
}

impl Table {
    fn compiled() -> Self {
        Self {
            any: RegexSet::new(PATTERNS.iter().map(|(_, text)| text)).unwrap_or_default(),
            each: PATTERNS.iter().map(|(_, text)| pattern(text)).collect(),
        }
    }

    pub(super) fn find<'a>(&self, line: &'a str) -> Option<Found<'a>> {
        let first = self.any.matches(line).iter().next()?;
        let (role, text) = PATTERNS[first];
        Some(Found {
            role,
            message_follows: text.contains(MESSAGE_FOLLOWS),
            parts: self.each[first].captures(line)?,
        })
    }
}
