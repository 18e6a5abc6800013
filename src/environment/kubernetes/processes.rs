//! Processes in pods.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use kube::api::AttachParams;
use tokio::time::{Instant, sleep, timeout};

use super::cluster::Cluster;
use super::failure;
use super::lives::{away, without_node};
use super::names;
use super::standing::{self, Standing};
use super::stream::{self, BUFFER, Carried, Cut, STREAM_LIMIT};
use crate::environment::error::EnvironmentError;
use crate::environment::processes::{ContainerState, EXECUTOR, Failure, Process, Processes, Streams};
use crate::process::framed::Started;

/// Attempts to open a stream: a kubelet that is being restarted is back soon.
const MOST_TRIES: u32 = 3;
const TRY_PAUSE: Duration = Duration::from_millis(500);

/// Time in which the first word must come from the pod, once a stream is open. An executor of an
/// older version says nothing before its process does, and is taken to have begun then.
const BEGINNING: Duration = Duration::from_secs(5);

/// Pause between two looks at a pod that may be dying.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// The command that a stream is opened for. What is to be started in it is said over the stream.
const FRAMED: [&str; 2] = [EXECUTOR, "framed"];

const ENDED_BY_ANOTHER: &str = "it was ended by another process of the pod";

/// The word for the process that serves a run over all of its streams, and outlives each of them.
const MULTIPLEX: &str = "multiplex";

impl Cluster {
    /// Starts a process; its streams and its ending come in frames.
    pub(super) async fn carried(&self, id: &str, command: &[&str], environment: &[&str]) -> Result<Carried, Failure> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let started = Started {
            command: owned(command),
            environment: owned(environment),
            outlives: command.contains(&MULTIPLEX),
        };
        let mut tries = 1;
        loop {
            let failure = match self.open(id).await {
                Ok(attached) => {
                    let carried = stream::carry(attached, &started);
                    match begin(carried.map_err(|error| Failure::Other(error.to_string()))?).await {
                        Ok(carried) => return Ok(carried),
                        Err(Cut::Way(message)) => way(message),
                        // It may have begun, and nothing is started twice.
                        Err(Cut::Process) => return Err(Failure::Other(ENDED_BY_ANOTHER.to_owned())),
                        Err(Cut::Stream) => return Err(Failure::Silent("the stream broke off".to_owned())),
                    }
                }
                Err(failure) => failure,
            };
            // A pod that has ended is refused in many words, so its state is looked at instead.
            if let Ok(ContainerState::Ended(reason)) = self.state(id).await {
                return Err(gone(reason));
            }
            let failure = of_the_node(failure, id);
            let may_pass = matches!(failure, Failure::Silent(_) | Failure::Refused { status: 500.., .. });
            if !may_pass || tries >= MOST_TRIES {
                return Err(failure);
            }
            tries += 1;
            sleep(TRY_PAUSE).await;
        }
    }

    async fn open(&self, id: &str) -> Result<kube::api::AttachedProcess, Failure> {
        let (pod, container) = names::place(id);
        let params = AttachParams {
            container: Some(container.to_owned()),
            stdin: true,
            stdout: true,
            stderr: false,
            tty: false,
            max_stdin_buf_size: Some(BUFFER),
            max_stdout_buf_size: Some(BUFFER),
            ..AttachParams::default()
        };
        let pods = self.pods();
        match timeout(STREAM_LIMIT, Box::pin(pods.exec(pod, FRAMED, &params))).await {
            Ok(opened) => opened.map_err(failure::of),
            Err(_) => Err(Failure::Silent(format!(
                "no stream was opened within {} s",
                STREAM_LIMIT.as_secs()
            ))),
        }
    }

    /// Returns the streams over which a run speaks with the executor.
    pub(super) async fn first_streams(&self, pod: &str) -> Result<Streams, Failure> {
        let carried = self.carried(pod, &[EXECUTOR, MULTIPLEX], &[]).await?;
        Ok((Box::new(carried.stdin), Box::new(carried.stdout)))
    }
}

/// Waits until something has come from the pod over a new stream.
async fn begin(mut carried: Carried) -> Result<Carried, Cut> {
    match timeout(BEGINNING, &mut carried.begun).await {
        Ok(Ok(())) | Err(_) => Ok(carried),
        Ok(Err(_)) => Err(carried.ending.come().await.err().unwrap_or(Cut::Stream)),
    }
}

/// Returns the failure that the API server did not get through to the pod.
fn way(message: String) -> Failure {
    Failure::Refused { status: 500, message }
}

/// Returns what it means that there is nothing to open a stream into, although the cluster has the
/// pod: its node is gone, and the pod with it, or the node has just been started and does not know
/// its pods yet.
fn of_the_node(failure: Failure, pod: &str) -> Failure {
    if let Some(node) = failure::missing_node(&failure, pod) {
        return gone(format!("the pod {}", without_node(node)));
    }
    match failure {
        Failure::Refused { status: 404, message } => Failure::Refused {
            status: 503,
            message: format!("the node of the pod does not know it yet ({})", message.trim()),
        },
        failure => failure,
    }
}

fn gone(reason: String) -> Failure {
    Failure::Refused {
        status: 409,
        message: reason,
    }
}

#[async_trait]
impl Processes for Cluster {
    async fn exec(&self, container: &str, command: &[&str], environment: &[&str]) -> Result<Process, Failure> {
        let Carried {
            stdin, stdout, ending, ..
        } = self.carried(container, command, environment).await?;
        let (cluster, id) = (self.clone(), container.to_owned());
        let ending = async move {
            let cut = match ending.come().await {
                Ok(ending) => return Ok(Some(ending)),
                Err(cut) => cut,
            };
            match (cluster.state(&id).await, cut) {
                (Ok(ContainerState::Ended(reason)), _) => Err(gone(reason)),
                (_, Cut::Process) => Err(Failure::Other(ENDED_BY_ANOTHER.to_owned())),
                (_, Cut::Way(message)) => Err(way(message)),
                (_, Cut::Stream) => Err(Failure::Silent(
                    "the stream broke off before the command's end was told".to_owned(),
                )),
            }
        };
        Ok(Process {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            ending: ending.boxed(),
        })
    }

    async fn state(&self, container: &str) -> Result<ContainerState, Failure> {
        let (pod, name) = names::place(container);
        let pod = match self.ask(self.pods().get(pod)).await {
            Ok(pod) => pod,
            Err(failure) if failure.is_absent() => return Ok(ContainerState::Ended("the pod was removed".to_owned())),
            Err(failure) => return Err(failure),
        };
        Ok(match standing::judge_one(&pod, name) {
            Standing::Running => ContainerState::Running,
            Standing::Away(node) => return Err(Failure::Silent(format!("the pod {}", away(&node)))),
            Standing::Ended(ending) => ContainerState::Ended(format!("the pod {}", ending.words())),
            Standing::Waiting(_) | Standing::Receiving => ContainerState::Ended("the pod does not run".to_owned()),
        })
    }

    async fn wait(&self, container: &str, limit: Duration) {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            if !matches!(self.state(container).await, Ok(ContainerState::Running)) {
                return;
            }
            sleep(LOOK_PAUSE).await;
        }
    }

    async fn remove(&self, container: &str) -> Result<(), Failure> {
        // A service goes with its pod.
        if container.contains('/') {
            return Ok(());
        }
        self.remove_pod(container).await
    }

    fn error(&self, what: &str, failure: Failure) -> EnvironmentError {
        self.error_of(what, failure)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    /// Returns what comes of a stream that the server answers with 404 and `said`, while it has the
    /// pod.
    async fn refused(said: &'static str) -> Failure {
        let answer = move |request: Request<Body>| async move {
            let (status, body) = if request.uri().path().ends_with("/exec") {
                (404_u16, said.as_bytes().to_vec())
            } else {
                let state = json!({ "running": { "startedAt": "2026-11-25T18:00:00Z" } });
                let work = json!({
                    "name": "work", "image": "python:3", "imageID": "", "ready": true, "restartCount": 0, "state": state,
                });
                let pod = json!({
                    "metadata": { "name": "coding-agent-x" },
                    "spec": { "nodeName": "node-1", "containers": [{ "name": "work", "image": "python:3" }] },
                    "status": { "phase": "Running", "containerStatuses": [work] },
                });
                (200, serde_json::to_vec(&pod).unwrap())
            };
            Ok::<_, Infallible>(Response::builder().status(status).body(Body::from(body)).unwrap())
        };
        let cluster = Cluster::over(Client::new(service_fn(answer), "coding-agent"));
        let carried = cluster.carried("coding-agent-x", &[EXECUTOR], &[]).await;
        carried.err().unwrap()
    }

    #[tokio::test]
    async fn a_pod_is_lost_with_its_node_but_not_where_its_node_does_not_know_it_yet() {
        let of_server = r#"{"kind":"Status","status":"Failure","message":"pods \"node-1\" not found","reason":"NotFound","code":404}"#;
        let lost = refused(of_server).await;
        assert!(lost.is_conflict(), "{lost:?}");
        let words = "the pod is on the node node-1, which the cluster does not have any more";
        assert_eq!(lost.complaint(), Some(words));
        let unknown = refused("pod does not exist\n").await;
        assert!(!unknown.is_conflict() && !unknown.is_absent(), "{unknown:?}");
        let words = "the node of the pod does not know it yet (pod does not exist)";
        assert_eq!(unknown.complaint(), Some(words));
    }
}
