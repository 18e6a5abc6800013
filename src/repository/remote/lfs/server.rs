//! Requests to a repository's Git LFS server.
//!
//! The server names the address for each content. It may be on the forge's own host; any other has
//! to be a public one behind TLS, or stand in `git.lfs.hosts`: the server, or whoever writes its
//! answers, would otherwise have the worker ask in the operator's network. The run's credentials go
//! to the forge's own host alone; elsewhere the headers of the answer do.

use std::collections::BTreeMap;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Body, Client, ClientBuilder, Method, RequestBuilder, Response, StatusCode, Url};
use secrecy::ExposeSecret;
use tokio::io::AsyncRead;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::io::ReaderStream;

use crate::certificates::Trust;
use crate::egress::address::{Range, range};
use crate::http::maintenance::takes_no_writes;
use crate::http::{self as shared, AttemptError, Backoff};
use crate::lfs::Pointer;
use crate::repository::git::address::{Address, Login};
use crate::repository::remote::lfs::wire::{Action, Answer, Batch, Complaint, MEDIA_TYPE, Operation};
use crate::repository::{Config, RepositoryError};

/// Longest answer about a hundred contents.
const LONGEST_ANSWER: usize = 4 * 1024 * 1024;
/// Contents that are asked for at a time, the protocol's usual number.
pub(super) const AT_A_TIME: usize = 100;
/// Forges send from the address of a content to where it really lies, and that once.
const MOST_REDIRECTS: usize = 3;
/// Bytes of a content that go out at a time.
const PIECE: usize = 64 * 1024;
/// Slowest upload that is waited for, in bytes a second, beyond the time of every request.
const SLOWEST: u64 = 64 * 1024;

/// Why a request had no success.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LfsError {
    /// Nobody's fault; it may work later.
    #[error("{0}")]
    Away(String),
    /// The server does not do it, or may not be asked.
    #[error("{0}")]
    Refused(String),
}

/// The Git LFS server of a repository.
pub(super) struct Server {
    batch: Url,
    login: Option<Login>,
    /// Hosts, with or without a port, that may be in the operator's own network.
    hosts: Vec<String>,
    patience: Duration,
    longest: Duration,
    asking: Clients,
    uploading: Clients,
}

/// The clients of one kind of request.
struct Clients {
    own: Client,
    /// For addresses that have to be public.
    others: Client,
}

impl Server {
    pub(super) fn of(address: &Address, login: Option<&Login>, config: &Config) -> Result<Self, RepositoryError> {
        let unusable = |reason: String| RepositoryError::Unexpected {
            what: format!("Git LFS of {}", address.url()),
            reason,
        };
        let repository = address.url().trim_end_matches('/').trim_end_matches(".git");
        let batch = Url::parse(&format!("{repository}.git/info/lfs/objects/batch"));
        let trust = login.map_or_else(Trust::default, |login| login.trust.clone());
        let silence = Duration::from_secs(config.stall_seconds);
        let longest = Duration::from_secs(config.timeout_seconds);
        let built = |clients: reqwest::Result<Clients>| clients.map_err(|error| unusable(shared::reason(&error)));
        let asking = Clients::of(|| shared::client(&trust).read_timeout(silence).timeout(longest));
        // The client's own silence begins with the request, and a body that goes out does not break
        // it: no upload could take longer. [`watched`] bounds it instead.
        let uploading = Clients::of(|| shared::client(&trust));
        Ok(Self {
            batch: batch.map_err(|error| unusable(error.to_string()))?,
            login: login.cloned(),
            hosts: config.lfs.hosts.clone(),
            patience: silence,
            longest,
            asking: built(asking)?,
            uploading: built(uploading)?,
        })
    }

    /// How long a transfer may be silent.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Asks for the addresses of contents.
    pub(super) async fn batch(&self, operation: Operation, pointers: &[Pointer]) -> Result<Answer, LfsError> {
        let body = serde_json::to_vec(&Batch::of(operation, pointers)).map_err(|error| refused(&error))?;
        let asked = || async {
            let request = self.with_login(self.asking.own.request(Method::POST, self.batch.clone()));
            let request = request
                .header(ACCEPT, MEDIA_TYPE)
                .header(CONTENT_TYPE, MEDIA_TYPE)
                .body(body.clone());
            let mut response = request.send().await.map_err(|error| transient(&error))?;
            if !response.status().is_success() {
                return Err(failure(&mut response).await);
            }
            let text = shared::read_body(&mut response, LONGEST_ANSWER).await;
            let text = text.map_err(|error| again(format!("its answer could not be read: {error:?}")))?;
            let answer: Answer = serde_json::from_slice(&text).map_err(|error| {
                AttemptError::Final(LfsError::Refused(format!("its answer is not readable: {error}")))
            })?;
            match answer.transfer.as_deref() {
                None | Some("basic") => Ok(answer),
                Some(other) => Err(AttemptError::Final(LfsError::Refused(format!(
                    "it transfers by `{other}` only"
                )))),
            }
        };
        shared::retry(BACKOFF, "Git LFS", asked).await
    }

    /// Sends a request that the server asked for, to where it leads.
    pub(super) async fn get(&self, action: &Action) -> Result<Response, LfsError> {
        let mut url = Url::parse(&action.href).map_err(|error| refused(&error))?;
        let mut headers = headers(&action.header)?;
        for _ in 0..=MOST_REDIRECTS {
            let response = self
                .send(self.request(&self.asking, Method::GET, &url, headers.clone())?)
                .await?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let next = redirected(&url, &response);
            let next = next.ok_or_else(|| LfsError::Refused("it redirects to nowhere".to_owned()))?;
            if next.origin() != url.origin() {
                headers.clear();
            }
            url = next;
        }
        Err(LfsError::Refused("it redirects again and again".to_owned()))
    }

    /// Sends what the server asked to be told. A redirect is not followed.
    pub(super) async fn post(
        &self,
        action: &Action,
        complete: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<(), LfsError> {
        let url = Url::parse(&action.href).map_err(|error| refused(&error))?;
        let request = self.request(&self.asking, Method::POST, &url, headers(&action.header)?)?;
        arrived(&url, &self.send(complete(request)).await?)
    }

    /// Sends a content to where the server asked for it, for as long as it moves. A redirect is not
    /// followed.
    pub(super) async fn put(
        &self,
        action: &Action,
        size: u64,
        content: impl AsyncRead + Send + 'static,
    ) -> Result<(), LfsError> {
        let url = Url::parse(&action.href).map_err(|error| refused(&error))?;
        let headers = headers(&action.header)?;
        let names_type = headers.contains_key(CONTENT_TYPE);
        let mut request = self.request(&self.uploading, Method::PUT, &url, headers)?;
        if !names_type {
            request = request.header(CONTENT_TYPE, "application/octet-stream");
        }
        let (told, taken) = watch::channel(());
        let pieces = ReaderStream::with_capacity(content, PIECE);
        let pieces = pieces.inspect(move |_| {
            told.send_replace(());
        });
        let whole = self.longest.saturating_add(Duration::from_secs(size / SLOWEST));
        // Stores of objects take no body of unknown length.
        let request = request.header(CONTENT_LENGTH, size).timeout(whole);
        let sending = self.send(request.body(Body::wrap_stream(pieces)));
        let Some(sent) = watched(sending, taken, self.patience).await else {
            return Err(LfsError::Away(format!(
                "it took nothing of the content, or did not answer, for {} s (`git.stall_seconds`)",
                self.patience.as_secs()
            )));
        };
        arrived(&url, &sent?)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, LfsError> {
        let sent = request.send().await;
        let mut response = sent.map_err(|error| LfsError::Away(reason(&error)))?;
        if response.status().is_success() || response.status().is_redirection() {
            return Ok(response);
        }
        Err(match failure(&mut response).await {
            AttemptError::Final(error) | AttemptError::Transient { error, .. } => error,
        })
    }

    /// Prepares a request to an address that the server named, if it may be asked.
    fn request(
        &self,
        clients: &Clients,
        method: Method,
        url: &Url,
        headers: HeaderMap,
    ) -> Result<RequestBuilder, LfsError> {
        let host = url.host_str().unwrap_or_default();
        if url.origin() == self.batch.origin() {
            let names_login = headers.contains_key(http::header::AUTHORIZATION);
            let request = clients.own.request(method, url.clone()).headers(headers);
            return Ok(if names_login { request } else { self.with_login(request) });
        }
        let with_port = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        if self.hosts.iter().any(|known| *known == host || *known == with_port) {
            return Ok(clients.own.request(method, url.clone()).headers(headers));
        }
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        if address.is_ok_and(|address| !is_public(address)) {
            return Err(LfsError::Refused(format!(
                "it names {with_port}, which is not public; add it to git.lfs.hosts if that is right"
            )));
        }
        if url.scheme() != "https" || !url.username().is_empty() {
            return Err(LfsError::Refused(format!(
                "it names {with_port} without TLS; add it to git.lfs.hosts if that is right"
            )));
        }
        Ok(clients.others.request(method, url.clone()).headers(headers))
    }

    fn with_login(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.login {
            Some(login) => request.basic_auth(&login.user, Some(login.password.expose_secret())),
            None => request,
        }
    }
}

impl Clients {
    fn of(client: impl Fn() -> ClientBuilder) -> reqwest::Result<Self> {
        Ok(Self {
            own: client().build()?,
            others: client().dns_resolver(Arc::new(PublicAddresses)).build()?,
        })
    }
}

/// Resolves names, and leaves out what is not public: the owner of a name decides where it leads.
struct PublicAddresses;

impl Resolve for PublicAddresses {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                let reason = format!("{} leads to no public address", name.as_str());
                return Err(Box::<dyn Error + Send + Sync>::from(reason));
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Awaits an answer for as long as pieces of the body are taken, and for `silence` longer. `None`
/// if there is none then.
async fn watched<T>(sending: impl Future<Output = T>, mut taken: watch::Receiver<()>, silence: Duration) -> Option<T> {
    let mut sending = pin!(sending);
    loop {
        let is_whole = tokio::select! {
            sent = &mut sending => return Some(sent),
            moved = timeout(silence, taken.changed()) => moved.ok()?.is_err(),
        };
        if is_whole {
            return timeout(silence, sending).await.ok();
        }
    }
}

/// Refuses an answer that sends elsewhere: what was to arrive at `url` has gone nowhere, and who
/// took it for arrived would push a pointer to nothing.
fn arrived(url: &Url, response: &Response) -> Result<(), LfsError> {
    if !response.status().is_redirection() {
        return Ok(());
    }
    let target = redirected(url, response).map(|target| target.origin().ascii_serialization());
    Err(LfsError::Refused(format!(
        "it redirects to {} what goes to {} alone, as it names that for it; have it name the right address",
        target.as_deref().unwrap_or("nowhere"),
        url.origin().ascii_serialization()
    )))
}

/// Returns where an answer from `url` sends to.
fn redirected(url: &Url, response: &Response) -> Option<Url> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    url.join(location).ok()
}

const BACKOFF: Backoff = Backoff::thrice(Duration::from_millis(500), 3.0);

fn is_public(address: IpAddr) -> bool {
    range(address.to_canonical()) == Range::Public
}

fn headers(named: &BTreeMap<String, String>) -> Result<HeaderMap, LfsError> {
    let mut headers = HeaderMap::new();
    for (name, value) in named {
        // These belong to a connection, and our own client sets them.
        let is_of_connection = ["connection", "content-length", "host", "transfer-encoding"];
        if is_of_connection.iter().any(|other| name.eq_ignore_ascii_case(other)) {
            continue;
        }
        let name = HeaderName::try_from(name).map_err(|error| refused(&error))?;
        let mut value = HeaderValue::try_from(value).map_err(|error| refused(&error))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Reads a refusal, in the server's own words where it has any.
async fn failure(response: &mut Response) -> AttemptError<LfsError> {
    let status = response.status();
    let wait = shared::retry_after(response.headers(), chrono::Utc::now()).unwrap_or_default();
    let text = shared::read_body(response, 64 * 1024).await.unwrap_or_default();
    let said = serde_json::from_slice::<Complaint>(&text).ok();
    let said = said
        .map(|said| format!(": {}", said.message.escape_debug()))
        .unwrap_or_default();
    let reason = format!("it answers {status}{said}");
    let is_broken = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED && status.as_u16() != 507;
    let is_transient = is_broken || (status == StatusCode::FORBIDDEN && takes_no_writes(&reason));
    if is_transient || status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::REQUEST_TIMEOUT {
        let error = LfsError::Away(reason);
        return AttemptError::Transient { error, wait };
    }
    AttemptError::Final(LfsError::Refused(reason))
}

fn transient(error: &reqwest::Error) -> AttemptError<LfsError> {
    again(reason(error))
}

fn again(reason: String) -> AttemptError<LfsError> {
    AttemptError::Transient {
        error: LfsError::Away(reason),
        wait: Duration::ZERO,
    }
}

fn reason(error: &reqwest::Error) -> String {
    shared::reason(error)
}

fn refused(error: &dyn Error) -> LfsError {
    LfsError::Refused(format!("its answer cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use reqwest::Request;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const OWN: &str = "http://127.0.0.1:8080/acme/widgets.git";

    fn server(hosts: &[&str]) -> Server {
        let login = Login {
            user: "agent".to_owned(),
            password: "top-secret-token".to_owned().into(),
            is_new: false,
            trust: Trust::default(),
        };
        let mut config = Config::default();
        config.lfs.hosts = hosts.iter().map(|&host| host.to_owned()).collect();
        Server::of(&Address::read(OWN).unwrap(), Some(&login), &config).unwrap()
    }

    fn request(server: &Server, url: &str) -> Result<Request, String> {
        let url = Url::parse(url).unwrap();
        let request = server.request(&server.asking, Method::GET, &url, HeaderMap::new());
        request
            .map(|request| request.build().unwrap())
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn the_login_goes_to_the_forge_and_nothing_to_networks_of_the_operator() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let server = server(&["store.internal", "10.1.2.3:9000"]);
        assert_eq!(
            server.batch.as_str(),
            "http://127.0.0.1:8080/acme/widgets.git/info/lfs/objects/batch"
        );
        for (url, has_login) in [
            ("http://127.0.0.1:8080/content", true),
            ("http://store.internal:9000/content", false),
            ("http://10.1.2.3:9000/content", false),
            ("https://store.example.org/content", false),
            ("https://8.8.8.8/content", false),
        ] {
            let request = request(&server, url).unwrap();
            assert_eq!(request.headers().contains_key("authorization"), has_login, "{url}");
        }
        for (url, word) in [
            ("https://127.0.0.1:9000/content", "not public"),
            ("https://169.254.169.254/latest", "not public"),
            ("https://[::1]/content", "not public"),
            ("https://10.1.2.3:9001/content", "not public"),
            ("http://store.example.org/content", "without TLS"),
            ("http://127.0.0.1.example.org:8080/content", "without TLS"),
        ] {
            let error = request(&server, url).unwrap_err();
            assert!(error.contains(word), "{url}: {error}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_into_the_operators_network_is_not_asked() {
        let resolved = PublicAddresses.resolve("localhost".parse().unwrap()).await;
        let error = resolved.err().unwrap().to_string();
        assert_eq!(error, "localhost leads to no public address");
    }

    /// How a server treats an upload.
    #[derive(Clone, Copy, Debug)]
    enum Taking {
        /// It takes a piece now and then, and says that all is well.
        Slowly,
        /// It never takes anything.
        Nothing,
        /// It takes all, and says nothing.
        AllInSilence,
    }

    const LARGE: u64 = 48 * 1024 * 1024;

    /// Uploads a large content to a server that treats it like this; an upload may be silent for
    /// two seconds. The server's own buffer is small, so that little is on its way. Returns how the
    /// upload ended, and how long it took.
    async fn upload(taking: Taking) -> (Result<(), LfsError>, Duration) {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(PIECE.try_into().unwrap()).unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut piece = vec![0; 512 * 1024];
            // The head of the request comes on top.
            let mut left = match taking {
                Taking::Nothing => 0,
                Taking::Slowly | Taking::AllInSilence => LARGE,
            };
            while left > 0 {
                client.read_exact(&mut piece).await.unwrap();
                left = left.saturating_sub(piece.len() as u64);
                if matches!(taking, Taking::Slowly) {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            if matches!(taking, Taking::Slowly) {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                client.write_all(answer).await.unwrap();
            }
            std::future::pending::<()>().await;
        });
        let mut config = Config {
            stall_seconds: 2,
            timeout_seconds: 3,
            ..Config::default()
        };
        config.lfs.hosts = vec![address.to_string()];
        let server = Server::of(&Address::read(OWN).unwrap(), None, &config).unwrap();
        let action = Action {
            href: format!("http://{address}/content"),
            header: BTreeMap::new(),
        };
        let begun = std::time::Instant::now();
        let content = tokio::io::repeat(b'x').take(LARGE);
        let sent = server.put(&action, LARGE, content).await;
        serving.abort();
        (sent, begun.elapsed())
    }

    #[tokio::test]
    async fn an_upload_may_take_as_long_as_it_moves_and_no_longer() {
        let (sent, took) = upload(Taking::Slowly).await;
        assert_eq!(sent, Ok(()));
        assert!(
            took > Duration::from_secs(4),
            "longer than all limits of a request: {took:?}"
        );
        for taking in [Taking::Nothing, Taking::AllInSilence] {
            let (sent, _) = upload(taking).await;
            let words = "it took nothing of the content, or did not answer, for 2 s (`git.stall_seconds`)";
            assert_eq!(sent, Err(LfsError::Away(words.to_owned())), "{taking:?}");
        }
    }
}
