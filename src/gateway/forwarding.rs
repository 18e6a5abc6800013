//! Forwards one request in plain HTTP to the host that was judged.

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri, client};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::AbortOnDropHandle;

use super::dialing::NotConnected;
use super::gate::Pass;
use super::upstream::Proxy;
use crate::egress::{Destination, Refusal};

/// Hop-by-hop headers, which are not forwarded.
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

pub(super) type Body = BoxBody<Bytes, hyper::Error>;

/// The connection that a response comes from. The response breaks off when this is dropped.
pub(super) type Answering = AbortOnDropHandle<()>;

/// The reason why a request got no response from its destination.
pub(super) enum Trouble {
    Refused(Refusal),
    Failed(StatusCode, String),
}

/// Sends one request over `connection` and returns the response while its body still streams. The
/// returned [`Answering`] must be kept for as long.
pub(super) async fn forward(
    mut request: Request<Incoming>,
    destination: &Destination,
    proxy: Option<&Proxy>,
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    pass: Pass,
) -> Result<(Response<Body>, Answering), Trouble> {
    clean(request.headers_mut());
    let authority = match destination.port {
        80 => destination.host.to_string(),
        _ => destination.to_string(),
    };
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    // The judged destination is requested, whatever else the request says about its host.
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
        tokio::select! {
            // An error of the connection shows in the response.
            _ = connection => {}
            () = pass.withdrawn() => {}
        }
    }));
    let mut response = sender.send_request(request).await.map_err(|error| not_sent(&error))?;
    clean(response.headers_mut());
    Ok((response.map(BodyExt::boxed), answering))
}

/// Removes the hop-by-hop headers, those that `Connection` names included.
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
