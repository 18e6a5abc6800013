//! Progress of a local task on stderr: a spinner on a terminal, plain lines in a file or a log.

use std::fmt::Display;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::session::complain;
use crate::plain::one_line;

/// A progress display. Cheap to clone; the clones share one spinner.
#[derive(Clone)]
pub struct Progress {
    spinner: Option<ProgressBar>,
}

impl Progress {
    pub fn start() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { spinner: None };
        }
        let spinner = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(Duration::from_millis(120));
        Self { spinner: Some(spinner) }
    }

    /// Shows `text` as the current activity.
    pub fn now(&self, text: impl Display) {
        let line = harmless(&one_line(&text.to_string()));
        match &self.spinner {
            Some(spinner) => spinner.set_message(line),
            None => complain(line),
        }
    }

    /// Removes the spinner, so that it does not mix with what is printed next.
    pub fn clear(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

/// Replaces control characters, except line breaks and tabs, with visible ones: a model, or a file
/// it wrote, could steer the terminal with them.
pub fn harmless(text: &str) -> String {
    let visible = |character: char| match character {
        '\n' | '\t' => character,
        '\u{7f}' => '\u{2421}',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'),
        _ if character.is_control() => '\u{fffd}',
        _ => character,
    };
    text.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_model_says_steers_the_terminal() {
        assert_eq!(
            harmless(&one_line("a\n\n b\u{1b}[2J\u{9b}x")),
            "a b\u{241b}[2J\u{fffd}x"
        );
        assert_eq!(harmless("a\tb\r\n"), "a\tb\u{240d}\n");
    }
}
