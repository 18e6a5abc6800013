//! What to tell the operator when GitLab refuses: which scope and which role are missing.

/// The right that an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    Read,
    WriteIssues,
    WriteMergeRequests,
}

impl Right {
    /// Returns the sentence that says how to give this right in `project`.
    pub(super) fn remedy(self, project: &str) -> String {
        let role = match self {
            Self::Read | Self::WriteIssues => "Reporter",
            Self::WriteMergeRequests => "Developer",
        };
        format!(
            "see that {project} exists, that the token has the scope 'api', and that its user has at least the role \
             {role} there (Developer for all that the program does)"
        )
    }
}

/// What to do when the token is not accepted at all.
pub(super) const RENEW: &str =
    "the token is wrong, expired or revoked; make a new one with the scope 'api' and set gitlab.token";
