//! Lists the hosts that a container was refused, for people.
//!
//! A stranger may have chosen the names, even though they consist of few kinds of characters. So
//! they are quoted as code, and their number is limited.

use std::collections::BTreeSet;

use crate::egress::Refusal;
use crate::markdown::compose::{Line, Page};

/// Maximum number of hosts in one text.
const MOST: usize = 10;

/// Lists refused hosts, each with the line of configuration that would allow it; writes nothing if
/// there are none.
pub(crate) fn list(page: &mut Page, refused: &BTreeSet<Refusal>) {
    if refused.is_empty() {
        return;
    }
    page.own("**Hosts that the container may not reach**");
    let mut items: Vec<_> = refused.iter().take(MOST).map(item).collect();
    if let Some(more) = refused.len().checked_sub(MOST).filter(|more| *more > 0) {
        items.push(Line::filled(
            "and {} more, which the journal names",
            [Line::figures(&more.to_string())],
        ));
    }
    page.items(items);
}

fn item(refusal: &Refusal) -> Line {
    let destination = Line::code(&refusal.destination.to_string());
    let refused = destination.and(": ").and(Line::name(&refusal.rule()));
    match refusal.line() {
        Some(line) => refused.and("; to allow it: ").and(Line::code(&line)),
        None => refused,
    }
}

/// Formats one refused host as a line for a terminal.
pub(crate) fn line(refusal: &Refusal) -> String {
    let destination = &refusal.destination;
    match refusal.line() {
        Some(line) => format!("{destination}: {}; to allow it: {line}", refusal.rule()),
        None => format!("{destination}: {}", refusal.rule()),
    }
}
