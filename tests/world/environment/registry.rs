//! A registry of images on loopback, just enough to be pulled from.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::net::TcpListener;

/// A registry with one image in it, of one layer with one file. Engines take loopback registries
/// without TLS.
pub(super) struct Registry {
    pub(super) address: SocketAddr,
    /// That of the image.
    pub(super) digest: String,
    pub(super) server: tokio::task::JoinHandle<()>,
    trouble: Arc<Mutex<Option<Trouble>>>,
}

/// A status, and the body that comes with it. As the large registries do, it still answers the
/// question whether it is there (`/v2/`).
pub(super) type Trouble = (StatusCode, &'static str);

/// Docker Hub's answer beyond its limit.
pub(super) const LIMITED: Trouble = (
    StatusCode::TOO_MANY_REQUESTS,
    r#"{"errors":[{"code":"TOOMANYREQUESTS","message":"You have reached your pull rate limit."}]}"#,
);

/// A proxy's answer before a registry that is being started.
pub(super) const DOWN: Trouble = (
    StatusCode::SERVICE_UNAVAILABLE,
    "no server is available to handle this request",
);

impl Registry {
    pub(super) async fn start(content: &str) -> Self {
        Self::open_to(None, content).await
    }

    /// Starts a registry that serves only whoever has these credentials, as `user:password`.
    pub(super) async fn private(credentials: &str, content: &str) -> Self {
        Self::open_to(Some(format!("Basic {}", STANDARD.encode(credentials))), content).await
    }

    /// Answers every question about images with this from now on, until [`Self::recovers`].
    pub(super) fn is_in(&self, trouble: Trouble) {
        *self.trouble.lock().unwrap() = Some(trouble);
    }

    pub(super) fn recovers(&self) {
        *self.trouble.lock().unwrap() = None;
    }

    async fn open_to(authorization: Option<String>, content: &str) -> Self {
        let mut layer = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        layer.append_data(&mut header, "content", content.as_bytes()).unwrap();
        let layer = layer.into_inner().unwrap();
        let config = serde_json::json!({
            "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
            "os": "linux",
            "config": {},
            "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
        });
        let config = serde_json::to_vec(&config).unwrap();
        let part = |kind: &str, bytes: &[u8]| {
            serde_json::json!({
                "mediaType": format!("application/vnd.docker.{kind}"),
                "size": bytes.len(),
                "digest": digest(bytes),
            })
        };
        let manifest = serde_json::json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": part("container.image.v1+json", &config),
            "layers": [part("image.rootfs.diff.tar", &layer)],
        });
        let manifest = serde_json::to_vec(&manifest).unwrap();
        let own = digest(&manifest);
        let kept = [config, layer, manifest.clone()].map(|bytes| (digest(&bytes), bytes));
        // By digest, or by the one tag there is.
        let kept = kept.into_iter().chain([("latest".to_owned(), manifest)]);
        let kept: Arc<HashMap<String, Vec<u8>>> = Arc::new(kept.collect());

        let serve = async move |Path((_, _, name)): Path<(String, String, String)>| {
            let bytes = kept.get(&name).cloned().ok_or(StatusCode::NOT_FOUND)?;
            let headers = [
                ("content-type", MANIFEST.to_owned()),
                ("docker-content-digest", digest(&bytes)),
            ];
            Ok::<_, StatusCode>((headers, bytes))
        };
        let authorization = Arc::new(authorization);
        let trouble: Arc<Mutex<Option<Trouble>>> = Arc::default();
        let troubled = Arc::clone(&trouble);
        let admit = move |request: Request, next: Next| {
            let wanted = Arc::clone(&authorization);
            let refusal = *troubled.lock().unwrap();
            async move {
                if let Some(refusal) = refusal.filter(|_| request.uri().path() != "/v2/") {
                    return refusal.into_response();
                }
                let shown = request.headers().get("authorization");
                let shown = shown.and_then(|shown| shown.to_str().ok()).map(str::to_owned);
                if wanted.is_some() && *wanted != shown {
                    let challenge = [("www-authenticate", "Basic realm=\"registry\"")];
                    return (StatusCode::UNAUTHORIZED, challenge).into_response();
                }
                next.run(request).await
            }
        };
        let routes = Router::new()
            .route("/v2/", get(async || ()))
            .route("/v2/{repository}/{kind}/{name}", get(serve))
            .layer(from_fn(admit));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            address,
            digest: own,
            server,
            trouble,
        }
    }
}

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

fn digest(bytes: &[u8]) -> String {
    let suite = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256
        .tls13()
        .unwrap();
    let hash = suite.common.hash_provider.hash(bytes);
    let hexadecimal = hash
        .as_ref()
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    format!("sha256:{hexadecimal}")
}
