//! Sessions of browsers. A session is a text that the user's token has signed, so that every server
//! on the same configuration knows it, also after a restart; one that was ended is in the store.

use axum::http::HeaderMap;
use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::token::{Known, Users};
use crate::web::cookies;

const NAME: &str = "coding-agent-session";
/// After so long somebody has to show the token again.
const LENGTH: TimeDelta = TimeDelta::hours(12);

/// A session.
pub(super) struct Session {
    pub(super) expires: DateTime<Utc>,
    id: Uuid,
    pub(super) user: String,
}

impl Session {
    /// Begins one; its id is new, whatever the browser sent before.
    pub(super) fn begin(user: &str) -> Self {
        Self {
            expires: Utc::now() + LENGTH,
            id: Uuid::new_v4(),
            user: user.to_owned(),
        }
    }

    fn text(&self) -> String {
        format!("{}.{}.{}", self.expires.timestamp(), self.id.simple(), self.user)
    }

    /// Returns the session as the cookie has it.
    pub(super) fn written(&self, user: &Known) -> String {
        let text = self.text();
        let signature = user.sign(&format!("session {text}"));
        format!("{text}.{signature}")
    }

    /// Returns what forms of this session carry, which no other site can know.
    pub(super) fn form_token(&self, user: &Known) -> String {
        user.sign(&format!("form {}", self.text()))
    }

    /// Returns the name under which the store has its end.
    pub(super) fn key(&self) -> String {
        format!("session {}", self.id.simple())
    }
}

/// Reads a session that was signed by its user's token and has not expired.
pub(super) fn read<'a>(cookie: &str, users: &'a Users) -> Option<(Session, &'a Known)> {
    let (text, signature) = cookie.rsplit_once('.')?;
    let mut parts = text.splitn(3, '.');
    let (expires, id, user) = (parts.next()?, parts.next()?, parts.next()?);
    let known = users.named(user)?;
    if !known.has_signed(&format!("session {text}"), signature) {
        return None;
    }
    let session = Session {
        expires: DateTime::from_timestamp(expires.parse().ok()?, 0)?,
        id: Uuid::parse_str(id).ok()?,
        user: user.to_owned(),
    };
    (Utc::now() < session.expires).then_some((session, known))
}

/// Returns the session that a browser sent.
pub(super) fn cookie(headers: &HeaderMap) -> Option<String> {
    cookies::cookie(headers, NAME)
}

pub(super) fn set_cookie(value: &str, is_behind_tls: bool) -> String {
    let secure = if is_behind_tls { "; Secure" } else { "" };
    let seconds = LENGTH.num_seconds();
    format!("{NAME}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

pub(super) fn no_cookie(is_behind_tls: bool) -> String {
    let secure = if is_behind_tls { "; Secure" } else { "" };
    format!("{NAME}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict{secure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_back_until_it_ends_and_only_unchanged() {
        let users = Users::of_own_token("a-token-of-some-length");
        let owner = users.named("owner").unwrap();
        let session = Session::begin("owner");
        let written = session.written(owner);
        let (back, _) = read(&written, &users).unwrap();
        assert_eq!(back.key(), session.key());
        assert_eq!(back.form_token(owner), session.form_token(owner));
        for at in 0..written.len() {
            let mut changed = written.clone().into_bytes();
            changed[at] = if changed[at] == b'1' { b'2' } else { b'1' };
            let changed = String::from_utf8(changed).unwrap();
            // The last sign of base64 has bits that say nothing; those are refused, too.
            assert!(read(&changed, &users).is_none(), "{changed}");
        }
        let other = Users::of_own_token("another-token-of-some-length");
        assert!(
            read(&written, &other).is_none(),
            "a new token ends what the old one signed"
        );
        let ended = Session {
            expires: Utc::now() - TimeDelta::seconds(1),
            ..session
        };
        assert!(read(&ended.written(owner), &users).is_none());
    }
}
