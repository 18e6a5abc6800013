//! Tries whether the network policy holds, before a run depends on it.
//!
//! A cluster takes a policy whether or not anything keeps it: many network plugins ignore them. So
//! two pods as those of runs are started, and try to reach what they must not: each other, the API
//! server, nodes, the name servers, the cloud's metadata, the internet. One that gets through makes
//! the cluster unusable, and the reason is told. The verdict is tried again now and then.
//!
//! Its own node is another matter: Kubernetes lets every policy pass what goes there, and some
//! plugins do. That is told, and no reason to refuse the cluster.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::lookup_host;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::cluster::Cluster;
use super::names::Holder;
use super::pod::Names;
use super::stream::Carried;
use super::verdict::{Known, Reached, TargetKind, Verdict};
use crate::environment::config::NetworkMode;
use crate::environment::container::Container;
use crate::environment::error::EnvironmentError;
use crate::environment::executor::find_executor;
use crate::environment::processes::{EXECUTOR, Failure};
use crate::reach::Attempt;

/// Time limit for the attempts of one pod, each of which has two seconds.
const TRYING: Duration = Duration::from_mins(1);

/// Time in which a network plugin must have cut off a new pod. Nothing but the executor runs in a
/// pod until then.
const SETTLING: Duration = Duration::from_secs(15);
const TRY_PAUSE: Duration = Duration::from_secs(1);

/// Most bytes of their answer.
const MOST_SAID: u64 = 64 * 1024;

/// The port of the program on every node that runs its pods.
const KUBELET: u16 = 10_250;

/// Addresses outside, at which something listens.
const OUTSIDE: [&str; 3] = ["1.1.1.1:443", "8.8.8.8:443", "[2606:4700:4700::1111]:443"];

/// The addresses at which clouds tell a machine its credentials.
const METADATA: [&str; 2] = ["169.254.169.254:80", "[fd00:ec2::254]:80"];

/// A place that a pod tries to reach: one address, or several that are found in the pod.
struct Target {
    /// As `coding-agent-executor reach` takes it.
    word: String,
    kind: TargetKind,
}

/// Where the two pods of a trial are.
struct Places {
    /// The addresses of the pod that listens.
    neighbour: Vec<IpAddr>,
    /// Its node, if it is another one than that of the pod that tries.
    node: Option<IpAddr>,
    own_node: Option<IpAddr>,
}

impl Places {
    fn of(neighbour: &Pod, own: &Pod) -> Self {
        let node = |pod: &Pod| pod.status.as_ref()?.host_ip.as_deref()?.parse::<IpAddr>().ok();
        let status = neighbour.status.as_ref();
        let first = status.and_then(|status| status.pod_ip.clone());
        let others = status.and_then(|status| status.pod_ips.as_ref()).into_iter().flatten();
        let mut addresses: Vec<IpAddr> = first
            .into_iter()
            .chain(others.map(|address| address.ip.clone()))
            .filter_map(|address| address.parse().ok())
            .collect();
        addresses.dedup();
        let own_node = node(own);
        Self {
            neighbour: addresses,
            node: node(neighbour).filter(|node| Some(*node) != own_node),
            own_node,
        }
    }
}

impl Cluster {
    /// Fails unless the pods are cut off from everything, or the configuration opens them. Returns
    /// what they reach all the same, which no policy closes.
    pub(super) async fn ensure_confined(&self) -> Result<Vec<String>, EnvironmentError> {
        if self.shared.config.network.mode == NetworkMode::Open {
            return Ok(Vec::new());
        }
        // Held meanwhile, so that concurrent starts wait for one trial.
        let mut known = self.shared.policy.lock().await;
        let state = self.policy_state().await?;
        let last = known.verdict.take().filter(|last| Some(&last.of) == state.as_ref());
        let verdict = match last {
            Some(last) if last.is_believed() => last,
            last => match self.tried(&mut known).await {
                Ok(verdict) => verdict,
                Err(EnvironmentError::ClusterUnavailable { reason, .. })
                    if last.as_ref().is_some_and(Verdict::outlasts) =>
                {
                    tracing::warn!("the network policy could not be tried again: {reason}");
                    let tolerated = last.as_ref().map(Verdict::tolerated).unwrap_or_default();
                    known.verdict = last;
                    return Ok(tolerated);
                }
                Err(error) => return Err(error),
            },
        };
        let (reached, tolerated) = (verdict.reached.clone(), verdict.tolerated());
        known.verdict = Some(verdict);
        if reached.is_empty() {
            return Ok(tolerated);
        }
        Err(self.unavailable(format!(
            "its network policies do not hold: a pod that may reach nothing reached {}; install a network plugin that keeps them \
             (Calico, Cilium and others do), or let those nodes run the pods that have one (environment.kubernetes.node_selector)",
            reached.join(", ")
        )))
    }

    /// Tries the policy, unless that was not possible just now.
    async fn tried(&self, known: &mut Known) -> Result<Verdict, EnvironmentError> {
        if let Some(reason) = known.lasting_failure() {
            return Err(self.unavailable(reason.to_owned()));
        }
        let tried = Box::pin(self.try_policy()).await;
        known.failed = match &tried {
            Err(EnvironmentError::ClusterUnavailable { reason, .. }) => Some((Instant::now(), reason.clone())),
            Ok(_) | Err(_) => None,
        };
        tried
    }

    async fn try_policy(&self) -> Result<Verdict, EnvironmentError> {
        let state = self.apply_policy().await?;
        let config = &self.shared.config;
        let Some(environment) = config.environments.get(&config.default_environment) else {
            return Err(self.unavailable("there is no default environment to try its network with".to_owned()));
        };
        let executor = find_executor(config, None).map_err(|reason| EnvironmentError::NoExecutor { reason })?;
        let place = (config.default_environment.as_str(), environment.image.as_str());
        let (neighbour, prober) = tokio::join!(
            Box::pin(self.bring_up_for_trial(place, &executor, Names::OfCluster)),
            Box::pin(self.bring_up_for_trial(place, &executor, Names::AsConfigured))
        );
        let tried = match (&neighbour, &prober) {
            (Ok((neighbour, pod)), Ok((prober, own))) => {
                let places = Places::of(pod, own);
                self.try_until_settled(neighbour, prober, &places).await
            }
            _ => Ok(Vec::new()),
        };
        for (container, _) in [&neighbour, &prober].into_iter().flatten() {
            if let Err(error) = container.remove().await {
                tracing::warn!("a pod of a trial was left behind: {error}");
            }
        }
        neighbour?;
        prober?;
        Ok(Verdict::now(state, tried?))
    }

    /// Starts a pod of a trial. Where it does not come up, that is no fault of the run that waits
    /// for the trial, unless an image is missing.
    async fn bring_up_for_trial(
        &self,
        place: (&str, &str),
        executor: &Path,
        names: Names,
    ) -> Result<(Container, Pod), EnvironmentError> {
        let name = format!("coding-agent-trial-{}", Uuid::now_v7().simple());
        let brought = Box::pin(self.bring_up(&name, Holder::Trial, place, executor, names)).await;
        brought.map_err(|error| match error {
            EnvironmentError::ContainerLost { .. }
            | EnvironmentError::ServiceNotReady { .. }
            | EnvironmentError::Unexpected { .. } => self.not_tried(Failure::Other(error.to_string())),
            EnvironmentError::EngineUnavailable { .. }
            | EnvironmentError::EngineByPath { .. }
            | EnvironmentError::EngineTooOld { .. }
            | EnvironmentError::ClusterUnavailable { .. }
            | EnvironmentError::RegistryUnavailable { .. }
            | EnvironmentError::ImageMissing { .. }
            | EnvironmentError::NoRuntime { .. }
            | EnvironmentError::NoExecutor { .. } => error,
        })
    }

    /// Tries until nothing is reached, for at most [`SETTLING`]: a plugin learns of a new pod a
    /// moment after it runs.
    async fn try_until_settled(
        &self,
        neighbour: &Container,
        prober: &Container,
        places: &Places,
    ) -> Result<Vec<Reached>, EnvironmentError> {
        let begun = Instant::now();
        loop {
            let reached = self.try_between(neighbour, prober, places).await?;
            if reached.iter().all(Reached::is_tolerated) || begun.elapsed() > SETTLING {
                return Ok(reached);
            }
            sleep(TRY_PAUSE).await;
        }
    }

    async fn try_between(
        &self,
        neighbour: &Container,
        prober: &Container,
        places: &Places,
    ) -> Result<Vec<Reached>, EnvironmentError> {
        let what = "trying the network policy";
        let broken = |reason: &str| self.error_of(what, Failure::Silent(reason.to_owned()));
        let listening = self.carried(neighbour.id(), &[EXECUTOR, "listen"], &[]).await;
        let Carried { stdin, stdout, .. } = listening.map_err(|failure| self.not_tried(failure))?;
        let mut lines = BufReader::new(stdout).take(MOST_SAID).lines();
        let port = timeout(TRYING, lines.next_line())
            .await
            .ok()
            .and_then(Result::ok)
            .flatten();
        let port: u16 = port
            .and_then(|port| port.trim().parse().ok())
            .ok_or_else(|| broken("the neighbour does not listen"))?;
        let outside = OUTSIDE.map(|address| Target::at(address, TargetKind::Internet));
        let metadata = METADATA.map(|address| Target::at(address, TargetKind::Metadata));
        let mut targets: Vec<Target> = outside.into_iter().chain(metadata).collect();
        let neighbours = places.neighbour.iter();
        targets.extend(neighbours.map(|address| Target::tcp(SocketAddr::new(*address, port), TargetKind::OtherPod)));
        targets.extend(
            places
                .node
                .map(|node| Target::tcp(SocketAddr::new(node, KUBELET), TargetKind::OtherNode)),
        );
        targets.extend(
            places
                .own_node
                .map(|node| Target::tcp(SocketAddr::new(node, KUBELET), TargetKind::OwnNode)),
        );
        targets.extend(self.api_servers().await);
        // A listener that nobody could reach would prove nothing.
        let address = places.neighbour.first();
        let own = address.map(|address| Target::tcp(SocketAddr::new(*address, port), TargetKind::Itself));
        let name_servers = Target {
            word: "names".to_owned(),
            kind: TargetKind::NameServers,
        };
        let (from_prober, from_neighbour) = tokio::join!(
            self.try_from(prober, targets),
            self.try_from(neighbour, own.into_iter().chain([name_servers]).collect())
        );
        drop(stdin);
        let (mut reached, from_neighbour) = (from_prober?, from_neighbour?);
        if !from_neighbour.iter().any(|reached| reached.kind == TargetKind::Itself) {
            return Err(broken(
                "the neighbour cannot be reached even by itself, so nothing is proven",
            ));
        }
        reached.extend(
            from_neighbour
                .into_iter()
                .filter(|reached| reached.kind != TargetKind::Itself),
        );
        Ok(reached)
    }

    /// Returns what is reached of `targets` from a pod.
    async fn try_from(&self, pod: &Container, targets: Vec<Target>) -> Result<Vec<Reached>, EnvironmentError> {
        let what = "trying the network policy";
        let mut command = vec![EXECUTOR, "reach"];
        command.extend(targets.iter().map(|target| target.word.as_str()));
        let carried = self.carried(pod.id(), &command, &[]).await;
        let Carried {
            stdin, stdout, ending, ..
        } = carried.map_err(|failure| self.not_tried(failure))?;
        let mut said = Vec::new();
        let heard = timeout(TRYING, async {
            let mut stdout = stdout.take(MOST_SAID);
            let read = stdout.read_to_end(&mut said).await;
            (read, ending.come().await)
        });
        let heard = heard.await;
        drop(stdin);
        let broken = |reason: &str| self.error_of(what, Failure::Silent(reason.to_owned()));
        match heard {
            Ok((Ok(_), Ok(ending))) if ending.exit_code == 0 => {}
            Ok((_, Ok(ending))) => {
                let reason = format!("the executor ended with {}: {}", ending.exit_code, ending.stderr.trim());
                return Err(self.not_tried(Failure::Other(reason)));
            }
            Ok((_, Err(_))) => return Err(broken("the stream broke off")),
            Err(_) => return Err(broken("it took too long")),
        }
        let attempts: Vec<Attempt> = serde_json::from_slice(&said).map_err(|error| EnvironmentError::Unexpected {
            what: what.to_owned(),
            reason: format!("the executor's answer cannot be read: {error}"),
        })?;
        if attempts.len() != targets.len() {
            return Err(broken("the executor did not try everything"));
        }
        let reached = targets.iter().zip(&attempts).filter(|(_, attempt)| attempt.is_reached);
        Ok(reached
            .map(|(target, attempt)| Reached {
                kind: target.kind,
                detail: attempt.detail.clone(),
            })
            .collect())
    }

    /// Returns the error that the policy could not be tried, which is no fault of the run that
    /// waits for it.
    fn not_tried(&self, failure: Failure) -> EnvironmentError {
        self.unavailable(format!(
            "trying its network policy: {}; it is tried again",
            failure.reason()
        ))
    }

    /// Returns the addresses of the API server as this program reaches it. One on loopback is this
    /// machine's, and another in a pod.
    async fn api_servers(&self) -> Vec<Target> {
        let server = &self.shared.server;
        let Some(host) = server.host() else {
            return Vec::new();
        };
        let usual = if server.scheme_str() == Some("http") { 80 } else { 443 };
        let port = server.port_u16().unwrap_or(usual);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let found = timeout(Duration::from_secs(5), lookup_host((host, port))).await;
        let found = found.ok().and_then(Result::ok).into_iter().flatten();
        let found = found.filter(|address| !address.ip().is_loopback()).take(4);
        let mut targets: Vec<Target> = found
            .map(|address| Target::tcp(address, TargetKind::ApiServer))
            .collect();
        // As every pod is told it.
        targets.push(Target {
            word: "server".to_owned(),
            kind: TargetKind::ApiServer,
        });
        targets
    }
}

impl Target {
    fn tcp(address: SocketAddr, kind: TargetKind) -> Self {
        Self {
            word: format!("tcp:{address}"),
            kind,
        }
    }

    fn at(address: &str, kind: TargetKind) -> Self {
        Self {
            word: format!("tcp:{address}"),
            kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::service_fn;

    use super::*;
    use crate::environment::kubernetes::names::INIT_CONTAINER;

    /// Returns why a pod of a trial did not come up, of which the cluster says this.
    async fn not_brought_up(status: Value) -> EnvironmentError {
        let answer = move |request: Request<Body>| {
            let answer = if request.uri().path().contains("/configmaps") {
                json!({ "metadata": { "name": "coding-agent-here", "uid": "1-2-3" } })
            } else {
                json!({
                    "metadata": { "name": "coding-agent-trial-x" },
                    "spec": { "nodeName": "node-1", "containers": [{ "name": "work", "image": "image:1" }] },
                    "status": status,
                })
            };
            let body = Body::from(serde_json::to_vec(&answer).unwrap());
            async move { Ok::<_, Infallible>(Response::new(body)) }
        };
        let cluster = Cluster::over(Client::new(service_fn(answer), "coding-agent"));
        let executor = tempfile::NamedTempFile::new().unwrap();
        let place = ("python", "image:1");
        let brought = cluster.bring_up_for_trial(place, executor.path(), Names::AsConfigured);
        brought.await.err().unwrap()
    }

    #[tokio::test]
    async fn a_pod_that_does_not_come_up_is_no_fault_of_the_run_that_waits_for_the_trial() {
        let late = not_brought_up(json!({ "phase": "Failed", "reason": "DeadlineExceeded" })).await;
        let EnvironmentError::ClusterUnavailable { reason, .. } = late else {
            panic!("{late}");
        };
        assert!(reason.contains("was older than a pod may become"), "{reason}");
        let waiting = json!({
            "name": INIT_CONTAINER, "image": "image:1", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "waiting": { "reason": "ErrImageNeverPull", "message": "it is not there" } },
        });
        let missing = not_brought_up(json!({ "phase": "Pending", "initContainerStatuses": [waiting] })).await;
        assert!(matches!(missing, EnvironmentError::ImageMissing { .. }), "{missing}");
    }

    #[test]
    fn a_pods_own_node_is_told_from_others() {
        let pod = |addresses: &[&str], node: &str| -> Pod {
            let all: Vec<_> = addresses.iter().map(|address| json!({ "ip": address })).collect();
            let status = json!({ "podIP": addresses[0], "podIPs": all, "hostIP": node });
            serde_json::from_value(json!({ "metadata": {}, "status": status })).unwrap()
        };
        let neighbour = pod(&["10.1.0.7", "fd00::7"], "10.0.0.2");
        let apart = Places::of(&neighbour, &pod(&["10.1.1.7"], "10.0.0.3"));
        let expected: [IpAddr; 2] = ["10.1.0.7".parse().unwrap(), "fd00::7".parse().unwrap()];
        assert_eq!(apart.neighbour, expected);
        assert_eq!(
            (apart.node, apart.own_node),
            ("10.0.0.2".parse().ok(), "10.0.0.3".parse().ok())
        );
        let together = Places::of(&neighbour, &pod(&["10.1.0.8"], "10.0.0.2"));
        assert_eq!((together.node, together.own_node), (None, "10.0.0.2".parse().ok()));
    }
}
