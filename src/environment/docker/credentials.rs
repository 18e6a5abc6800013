//! Credentials for private images, from Docker's own `config.json`: what `docker login` has stored
//! there, or what a credential helper knows.
//!
//! They go to the engine with the one pull or build that needs them, and nowhere else. Without any,
//! or with a file that cannot be read, an image is asked for anonymously.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bollard::auth::DockerCredentials;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::time::timeout;

use super::access::read_bounded;

/// Key under which Docker stores the credentials of its own registry.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// Time limit of a helper program, which may ask a key store of the desktop.
const HELPER_LIMIT: Duration = Duration::from_secs(20);

/// Maximum bytes of a helper's answer.
const LARGEST_ANSWER: u64 = 64 * 1024;

/// User name by which a helper says that its secret is an identity token.
const TOKEN_USER: &str = "<token>";

/// The parts of `config.json` that concern credentials.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct DockerConfig {
    auths: HashMap<String, Auth>,
    /// Helper program for all registries.
    #[serde(rename = "credsStore")]
    store: Option<String>,
    /// Helper programs of single registries.
    #[serde(rename = "credHelpers")]
    helpers: HashMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Auth {
    /// `user:password` in base64.
    #[serde(rename = "auth")]
    login: String,
    username: String,
    password: String,
    identitytoken: String,
}

/// The answer of a helper program.
#[derive(Deserialize)]
struct HelperAnswer {
    #[serde(rename = "Username")]
    username: String,
    #[serde(rename = "Secret")]
    secret: String,
}

impl DockerConfig {
    /// Reads the file in Docker's folder; empty if there is none.
    pub(super) fn read(folder: Option<&Path>) -> Self {
        let Some(text) = folder.and_then(|folder| read_bounded(&folder.join("config.json")).ok()) else {
            return Self::default();
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            // Without the error's text, which may quote the file.
            let (line, column) = (error.line(), error.column());
            tracing::warn!(
                "Docker's config.json cannot be read at line {line}, column {column}; images are pulled without it"
            );
            Self::default()
        })
    }

    /// Returns the credentials for the registry of `image`, if there are any.
    pub(super) async fn for_image(&self, image: &str) -> Option<DockerCredentials> {
        self.of_registry(registry_of(image)).await
    }

    /// Returns the credentials for every registry that the file names, for a build, whose base
    /// images are known only to the engine.
    pub(super) async fn all(&self) -> HashMap<String, DockerCredentials> {
        let named = self.auths.keys().chain(self.helpers.keys());
        let registries: BTreeSet<&str> = named.map(|key| host_of(key)).collect();
        let mut all = HashMap::new();
        for registry in registries {
            if let Some(credentials) = self.of_registry(registry).await {
                all.insert(key_of(registry).to_owned(), credentials);
            }
        }
        all
    }

    async fn of_registry(&self, registry: &str) -> Option<DockerCredentials> {
        let is_its = |key: &str| is_hub(host_of(key)) && is_hub(registry) || host_of(key) == registry;
        let helper = self
            .helpers
            .iter()
            .find(|(key, _)| is_its(key))
            .map(|(_, helper)| helper);
        if let Some(helper) = helper.or(self.store.as_ref()) {
            match ask_helper(helper, key_of(registry)).await {
                Ok(answer) => return answer.map(|answer| answer.credentials(registry)),
                Err(reason) => {
                    tracing::warn!("docker-credential-{helper} has no credentials for {registry}: {reason}");
                }
            }
        }
        let (_, auth) = self.auths.iter().find(|(key, _)| is_its(key))?;
        auth.credentials(registry)
    }
}

impl Auth {
    fn credentials(&self, registry: &str) -> Option<DockerCredentials> {
        let (mut username, mut password) = (self.username.clone(), self.password.clone());
        if let Some(decoded) = STANDARD
            .decode(self.login.trim())
            .ok()
            .filter(|bytes| !bytes.is_empty())
        {
            let decoded = String::from_utf8(decoded).ok()?;
            let (user, secret) = decoded.split_once(':')?;
            user.clone_into(&mut username);
            secret.trim_end_matches('\0').clone_into(&mut password);
        }
        if username.is_empty() && self.identitytoken.is_empty() {
            return None;
        }
        Some(DockerCredentials {
            username: Some(username),
            password: Some(password),
            identitytoken: Some(self.identitytoken.clone()).filter(|token| !token.is_empty()),
            serveraddress: Some(key_of(registry).to_owned()),
            ..DockerCredentials::default()
        })
    }
}

impl HelperAnswer {
    fn credentials(self, registry: &str) -> DockerCredentials {
        let serveraddress = Some(key_of(registry).to_owned());
        if self.username == TOKEN_USER {
            return DockerCredentials {
                identitytoken: Some(self.secret),
                serveraddress,
                ..DockerCredentials::default()
            };
        }
        DockerCredentials {
            username: Some(self.username),
            password: Some(self.secret),
            serveraddress,
            ..DockerCredentials::default()
        }
    }
}

/// Replaces the two letters of the usual base64 that engines, which expect the alphabet for
/// addresses, do not read: they would then ask the registry anonymously.
pub(super) fn encode_for_addresses(headers: &mut HeaderMap) {
    for name in ["x-registry-auth", "x-registry-config"] {
        let Some(value) = headers.get_mut(name) else {
            continue;
        };
        let encoded = value.to_str().unwrap_or_default().replace('+', "-").replace('/', "_");
        if let Ok(encoded) = HeaderValue::from_str(&encoded) {
            *value = encoded;
            value.set_sensitive(true);
        }
    }
}

/// Asks `docker-credential-<helper>`; `None` if it knows nothing of the registry.
async fn ask_helper(helper: &str, registry: &str) -> Result<Option<HelperAnswer>, String> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if helper.is_empty() || !helper.chars().all(is_name) {
        return Err("it is not the name of a helper".to_owned());
    }
    let mut command = Command::new(format!("docker-credential-{helper}"));
    command.arg("get");
    ask(command, registry).await
}

async fn ask(mut command: Command, registry: &str) -> Result<Option<HelperAnswer>, String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    let asked = async {
        if let Some(mut stdin) = child.stdin.take() {
            // A helper that does not read its input says so by its exit code.
            let _ = stdin.write_all(registry.as_bytes()).await;
        }
        let mut answer = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout.take(LARGEST_ANSWER).read_to_end(&mut answer).await?;
        }
        std::io::Result::Ok((child.wait().await?, answer))
    };
    let (status, answer) = timeout(HELPER_LIMIT, asked)
        .await
        .map_err(|_| format!("no answer within {} s", HELPER_LIMIT.as_secs()))?
        .map_err(|error| error.to_string())?;
    if !status.success() {
        if String::from_utf8_lossy(&answer).contains("credentials not found") {
            return Ok(None);
        }
        return Err(format!("it ended with {status}"));
    }
    let answer = serde_json::from_slice(&answer);
    answer.map(Some).map_err(|_| "its answer cannot be read".to_owned())
}

/// Returns the registry that an image's name begins with, or that of Docker.
fn registry_of(image: &str) -> &str {
    match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
        _ => DOCKER_HUB,
    }
}

/// Returns the host of a key of `config.json`, which may be an address with a path.
fn host_of(key: &str) -> &str {
    let bare = key.split_once("://").map_or(key, |(_, rest)| rest);
    bare.split('/').next().unwrap_or(bare)
}

fn is_hub(registry: &str) -> bool {
    ["docker.io", "index.docker.io", "registry-1.docker.io"].contains(&host_of(registry))
}

/// Returns the key under which credentials of a registry are stored.
fn key_of(registry: &str) -> &str {
    if is_hub(registry) { DOCKER_HUB } else { registry }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> DockerConfig {
        serde_json::from_str(text).unwrap()
    }

    #[tokio::test]
    async fn each_registry_gets_its_own_credentials_and_no_other_any() {
        let auth = |text: &str| STANDARD.encode(text);
        let config = config(&format!(
            r#"{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{}"}}, "https://registry.example.com/v2/": {{"auth": "{}"}},
                "token.example.com:5000": {{"identitytoken": "t"}}, "empty.example.com": {{}}}}, "HttpHeaders": {{"a": "b"}}}}"#,
            auth("ann:hub"),
            auth("bob:pass:word")
        ));
        let password = async |image: &str| config.for_image(image).await.and_then(|found| found.password);
        assert_eq!(password("python:3").await.as_deref(), Some("hub"));
        assert_eq!(password("docker.io/library/python").await.as_deref(), Some("hub"));
        assert_eq!(
            password("registry.example.com/team/python:3").await.as_deref(),
            Some("pass:word")
        );
        assert_eq!(password("other.example.com/python").await, None);
        assert_eq!(password("empty.example.com/python").await, None);
        let token = config.for_image("token.example.com:5000/python").await.unwrap();
        assert_eq!(token.identitytoken.as_deref(), Some("t"));
        let all = config.all().await;
        assert_eq!(all.len(), 3, "{:?}", all.keys());
        assert!(all.contains_key("https://index.docker.io/v1/"));
    }

    #[tokio::test]
    async fn a_helper_that_is_not_there_or_not_a_name_leaves_what_the_file_has() {
        let auth = STANDARD.encode("ann:word");
        for helper in ["surely-not-there", "../../bin/sh"] {
            let text = format!(r#"{{"credsStore": "{helper}", "auths": {{"a.example": {{"auth": "{auth}"}}}}}}"#);
            let found = config(&text).for_image("a.example/python").await.unwrap();
            assert_eq!(found.username.as_deref(), Some("ann"));
        }
    }

    #[tokio::test]
    async fn a_helper_is_asked_for_the_registry_and_answers_in_its_own_way() {
        let answer = async |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            ask(command, "a.example").await
        };
        let known = r#"registry=$(cat); echo "{\"ServerURL\": \"$registry\", \"Username\": \"ann\", \"Secret\": \"for $registry\"}""#;
        let found = answer(known).await.unwrap().unwrap().credentials("a.example");
        assert_eq!(found.password.as_deref(), Some("for a.example"));
        let token = r#"echo '{"Username": "<token>", "Secret": "t"}'"#;
        let found = answer(token).await.unwrap().unwrap().credentials("a.example");
        assert_eq!((found.username, found.identitytoken.as_deref()), (None, Some("t")));
        let unknown = "echo credentials not found in native keychain; exit 1";
        assert!(answer(unknown).await.unwrap().is_none());
        assert!(answer("exit 3").await.is_err());
        assert!(answer("echo no answer").await.is_err());
    }

    #[test]
    fn a_broken_file_is_no_credentials() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), "{\"auths\": 3}").unwrap();
        assert!(DockerConfig::read(Some(folder.path())).auths.is_empty());
        assert!(DockerConfig::read(None).auths.is_empty());
    }
}
