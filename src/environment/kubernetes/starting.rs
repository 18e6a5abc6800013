//! Starts pods, and brings the executor into them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::{AttachParams, ListParams, PostParams};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use super::cluster::Cluster;
use super::failure;
use super::lives::{REMOVAL_LIMIT, away, lost};
use super::names::{self, Holder, INIT_CONTAINER};
use super::pod::{self, Names, PodRequest};
use super::standing::patience::Troubles;
use super::standing::{self, PodEnd, Standing, Wait};
use super::stream::{BUFFER, STREAM_LIMIT, refusal};
use crate::environment::container::name::LABEL_RUN;
use crate::environment::container::{Container, certificates};
use crate::environment::error::EnvironmentError;
use crate::environment::processes::Failure;

/// Pauses between two looks at a pod: most run after some seconds, others wait for an image or for
/// room.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const USUAL_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Time in which a pod usually runs.
const USUAL_START: Duration = Duration::from_secs(20);

/// Time for the API server to say why it took no more.
const LAST_WORD: Duration = Duration::from_secs(2);

impl Cluster {
    /// Starts a pod and waits until all of its containers run.
    pub(super) async fn bring_up(
        &self,
        name: &str,
        holder: Holder<'_>,
        (environment, image): (&str, &str),
        executor: &Path,
        given: Names,
    ) -> Result<(Container, Pod), EnvironmentError> {
        let unreadable = |error: std::io::Error| EnvironmentError::Unexpected {
            what: format!("reading the executor {}", executor.display()),
            reason: error.to_string(),
        };
        let size = tokio::fs::metadata(executor).await.map_err(unreadable)?.len();
        let certificates = self.certificates();
        let owner = self.owner().await?;
        let request = PodRequest {
            name,
            holder,
            instance: &self.shared.instance,
            owner: &owner,
            environment,
            image,
            executor_bytes: size,
            certificates_bytes: certificates.len(),
            names: given,
        };
        let wanted = pod::pod(&self.shared.config, &self.shared.choice, &request)?;
        Box::pin(self.create(&wanted)).await?;
        match self.until_running(name, (executor, certificates.as_bytes())).await {
            Ok(pod) => Ok((self.container_of(name), pod)),
            Err(error) => {
                if let Err(failure) = self.remove_pod(name).await {
                    tracing::warn!(
                        pod = name,
                        "a pod that did not start was left behind: {}",
                        failure.reason()
                    );
                }
                Err(error)
            }
        }
    }

    pub(super) fn container_of(&self, id: &str) -> Container {
        let silence = Duration::from_secs(self.shared.config.timeout_seconds);
        Container::new(Arc::new(self.clone()), id.to_owned(), silence)
    }

    /// Waits until all containers of a pod run, and hands it the executor meanwhile.
    async fn until_running(
        &self,
        name: &str,
        (executor, certificates): (&Path, &[u8]),
    ) -> Result<Pod, EnvironmentError> {
        let is_in_image = self.shared.choice.executor_image.is_some();
        let limit = Duration::from_secs(self.shared.choice.start_seconds);
        let begun = Instant::now();
        let (mut pause, mut is_sent) = (FIRST_PAUSE, is_in_image && certificates.is_empty());
        let mut troubles = Troubles::default();
        loop {
            let Some(pod) = self.look(name, &mut troubles).await? else {
                sleep(LONGEST_PAUSE).await;
                continue;
            };
            if pod.metadata.deletion_timestamp.is_some() {
                return Err(lost(name, "was removed before it ran"));
            }
            let waits_for = match standing::judge(&pod) {
                Standing::Running => return Ok(pod),
                Standing::Ended(ending) => {
                    if let Some(not_ready) = self.ended_service(&pod).await {
                        return Err(not_ready);
                    }
                    let words = self.last_words_of_services(&pod).await;
                    return Err(self.never_ran(name, ending, &words));
                }
                Standing::Away(node) => Wait::Usual(format!("it {}", away(&node))),
                Standing::Receiving if is_sent => Wait::Usual("it takes the executor".to_owned()),
                Standing::Receiving => {
                    let executor = (!is_in_image).then_some(executor);
                    is_sent = self.send(name, executor, certificates).await?;
                    pause = FIRST_PAUSE;
                    if is_sent {
                        continue;
                    }
                    Wait::Usual("its node does not take the executor".to_owned())
                }
                Standing::Waiting(wait) => wait,
            };
            if let Some(end) = troubles.end(&waits_for, limit) {
                return Err(self.never_ran(name, end, ""));
            }
            if begun.elapsed() > limit {
                return Err(self.took_too_long(name, waits_for, limit));
            }
            sleep(pause).await;
            let longest = if begun.elapsed() < USUAL_START {
                USUAL_PAUSE
            } else {
                LONGEST_PAUSE
            };
            pause = (pause * 2).min(longest);
        }
    }

    /// Looks at a pod that starts; `None` if the API server is away, which it may be for a moment.
    async fn look(&self, name: &str, troubles: &mut Troubles) -> Result<Option<Pod>, EnvironmentError> {
        match self.ask(self.pods().get(name)).await {
            Ok(pod) => {
                troubles.server_answers();
                Ok(Some(pod))
            }
            Err(failure) if failure::may_pass(&failure) && !troubles.is_server_away_too_long() => Ok(None),
            Err(failure) if failure.is_absent() => Err(lost(name, "was removed before it ran")),
            Err(failure) => Err(self.error_of("waiting for a pod", failure)),
        }
    }

    /// Creates a pod. Waits for what passes by itself: what is just being removed counts in a quota
    /// until it is gone, and quotas are counted by one at a time. A pod of the same run, which an
    /// earlier process asked for, makes room.
    async fn create(&self, wanted: &Pod) -> Result<(), EnvironmentError> {
        let begun = Instant::now();
        loop {
            let created = self.ask(self.pods().create(&PostParams::default(), wanted)).await;
            let Err(failure) = created else {
                return Ok(());
            };
            if matches!(failure, Failure::Silent(_)) {
                // It may have been created all the same.
                self.note_leftover();
            }
            let passes = failure::is_busy(&failure)
                || failure::is_of_quota(&failure) && self.is_any_being_removed().await
                || failure.is_conflict() && self.has_made_room(wanted).await;
            if !passes || begun.elapsed() > REMOVAL_LIMIT {
                return Err(self.error_of("creating a pod", failure));
            }
            sleep(LONGEST_PAUSE).await;
        }
    }

    /// Removes a pod with the name of `wanted` that is the same run's; returns whether it is gone.
    async fn has_made_room(&self, wanted: &Pod) -> bool {
        let run = |pod: &Pod| pod.metadata.labels.as_ref()?.get(LABEL_RUN).cloned();
        let name = wanted.metadata.name.as_deref().unwrap_or_default();
        match self.ask(self.pods().get(name)).await {
            Ok(found) if run(&found).is_some() && run(&found) == run(wanted) => {
                self.remove_pod(name).await.is_ok() && self.until_removed(name).await.is_ok()
            }
            Ok(_) => false,
            Err(failure) => failure.is_absent(),
        }
    }

    /// Returns what is said of a service that ended before its pod ran, if nothing else in the pod
    /// has ended.
    async fn ended_service(&self, pod: &Pod) -> Option<EnvironmentError> {
        let ended = ended_containers(pod);
        let is_evicted = pod.status.as_ref().is_some_and(|status| status.reason.is_some());
        // Of a pod that was evicted everything has ended.
        if is_evicted || !ended.iter().all(|(name, _)| names::service_of(name).is_some()) {
            return None;
        }
        let (container, code) = *ended.first()?;
        let pod = pod.metadata.name.as_deref().unwrap_or_default();
        Some(EnvironmentError::ServiceNotReady {
            service: names::service_of(container)?.to_owned(),
            reason: format!("it has ended with exit code {code}"),
            said: self.last_words(pod, container).await,
        })
    }

    /// Returns the last words of services that have ended.
    async fn last_words_of_services(&self, pod: &Pod) -> String {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let mut words = String::new();
        let ended = ended_containers(pod).into_iter().map(|(name, _)| name);
        for service in ended.filter(|name| names::service_of(name).is_some()) {
            let said = self.last_words(name, service).await;
            if !said.is_empty() {
                words = format!("{words}; {service} said: {said}");
            }
        }
        words
    }

    async fn is_any_being_removed(&self) -> bool {
        let params = ListParams::default().labels(&names::selector(&self.shared.instance));
        let listed = self.ask(self.pods().list_metadata(&params)).await;
        listed.is_ok_and(|list| list.items.iter().any(|pod| pod.metadata.deletion_timestamp.is_some()))
    }

    fn never_ran(&self, name: &str, ending: PodEnd, said: &str) -> EnvironmentError {
        match ending {
            PodEnd::NoRoom(words) => self.unavailable(format!(
                "the pod {name} {words}; the run is tried again, and finds room when others have ended or a node is added"
            )),
            PodEnd::Image { image, reason } => no_image(&image, &reason),
            PodEnd::NotBrought(words) => self.unavailable(format!(
                "the executor did not get into the pod {name}, which {words}; the run is tried again"
            )),
            PodEnd::Other(words) => EnvironmentError::Unexpected {
                what: "starting a pod".to_owned(),
                reason: format!("the pod {name} {words}{said}"),
            },
        }
    }

    fn took_too_long(&self, name: &str, wait: Wait, limit: Duration) -> EnvironmentError {
        let seconds = limit.as_secs();
        match wait {
            Wait::Place(reason) => self.unavailable(format!(
                "no node took the pod {name} within {seconds} s: {reason}; add a node, or lower `command_executor.resources` or \
                 `consumers`; the run is tried again"
            )),
            Wait::Image { image, reason } => no_image(&image, &reason),
            Wait::Usual(reason) | Wait::Container(reason) => self.unavailable(format!(
                "the pod {name} did not run within {seconds} s: {reason}; look at `kubectl describe pod`, or raise \
                 environment.kubernetes.start_seconds if its images take longer to pull; the run is tried again"
            )),
        }
    }

    /// Returns the certificates that programs in pods are to trust besides their image's own; empty
    /// if nobody named one.
    fn certificates(&self) -> String {
        let trust = &self.shared.config.trust;
        if trust.is_named() {
            certificates::file(trust, &[])
        } else {
            String::new()
        }
    }

    /// Sends the executor and the certificates to the container that waits for them. It counts what
    /// it gets, and the pod goes on only if it got all of it. Returns false if the pod's node could
    /// not be reached, so that nothing has got there.
    async fn send(&self, name: &str, executor: Option<&Path>, certificates: &[u8]) -> Result<bool, EnvironmentError> {
        let what = "sending the executor to a pod";
        let cut = |reason: String| self.error_of(what, Failure::Silent(reason));
        let params = AttachParams {
            container: Some(INIT_CONTAINER.to_owned()),
            stdin: true,
            stdout: true,
            stderr: false,
            tty: false,
            max_stdin_buf_size: Some(BUFFER),
            ..AttachParams::default()
        };
        let opened = timeout(STREAM_LIMIT, Box::pin(self.pods().attach(name, &params))).await;
        let opened = opened.map_err(|_| cut("no stream was opened in time".to_owned()))?;
        let mut attached = match opened.map_err(failure::of) {
            Ok(attached) => attached,
            // Its node, or the pod itself, has just been removed: the next look at the pod tells.
            Err(failure) if failure.is_absent() => return Ok(false),
            Err(failure) => return Err(self.error_of(what, failure)),
        };
        let (Some(stdin), Some(status)) = (attached.stdin(), attached.take_status()) else {
            return Err(cut("the stream has no input".to_owned()));
        };
        let sent = write_all(stdin, executor, certificates).await;
        // Where the other end cannot be told that this was all, dropping the stream now would cut
        // it off. The container ends it when it has counted.
        let limit = if sent.is_ok() { STREAM_LIMIT } else { LAST_WORD };
        let last = timeout(limit, status).await.ok().flatten();
        if let Some(reason) = last.as_ref().and_then(refusal) {
            tracing::info!(pod = name, "the executor is sent again: {reason}");
            return Ok(false);
        }
        sent.map(|()| true).map_err(cut)
    }
}

/// Writes all that a pod is sent, or says why that is not possible.
async fn write_all(
    mut stdin: impl AsyncWrite + Unpin,
    executor: Option<&Path>,
    certificates: &[u8],
) -> Result<(), String> {
    let words = |error: std::io::Error| error.to_string();
    if let Some(executor) = executor {
        let mut file = tokio::fs::File::open(executor).await.map_err(words)?;
        let mut piece = vec![0; BUFFER];
        while let length @ 1.. = file.read(&mut piece).await.map_err(words)? {
            write(&mut stdin, &piece[..length]).await?;
        }
    }
    for piece in certificates.chunks(BUFFER) {
        write(&mut stdin, piece).await?;
    }
    stdin.flush().await.map_err(words)
}

async fn write(stdin: &mut (impl AsyncWrite + Unpin), piece: &[u8]) -> Result<(), String> {
    let written = timeout(STREAM_LIMIT, stdin.write_all(piece)).await;
    written
        .map_err(|_| "it took nothing for too long".to_owned())?
        .map_err(|error| error.to_string())
}

/// Returns the containers of a pod that have ended, with their exit codes; not the init containers.
fn ended_containers(pod: &Pod) -> Vec<(&str, i32)> {
    let status = pod.status.as_ref();
    let containers = status.and_then(|status| status.container_statuses.as_ref()).into_iter();
    let code = |status: &ContainerStatus| Some(status.state.as_ref()?.terminated.as_ref()?.exit_code);
    let ended = containers
        .flatten()
        .filter_map(|status| Some((status.name.as_str(), code(status)?)));
    ended.collect()
}

fn no_image(image: &str, reason: &str) -> EnvironmentError {
    EnvironmentError::ImageMissing {
        image: image.to_owned(),
        reason: format!("the cluster's nodes cannot pull it ({reason})"),
        hint: "push it to a registry that they reach, or name the secret for it in environment.kubernetes.image_pull_secrets"
            .to_owned(),
    }
}
