//! Joins the ends of a tunnel, after the first bytes from inside were judged.

use std::convert::Infallible;
use std::io::{self, Cursor};
use std::sync::Mutex;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::time::timeout;

use super::Gateway;
use super::forwarding::{Body, Trouble, forward};
use super::gate::Pass;
use crate::egress::hello::{self, Opening};
use crate::egress::{Inside, Permit};

/// Time limit for enough bytes to recognize the protocol.
const FIRST_BYTES: Duration = Duration::from_secs(30);

/// A TLS alert: fatal, unrecognized name (RFC 6066, 3).
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A tunnel that is connected to its judged destination and has not carried a byte yet.
pub(super) struct Tunnel {
    pub(super) permit: Permit,
    pub(super) pass: Pass,
    pub(super) outside: Box<dyn Stream>,
}

impl Tunnel {
    /// Joins both ends until either breaks off or the way out is closed.
    pub(super) async fn join(self, gateway: &Gateway, inside: impl Stream + 'static) {
        let Self { permit, pass, outside } = self;
        tokio::select! {
            // Errors concern only the two ends; refusals are in the ledger.
            _ = join(gateway, &permit, &pass, (inside, outside)) => {}
            () = pass.withdrawn() => {}
        }
    }
}

async fn join(
    gateway: &Gateway,
    permit: &Permit,
    pass: &Pass,
    (mut inside, mut outside): (impl Stream + 'static, Box<dyn Stream>),
) -> io::Result<()> {
    let mut first = Vec::new();
    let opening = timeout(FIRST_BYTES, until_understood(&mut inside, &mut outside, &mut first)).await;
    let Some(opening) = opening.map_err(|_| io::ErrorKind::TimedOut)?? else {
        // Closed before the protocol was recognized.
        return Ok(());
    };
    match gateway.policy.judge_inside(permit, &opening) {
        Ok(Inside::Bytes) => {
            let mut outside = gateway.ledger.counted(outside, permit.destination());
            outside.write_all(&first).await?;
            copy_bidirectional(&mut inside, &mut outside).await.map(|_| ())
        }
        Ok(Inside::Request) => {
            let (reader, writer) = tokio::io::split(inside);
            let inside = tokio::io::join(Cursor::new(first).chain(reader), writer);
            serve_request(gateway, permit, pass, (inside, outside)).await;
            Ok(())
        }
        Err(refusal) => {
            gateway.ledger.add(&refusal);
            if matches!(opening, Opening::Tls { .. } | Opening::BrokenTls) {
                inside.write_all(&UNRECOGNIZED_NAME).await?;
            }
            inside.shutdown().await
        }
    }
}

/// Reads from inside into `first` until the protocol is recognized. Bytes that the server sends
/// first are forwarded: some protocols begin with its greeting. `None` if either end was closed
/// before.
async fn until_understood(
    inside: &mut (impl Stream + ?Sized),
    outside: &mut (impl Stream + ?Sized),
    first: &mut Vec<u8>,
) -> io::Result<Option<Opening>> {
    let (mut said, mut greeting) = ([0; 4096], [0; 4096]);
    loop {
        tokio::select! {
            read = inside.read(&mut said) => match read? {
                0 => return Ok(None),
                count => first.extend_from_slice(&said[..count]),
            },
            read = outside.read(&mut greeting) => match read? {
                0 => return Ok(None),
                count => {
                    inside.write_all(&greeting[..count]).await?;
                    continue;
                }
            },
        }
        match hello::read(first) {
            Opening::Incomplete => {}
            opening => return Ok(Some(opening)),
        }
    }
}

/// Serves one request in plain HTTP; a program that has more opens another tunnel. As with requests
/// to the proxy itself, the judged destination is requested, whatever the request says about its
/// host.
async fn serve_request(
    gateway: &Gateway,
    permit: &Permit,
    pass: &Pass,
    (inside, outside): (impl AsyncRead + AsyncWrite + Unpin, Box<dyn Stream>),
) {
    let outside = Mutex::new(Some(outside));
    // Held until the response is sent.
    let beside = Mutex::new(None);
    let answer = service_fn(|request: Request<Incoming>| async {
        let taken = outside.lock().map_or(None, |mut outside| outside.take());
        let answered = match taken {
            Some(outside) => {
                let outside = gateway.ledger.counted(outside, permit.destination());
                forward(request, permit.destination(), None, outside, pass.clone()).await
            }
            None => Err(Trouble::Failed(
                StatusCode::BAD_GATEWAY,
                "a tunnel takes one request in plain HTTP".to_owned(),
            )),
        };
        Ok::<_, Infallible>(match answered {
            Ok((response, answering)) => {
                if let Ok(mut beside) = beside.lock() {
                    *beside = Some(answering);
                }
                response
            }
            Err(Trouble::Refused(refusal)) => failed(StatusCode::FORBIDDEN, refusal.sentence()),
            Err(Trouble::Failed(status, sentence)) => failed(status, sentence),
        })
    });
    let mut http = http1::Builder::new();
    // Errors concern only the two ends.
    let _ = http
        .keep_alive(false)
        .serve_connection(TokioIo::new(inside), answer)
        .await;
}

fn failed(status: StatusCode, sentence: String) -> Response<Body> {
    let body = Full::new(Bytes::from(sentence)).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
