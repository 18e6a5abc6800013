//! The output of the demo, with colours where the output is a terminal. A pipe gets the plain text.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Shows a line. When nobody reads any more (`make demo | head`) the demo still ends in order.
pub(crate) fn line(text: impl Display) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Returns a model's or a tool's words without what would steer the terminal.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .filter(|&letter| letter == '\n' || letter == '\t' || !letter.is_control())
        .collect()
}

/// Says whether the output is a terminal that may be painted on.
pub(crate) fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

pub(crate) fn bold(text: &str) -> String {
    painted("1", text)
}

pub(crate) fn dim(text: &str) -> String {
    painted("2", text)
}

pub(crate) fn red(text: &str) -> String {
    painted("31", text)
}

pub(crate) fn green(text: &str) -> String {
    painted("32", text)
}

pub(crate) fn cyan(text: &str) -> String {
    painted("36", text)
}

fn painted(code: &str, text: &str) -> String {
    // https://no-color.org
    let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_unwanted || !is_terminal() {
        return text.to_owned();
    }
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}
