//! The state of a commit's checks, and the logs of those that failed.

use serde::{Deserialize, Serialize};

use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;

/// Maximum number of failed checks that are reported; a matrix that fails as a whole fails for one
/// reason.
pub(crate) const MOST_FAILED: usize = 5;
/// Most bytes of one check's log.
pub(crate) const LONGEST_LOG: usize = 16 * 1024;

/// The combined state of a commit's checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checks {
    /// There are none, or none yet.
    None,
    /// Some will come to an end by themselves.
    Running,
    Passed,
    /// All have ended, but for those that wait for people or may never end. Lists those that failed
    /// and were not known to; it is empty if all failures were known.
    Failed(Vec<FailedCheck>),
}

/// A check that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCheck {
    /// Identifies the check; it changes when the check is run again.
    #[serde(default)]
    pub key: String,
    pub name: String,
    /// The end of its log; `None` where it has none or the token may not read it.
    pub log: Option<String>,
}

/// Recognises a check that only people can make pass: a missing signature, licence agreement or
/// review. No commit fixes it.
pub(crate) fn is_for_people(name: &str) -> bool {
    let name = name.to_lowercase();
    let has = |wanted: &[&str]| {
        let mut words = name.split(|character: char| !character.is_alphanumeric());
        words.any(|word| wanted.contains(&word))
    };
    has(&["dco", "cla", "easycla"])
        || (has(&["review", "reviews", "approval", "approvals"]) && has(&["needs", "required", "awaiting", "pending"]))
}

/// Returns the end of a log as text: whole lines, without terminal colours.
pub(crate) fn tail(log: &[u8]) -> String {
    let start = log.len().saturating_sub(LONGEST_LOG);
    let text = String::from_utf8_lossy(&log[start..]);
    let whole = match text.split_once('\n') {
        Some((_, rest)) if start > 0 => rest,
        _ => &text,
    };
    without_escapes(whole).trim().to_owned()
}

/// Removes escape sequences (`ESC [ ... letter`) and all other control characters except line
/// breaks and tabs.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' && characters.next_if_eq(&'[').is_some() {
            for part in characters.by_ref() {
                if ('@'..='~').contains(&part) {
                    break;
                }
            }
        } else if matches!(character, '\n' | '\t') || !character.is_control() {
            plain.push(character);
        }
    }
    plain
}

/// Returns `None` if the token may not read what was asked for, or it does not exist.
pub(crate) fn if_readable<T>(asked: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(failure) if failure.is_missing() || failure.status() == Some(http::StatusCode::FORBIDDEN) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Returns the log of a check. It is `None`, and the name of the check has to do, if the log is too
/// long, on a server that cannot be reached from here, or not for this token.
pub(crate) fn log_or_name(
    asked: Result<String, Failure>,
    name: &str,
    address: ItemAddress<'_>,
) -> Result<Option<String>, Failure> {
    match if_readable(asked) {
        Err(failure @ (Failure::Down { .. } | Failure::Unreadable { .. })) => {
            tracing::warn!("the log of the job '{name}' of {address} could not be read: {failure}");
            Ok(None)
        }
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_that_only_people_can_settle_are_told_from_others() {
        let for_people = [
            "DCO",
            "license/cla",
            "EasyCLA",
            "cla/google",
            "Needs Review",
            "approvals-required",
        ];
        assert!(for_people.iter().all(|name| is_for_people(name)));
        let others = [
            "test",
            "review-app",
            "code review",
            "clang-tidy",
            "declare",
            "ci/required",
        ];
        assert!(!others.iter().any(|name| is_for_people(name)));
    }

    #[test]
    fn a_log_is_told_by_its_end_in_plain_text() {
        assert_eq!(tail(b"\x1b[31;1mred\x1b[0m\r\n\tplain\x07\n"), "red\n\tplain");
        let long = "a line of a log\n".repeat(2_000);
        let end = tail(long.as_bytes());
        assert!(end.len() <= LONGEST_LOG && end.starts_with("a line"), "{}", end.len());
        assert_eq!(tail("é\u{1b}".as_bytes()), "é");
    }
}
