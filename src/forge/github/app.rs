//! The tokens of a GitHub App: one for each account it is installed on, good for an hour.
//!
//! octocrab can fetch them by itself, but then inside another request, without our repeats and error texts, and keeps
//! no copy for git. Two tasks that find no token at the same moment both fetch one; both are good.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use octocrab::EncodingKey;
use secrecy::SecretString;
use serde::Deserialize;

use super::App;
use super::client::{Client, Rights, encoded, path};
use crate::forge::ForgeError;
use crate::forge::failure::Failure;

/// A token is replaced this long before it expires, so that a long push begun with it can end.
const SPARE: TimeDelta = TimeDelta::minutes(15);

/// A token of one installation.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) secret: SecretString,
    expires_at: DateTime<Utc>,
}

/// The known installations, by the account's login.
#[derive(Default)]
pub(super) struct Installations {
    known: Mutex<HashMap<String, Installation>>,
}

#[derive(Debug, Clone)]
struct Installation {
    id: u64,
    token: Token,
}

#[derive(Deserialize)]
struct InstallationFound {
    id: u64,
}

#[derive(Deserialize)]
struct TokenMade {
    token: SecretString,
    expires_at: DateTime<Utc>,
}

impl Installations {
    /// Returns a token that is good for a while yet.
    pub(super) async fn token(&self, client: &Client, rights: Rights<'_>) -> Result<Token, Failure> {
        let account = rights.account();
        let known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&account)
            .cloned();
        if let Some(installation) = &known
            && installation.token.expires_at - Utc::now() > SPARE
        {
            return Ok(installation.token.clone());
        }
        let id = match known {
            Some(installation) => installation.id,
            None => find(client, rights).await?,
        };
        let made: Result<TokenMade, Failure> = client
            .make_token(&format!("/app/installations/{id}/access_tokens"))
            .await;
        if made.as_ref().is_err_and(Failure::is_missing) {
            self.forget(rights);
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
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(account, installation);
        Ok(token)
    }

    /// Lets the next request find the installation anew.
    pub(super) fn forget(&self, rights: Rights<'_>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&rights.account());
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

/// Reads the App's private key.
pub(super) async fn key(app: &App) -> Result<EncodingKey, ForgeError> {
    let file = app.private_key_file.display();
    let unusable = |reason: String| ForgeError::Unexpected {
        what: format!("reading github.app.private_key_file {file}"),
        reason,
    };
    let pem = tokio::fs::read(&app.private_key_file)
        .await
        .map_err(|error| unusable(error.to_string()))?;
    EncodingKey::from_rsa_pem(&pem)
        .map_err(|_| unusable("it is not an RSA private key in PEM form; download it from the App's page".to_owned()))
}
