//! One stream from inside, spoken to as an HTTP proxy is: `CONNECT` and plain requests with a whole address.
//!
//! Every answer of our own is a sentence that the model can act on. Many programs show only the status line of a refused
//! `CONNECT`, so the sentence stands there as well.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri, client, upgrade};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::Gateway;
use super::dialing::{self, Connection, NotConnected};
use super::upstream::{Kind, Proxy};
use crate::egress::{Destination, Permit, Refusal};

/// Longest time for the head of a request, counted from the end of the one before.
const HEAD: Duration = Duration::from_secs(30);

/// Most bytes of a head.
const LONGEST_HEAD: usize = 16 * 1024;

/// Longest life of a stream, however busy it is.
const LIFE: Duration = Duration::from_hours(1);

/// Longest time for a proxy on the way to make a tunnel.
const TUNNEL: Duration = Duration::from_secs(30);

/// Belong to one connection and are not handed on.
const OF_ONE_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

type Body = BoxBody<Bytes, hyper::Error>;

/// What goes on beside the requests of one stream. Ends with it.
#[derive(Default)]
struct Beside {
    /// The two ends of a tunnel, to be joined once the answer is out.
    tunnel: Option<(OnUpgrade, Box<dyn Stream>)>,
    /// The connection that the answer to a plain request comes from.
    answering: Option<AbortOnDropHandle<()>>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Why a request has no answer from outside.
enum Trouble {
    Refused(Refusal),
    Failed(StatusCode, String),
}

/// Serves one stream to its end.
pub(super) async fn serve(gateway: Arc<Gateway>, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
    // What becomes of a stream is between the two ends of it; what was refused is in the ledger.
    let _ = timeout(LIFE, serve_to_its_end(&gateway, stream)).await;
}

async fn serve_to_its_end(gateway: &Gateway, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
    let beside = Mutex::new(Beside::default());
    let answer = service_fn(|request| async {
        let answer = gateway.answer(request, &beside).await;
        Ok::<_, Infallible>(answer.unwrap_or_else(|trouble| gateway.explain(trouble)))
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), answer)
        .with_upgrades()
        .await;
    let tunnel = beside.lock().unwrap_or_else(PoisonError::into_inner).tunnel.take();
    if let (Ok(()), Some((inside, mut outside))) = (served, tunnel)
        && let Ok(inside) = inside.await
    {
        let _ = copy_bidirectional(&mut TokioIo::new(inside), &mut outside).await;
    }
}

impl Gateway {
    async fn answer(&self, request: Request<Incoming>, beside: &Mutex<Beside>) -> Result<Response<Body>, Trouble> {
        if request.method() == Method::CONNECT {
            return self.tunnel(request, beside).await;
        }
        let destination = match request.uri().scheme_str() {
            Some("http") => request.uri().authority().and_then(|authority| {
                // Whoever writes a user into an address means the host behind it; so do we, and hand nobody on.
                let host = authority.as_str().rsplit('@').next()?;
                Destination::parse(host, Some(80))
            }),
            _ => None,
        };
        let destination = destination.ok_or_else(unreadable)?;
        let permit = self.policy.judge(destination)?;
        match self.proxy_to(&permit, Kind::Plain)? {
            None => {
                let connection = dialing::directly(&permit).await?;
                forward(request, permit.destination(), None, connection, beside).await
            }
            Some(proxy) => {
                let connection = dialing::to_proxy(&proxy).await?;
                forward(request, permit.destination(), Some(&proxy), connection, beside).await
            }
        }
    }

    async fn tunnel(&self, mut request: Request<Incoming>, beside: &Mutex<Beside>) -> Result<Response<Body>, Trouble> {
        let authority = request.uri().authority();
        let destination = authority.and_then(|authority| Destination::parse(authority.as_str(), None));
        let destination = destination.ok_or_else(unreadable)?;
        let permit = self.policy.judge(destination)?;
        let outside: Box<dyn Stream> = match self.proxy_to(&permit, Kind::Tunnel)? {
            None => Box::new(dialing::directly(&permit).await?),
            Some(proxy) => Box::new(tunnel_through(&proxy, permit.destination()).await?),
        };
        let inside = upgrade::on(&mut request);
        beside.lock().unwrap_or_else(PoisonError::into_inner).tunnel = Some((inside, outside));
        Ok(Response::new(Empty::new().map_err(|never| match never {}).boxed()))
    }

    fn proxy_to(&self, permit: &Permit, kind: Kind) -> Result<Option<Proxy>, Trouble> {
        let proxy = self
            .upstream
            .on_the_way(permit.destination(), kind)
            .map_err(|sentence| Trouble::Failed(StatusCode::BAD_GATEWAY, sentence))?;
        if let (Some(_), crate::egress::Host::Address(address)) = (&proxy, &permit.destination().host) {
            // Where a name leads only the proxy knows, but an address can be judged here.
            permit.choose(&[*address])?;
        }
        Ok(proxy)
    }

    fn explain(&self, trouble: Trouble) -> Response<Body> {
        let (status, sentence) = match trouble {
            Trouble::Refused(refusal) => {
                self.ledger.add(&refusal);
                (StatusCode::FORBIDDEN, refusal.sentence())
            }
            Trouble::Failed(status, sentence) => (status, sentence),
        };
        let mut response = Response::new(
            Full::new(Bytes::from(format!("{sentence}\n")))
                .map_err(|never| match never {})
                .boxed(),
        );
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        if let Ok(phrase) = ReasonPhrase::try_from(format!("{}: {sentence}", status.canonical_reason().unwrap_or(""))) {
            response.extensions_mut().insert(phrase);
        }
        response
    }
}

/// Sends one request over `connection`, and returns the answer while its body still comes.
async fn forward(
    mut request: Request<Incoming>,
    destination: &Destination,
    proxy: Option<&Proxy>,
    connection: Connection,
    beside: &Mutex<Beside>,
) -> Result<Response<Body>, Trouble> {
    clean(request.headers_mut());
    let authority = match destination.port {
        80 => destination.host.to_string(),
        _ => destination.to_string(),
    };
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    // What is asked for is what was judged, whatever else the request says about its host.
    let address = match proxy {
        Some(_) => format!("http://{authority}{path}"),
        None => path.to_owned(),
    };
    let not_sent = |error: &dyn std::fmt::Display| {
        let sentence = format!("{destination} did not answer: {error}");
        Trouble::Failed(StatusCode::BAD_GATEWAY, sentence)
    };
    *request.uri_mut() = address.parse::<Uri>().map_err(|error| not_sent(&error))?;
    let host = HeaderValue::from_str(&authority).map_err(|error| not_sent(&error))?;
    let headers = request.headers_mut();
    headers.insert(header::HOST, host);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization.clone()) {
        headers.insert(header::PROXY_AUTHORIZATION, authorization);
    }
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(connection))
        .await
        .map_err(|error| not_sent(&error))?;
    let answering = AbortOnDropHandle::new(tokio::spawn(async move {
        // How it ends is seen in the answer.
        let _ = connection.await;
    }));
    let mut response = sender.send_request(request).await.map_err(|error| not_sent(&error))?;
    beside
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .answering
        .replace(answering);
    clean(response.headers_mut());
    Ok(response.map(BodyExt::boxed))
}

/// Asks a proxy on the way for a tunnel.
async fn tunnel_through(proxy: &Proxy, destination: &Destination) -> Result<TokioIo<upgrade::Upgraded>, Trouble> {
    let failed = |why: String| {
        let sentence = format!("the worker's proxy {} made no way to {destination}: {why}", proxy.host);
        Trouble::Failed(StatusCode::BAD_GATEWAY, sentence)
    };
    let connection = dialing::to_proxy(proxy).await?;
    let asking = async {
        let mut request = Request::connect(destination.to_string()).header(header::HOST, destination.to_string());
        if let Some(authorization) = &proxy.authorization {
            request = request.header(header::PROXY_AUTHORIZATION, authorization);
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
        let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(connection))
            .await
            .map_err(|error| error.to_string())?;
        // Ends when the connection is handed over, or with this future.
        let speaking = AbortOnDropHandle::new(tokio::spawn(async move {
            let _ = connection.with_upgrades().await;
        }));
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        if !response.status().is_success() {
            return Err(format!("it answered {}", response.status()));
        }
        let upgraded = upgrade::on(response).await.map_err(|error| error.to_string())?;
        drop(speaking);
        Ok(TokioIo::new(upgraded))
    };
    match timeout(TUNNEL, asking).await {
        Ok(tunnel) => tunnel.map_err(failed),
        Err(_) => Err(failed(format!("no answer within {} s", TUNNEL.as_secs()))),
    }
}

/// Takes out what is said about one connection only.
fn clean(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in OF_ONE_CONNECTION.iter().chain(&named) {
        headers.remove(name);
    }
}

fn unreadable() -> Trouble {
    let sentence = "this is the way out of the container, and it understands CONNECT host:port and plain requests with a whole \
                    address such as GET http://host/path";
    Trouble::Failed(StatusCode::BAD_REQUEST, sentence.to_owned())
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<NotConnected> for Trouble {
    fn from(error: NotConnected) -> Self {
        match error {
            NotConnected::Refused(refusal) => Self::Refused(refusal),
            NotConnected::Failed(sentence) => Self::Failed(StatusCode::BAD_GATEWAY, sentence),
        }
    }
}
