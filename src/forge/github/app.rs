//! How a GitHub App gets its tokens: one for each account it is installed on.
//!
//! octocrab can fetch them by itself, but then inside another request, without our repeats and error texts, and keeps
//! no copy for git. Two tasks that find no token at the same moment both fetch one; both are good.

use chrono::{DateTime, Utc};
use http::StatusCode;
use secrecy::SecretString;
use serde::Deserialize;

use super::client::{Client, Rights, encoded, path};
use super::installations::{Installation, Token};
use crate::forge::failure::Failure;

#[derive(Deserialize)]
struct InstallationFound {
    id: u64,
}

#[derive(Deserialize)]
struct TokenMade {
    token: SecretString,
    expires_at: DateTime<Utc>,
}

impl Client {
    /// Returns a token of the installation that `rights` need, good for a while yet.
    pub(super) async fn installation_token(&self, rights: Rights<'_>) -> Result<Token, Failure> {
        let account = rights.account();
        let known = self.installations().of(&account);
        if let Some(installation) = &known
            && installation.token.is_good()
        {
            return Ok(installation.token.clone());
        }
        let id = match known {
            Some(installation) => installation.id,
            None => find(self, rights).await?,
        };
        let made: Result<TokenMade, Failure> = self.make_token(&format!("/app/installations/{id}/access_tokens")).await;
        if made.as_ref().is_err_and(Failure::is_missing) {
            self.installations().forget(&account);
        }
        let made = made?;
        let token = Token {
            secret: made.token,
            expires_at: made.expires_at,
        };
        let installation = Installation {
            id,
            token: token.clone(),
        };
        self.installations().remember(account, installation);
        Ok(token)
    }
}

async fn find(client: &Client, rights: Rights<'_>) -> Result<u64, Failure> {
    let ways = match rights {
        Rights::Repository(repository) => vec![path(repository, "/installation")],
        // Whether an owner is an organisation or a user is not known from the name.
        Rights::Owner(owner) => ["orgs", "users"]
            .map(|kind| format!("/{kind}/{}/installation", encoded(owner)))
            .into(),
    };
    for way in &ways {
        match client.get_own::<InstallationFound>(way).await {
            Err(failure) if failure.status() == Some(StatusCode::NOT_FOUND) => {}
            found => return found.map(|installation| installation.id),
        }
    }
    let (Rights::Repository(name) | Rights::Owner(name)) = rights;
    Err(Failure::Unprepared {
        status: StatusCode::NOT_FOUND,
        mend: format!("install the GitHub App on {name} (on the App's page, under 'Install App')"),
    })
}
