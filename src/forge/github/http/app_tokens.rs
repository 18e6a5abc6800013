//! The tokens of a GitHub App, for what is worked on at this moment.
//!
//! A token is made for one repository with the permissions that the work needs, or for the search
//! over an owner's repositories, or the files of one more repository, with nothing but reading. A
//! token for all that the installation may do would let whoever gets hold of it, git's children
//! included, into every other repository of the account.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use octocrab::EncodingKey;
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use crate::forge::ForgeError;
use crate::forge::github::App;
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::Answer;

/// A token is replaced this long before it expires, so that a long push begun with it can end.
const SPARE: TimeDelta = TimeDelta::minutes(15);
/// Time after its creation in which a token may be refused only because some of GitHub's servers do
/// not know it yet.
const NEW_FOR: Duration = Duration::from_secs(8);
/// Permissions of a token for one repository, as far as the installation has them. `workflows` is
/// needed to push changes of workflows, which only happens after people approved them.
const FOR_REPOSITORY: [(&str, &str); 8] = [
    ("actions", "read"),
    ("checks", "read"),
    ("contents", "write"),
    ("issues", "write"),
    ("metadata", "read"),
    ("pull_requests", "write"),
    ("statuses", "read"),
    ("workflows", "write"),
];
/// Permissions of a token for a search over all repositories of an owner.
const FOR_SEARCH: [(&str, &str); 3] = [("issues", "read"), ("metadata", "read"), ("pull_requests", "read")];
/// Permissions of a token for the files of a repository that is not worked on.
const FOR_FILES: [(&str, &str); 2] = [("contents", "read"), ("metadata", "read")];

/// Pauses before a request with a new token is sent again.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(300),
    Duration::from_millis(700),
    Duration::from_secs(1),
    Duration::from_millis(1_500),
    Duration::from_millis(2_500),
];

/// The scope of the rights that a request needs. A personal token is the same for all scopes; an
/// App makes a token for each.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TokenScope<'a> {
    /// All repositories of an owner.
    Owner(&'a str),
    /// One repository, named `owner/repo`.
    Repository(&'a str),
    /// The files of one repository, which are only read.
    Files(&'a str),
}

impl<'a> TokenScope<'a> {
    /// Returns the name of the owner or repository.
    pub(crate) fn name(self) -> &'a str {
        let (Self::Owner(name) | Self::Repository(name) | Self::Files(name)) = self;
        name
    }
}

/// A token of one installation, for one scope.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) secret: SecretString,
    pub(crate) expires_at: DateTime<Utc>,
    /// The installation that it is of.
    pub(crate) installation: u64,
    made_at: Instant,
    /// Whether a server has accepted the token before.
    is_known: Arc<AtomicBool>,
}

/// An App on an account.
#[derive(Debug, Clone)]
pub(crate) struct Installation {
    pub(crate) id: u64,
    /// The level of each permission: `read`, `write` or `admin`.
    pub(crate) permissions: BTreeMap<String, String>,
}

/// The tokens that were made, by their scope.
#[derive(Default)]
pub(crate) struct Tokens {
    known: Mutex<HashMap<String, Token>>,
}

impl Token {
    pub(crate) fn new(secret: SecretString, expires_at: DateTime<Utc>, installation: u64) -> Self {
        Self {
            secret,
            expires_at,
            installation,
            made_at: Instant::now(),
            is_known: Arc::default(),
        }
    }

    /// Tells whether the token does not expire soon.
    fn is_good(&self) -> bool {
        self.expires_at - Utc::now() > SPARE
    }

    /// Tells whether the token was made so recently that some servers may not know it.
    pub(crate) fn is_new(&self) -> bool {
        self.made_at.elapsed() < NEW_FOR
    }

    /// Tells whether an answer with this status may be due to the token's age: GitHub's servers
    /// learn of a new token one after the other, and answer 401, 403 or 404 until then. Once one of
    /// them has accepted it, a 403 or a 404 is final.
    pub(crate) fn may_pass(&self, status: StatusCode) -> bool {
        let is_refusal = match status {
            StatusCode::UNAUTHORIZED => true,
            StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => !self.is_known.load(Ordering::Relaxed),
            _ => {
                self.is_known.store(true, Ordering::Relaxed);
                false
            }
        };
        is_refusal && self.is_new()
    }
}

impl Installation {
    /// Returns the request for a token that is good for `scope` and nothing else. GitHub refuses
    /// one with more than the installation was given, so permissions that it lacks are left out;
    /// that shows where they are needed.
    pub(crate) fn asked_for(&self, scope: TokenScope<'_>) -> Value {
        let wanted: &[(&str, &str)] = match scope {
            TokenScope::Repository(_) => &FOR_REPOSITORY,
            TokenScope::Owner(_) => &FOR_SEARCH,
            TokenScope::Files(_) => &FOR_FILES,
        };
        let permissions: BTreeMap<&str, &str> = wanted
            .iter()
            .filter_map(|(name, access)| {
                let given = self.permissions.get(*name)?;
                Some((*name, if given == "read" { "read" } else { *access }))
            })
            // A workflow can be written or not.
            .filter(|(name, access)| *name != "workflows" || *access == "write")
            .collect();
        let mut asked = Map::new();
        // A server that does not tell them gives a token for what it likes.
        if !permissions.is_empty() {
            asked.insert("permissions".to_owned(), json!(permissions));
        }
        if let TokenScope::Repository(name) | TokenScope::Files(name) = scope {
            let name = name.split_once('/').map_or(name, |(_, name)| name);
            asked.insert("repositories".to_owned(), json!([name]));
        }
        Value::Object(asked)
    }
}

impl Tokens {
    /// Returns the stored token for `scope`, unless it expires soon.
    pub(crate) fn of(&self, scope: TokenScope<'_>) -> Option<Token> {
        self.lock().get(&key_of(scope)).filter(|token| token.is_good()).cloned()
    }

    pub(crate) fn keep(&self, scope: TokenScope<'_>, token: Token) {
        let mut known = self.lock();
        // Of repositories that are not worked on any more nothing is kept.
        known.retain(|_, token| token.is_good());
        known.insert(key_of(scope), token);
    }

    /// Lets the next request make a new token.
    pub(crate) fn forget(&self, scope: TokenScope<'_>) {
        self.lock().remove(&key_of(scope));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Token>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a request, and repeats it if its token is so new that some of GitHub's servers may not
/// know it.
pub(crate) async fn until_known<S, A>(token: Option<&Token>, send: S) -> Result<Answer, Failure>
where
    S: Fn() -> A,
    A: Future<Output = Result<Answer, Failure>>,
{
    for pause in PAUSES {
        let answer = send().await?;
        if !token.is_some_and(|token| token.may_pass(answer.status)) {
            return Ok(answer);
        }
        tracing::debug!(status = %answer.status, "a new token was refused, and is tried again");
        tokio::time::sleep(pause).await;
    }
    send().await
}

/// Returns the key under which a scope's token is stored. An owner's name has no slash, and no name
/// a space.
fn key_of(scope: TokenScope<'_>) -> String {
    let name = scope.name().to_lowercase();
    match scope {
        TokenScope::Owner(_) | TokenScope::Repository(_) => name,
        TokenScope::Files(_) => format!("files of {name}"),
    }
}

/// Reads the App's private key.
pub(crate) async fn key(app: &App) -> Result<EncodingKey, ForgeError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn installation(permissions: &[(&str, &str)]) -> Installation {
        let permissions = permissions
            .iter()
            .map(|(name, access)| ((*name).to_owned(), (*access).to_owned()));
        Installation {
            id: 1,
            permissions: permissions.collect(),
        }
    }

    #[test]
    fn a_token_is_asked_for_one_repository_and_what_the_installation_has_of_what_is_needed() {
        let installation = installation(&[
            ("administration", "write"),
            ("checks", "write"),
            ("contents", "write"),
            ("issues", "read"),
            ("metadata", "read"),
            ("workflows", "read"),
        ]);
        assert_eq!(
            installation.asked_for(TokenScope::Repository("Acme/Widgets")),
            json!({
                "repositories": ["Widgets"],
                "permissions": {"checks": "read", "contents": "write", "issues": "read", "metadata": "read"},
            })
        );
        assert_eq!(
            installation.asked_for(TokenScope::Owner("acme")),
            json!({ "permissions": {"issues": "read", "metadata": "read"} })
        );
        assert_eq!(
            installation.asked_for(TokenScope::Files("Acme/Lib")),
            json!({ "repositories": ["Lib"], "permissions": {"contents": "read", "metadata": "read"} })
        );
    }

    #[test]
    fn a_token_that_only_reads_files_is_kept_apart() {
        let tokens = Tokens::default();
        let until = Utc::now() + TimeDelta::hours(1);
        tokens.keep(
            TokenScope::Files("acme/lib"),
            Token::new("x".to_owned().into(), until, 1),
        );
        assert!(tokens.of(TokenScope::Files("Acme/Lib")).is_some());
        assert!(tokens.of(TokenScope::Repository("acme/lib")).is_none());
    }

    #[test]
    fn a_refusal_may_pass_until_a_new_token_was_known_once() {
        let token = Token::new("x".to_owned().into(), Utc::now(), 1);
        assert!(token.may_pass(StatusCode::NOT_FOUND));
        assert!(!token.may_pass(StatusCode::OK));
        assert!(!token.may_pass(StatusCode::NOT_FOUND) && !token.may_pass(StatusCode::FORBIDDEN));
        assert!(token.may_pass(StatusCode::UNAUTHORIZED));
        let old = Token {
            made_at: Instant::now().checked_sub(NEW_FOR).unwrap(),
            ..Token::new("x".to_owned().into(), Utc::now(), 1)
        };
        assert!(!old.may_pass(StatusCode::UNAUTHORIZED));
    }
}
