//! Why something failed, and what helps, kept apart: the words of a server may have every sign in
//! them that could part the two.

use std::fmt;

/// Why something failed, and what helps where that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub what: String,
    pub remedy: Option<String>,
}

impl Reason {
    pub fn with(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: Some(remedy.into()),
        }
    }

    /// Reads a text of this program or of its HTTP client, in which the remedy follows a semicolon.
    pub fn of_own_words(text: &str) -> Self {
        match text.split_once("; ") {
            Some((what, remedy)) => Self::with(what, remedy),
            None => Self::from(text.to_owned()),
        }
    }
}

/// Returns the words of another program without semicolons between sentences: behind one, a text of
/// this program has the remedy.
pub fn without_semicolons(text: &str) -> String {
    text.replace("; ", ", ")
}

/// Makes a reason without a remedy, whatever stands in it.
impl From<String> for Reason {
    fn from(what: String) -> Self {
        Self { what, remedy: None }
    }
}

/// Writes the reason with its remedy behind a semicolon.
impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)?;
        match &self.remedy {
            Some(remedy) => write!(formatter, "; {remedy}"),
            None => Ok(()),
        }
    }
}
