//! Findings of an examination that are the same on every platform: rights wider than the program
//! needs, tokens whose time is up soon or never, and a token of another account than the configured
//! one.

use chrono::{NaiveDate, TimeDelta, Utc};

use crate::finding::Verdict;

/// A token that expires sooner than this is worth a word.
const SOON: TimeDelta = TimeDelta::days(14);

/// Collects the doubts of `doctor` about one subject, with their remedies.
#[derive(Debug, Default)]
pub(crate) struct Caveats {
    said: Vec<String>,
    remedies: Vec<String>,
}

impl Caveats {
    pub(crate) fn add(&mut self, what: impl Into<String>, remedy: impl Into<String>) {
        self.said.push(what.into());
        let remedy = remedy.into();
        if !self.remedies.contains(&remedy) {
            self.remedies.push(remedy);
        }
    }

    /// Adds the doubt that a token has `rights` which the program does not need, if there are any.
    pub(crate) fn wider(&mut self, rights: &[&str], remedy: &str) {
        if !rights.is_empty() {
            let what = format!("it may do more than the program needs: {}", rights.join(", "));
            self.add(what, remedy);
        }
    }

    /// Adds the doubt about a token that expires soon, or never (`None`).
    pub(crate) fn end(&mut self, end: Option<NaiveDate>) {
        match end {
            None => self.add(
                "it never expires",
                "make a token with an end, at most a year ahead: one that is lost is good for ever otherwise",
            ),
            Some(end) if end <= (Utc::now() + SOON).date_naive() => {
                self.add(format!("it ends on {end}"), "make a new token in time");
            }
            Some(_) => {}
        }
    }

    /// Returns the verdict on a subject that is as `detail` says: good, or doubtful if there are
    /// caveats.
    pub(crate) fn on(self, detail: String) -> Verdict {
        if self.said.is_empty() {
            return Verdict::Good { detail };
        }
        Verdict::Doubtful {
            detail: format!("{detail}; {}", self.said.join("; ")),
            remedy: self.remedies.join("; "),
        }
    }
}

/// Returns the verdict on a token that belongs to `login`, if the account that is `configured` in
/// `section` is another. `account` is the platform's word for one.
pub(crate) fn of_another(section: &str, account: &str, login: &str, configured: Option<&str>) -> Option<Verdict> {
    let configured = configured.filter(|configured| !configured.eq_ignore_ascii_case(login))?;
    Some(Verdict::bad(
        format!("belongs to {login}, but {section}.bot_name is {configured}"),
        format!(
            "set {section}.bot_name to the token's {account}, or leave it out: otherwise the program takes its own \
             comments for a person's"
        ),
    ))
}

/// Returns the first of some names, and how many more there are.
pub(crate) fn some_of(names: &[&str]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_to_end_and_not_too_soon() {
        let today = Utc::now().date_naive();
        let verdict = |end| {
            let mut doubts = Caveats::default();
            doubts.end(end);
            matches!(doubts.on("works".to_owned()), Verdict::Good { .. })
        };
        assert!(!verdict(None));
        assert!(!verdict(Some(today)));
        assert!(!verdict(Some(today + TimeDelta::days(14))));
        assert!(verdict(Some(today + TimeDelta::days(15))));
    }

    #[test]
    fn everything_is_said_at_once() {
        let mut doubts = Caveats::default();
        doubts.wider(&["a", "b"], "take them off");
        doubts.wider(&[], "never said");
        doubts.add("c", "take them off");
        let expected = Verdict::Doubtful {
            detail: "works; it may do more than the program needs: a, b; c".to_owned(),
            remedy: "take them off".to_owned(),
        };
        assert_eq!(doubts.on("works".to_owned()), expected);
    }
}
