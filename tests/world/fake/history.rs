//! What happened to an item of a fake forge, and how it is told for people. Which things can happen
//! is each forge's own.

use std::fmt::Write as _;

use chrono::DateTime;
use chrono::Utc;

/// Something that somebody did to an item.
#[derive(Clone, Debug)]
pub struct Happening<W> {
    pub id: u64,
    pub actor: String,
    pub what: W,
    pub when: DateTime<Utc>,
}

/// Tells a history below its heading, with a line for each deed and the text that belongs to it.
/// A progress comment is edited all the time: of equal edits only the last one is told.
pub fn told<W: PartialEq>(
    heading: &str,
    history: &[Happening<W>],
    is_edit: impl Fn(&W) -> bool,
    deed: impl Fn(&W) -> (String, String),
) -> String {
    let mut story = format!("{heading}\n");
    for (index, happening) in history.iter().enumerate() {
        let mut later = history.iter().skip(index + 1);
        if is_edit(&happening.what) && later.any(|later| later.what == happening.what) {
            continue;
        }
        let (deed, text) = deed(&happening.what);
        let _ = writeln!(story, "  {} {deed}", happening.actor);
        for line in text.lines() {
            let _ = writeln!(story, "{}", format!("    | {line}").trim_end());
        }
    }
    story
}
