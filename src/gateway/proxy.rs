//! Serves one stream from inside as an HTTP proxy: `CONNECT`, and plain requests with an absolute
//! URL.
//!
//! Every response of the proxy itself is a sentence that the model can act on. Many programs show
//! only the status line of a refused `CONNECT`, so the sentence is the reason phrase as well.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, client, upgrade};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::Gateway;
use super::dialing;
use super::forwarding::{Answering, Body, Trouble, forward};
use super::own_address::own_addresses;
use super::tunnel::{Stream, Tunnel};
use super::upstream::{Kind, Proxy};
use crate::egress::{Destination, Permit};

/// Time limit for the head of a request, counted from the end of the previous one.
const HEAD: Duration = Duration::from_secs(30);

/// Maximum length of a head in bytes.
const LONGEST_HEAD: usize = 16 * 1024;

/// Maximum lifetime of a stream, however busy it is.
const LIFE: Duration = Duration::from_hours(1);

/// Time limit for the worker's proxy to establish a tunnel.
const TUNNEL: Duration = Duration::from_secs(30);

/// State of one stream that must outlive a request; dropped with the stream.
#[derive(Default)]
struct Beside {
    /// A tunnel and its end inside, to be joined once the response is sent.
    tunnel: Option<(OnUpgrade, Tunnel)>,
    /// The connection that the response to a plain request comes from.
    answering: Option<Answering>,
}

/// Serves one stream to its end.
pub(super) async fn serve(gateway: Arc<Gateway>, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
    // Errors concern only the two ends; refusals are in the ledger.
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
    if let (Ok(()), Some((inside, tunnel))) = (served, tunnel)
        && let Ok(inside) = inside.await
    {
        tunnel.join(gateway, TokioIo::new(inside)).await;
    }
}

impl Gateway {
    async fn answer(&self, request: Request<Incoming>, beside: &Mutex<Beside>) -> Result<Response<Body>, Trouble> {
        if request.method() == Method::CONNECT {
            return self.tunnel(request, beside).await;
        }
        let destination = match request.uri().scheme_str() {
            Some("http") => request.uri().authority().and_then(|authority| {
                // In `user@host` the host counts, as for every client; the user is not forwarded.
                let host = authority.as_str().rsplit('@').next()?;
                Destination::parse(host, Some(80))
            }),
            _ => None,
        };
        let destination = destination.ok_or_else(unreadable)?;
        let permit = self.policy.judge(destination)?;
        let pass = self.gate.pass(&permit)?;
        let proxy = self.proxy_to(&permit, Kind::Plain)?;
        let connection = match &proxy {
            None => dialing::directly(&permit).await?,
            Some(proxy) => dialing::to_proxy(proxy).await?,
        };
        let destination = permit.destination();
        let connection = self.ledger.counted(connection, destination);
        let (response, answering) = forward(request, destination, proxy.as_ref(), connection, pass).await?;
        beside.lock().unwrap_or_else(PoisonError::into_inner).answering = Some(answering);
        Ok(response)
    }

    async fn tunnel(&self, mut request: Request<Incoming>, beside: &Mutex<Beside>) -> Result<Response<Body>, Trouble> {
        let authority = request.uri().authority();
        let destination = authority.and_then(|authority| Destination::parse(authority.as_str(), None));
        let destination = destination.ok_or_else(unreadable)?;
        let permit = self.policy.judge(destination)?;
        let pass = self.gate.pass(&permit)?;
        // Connects before the first bytes are known, so that the response can say why there is no
        // connection. Nothing is sent before they are judged.
        let outside: Box<dyn Stream> = match self.proxy_to(&permit, Kind::Tunnel)? {
            None => Box::new(dialing::directly(&permit).await?),
            Some(proxy) => Box::new(tunnel_through(&proxy, permit.destination()).await?),
        };
        let inside = upgrade::on(&mut request);
        let tunnel = Tunnel { permit, pass, outside };
        beside.lock().unwrap_or_else(PoisonError::into_inner).tunnel = Some((inside, tunnel));
        Ok(Response::new(Empty::new().map_err(|never| match never {}).boxed()))
    }

    fn proxy_to(&self, permit: &Permit, kind: Kind) -> Result<Option<Proxy>, Trouble> {
        let proxy = self
            .upstream
            .on_the_way(permit.destination(), kind)
            .map_err(|sentence| Trouble::Failed(StatusCode::BAD_GATEWAY, sentence))?;
        if let (Some(_), crate::egress::Host::Address(address)) = (&proxy, &permit.destination().host) {
            // Only the proxy resolves names, but an address can be judged here.
            permit.choose(&[*address], &own_addresses())?;
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

/// Establishes a tunnel through the worker's proxy.
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
        // Ends when the connection is upgraded, or with this future.
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

fn unreadable() -> Trouble {
    let sentence = "this is the way out of the container, and it understands CONNECT host:port and plain requests with a whole \
                    address such as GET http://host/path";
    Trouble::Failed(StatusCode::BAD_REQUEST, sentence.to_owned())
}
