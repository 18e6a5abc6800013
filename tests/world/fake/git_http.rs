//! The smart HTTP protocol of git: the real `git http-backend`, run for each request.
//!
//! Bodies stream both ways, so that a repository may have any size. The forge hears of a push
//! before the client hears that it succeeded. The credential is the password of Basic
//! authentication.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::Method;
use axum::http::Response;
use axum::http::StatusCode;
use axum::http::header;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::io::AsyncBufReadExt as _;
use tokio::io::AsyncReadExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::io::BufReader;
use tokio::process::Child;
use tokio::process::ChildStdin;
use tokio::process::ChildStdout;
use tokio::process::Command;
use tokio::sync::mpsc;

use crate::fake::forge::Forge;
use crate::fake::forge::Host;
use crate::fake::forge::Refusal;
use crate::fake::lfs;

/// File in the folder of the repositories with git's settings for all of them.
const SETTINGS: &str = ".gitconfig";

/// How late something begins, and how a client knows until then that the server is at work.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Seconds until it begins.
    pub seconds: u32,
    /// Seconds between two signs of life, each a packet of five bytes. Git's own default is five.
    pub keepalive: u32,
}

/// Has packs begin late, like those of large repositories on a busy forge.
pub fn packs_late(folder: &Path, late: Late) {
    let Late { seconds, keepalive } = late;
    let hook = folder.join("packs-late");
    std::fs::write(&hook, format!("#!/bin/sh\nsleep {seconds}\nexec \"$@\"\n")).expect("a hook can be written");
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("a hook can be made executable");
    let settings = format!(
        "[uploadpack]\n\tkeepAlive = {keepalive}\n\tpackObjectsHook = {}\n",
        hook.display()
    );
    std::fs::write(folder.join(SETTINGS), settings).expect("settings can be written");
}

/// Has every push of a branch wait for a hook that looks at what came, as scanners of secrets do.
pub fn pushes_late(folder: &Path, late: Late) {
    let Late { seconds, keepalive } = late;
    let hooks = folder.join("hooks-of-all");
    std::fs::create_dir_all(&hooks).expect("a folder for hooks can be made");
    let hook = hooks.join("pre-receive");
    std::fs::write(
        &hook,
        format!("#!/bin/sh\n! grep -q ' refs/heads/' || exec sleep {seconds}\n"),
    )
    .expect("a hook can be written");
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("a hook can be made executable");
    let settings = format!(
        "[receive]\n\tkeepAlive = {keepalive}\n[core]\n\thooksPath = {}\n",
        hooks.display()
    );
    std::fs::write(folder.join(SETTINGS), settings).expect("settings can be written");
}

/// Answers one request of the protocol.
pub async fn serve<S: Host>(forge: Arc<Forge<S>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Some((repository, rest)) = parts.uri.path().trim_start_matches('/').split_once(".git/") else {
        return refused(&Refusal::NotFound);
    };
    let (repository, rest) = (repository.to_owned(), rest.to_owned());
    let query = parts.uri.query().unwrap_or_default();
    let is_push = parts.uri.path().ends_with("/git-receive-pack")
        || query.contains("service=git-receive-pack")
        || parts.method == Method::PUT;
    let credential = password(&parts.headers);
    let client = match forge.read(|state| state.admit(&repository, credential.as_deref(), is_push)) {
        Ok(client) => client,
        Err(refusal) => return refused(&refusal),
    };
    if let Some(name) = forge.read(|state| state.new_name(&repository)) {
        let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        return moved(&format!("{}/{name}.git/{rest}{query}", forge.origin));
    }
    if let Some(rest) = rest.strip_prefix("info/lfs/") {
        return lfs::serve(forge, &repository, rest, Request::from_parts(parts, body)).await;
    }

    let mut backend = backend(&forge, &parts, &client).spawn().expect("git is installed");
    let input = backend.stdin.take().expect("the input was asked for");
    let mut output = BufReader::new(backend.stdout.take().expect("the output was asked for"));
    tokio::spawn(feed(body, input));
    let mut answer = answer_head(&mut output).await;
    let (sender, receiver) = mpsc::channel(8);
    let pushed = (is_push && parts.uri.path().ends_with("/git-receive-pack")).then_some((repository, client));
    tokio::spawn(async move {
        pass_on(backend, output, &sender).await;
        if let Some((repository, client)) = pushed {
            forge.change(|state| state.pushed(&repository, &client));
        }
    });
    let chunks = stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)));
    *answer.body_mut() = Body::from_stream(chunks);
    answer
}

fn backend<S>(forge: &Forge<S>, parts: &Parts, client: &str) -> Command {
    let header = |name| {
        parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let mut command = Command::new("git");
    command.arg("http-backend").kill_on_drop(true);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // Some settings count only where no repository can write them.
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", forge.folder.join(SETTINGS));
    command
        .env("GIT_PROJECT_ROOT", &forge.folder)
        .env("GIT_HTTP_EXPORT_ALL", "1");
    command
        .env("REQUEST_METHOD", parts.method.as_str())
        .env("PATH_INFO", parts.uri.path());
    command.env("QUERY_STRING", parts.uri.query().unwrap_or_default());
    command
        .env("CONTENT_TYPE", header("content-type"))
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"));
    command
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_USER", client)
        .env("REMOTE_ADDR", "127.0.0.1");
    match header("content-length") {
        // A big push comes in chunks; the backend then reads to the end.
        "" => command.env_remove("CONTENT_LENGTH"),
        length => command.env("CONTENT_LENGTH", length),
    };
    command
}

/// Feeds the body of the request to the backend.
async fn feed(body: Body, mut input: ChildStdin) {
    let mut chunks = body.into_data_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        if input.write_all(&chunk).await.is_err() {
            return;
        }
    }
}

/// Reads the head of the backend's answer, which is in the form of CGI.
async fn answer_head(output: &mut BufReader<ChildStdout>) -> Response<Body> {
    let mut answer = Response::builder();
    let mut line = String::new();
    while output.read_line(&mut line).await.is_ok_and(|length| length > 2) {
        match line.trim_end().split_once(": ") {
            Some(("Status", status)) => answer = answer.status(status.get(..3).unwrap_or("500")),
            Some((name, value)) => answer = answer.header(name, value),
            None => {}
        }
        line.clear();
    }
    answer.body(Body::empty()).expect("git writes proper headers")
}

/// Passes the rest of the answer on. When the client has gone away, the backend is ended by
/// dropping it.
async fn pass_on(
    mut backend: Child,
    mut output: BufReader<ChildStdout>,
    client: &mpsc::Sender<std::io::Result<Bytes>>,
) {
    loop {
        let mut chunk = Vec::with_capacity(64 * 1024);
        match output.read_buf(&mut chunk).await {
            Ok(0) => break,
            Ok(_) => {
                if client.send(Ok(Bytes::from(chunk))).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                let _ = client.send(Err(error)).await;
                return;
            }
        }
    }
    let _ = backend.wait().await;
}

fn password(headers: &HeaderMap) -> Option<String> {
    let encoded = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .strip_prefix("Basic ")?;
    let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    decoded.split_once(':').map(|(_, password)| password.to_owned())
}

fn moved(address: &str) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let address = HeaderValue::from_str(address).expect("an address is a proper header");
    answer.headers_mut().insert(header::LOCATION, address);
    answer
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let (status, text) = match refusal {
        Refusal::Unauthorized => (StatusCode::UNAUTHORIZED, "Authentication required"),
        Refusal::Forbidden(why) => (StatusCode::FORBIDDEN, why.as_str()),
        Refusal::NotFound => (StatusCode::NOT_FOUND, "Repository not found."),
    };
    let mut answer = Response::new(Body::from(text.to_owned()));
    *answer.status_mut() = status;
    // Git shows people a refusal in plain text alone.
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, plain);
    if *refusal == Refusal::Unauthorized {
        let challenge = HeaderValue::from_static("Basic realm=\"fake forge\"");
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    answer
}
