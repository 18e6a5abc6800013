//! Remedies for refusals by GitHub, for the operator: which right is missing, in the words of
//! GitHub's settings pages.

use crate::forge::platform::Right;

/// Returns the sentence that says how to give `right` on `repository`.
pub(super) fn remedy(right: Right, repository: &str) -> String {
    let (permission, access) = match right {
        Right::ReadIssues => ("Issues", "Read-only"),
        Right::WriteIssues => ("Issues", "Read and write"),
        Right::ReadChanges => ("Pull requests", "Read-only"),
        Right::WriteChanges | Right::CommentOnChanges => ("Pull requests", "Read and write"),
        Right::ReadChecks => ("Commit statuses", "Read-only"),
        Right::ReadContents => ("Contents", "Read-only"),
        Right::Push => {
            return format!(
                "give the token's account the role Write in {repository}, and a fine-grained token the repository \
                 permission 'Contents' (Read and write)"
            );
        }
        Right::ReadRoles => {
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

/// The API that has to answer, and where it is.
pub(super) const API: &str = "a GitHub REST API: https://api.github.com, or https://HOST/api/v3 of your own server";

/// The remedy if the token is not accepted at all.
pub(super) const RENEW: &str =
    "the token is wrong, expired or revoked; make a new one and set github.token (for an App: check github.app)";
