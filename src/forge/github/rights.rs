//! What to tell the operator when GitHub refuses: which right is missing, in the words of GitHub's
//! settings pages.

/// The right that an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    ReadIssues,
    WriteIssues,
    ReadPulls,
    WritePulls,
    ReadContents,
    ReadChecks,
    ReadRoles,
}

impl Right {
    /// Returns the sentence that says how to give this right on `repository`.
    pub(super) fn remedy(self, repository: &str) -> String {
        let (permission, access) = match self {
            Self::ReadIssues => ("Issues", "Read-only"),
            Self::WriteIssues => ("Issues", "Read and write"),
            Self::ReadPulls => ("Pull requests", "Read-only"),
            Self::WritePulls => ("Pull requests", "Read and write"),
            Self::ReadChecks => ("Checks", "Read-only"),
            Self::ReadContents => ("Contents", "Read-only"),
            Self::ReadRoles => {
                return format!(
                    "give the token's account the role Write in {repository}: GitHub tells nobody else who may write; a \
                     fine-grained token or an App needs the repository permission 'Metadata' (Read-only), a classic \
                     token the scope 'repo'"
                );
            }
        };
        format!(
            "see that {repository} exists and give the token access to it: a fine-grained token or an App needs the \
             repository permission '{permission}' ({access}), a classic token the scope 'repo'"
        )
    }
}

/// What to do when the token is not accepted at all.
pub(super) const RENEW: &str =
    "the token is wrong, expired or revoked; make a new one and set github.token (for an App: check github.app)";
