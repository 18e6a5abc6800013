//! Access control: tokens, sessions, and the protection against other sites that act through
//! somebody's browser.

mod attempts; // how often somebody may be wrong
mod host; // where a request says it goes to, and where it comes from
mod session; // what a browser shows in the place of a token
mod token; // who has which token
pub(super) mod gate; // what every request passes

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use chrono::{DateTime, Utc};
use tokio::sync::watch;

use crate::config::http::{Http, May};
use crate::store::{Store, StoreError};
use attempts::Attempts;
pub(super) use host::Addresses;
use token::Users;
pub use token::{TOKEN_FILE, own_token};

/// Interval at which the session of an open connection is checked for its end.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// The sender of a request that was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Visitor {
    pub(super) name: String,
    pub(super) may: May,
    /// The token that forms of this session carry; `None` for a script with a token.
    pub(super) form_token: Option<String>,
    /// The session of a browser.
    session: Option<InBrowser>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct InBrowser {
    /// Name under which the store records that it was ended.
    key: String,
    expires: DateTime<Utc>,
}

impl Visitor {
    pub(super) fn may_act(&self) -> bool {
        self.may == May::Approve
    }
}

/// Lets people and scripts in.
pub(super) struct Access {
    users: Users,
    pub(super) addresses: Addresses,
    attempts: Attempts,
    /// Changes when a session was ended here.
    ended: watch::Sender<()>,
}

/// Why a request is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It has neither a token nor a session.
    Nothing,
    /// Its token or session is not valid, or not any more.
    Wrong,
    /// Too many attempts from the same address failed of late.
    TooOften,
}

impl Access {
    /// Reads who may come in. Without users the program's own token counts, which is made if it is
    /// not there.
    pub(super) fn new(http: &Http, port: u16, state_dir: &Path) -> std::io::Result<Self> {
        let users = if http.users.is_empty() {
            Users::of_own_token(&own_token(state_dir)?)
        } else {
            Users::configured(&http.users)
        };
        Ok(Self {
            users,
            addresses: Addresses::new(http, port),
            attempts: Attempts::default(),
            ended: watch::Sender::new(()),
        })
    }

    /// Finds out who sends a request, from its headers.
    pub(super) async fn identify(
        &self,
        store: &Store,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<Result<Visitor, Refusal>, StoreError> {
        if let Some(token) = bearer(headers) {
            return Ok(self.by_token(token, peer).map(|(name, may)| Visitor {
                name,
                may,
                form_token: None,
                session: None,
            }));
        }
        let Some(cookie) = session::cookie(headers) else {
            return Ok(Err(Refusal::Nothing));
        };
        let Some((session, user)) = session::read(&cookie, &self.users) else {
            return Ok(Err(Refusal::Wrong));
        };
        if store.noted_once(&session.key()).await?.is_some() {
            return Ok(Err(Refusal::Wrong));
        }
        Ok(Ok(Visitor {
            form_token: Some(session.form_token(user)),
            name: session.user.clone(),
            may: user.may,
            session: Some(InBrowser {
                key: session.key(),
                expires: session.expires,
            }),
        }))
    }

    /// Returns the cookie of a new session for whoever shows a good token.
    pub(super) fn log_in(&self, token: &str, peer: IpAddr) -> Result<String, Refusal> {
        let (name, _) = self.by_token(token, peer)?;
        let user = self.users.named(&name).ok_or(Refusal::Wrong)?;
        let session = session::Session::begin(&name);
        Ok(session::set_cookie(
            &session.written(user),
            self.addresses.is_behind_tls(),
        ))
    }

    /// Ends the visitor's session for good, and returns the cookie that takes its place.
    pub(super) async fn log_out(&self, store: &Store, visitor: &Visitor) -> Result<String, StoreError> {
        if let Some(session) = &visitor.session {
            store.first_time(&session.key, &visitor.name).await?;
            self.ended.send_replace(());
        }
        Ok(session::no_cookie(self.addresses.is_behind_tls()))
    }

    /// Waits until the visitor's session is over: ended here, at another server on the same store,
    /// or expired. Never returns for a script with a token.
    pub(super) fn over(&self, store: Store, visitor: &Visitor) -> impl Future<Output = ()> + Send + use<> {
        let (session, mut ended) = (visitor.session.clone(), self.ended.subscribe());
        async move {
            let Some(session) = session else {
                return std::future::pending().await;
            };
            loop {
                let here = tokio::time::timeout(LOOK_AGAIN, ended.changed()).await;
                let is_ended = store.noted_once(&session.key).await.is_ok_and(|noted| noted.is_some());
                if is_ended || matches!(here, Ok(Err(_))) || session.expires < Utc::now() {
                    return;
                }
            }
        }
    }

    fn by_token(&self, token: &str, peer: IpAddr) -> Result<(String, May), Refusal> {
        if !self.attempts.may_try(peer) {
            return Err(Refusal::TooOften);
        }
        if let Some((name, may)) = self.users.with_token(token) {
            return Ok((name.to_owned(), may));
        }
        self.attempts.was_wrong(peer);
        Err(Refusal::Wrong)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
