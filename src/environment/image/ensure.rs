//! Provides images: present, else pulled, else built if the environment says how.
//!
//! A registry that refuses only for now is asked again, and an engine that goes away in the middle
//! is none that lacks the image: to fail a run for either would have a person start it again.

use std::time::Duration;

use tokio::time::timeout;

use crate::environment::config::Environment;
use crate::environment::docker_engine::DockerEngine;
use crate::environment::error::{EnvironmentError, shipped_name};
use crate::environment::processes::Failure;
use crate::http::{AttemptError, Backoff, retry};

/// Time limit of a question to a registry. A pull may take longer, a person waits for this answer.
const REGISTRY_LIMIT: Duration = Duration::from_secs(30);

/// Engines repeat the download of a layer by themselves, and nothing before it.
const BACKOFF: Backoff = Backoff::thrice(Duration::from_secs(1), 2.0);

/// Words of engines, in small letters, for an image that is not there for this worker, whatever
/// else they say.
const FINAL: [&str; 4] = ["denied", "unauthorized", "manifest unknown", "name unknown"];

/// Words of engines, in small letters, for a registry that limits them, is broken, or does not
/// answer in time, and for their own end. The status of their own answer is 500 for all of it.
const PASSING: [&str; 18] = [
    "toomanyrequests",
    "too many requests",
    "internal server error",
    "bad gateway",
    "service unavailable",
    "gateway time",
    "i/o timeout",
    "timeout exceeded",
    "timeout awaiting",
    "handshake timeout",
    "deadline exceeded",
    "unexpected eof",
    ": eof",
    "connection reset",
    "broken pipe",
    "context canceled",
    "temporary failure in name resolution",
    "server misbehaving",
];

/// Why an image was not pulled.
#[derive(Debug, thiserror::Error)]
enum NotPulled {
    /// It is in no registry, or not for this worker.
    #[error("{0}")]
    Refused(String),
    /// Another attempt may go well.
    #[error("{0}")]
    Passing(String),
    /// The engine could not be asked.
    #[error(transparent)]
    Engine(EnvironmentError),
}

impl NotPulled {
    /// Returns the error for an image that no `build` section says how to build. A registry that
    /// refuses for now may give it later; the shipped images are in none, and waited for in vain.
    fn without_build(self, image: &str) -> EnvironmentError {
        match self {
            Self::Engine(error) => error,
            Self::Passing(reason) if shipped_name(image).is_none() => EnvironmentError::RegistryUnavailable {
                image: image.to_owned(),
                reason,
            },
            Self::Passing(reason) | Self::Refused(reason) => {
                let reason = format!("it is not on this machine and cannot be pulled ({reason})");
                EnvironmentError::image_missing(image, reason)
            }
        }
    }
}

impl DockerEngine {
    /// Ensures that the image is present: pulls it, or builds it if the environment says how.
    /// `progress` gets short lines for people.
    pub(crate) async fn ensure(
        &self,
        environment: &Environment,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(), EnvironmentError> {
        let image = &environment.image;
        if self.is_present(image).await? {
            return Ok(());
        }
        progress(format!("pulling {image}"));
        let pulled = retry(BACKOFF, "pulling an image", || self.pull(image, progress)).await;
        let not_pulled = match pulled {
            Ok(()) => return Ok(()),
            Err(NotPulled::Engine(error)) => return Err(error),
            Err(not_pulled @ (NotPulled::Passing(_) | NotPulled::Refused(_))) => not_pulled,
        };
        let Some(build) = &environment.build else {
            return Err(not_pulled.without_build(image));
        };
        progress(format!(
            "{image} cannot be pulled ({not_pulled}); building it from {}",
            build.dockerfile.display()
        ));
        let Err(reason) = self.client.build(image, build, progress).await else {
            return Ok(());
        };
        // An engine that is away is no fault of the Dockerfile, and another run may have the image
        // by now.
        if self.is_present(image).await? {
            return Ok(());
        }
        Err(EnvironmentError::ImageMissing {
            image: image.clone(),
            reason: format!("it cannot be pulled ({not_pulled}), and building it failed ({reason})"),
            hint: format!("correct {} or name another image", build.dockerfile.display()),
        })
    }

    /// Makes one attempt to pull the image.
    async fn pull(
        &self,
        image: &str,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(), AttemptError<NotPulled>> {
        let not_now = |reason: String| {
            progress(format!("{image} cannot be pulled at the moment ({reason})"));
            AttemptError::Transient {
                error: NotPulled::Passing(reason),
                wait: Duration::ZERO,
            }
        };
        let away = |error: EnvironmentError| AttemptError::Final(NotPulled::Engine(error));
        match self.client.pull(image, progress).await {
            Ok(()) => {}
            Err(failure @ Failure::Silent(_)) => return Err(away(self.client.error("pulling an image", failure))),
            Err(failure @ (Failure::Refused { .. } | Failure::Other(_))) => {
                return Err(if passes(&failure) {
                    not_now(failure.reason())
                } else {
                    AttemptError::Final(NotPulled::Refused(failure.reason()))
                });
            }
        }
        // An engine that is stopped may end its answer as if all were well.
        match self.is_present(image).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(not_now("the engine ended before the image was there".to_owned())),
            Err(error) => Err(away(error)),
        }
    }

    /// Returns true if the image is present.
    pub(crate) async fn is_present(&self, image: &str) -> Result<bool, EnvironmentError> {
        match self.client.image(image).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.is_absent() => Ok(false),
            Err(failure) => Err(self.client.error("looking for an image", failure)),
        }
    }

    /// Returns why the image cannot be pulled, in the registry's or the engine's words. `None` if
    /// its registry has it, or if it cannot be asked: it does not answer, the engine has no way to
    /// ask (podman), or a proxy before the engine lets the question not through.
    pub(crate) async fn why_not_in_registry(&self, image: &str) -> Option<String> {
        match timeout(REGISTRY_LIMIT, self.client.ask_registry(image)).await {
            Ok(Err(Failure::Refused { status, message })) if is_about_image(status, &message) => Some(message),
            Ok(Ok(()) | Err(_)) | Err(_) => None,
        }
    }
}

/// Returns true if a refused question to a registry was refused because of the image, and not
/// because nobody may ask.
fn is_about_image(status: u16, message: &str) -> bool {
    let text = message.to_lowercase();
    match status {
        // Of a registry, or of a proxy that takes other questions for the engine's socket.
        403 | 405 => FINAL.iter().any(|word| text.contains(word)),
        // Podman.
        _ => !text.contains("is not supported"),
    }
}

/// Returns true if what kept an image from being pulled may pass by itself.
fn passes(failure: &Failure) -> bool {
    let text = match failure {
        // An engine that is away is no answer of a registry.
        Failure::Silent(_)
        | Failure::Refused {
            status: 401 | 403 | 404,
            ..
        } => return false,
        Failure::Other(text) | Failure::Refused { message: text, .. } => text.to_lowercase(),
    };
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    says(&PASSING) && !says(&FINAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_waited_for_unless_it_cannot_have_the_image() {
        let passing = || NotPulled::Passing("lookup registry-1.docker.io: server misbehaving".to_owned());
        let refused = || NotPulled::Refused("pull access denied".to_owned());
        let waits = |not_pulled: NotPulled, image: &str| match not_pulled.without_build(image) {
            EnvironmentError::RegistryUnavailable { .. } => true,
            EnvironmentError::ImageMissing { .. } => false,
            error => panic!("{error}"),
        };
        assert!(waits(passing(), "rust:1"));
        assert!(waits(passing(), "registry.example.org/coding-agent-executor-go:1"));
        assert!(!waits(refused(), "rust:1"));
        assert!(!waits(refused(), "coding-agent-executor-go:latest"));
        assert!(!waits(passing(), "coding-agent-executor-go:latest"));
        let told = passing().without_build("coding-agent-executor-go:latest").to_string();
        assert!(
            told.contains("server misbehaving") && told.contains("`scripts/setup images go`"),
            "{told}"
        );
    }

    #[test]
    fn a_proxy_before_the_engine_says_nothing_of_an_image() {
        let html = "<html><body><h1>403 Forbidden</h1>\nRequest forbidden by administrative rules.\n</body></html>";
        assert!(!is_about_image(403, html));
        assert!(!is_about_image(405, "Method Not Allowed"));
        assert!(!is_about_image(404, "distribution is not supported"));
        assert!(is_about_image(
            403,
            "errors:\ndenied: requested access to the resource is denied\nunauthorized: authentication required"
        ));
        assert!(is_about_image(401, "unauthorized: authentication required"));
        assert!(is_about_image(404, "manifest for rust:none not found"));
        assert!(is_about_image(
            500,
            "Get \"https://127.0.0.1:1/v2/\": dial tcp 127.0.0.1:1: connect: connection refused"
        ));
    }

    #[test]
    fn what_passes_is_told_from_what_is_not_there() {
        let refused = |status: u16, message: &str| Failure::Refused {
            status,
            message: message.to_owned(),
        };
        for passing in [
            refused(
                500,
                "toomanyrequests: You have reached your unauthenticated pull rate limit.",
            ),
            refused(429, "Too Many Requests"),
            refused(
                500,
                "failed to resolve reference \"docker.io/library/rust:1\": unexpected status from HEAD request to \
                 https://registry-1.docker.io/v2/library/rust/manifests/1: 503 Service Unavailable",
            ),
            refused(500, "received unexpected HTTP status: 502 Bad Gateway"),
            refused(
                500,
                "Get \"https://registry-1.docker.io/v2/\": net/http: TLS handshake timeout",
            ),
            refused(
                500,
                "Get \"https://quay.io/v2/\": net/http: request canceled while waiting for connection (Client.Timeout exceeded \
                 while awaiting headers)",
            ),
            refused(500, "Get \"https://quay.io/v2/\": dial tcp 192.0.2.1:443: i/o timeout"),
            refused(500, "Get \"https://quay.io/v2/\": EOF"),
            Failure::Other("context canceled".to_owned()),
            Failure::Other("unexpected EOF".to_owned()),
        ] {
            assert!(passes(&passing), "{passing:?}");
        }
        for lasting in [
            refused(
                404,
                "pull access denied for nobody/has-it, repository does not exist or may require 'docker login'",
            ),
            refused(500, "unauthorized: authentication required"),
            refused(500, "manifest unknown: manifest unknown"),
            refused(500, "denied: the service unavailable/image is not yours"),
            refused(
                500,
                "Get \"https://127.0.0.1:1/v2/\": dial tcp 127.0.0.1:1: connect: connection refused",
            ),
            refused(
                500,
                "Get \"https://registry.exmaple.org/v2/\": dial tcp: lookup registry.exmaple.org: no such host",
            ),
            refused(500, "Get \"http://127.0.0.1:5000/v2/\": no basic auth credentials"),
            Failure::Other("no matching manifest for linux/arm64/v8 in the manifest list entries".to_owned()),
        ] {
            assert!(!passes(&lasting), "{lasting:?}");
        }
    }
}
