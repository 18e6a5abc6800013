//! Who has which token. Tokens are compared by their keyed digests, so that the time it takes says
//! nothing about them.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

use crate::config::http::{May, User};

/// The file with the program's own token, in the state folder.
pub const TOKEN_FILE: &str = "http-token";
/// The user whose token that is.
const OWNER: &str = "owner";

/// The users, by name.
pub(super) struct Users {
    known: BTreeMap<String, Known>,
    /// Made anew by each process.
    key: [u8; 32],
}

/// A user and their token.
pub(super) struct Known {
    token: SecretString,
    pub(super) may: May,
}

impl Known {
    /// Returns the signature of a text by this user's token. A new token ends what the old one
    /// signed.
    pub(super) fn sign(&self, text: &str) -> String {
        URL_SAFE_NO_PAD.encode(
            mac(self.token.expose_secret().as_bytes(), text.as_bytes())
                .finalize()
                .into_bytes(),
        )
    }

    /// Tells whether this user's token signed a text, in a time that does not depend on the answer.
    pub(super) fn has_signed(&self, text: &str, signature: &str) -> bool {
        let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else {
            return false;
        };
        let mac = mac(self.token.expose_secret().as_bytes(), text.as_bytes());
        mac.verify_slice(&signature).is_ok()
    }
}

impl Users {
    pub(super) fn configured(users: &BTreeMap<String, User>) -> Self {
        let known = users.iter().filter_map(|(name, user)| {
            let token = user.token.clone()?;
            Some((name.clone(), Known { token, may: user.can }))
        });
        Self::of(known.collect())
    }

    pub(super) fn of_own_token(token: &str) -> Self {
        let owner = Known {
            token: token.to_owned().into(),
            may: May::Approve,
        };
        Self::of([(OWNER.to_owned(), owner)].into())
    }

    fn of(known: BTreeMap<String, Known>) -> Self {
        let mut key = [0; 32];
        key[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        key[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        Self { known, key }
    }

    pub(super) fn named(&self, name: &str) -> Option<&Known> {
        self.known.get(name)
    }

    /// Returns the user with this token. All are compared, whichever it is.
    pub(super) fn with_token(&self, token: &str) -> Option<(&str, May)> {
        let mut found = None;
        for (name, known) in &self.known {
            let own = mac(&self.key, known.token.expose_secret().as_bytes())
                .finalize()
                .into_bytes();
            if mac(&self.key, token.as_bytes()).verify_slice(&own).is_ok() {
                found = Some((name.as_str(), known.may));
            }
        }
        found
    }
}

#[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
fn mac(key: &[u8], text: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(text);
    mac
}

/// Returns the program's own token, and makes it at the first call: a file that only its user can
/// read.
pub fn own_token(state_dir: &Path) -> io::Result<String> {
    let file = state_dir.join(TOKEN_FILE);
    let read = || {
        let text = std::fs::read_to_string(&file).ok()?;
        let text = text.trim();
        (text.len() >= 32).then(|| text.to_owned())
    };
    if let Some(token) = read() {
        return Ok(token);
    }
    std::fs::create_dir_all(state_dir)?;
    let random: Vec<u8> = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()]
        .iter()
        .flat_map(|part| *part.as_bytes())
        .collect();
    let token = URL_SAFE_NO_PAD.encode(random);
    // Linked into place whole, so that no other process reads half of it; the first one counts.
    let draft = file.with_extension(uuid::Uuid::new_v4().simple().to_string());
    let mut opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    opened.write_all(format!("{token}\n").as_bytes())?;
    opened.sync_all()?;
    let placed = std::fs::hard_link(&draft, &file);
    std::fs::remove_file(&draft)?;
    match placed {
        Ok(()) => Ok(token),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read().ok_or_else(|| {
            let mend = format!("{} holds no token; delete it, and a new one is made", file.display());
            io::Error::new(io::ErrorKind::InvalidData, mend)
        }),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_own_token_is_made_once_and_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let token = own_token(&state).unwrap();
        assert_eq!(token.len(), 43);
        assert_eq!(own_token(&state).unwrap(), token);
        let mode = std::fs::metadata(state.join(TOKEN_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), 1);
        std::fs::write(state.join(TOKEN_FILE), "short").unwrap();
        assert!(own_token(&state).unwrap_err().to_string().contains("delete it"));
    }

    #[test]
    fn a_token_is_that_of_one_user_and_a_signature_of_one_token() {
        let user = |token: &str, can| User {
            token: Some(token.to_owned().into()),
            can,
        };
        let users = Users::configured(
            &[
                ("alice".to_owned(), user("alice-alice-alice", May::Approve)),
                ("bob".to_owned(), user("bob-bob-bob-bob-bob", May::View)),
            ]
            .into(),
        );
        assert_eq!(users.with_token("alice-alice-alice"), Some(("alice", May::Approve)));
        assert_eq!(users.with_token("bob-bob-bob-bob-bob"), Some(("bob", May::View)));
        for wrong in ["", "alice", "alice-alice-alice ", "ALICE-ALICE-ALICE"] {
            assert_eq!(users.with_token(wrong), None);
        }
        let alice = users.named("alice").unwrap();
        let signature = alice.sign("text");
        assert!(alice.has_signed("text", &signature));
        assert!(!alice.has_signed("texts", &signature) && !alice.has_signed("text", ""));
        assert!(!users.named("bob").unwrap().has_signed("text", &signature));
    }
}
