//! Whether commits are pushed to a branch, or come to it through pull requests alone.

use serde::Deserialize;

use crate::forge::github::Api;
use crate::forge::github::http::TokenScope;
use crate::forge::github::http::{encoded_branch, path};
use crate::forge::http::failure::Failure;

/// The rules that commits do not keep by themselves, whatever they hold. Others, such as those on
/// signatures and messages, are often laid on all branches of an organization; and so are those on
/// force pushes, without which a branch gets its commits as well.
const AGAINST_PUSHES: [&str; 6] = [
    "merge_queue",
    "pull_request",
    "required_deployments",
    "required_status_checks",
    "update",
    "workflows",
];

#[derive(Deserialize)]
struct Branch {
    /// Set for any protection, and for any rule.
    #[serde(default)]
    protected: bool,
    protection: Option<Protection>,
}

/// The protection that is older than rulesets.
#[derive(Deserialize)]
struct Protection {
    enabled: Option<bool>,
}

#[derive(Deserialize)]
struct Rule {
    #[serde(rename = "type")]
    kind: String,
}

impl Api {
    /// Tells whether a branch is protected from pushes. What the older protection demands is shown
    /// to administrators alone, so all of it counts. The rules are shown to whoever may read, with
    /// those that the token's account need not keep.
    pub(super) async fn protection_of(&self, repository: &str, branch: &str) -> Result<bool, Failure> {
        let scope = TokenScope::Repository(repository);
        let name = encoded_branch(branch);
        let at = path(repository, &format!("/branches/{name}"));
        let found: Branch = match self.client.get(scope, &at).await {
            Err(failure) if failure.is_missing() => return Ok(false),
            read => read?,
        };
        if !found.protected {
            return Ok(false);
        }
        let is_of_rules = found.protection.is_some_and(|older| older.enabled == Some(false));
        if !is_of_rules {
            return Ok(true);
        }
        let at = path(repository, &format!("/rules/branches/{name}?per_page=100"));
        match self.client.list::<Rule>(scope, &at).await {
            Ok(rules) => Ok(rules.iter().any(|rule| AGAINST_PUSHES.contains(&rule.kind.as_str()))),
            // Something protects it that this server does not show.
            Err(failure) if failure.is_missing() => Ok(true),
            Err(failure) => Err(failure),
        }
    }
}
