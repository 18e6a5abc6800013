//! One HTTP exchange with GitHub, through octocrab.
//!
//! octocrab brings the base address and the authorisation, as a user and as an App; the connection
//! below it is reqwest's. Requests go through `execute`, answers into the narrow structs of
//! `schema`, and repeats through `forge::http::retry`. octocrab's typed calls and models are not
//! used, for these reasons:
//!
//! - A model demands fields that this program does not read: an issue's `user` has 18 of them, and
//!   must not be null. One account that was deleted, or one field that a compatible server leaves
//!   out, makes a whole list unreadable.
//! - A typed call returns the value alone, and a refused one an error without headers. Conditional
//!   requests need the `ETag`, limits the `retry-after` and `x-ratelimit-*` headers.
//! - Its own repeats send a comment four times where the answer got lost.
//! - A list is read to its end, however long that is.
//!
//! Redirects are followed here, on the same host only: octocrab would leave the token behind and
//! send a comment's text to any other.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, IF_NONE_MATCH};
use http::{Method, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use octocrab::{OctoBody, Octocrab};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::certificates::Trust;
use crate::forge::ForgeError;
use crate::forge::github::Config;
use crate::forge::github::http::app_tokens::{Token, TokenScope, Tokens, until_known};
use crate::forge::github::http::connection::{base, http_client, no_answer, octocrab, unusable};
use crate::forge::github::http::redirect::{self, Target};
use crate::forge::github::http::response::{Hidden, graph_limit, is_without_graph, read, succeeded, whole};
use crate::forge::http::clock::Clock;
use crate::forge::http::clone_address::require_encrypted;
use crate::forge::http::failure::{Failure, causes};
use crate::forge::http::meter::{Meter, Meters, Traffic};
use crate::forge::http::retry::{ATTEMPT_TIMEOUT, Answer, LONGEST_ANSWER, Repeat, down, send};
use crate::forge::http::validators::Validators;

/// Maximum number of redirects that are followed for one request.
const MOST_REDIRECTS: usize = 5;

/// A client that is authorised for one request, the App's token that it uses, if any, and the meter
/// of the requests that GitHub counts together with it.
struct Bearer {
    octocrab: Octocrab,
    token: Option<Token>,
    meter: Arc<Meter>,
}

/// The connection to one GitHub.
pub(crate) struct Client {
    /// Authorised by the token, or as the App.
    root: Octocrab,
    /// The same for the GraphQL API, which has another address on a server of one's own.
    graph: Octocrab,
    /// The API's address, whose host alone gets the token.
    home: Url,
    trust: Trust,
    /// The token; `None` for an App.
    token: Option<SecretString>,
    tokens: Tokens,
    validators: Validators,
    meters: Meters,
    clock: Clock,
    pub(crate) hidden: Hidden,
}

impl Client {
    pub(crate) async fn connect(config: &Config) -> Result<Self, ForgeError> {
        let base = base(&config.api_url)?;
        let token = config
            .token
            .as_ref()
            .map(|token| SecretString::from(token.expose_secret().trim()));
        // One for both: each would read the list of certificate authorities anew.
        let http = http_client(&config.trust)?;
        Ok(Self {
            root: octocrab(config, token.as_ref(), &base, http.clone()).await?,
            graph: octocrab(config, token.as_ref(), base.strip_suffix("/v3").unwrap_or(&base), http).await?,
            trust: config.trust.clone(),
            home: Url::parse(&base).map_err(|error| unusable(causes(&error)))?,
            token,
            tokens: Tokens::default(),
            validators: Validators::default(),
            meters: Meters::default(),
            clock: Clock::default(),
            hidden: Hidden::default(),
        })
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.meters.traffic()
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Returns whom connections to this host trust.
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Refuses the address of a repository that the token must not be sent to.
    pub(crate) fn admit(&self, clone_url: &str) -> Result<(), Failure> {
        require_encrypted(&self.home, clone_url)
    }

    pub(crate) fn validators(&self) -> &Validators {
        &self.validators
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns true if the token may push to repositories of other owners, where these allow it.
    /// Tokens of an App reach what the App is installed on, and fine-grained ones a single owner's
    /// repositories.
    pub(crate) fn reaches_other_owners(&self) -> bool {
        const NARROW: [&str; 3] = ["github_pat_", "ghs_", "ghu_"];
        let is_wide = |token: &SecretString| !NARROW.iter().any(|start| token.expose_secret().starts_with(start));
        self.token.as_ref().is_some_and(is_wide)
    }

    /// Returns the secret that authorises git for `scope`, and whether it was made a moment ago.
    pub(crate) async fn secret(&self, scope: TokenScope<'_>) -> Result<(SecretString, bool), Failure> {
        if let Some(token) = &self.token {
            return Ok((token.clone(), false));
        }
        let token = self.installation_token(scope).await?;
        Ok((token.secret.clone(), token.is_new()))
    }

    /// Fetches `path` and parses the answer.
    pub(crate) async fn get<T: DeserializeOwned>(&self, scope: TokenScope<'_>, path: &str) -> Result<T, Failure> {
        read(&self.fetch(scope, path).await?)
    }

    /// Sends a write and parses the answer.
    pub(crate) async fn write<T: DeserializeOwned>(
        &self,
        scope: TokenScope<'_>,
        method: Method,
        path: &str,
        body: &Value,
        repeat: Repeat,
    ) -> Result<T, Failure> {
        read(&self.order(scope, method, path, Some(body), repeat).await?)
    }

    /// Sends a write; the caller need not read the answer.
    pub(crate) async fn order(
        &self,
        scope: TokenScope<'_>,
        method: Method,
        path: &str,
        body: Option<&Value>,
        repeat: Repeat,
    ) -> Result<Answer, Failure> {
        let bearer = self.authorised(&self.root, scope).await?;
        let answer = self.order_through(&bearer, method, path, body, repeat).await;
        self.doubt(scope, &answer);
        answer
    }

    async fn order_through(
        &self,
        bearer: &Bearer,
        method: Method,
        path: &str,
        body: Option<&Value>,
        repeat: Repeat,
    ) -> Result<Answer, Failure> {
        let once = || send(repeat, || self.exchange(bearer, &method, path, body, None));
        succeeded(until_known(bearer.token.as_ref(), once).await?)
    }

    /// Sends a query to the GraphQL API, which takes queries of any kind by POST. `None` if the
    /// server has no such API, as compatible ones that offer REST alone.
    pub(crate) async fn ask_graph<T: DeserializeOwned>(
        &self,
        scope: TokenScope<'_>,
        question: &Value,
    ) -> Result<Option<T>, Failure> {
        let bearer = self.authorised(&self.graph, scope).await?;
        let answer = self
            .order_through(&bearer, Method::POST, "/graphql", Some(question), Repeat::Always)
            .await;
        self.doubt(scope, &answer);
        let answer = match answer {
            Err(failure) if is_without_graph(&failure) => return Ok(None),
            answer => answer?,
        };
        match graph_limit(&answer) {
            Some(limit) => Err(limit),
            None => read(&answer).map(Some),
        }
    }

    /// Fetches a page, or has GitHub confirm that the stored one is current.
    pub(crate) async fn fetch(&self, scope: TokenScope<'_>, path: &str) -> Result<Answer, Failure> {
        let answer = self
            .fetch_through(&self.authorised(&self.root, scope).await?, path)
            .await;
        self.doubt(scope, &answer);
        answer
    }

    /// Fetches a file that may lie on another server.
    pub(crate) async fn fetch_file(&self, scope: TokenScope<'_>, path: &str) -> Result<Answer, Failure> {
        let bearer = &self.authorised(&self.root, scope).await?;
        let once = || send(Repeat::Always, || self.exchange(bearer, &Method::GET, path, None, None));
        let answer = until_known(bearer.token.as_ref(), once).await?;
        let answer = match redirect::target(&self.home, &answer) {
            Some(Target::OtherHost(url)) => {
                send(Repeat::Always, || redirect::fetch(&self.home, &self.trust, url.clone())).await?
            }
            Some(Target::SameHost(_)) | None => answer,
        };
        let answer = succeeded(answer);
        self.doubt(scope, &answer);
        answer
    }

    /// Fetches something that everybody may who knows the address, without the token. It is fetched
    /// on from there to places of which `may_lie` says that it may lie there.
    pub(crate) async fn fetch_open(&self, url: Url, may_lie: impl Fn(&Url) -> bool) -> Result<Answer, Failure> {
        let mut place = url;
        for _ in 0..=MOST_REDIRECTS {
            let answer = send(Repeat::Always, || {
                redirect::fetch(&self.home, &self.trust, place.clone())
            })
            .await?;
            match redirect::next(&place, &answer) {
                Some(next) if may_lie(&next) => place = next,
                Some(_) => return Err(Failure::unreadable("it lies elsewhere")),
                None => return succeeded(answer),
            }
        }
        Err(Failure::unreadable("it sends on and on"))
    }

    /// Returns the API's address.
    pub(crate) fn home(&self) -> &Url {
        &self.home
    }

    /// Forgets an App's token that is no longer accepted: the App may have been installed anew.
    fn doubt<T>(&self, scope: TokenScope<'_>, answer: &Result<T, Failure>) {
        if let Err(failure) = answer
            && failure.status() == Some(StatusCode::UNAUTHORIZED)
        {
            self.tokens.forget(scope);
        }
    }

    /// Fetches `path` as the token's user or as the App itself.
    pub(crate) async fn fetch_own(&self, path: &str) -> Result<Answer, Failure> {
        self.fetch_through(&self.own(), path).await
    }

    /// Fetches `path` as the token's user or as the App itself, and parses the answer.
    pub(crate) async fn get_own<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        read(&self.fetch_own(path).await?)
    }

    /// Has the App itself make a token; two of them do no harm.
    pub(crate) async fn make_token<T: DeserializeOwned>(&self, path: &str, wanted: &Value) -> Result<T, Failure> {
        let own = self.own();
        let made = self.order_through(&own, Method::POST, path, Some(wanted), Repeat::Always);
        read(&made.await?)
    }

    fn own(&self) -> Bearer {
        Bearer {
            octocrab: self.root.clone(),
            token: None,
            meter: self.meters.of(None),
        }
    }

    async fn fetch_through(&self, bearer: &Bearer, path: &str) -> Result<Answer, Failure> {
        let known = self.validators.known(path);
        let tag = known.as_ref().map(|page| &page.tag);
        let once = || send(Repeat::Always, || self.exchange(bearer, &Method::GET, path, None, tag));
        let answer = until_known(bearer.token.as_ref(), once).await?;
        if let Some(known) = known
            && answer.status == StatusCode::NOT_MODIFIED
        {
            // The status says that its headers may be older than the list.
            let status = answer.status;
            return Ok(Answer { status, ..known.answer });
        }
        let answer = succeeded(answer)?;
        if !self.hidden.notices(&answer) {
            self.validators.keep(path, &answer);
        }
        Ok(answer)
    }

    async fn authorised(&self, octocrab: &Octocrab, scope: TokenScope<'_>) -> Result<Bearer, Failure> {
        if self.token.is_some() {
            return Ok(Bearer {
                octocrab: octocrab.clone(),
                ..self.own()
            });
        }
        let token = self.installation_token(scope).await?;
        let octocrab = octocrab
            .user_access_token(token.secret.clone())
            .map_err(|error| Failure::unreadable(causes(&error)))?;
        Ok(Bearer {
            octocrab,
            meter: self.meters.of(Some(token.installation)),
            token: Some(token),
        })
    }

    /// Sends a request and follows redirects on the same host, with the same method and body.
    async fn exchange(
        &self,
        bearer: &Bearer,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        tag: Option<&http::HeaderValue>,
    ) -> Result<Answer, Failure> {
        let mut place = path.to_owned();
        for _ in 0..=MOST_REDIRECTS {
            let answer = self.exchange_once(bearer, method, &place, body, tag).await?;
            match redirect::target(&self.home, &answer) {
                Some(Target::SameHost(path)) => place = path,
                Some(Target::OtherHost(_)) | None => return whole(path, answer),
            }
        }
        Err(Failure::unreadable(
            "it sends from one place to the next without an end",
        ))
    }

    async fn exchange_once(
        &self,
        bearer: &Bearer,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        tag: Option<&http::HeaderValue>,
    ) -> Result<Answer, Failure> {
        let Bearer { octocrab, meter, .. } = bearer;
        meter.sent(method, path).await;
        let mut request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(ACCEPT, "application/vnd.github+json");
        if let Some(tag) = tag {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let request: http::Request<OctoBody> = octocrab
            .build_request(request, body)
            .map_err(|error| Failure::unreadable(causes(&error)))?;
        let exchange = async {
            let response = octocrab.execute(request).await.map_err(|error| no_answer(&error))?;
            let (head, body) = response.into_parts();
            self.clock.hear(&head.headers);
            let body = Limited::new(body, LONGEST_ANSWER).collect().await.map_err(|error| {
                match error.downcast_ref::<LengthLimitError>() {
                    Some(_) => Failure::unreadable("it is too long"),
                    None => down(&self.home, &format!("the answer broke off: {}", causes(error.as_ref()))),
                }
            })?;
            let answer = Answer::whole(head, body.to_bytes()).naming_proxy(&self.home);
            meter.answered((method, path), &answer);
            Ok(answer)
        };
        within(ATTEMPT_TIMEOUT, &self.home, exchange).await
    }
}

async fn within<T, F>(limit: Duration, home: &Url, exchange: F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let late = || down(home, &format!("no complete answer within {} seconds", limit.as_secs()));
    tokio::time::timeout(limit, exchange)
        .await
        .unwrap_or_else(|_| Err(late()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_that_never_comes_is_not_waited_for() {
        let limit = Duration::from_millis(20);
        let home = "http://127.0.0.1".parse().unwrap();
        let outcome = within(limit, &home, std::future::pending::<Result<(), Failure>>()).await;
        assert!(matches!(outcome, Err(Failure::Down { .. })));
    }
}
