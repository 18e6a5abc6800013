//! What people read of the hosts that a container asked for and did not get.
//!
//! The names are a stranger's words: made of letters, digits and few signs, but the stranger's. They stand in spans of code, and
//! not more than a few of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::egress::Refusal;
use crate::markdown::code::code;

/// Most hosts that are named in one text.
const MOST: usize = 10;

/// Returns the part of a comment that names them, each with the line of configuration that would allow it; empty where there are none.
pub(super) fn listed(refused: &BTreeSet<Refusal>) -> String {
    if refused.is_empty() {
        return String::new();
    }
    let mut text = "\n**What the container was not let out to**\n\n".to_owned();
    for refusal in refused.iter().take(MOST) {
        let _ = writeln!(text, "- {}", line(refusal, code));
    }
    if refused.len() > MOST {
        let _ = writeln!(text, "- and {} more, which the journal names", refused.len() - MOST);
    }
    text
}

/// Returns one of them as a line; `quoted` makes the stranger's words harmless.
pub(super) fn line(refusal: &Refusal, quoted: fn(&str) -> String) -> String {
    let destination = quoted(&refusal.destination.to_string());
    match refusal.line() {
        Some(line) => format!("{destination}: {}; to allow it: {}", refusal.rule(), quoted(&line)),
        None => format!("{destination}: {}", refusal.rule()),
    }
}
