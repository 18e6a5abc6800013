//! Tokens of a GitHub App: one for each repository that is worked on, and one for the search of
//! each owner.
//!
//! octocrab can fetch them by itself, but then for the whole installation, inside another request,
//! without our repeats and error texts, and keeps no copy for git. Two tasks that find no token at
//! the same moment both fetch one; both are good.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use http::StatusCode;
use secrecy::SecretString;
use serde::Deserialize;

use crate::forge::github::http::app_tokens::{Installation, Token, TokenScope};
use crate::forge::github::http::{Client, encoded, path};
use crate::forge::http::failure::Failure;

#[derive(Deserialize)]
struct InstallationFound {
    id: u64,
    #[serde(default)]
    permissions: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct TokenMade {
    token: SecretString,
    expires_at: DateTime<Utc>,
}

impl Client {
    /// Returns a token for `scope` that does not expire soon.
    pub(crate) async fn installation_token(&self, scope: TokenScope<'_>) -> Result<Token, Failure> {
        if let Some(token) = self.tokens().of(scope) {
            return Ok(token);
        }
        // Asked each time: what it may do can have changed since the last token.
        let installation = find(self, scope).await?;
        let at = format!("/app/installations/{}/access_tokens", installation.id);
        let made: Result<TokenMade, Failure> = self.make_token(&at, &installation.asked_for(scope)).await;
        let made = made.map_err(|failure| explained(failure, scope))?;
        let token = Token::new(made.token, made.expires_at, installation.id);
        self.tokens().keep(scope, token.clone());
        Ok(token)
    }
}

/// Asks where the App is installed, and what it may do there.
pub(crate) async fn find(client: &Client, scope: TokenScope<'_>) -> Result<Installation, Failure> {
    let ways = match scope {
        TokenScope::Repository(repository) | TokenScope::Files(repository) => vec![path(repository, "/installation")],
        // Whether an owner is an organisation or a user is not known from the name.
        TokenScope::Owner(owner) => ["orgs", "users"]
            .map(|kind| format!("/{kind}/{}/installation", encoded(owner)))
            .into(),
    };
    for way in &ways {
        match client.get_own::<InstallationFound>(way).await {
            Err(failure) if failure.status() == Some(StatusCode::NOT_FOUND) => {}
            found => {
                return found.map(|found| Installation {
                    id: found.id,
                    permissions: found.permissions,
                });
            }
        }
    }
    Err(not_installed(scope))
}

/// Explains a 422, which GitHub answers where the installation does not reach the repository, or
/// was given fewer permissions than were asked for.
fn explained(failure: Failure, scope: TokenScope<'_>) -> Failure {
    match failure {
        Failure::Answered {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            message,
        } => {
            let name = scope.name();
            Failure::Unprepared {
                status: StatusCode::UNPROCESSABLE_ENTITY,
                remedy: format!(
                    "GitHub makes no token for {name} ({message}): let the App's installation reach it, accept the App's \
                     new permissions there, and write its present name if it was renamed"
                ),
            }
        }
        failure => failure,
    }
}

fn not_installed(scope: TokenScope<'_>) -> Failure {
    let name = scope.name();
    Failure::Unprepared {
        status: StatusCode::NOT_FOUND,
        remedy: format!("install the GitHub App on {name} (on the App's page, under 'Install App')"),
    }
}
