//! Remedies for refusals by GitLab, for the operator: which scope and which role are missing.

use crate::forge::platform::Right;

/// Returns the sentence that says how to give `right` in `project`.
pub(super) fn remedy(right: Right, project: &str) -> String {
    let role = match right {
        Right::Push => return format!("give the token's user (or the access token) the role Developer in {project}"),
        Right::WriteChanges => "Developer",
        Right::ReadIssues
        | Right::WriteIssues
        | Right::ReadChanges
        | Right::CommentOnChanges
        | Right::ReadContents
        | Right::ReadChecks
        | Right::ReadRoles => "Reporter",
    };
    format!(
        "see that {project} exists, that the token has the scope 'api', and that its user has at least the role \
         {role} there (Developer for all that the program does)"
    )
}

/// The API that has to answer, and where it is.
pub(super) const API: &str = "a GitLab: https://HOST/api/v4";

/// The remedy if the token is not accepted at all.
pub(super) const RENEW: &str =
    "the token is wrong, expired or revoked; make a new one with the scope 'api' and set gitlab.token";
