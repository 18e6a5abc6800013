//! What is known of a GitHub App's installations: one for each account, with a token that is good for an hour.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use octocrab::EncodingKey;
use secrecy::SecretString;

use super::App;
use crate::forge::ForgeError;

/// A token is replaced this long before it expires, so that a long push begun with it can end.
const SPARE: TimeDelta = TimeDelta::minutes(15);

/// A token of one installation.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) secret: SecretString,
    pub(super) expires_at: DateTime<Utc>,
}

#[derive(Debug, Clone)]
pub(super) struct Installation {
    pub(super) id: u64,
    pub(super) token: Token,
}

/// The known installations, by the account's login.
#[derive(Default)]
pub(super) struct Installations {
    known: Mutex<HashMap<String, Installation>>,
}

impl Token {
    /// Tells whether it is good for a while yet.
    pub(super) fn is_good(&self) -> bool {
        self.expires_at - Utc::now() > SPARE
    }
}

impl Installations {
    pub(super) fn of(&self, account: &str) -> Option<Installation> {
        self.lock().get(account).cloned()
    }

    pub(super) fn remember(&self, account: String, installation: Installation) {
        self.lock().insert(account, installation);
    }

    /// Lets the next request find the installation anew.
    pub(super) fn forget(&self, account: &str) {
        self.lock().remove(account);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Installation>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
