//! The window and the door: a dashboard for people, an API and a stream of events for scripts,
//! figures for Prometheus, and webhooks of the forges.
//!
//! Nothing of it holds what a run needs: pages and answers are made of the store, and what is done
//! goes the way that commands of the command line go. So a second browser, another process on the
//! same store, and a server that was started again show the same.

mod server; // connections, and what bounds them
mod cookies; // cookies of a request
mod problem; // what a request gets that cannot be met
mod access; // who may come in
mod hub; // facts as they come, for many readers
mod reading; // what is shown, made of the store
mod acting; // what people do, by the ways of the command line
mod tasks; // starting a task
mod code; // places of the repositories that are worked on
mod api; // for scripts
mod hooks; // webhooks of the forges
mod metrics; // figures for Prometheus
mod pages; // for people

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::chat::Chat;
use crate::config::http::Http;
use crate::service::{Host, Service};
use access::{Access, gate};
pub use access::{TOKEN_FILE, own_token};
use hub::Hub;
use metrics::Meters;
use pages::Pages;
use reading::examination::Examination;
use reading::statistics::Reports;

/// Where `dashboard` listens unless the configuration or the command line says otherwise.
pub const USUAL_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8420);

/// The state that all requests share.
struct Web {
    service: Arc<Service>,
    /// Properties of the machine, for `doctor`.
    host: Host,
    examination: Examination,
    access: Access,
    hub: Hub,
    pages: Pages,
    reports: Reports,
    meters: Meters,
    /// The room for webhooks whose bodies are being read.
    deliveries: hooks::Room,
    /// The chat with people in messengers, if one is configured.
    chat: Option<Chat>,
    /// The requests for tasks under way: those with one key go one after the other.
    asking: tokio::sync::Mutex<()>,
    /// The requests that work on a code index: one may have a whole repository to read.
    indexing: tokio::sync::Mutex<()>,
    /// Ends the streams of events.
    closing: CancellationToken,
}

/// A server that listens and does not answer yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    web: Arc<Web>,
}

/// Why the server cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum NotServed {
    #[error(
        "no HTTP server: {address} cannot be listened on ({reason}); end the program that has the port, \
         or choose another one in http.listen"
    )]
    Taken {
        address: SocketAddr,
        reason: std::io::Error,
    },
    #[error(
        "no HTTP server: the token in {folder} cannot be read or made ({reason}); see that this user may write there"
    )]
    NoToken { folder: String, reason: std::io::Error },
    #[error("no HTTP server: {0}")]
    Unfit(String),
}

impl Server {
    /// Listens on `address`.
    pub async fn bind(service: Arc<Service>, host: Host, address: SocketAddr) -> Result<Self, NotServed> {
        let taken = |reason| NotServed::Taken { address, reason };
        let listener = TcpListener::bind(address).await.map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        let config = service.config();
        if let Some(reason) = refusal(&config.http, address) {
            return Err(NotServed::Unfit(reason));
        }
        let access =
            Access::new(&config.http, address.port(), &config.state_dir).map_err(|reason| NotServed::NoToken {
                folder: config.state_dir.display().to_string(),
                reason,
            })?;
        let web = Web {
            access,
            hub: Hub::new(service.journal().clone(), service.store().clone()),
            pages: Pages::new().map_err(|error| NotServed::Unfit(error.to_string()))?,
            reports: Reports::default(),
            meters: Meters::new().map_err(|error| NotServed::Unfit(error.to_string()))?,
            deliveries: hooks::Room::new(),
            chat: Chat::new(&service).map_err(|error| NotServed::Unfit(error.to_string()))?,
            asking: tokio::sync::Mutex::default(),
            indexing: tokio::sync::Mutex::default(),
            closing: CancellationToken::new(),
            examination: Examination::default(),
            host,
            service,
        };
        Ok(Self {
            listener,
            address,
            web: Arc::new(web),
        })
    }

    /// Returns the address that people open, and the file with the token if it is the program's
    /// own.
    pub fn invitation(&self) -> String {
        let config = self.web.service.config();
        let url = config
            .http
            .public_origin()
            .map_or_else(|| format!("http://{}", self.address), |(origin, _)| origin);
        if config.http.users.is_empty() {
            let file = config.state_dir.join(TOKEN_FILE);
            return format!("the dashboard is at {url}; its token is in {}", file.display());
        }
        format!("the dashboard is at {url}")
    }

    /// Answers requests until `stop`.
    pub async fn serve(self, stop: CancellationToken) {
        let router = router(Arc::clone(&self.web));
        let web = self.web;
        let ends = async {
            stop.cancelled().await;
            web.closing.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = web.hub.listen() => {}
            () = web.meters.follow(&web.service) => {}
            () = ends => {}
            () = server::serve(self.listener, router, stop.clone()) => {}
        }
    }
}

/// Returns why the address may not be listened on, if it may not: without users everybody on the
/// network would only be held off by one token in a file.
fn refusal(http: &Http, address: SocketAddr) -> Option<String> {
    let is_open = !address.ip().is_loopback() && http.users.is_empty();
    is_open.then(|| {
        format!(
            "{} can be reached from other machines; name who may come in under http.users, or listen on 127.0.0.1",
            address.ip()
        )
    })
}

fn router(web: Arc<Web>) -> Router {
    let inside = pages::inside()
        .merge(api::routes())
        .layer(middleware::from_fn_with_state(Arc::clone(&web), gate::admit))
        .layer(DefaultBodyLimit::max(256 * 1024));
    pages::outside()
        .merge(hooks::routes())
        .route("/health", get(health))
        .route("/ready", get(ready))
        .merge(inside)
        .fallback(pages::lost)
        .layer(middleware::from_fn(gate::frame))
        .with_state(web)
}

/// Answers as long as the process does.
async fn health() -> Json<serde_json::Value> {
    Json(json!({ "status": "ok" }))
}

/// Answers whether work can be done: the store answers.
async fn ready(web: axum::extract::State<Arc<Web>>) -> Result<Json<serde_json::Value>, problem::Problem> {
    web.service.store().newest_fact().await?;
    Ok(Json(json!({ "status": "ready" })))
}
