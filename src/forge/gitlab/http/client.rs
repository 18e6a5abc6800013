//! One HTTP exchange with GitLab: the `gitlab` crate's typed endpoints over our own client.
//!
//! The crate provides endpoints, pages and the reading of refusals. It has no models, so
//! that answers are read into the narrow structs of `schema`. Its own client is not used: it has no
//! time-outs, asks for the user before anything else and takes a bare host name. This one takes any
//! base address (with a path, with or without `/api/v4`), repeats, counts and confirms known pages.
//! Endpoints that the crate has once for issues and once for merge requests, or not at all, are in
//! `endpoints`.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use gitlab::api::{ApiError, AsyncClient, AsyncQuery, Endpoint, Pageable, Pagination, RestClient, ignore, paged, raw};
use http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::certificates::Trust;
use crate::forge::ForgeError;
use crate::forge::gitlab::http::redirect::{astray, at_home};
use crate::forge::gitlab::{Config, schema};
use crate::forge::http::clock::Clock;
use crate::forge::http::clone_address::require_encrypted;
use crate::forge::http::failure::{Failure, causes, one_line};
use crate::forge::http::meter::{Meter, Traffic};
use crate::forge::http::retry::{ATTEMPT_TIMEOUT, Answer, Repeat, no_answer, send};
use crate::forge::http::{list_limit::ListLimit, validators::Validators};
use crate::http::client;

/// The connection to one GitLab.
pub(crate) struct Client {
    http: reqwest::Client,
    /// Ends in `/api/v4/`.
    base: Url,
    trust: Trust,
    token: SecretString,
    /// The header that carries the token.
    proof: HeaderValue,
    validators: Validators,
    meter: Meter,
    clock: Clock,
}

impl Client {
    pub(crate) fn connect(config: &Config) -> Result<Self, ForgeError> {
        let Some(token) = &config.token else {
            return Err(unusable("there is no token; set gitlab.token".to_owned()));
        };
        let token = SecretString::from(token.expose_secret().trim());
        let mut proof = HeaderValue::from_str(token.expose_secret())
            .map_err(|_| unusable("gitlab.token has characters that no token has; copy it anew".to_owned()))?;
        proof.set_sensitive(true);
        let http = client(&config.trust)
            .timeout(ATTEMPT_TIMEOUT)
            .redirect(at_home())
            .build()
            .map_err(|error| unusable(format!("the HTTP client cannot be set up: {}", causes(&error))))?;
        Ok(Self {
            http,
            base: base(&config.api_url)?,
            trust: config.trust.clone(),
            token,
            proof,
            validators: Validators::default(),
            meter: Meter::default(),
            clock: Clock::default(),
        })
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.meter.traffic()
    }

    /// Returns whom connections to this host trust.
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Refuses the address of a repository that the token must not be sent to.
    pub(crate) fn admit(&self, clone_url: &str) -> Result<(), Failure> {
        require_encrypted(&self.base, clone_url)
    }

    pub(crate) fn validators(&self) -> &Validators {
        &self.validators
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn token(&self) -> &SecretString {
        &self.token
    }

    /// Sends a request for one object, or a write, and parses the answer. `endpoint` is what an
    /// endpoint's builder returned.
    pub(crate) async fn ask<E, B, T>(&self, endpoint: Result<E, B>) -> Result<T, Failure>
    where
        E: Endpoint + Sync + Send,
        B: std::error::Error,
        T: DeserializeOwned + Send + 'static,
    {
        let endpoint = endpoint.map_err(incomplete)?;
        endpoint.query_async(self).await.map_err(failure)
    }

    /// Sends a write and ignores the answer.
    pub(crate) async fn order<E, B>(&self, endpoint: Result<E, B>) -> Result<(), Failure>
    where
        E: Endpoint + Sync + Send,
        B: std::error::Error,
    {
        let endpoint = endpoint.map_err(incomplete)?;
        ignore(endpoint).query_async(self).await.map_err(failure)
    }

    /// Fetches all pages of a list.
    pub(crate) async fn list<E, B, T>(&self, endpoint: Result<E, B>) -> Result<Vec<T>, Failure>
    where
        E: Endpoint + Pageable + Sync + Send,
        B: std::error::Error,
        T: DeserializeOwned + Send + 'static,
    {
        let endpoint = endpoint.map_err(incomplete)?;
        let pages = Pages {
            client: self,
            listing: Mutex::default(),
        };
        paged(endpoint, Pagination::All)
            .query_async(&pages)
            .await
            .map_err(failure)
    }

    /// Fetches something that is not JSON.
    pub(crate) async fn text<E, B>(&self, endpoint: Result<E, B>) -> Result<Vec<u8>, Failure>
    where
        E: Endpoint + Sync + Send,
        B: std::error::Error,
    {
        let endpoint = endpoint.map_err(incomplete)?;
        raw(endpoint).query_async(self).await.map_err(failure)
    }

    /// Sends a query to the GraphQL API, which takes queries of any kind by POST.
    pub(crate) async fn ask_graph<T: DeserializeOwned>(&self, question: &Value) -> Result<T, Failure> {
        let request = Request {
            method: Method::POST,
            address: self.base.join("../graphql").map_err(Failure::unreadable)?,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]),
            body: Bytes::from(question.to_string()),
        };
        let answer = send(Repeat::Always, || self.exchange(&request, None)).await?;
        if !answer.status.is_success() {
            return Err(Failure::Answered {
                status: answer.status,
                message: one_line(&String::from_utf8_lossy(&answer.body)),
            });
        }
        serde_json::from_slice(&answer.body).map_err(Failure::unreadable)
    }

    async fn answer(&self, request: &http::request::Builder, body: Vec<u8>) -> Result<Answer, Failure> {
        let request = read_request(request, body)?;
        let path = request.address.as_str();
        let known = if request.method == Method::GET {
            self.validators.known(path)
        } else {
            None
        };
        let tag = known.as_ref().map(|page| &page.tag);
        // What is made by POST would be made twice.
        let repeat = if request.method == Method::POST {
            Repeat::IfNotDone
        } else {
            Repeat::Always
        };
        let mut answer = send(repeat, || self.exchange(&request, tag)).await?;
        match known {
            Some(known) if answer.status == StatusCode::NOT_MODIFIED => answer = known.answer,
            Some(_) | None if request.method == Method::GET => self.validators.keep(path, &answer),
            Some(_) | None => {}
        }
        if is_moved(&request.method, &answer)
            && let Some(address) = self.moved_address(&request.address).await?
        {
            let request = Request { address, ..request };
            answer = send(repeat, || self.exchange(&request, None)).await?;
        }
        Ok(answer)
    }

    /// Returns the address of a part of a moved project by the project's number, which stays:
    /// GitLab redirects reads, but refuses writes.
    async fn moved_address(&self, address: &Url) -> Result<Option<Url>, Failure> {
        let projects = format!("{}projects/", self.base);
        let Some(rest) = address.as_str().strip_prefix(&projects) else {
            return Ok(None);
        };
        let (name, part) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let at = |place: &str| Url::parse(&format!("{projects}{place}")).map_err(Failure::unreadable);
        let request = Request {
            method: Method::GET,
            address: at(name)?,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        let answer = send(Repeat::Always, || self.exchange(&request, None)).await?;
        let Ok(project) = serde_json::from_slice::<schema::Project>(&answer.body) else {
            return Ok(None);
        };
        at(&format!("{}{part}", project.id)).map(Some)
    }

    async fn exchange(&self, request: &Request, tag: Option<&HeaderValue>) -> Result<Answer, Failure> {
        // Where a page says that the next one is, for instance.
        if request.address.origin() != self.base.origin() {
            return Err(Failure::unreadable(
                "it leads to another host, where the token is not sent",
            ));
        }
        self.meter.sent(&request.method, request.address.path()).await;
        let mut sent = self
            .http
            .request(request.method.clone(), request.address.clone())
            .headers(request.headers.clone())
            .header("PRIVATE-TOKEN", self.proof.clone());
        if let Some(tag) = tag {
            sent = sent.header(IF_NONE_MATCH, tag);
        }
        if !request.body.is_empty() {
            sent = sent.body(request.body.clone());
        }
        let response = sent.send().await.map_err(|error| no_answer(&error))?;
        if let Some(reason) = astray(response.url(), response.status(), response.headers()) {
            return Err(Failure::unreadable(reason));
        }
        let answer = Answer::read(response).await?;
        self.meter.answered((&request.method, request.address.path()), &answer);
        self.clock.hear(&answer.headers);
        Ok(answer)
    }
}

/// A request of the `gitlab` crate, in a form that can be sent again.
struct Request {
    method: Method,
    address: Url,
    headers: HeaderMap,
    body: Bytes,
}

impl RestClient for Client {
    type Error = Failure;

    fn rest_endpoint(&self, endpoint: &str) -> Result<Url, ApiError<Self::Error>> {
        Ok(self.base.join(endpoint)?)
    }
}

#[async_trait]
impl AsyncClient for Client {
    async fn rest_async(
        &self,
        request: http::request::Builder,
        body: Vec<u8>,
    ) -> Result<http::Response<Bytes>, ApiError<Self::Error>> {
        let answer = self.answer(&request, body).await.map_err(ApiError::client)?;
        Ok(response(answer))
    }
}

/// The client while it reads the pages of one list.
struct Pages<'a> {
    client: &'a Client,
    listing: Mutex<ListLimit>,
}

impl RestClient for Pages<'_> {
    type Error = Failure;

    fn rest_endpoint(&self, endpoint: &str) -> Result<Url, ApiError<Self::Error>> {
        self.client.rest_endpoint(endpoint)
    }
}

#[async_trait]
impl AsyncClient for Pages<'_> {
    async fn rest_async(
        &self,
        request: http::request::Builder,
        body: Vec<u8>,
    ) -> Result<http::Response<Bytes>, ApiError<Self::Error>> {
        let page = self.client.answer(&request, body).await.map_err(ApiError::client)?;
        let mut listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        listing.add(&page).map_err(ApiError::client)?;
        Ok(response(page))
    }
}

fn response(answer: Answer) -> http::Response<Bytes> {
    let mut response = http::Response::new(answer.body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}

/// Recognises the refusal to write to a project that was moved.
fn is_moved(method: &Method, answer: &Answer) -> bool {
    *method != Method::GET
        && answer.status == StatusCode::METHOD_NOT_ALLOWED
        && String::from_utf8_lossy(&answer.body).contains("moved project")
}

fn read_request(request: &http::request::Builder, body: Vec<u8>) -> Result<Request, Failure> {
    let method = request.method_ref().cloned().unwrap_or(Method::GET);
    let address = request.uri_ref().map(ToString::to_string).unwrap_or_default();
    let address = Url::parse(&address).map_err(Failure::unreadable)?;
    let mut headers = HeaderMap::new();
    if let Some(kind) = request.headers_ref().and_then(|headers| headers.get(CONTENT_TYPE)) {
        headers.insert(CONTENT_TYPE, kind.clone());
    }
    Ok(Request {
        method,
        address,
        headers,
        body: Bytes::from(body),
    })
}

fn base(api_url: &str) -> Result<Url, ForgeError> {
    let text = api_url.trim().trim_end_matches('/');
    let text = text.strip_suffix("/api/v4").unwrap_or(text);
    let url = Url::parse(&format!("{text}/api/v4/"));
    url.ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| {
            unusable(format!(
                "gitlab.api_url '{api_url}' is not an address; write https://host or https://host/path"
            ))
        })
}

fn unusable(reason: String) -> ForgeError {
    ForgeError::Unexpected {
        what: "connecting to GitLab".to_owned(),
        reason,
    }
}

fn incomplete(error: impl std::error::Error) -> Failure {
    Failure::unreadable(causes(&error))
}

fn failure(error: ApiError<Failure>) -> Failure {
    match error {
        ApiError::Client { source } => source,
        ApiError::GitlabWithStatus { status, msg } => Failure::Answered {
            status,
            message: one_line(&msg),
        },
        ApiError::GitlabObjectWithStatus { status, obj } | ApiError::GitlabUnrecognizedWithStatus { status, obj } => {
            Failure::Answered {
                status,
                message: one_line(&obj.to_string()),
            }
        }
        ApiError::GitlabService { status, data } if !status.is_success() => Failure::Answered {
            status,
            message: one_line(&String::from_utf8_lossy(&data)),
        },
        ApiError::GitlabService { .. } => Failure::unreadable("it is not JSON"),
        ApiError::MovedPermanently { location } => Failure::Answered {
            status: StatusCode::GONE,
            message: format!("it moved to {}", location.unwrap_or_default()),
        },
        other => Failure::unreadable(causes(&other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_form_of_the_address_leads_to_the_api() {
        for (given, wanted) in [
            ("https://gitlab.com", "https://gitlab.com/api/v4/"),
            ("https://gitlab.com/api/v4/", "https://gitlab.com/api/v4/"),
            ("http://127.0.0.1:80/git/lab", "http://127.0.0.1/git/lab/api/v4/"),
            (
                "http://127.0.0.1:8080/gitlab/api/v4",
                "http://127.0.0.1:8080/gitlab/api/v4/",
            ),
        ] {
            assert_eq!(base(given).unwrap().as_str(), wanted);
        }
        for wrong in ["", "gitlab.com", "ftp://x"] {
            assert!(base(wrong).unwrap_err().to_string().contains("gitlab.api_url"));
        }
    }
}
