//! One line of `doctor`: the subject that was examined, and the verdict on it.

use std::fmt::Display;

/// The result of examining one thing that a run needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub subject: String,
    pub verdict: Verdict,
}

/// The result of an examination of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Good {
        detail: String,
    },
    /// Works, but should be looked at.
    Doubtful {
        detail: String,
        remedy: String,
    },
    Bad {
        detail: String,
        remedy: String,
    },
}

impl Finding {
    /// Returns the finding of `verdict` on `subject`.
    pub fn new(subject: impl Into<String>, verdict: Verdict) -> Self {
        Self {
            subject: subject.into(),
            verdict,
        }
    }

    pub fn good(subject: impl Into<String>, detail: impl Display) -> Self {
        let detail = detail.to_string();
        Self::new(subject, Verdict::Good { detail })
    }

    pub fn doubtful(subject: impl Into<String>, detail: impl Display, remedy: impl Display) -> Self {
        Self::new(subject, Verdict::doubtful(detail, remedy))
    }

    pub fn bad(subject: impl Into<String>, detail: impl Display, remedy: impl Display) -> Self {
        Self::new(subject, Verdict::bad(detail, remedy))
    }

    /// Tells whether the subject cannot be worked with.
    pub fn is_bad(&self) -> bool {
        matches!(self.verdict, Verdict::Bad { .. })
    }
}

impl Verdict {
    pub fn doubtful(detail: impl Display, remedy: impl Display) -> Self {
        Self::Doubtful {
            detail: detail.to_string(),
            remedy: remedy.to_string(),
        }
    }

    pub fn bad(detail: impl Display, remedy: impl Display) -> Self {
        Self::Bad {
            detail: detail.to_string(),
            remedy: remedy.to_string(),
        }
    }
}
