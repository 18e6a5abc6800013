//! Pods are found, taken and removed.

use std::time::Duration;

use chrono::Utc;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams, Preconditions};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::cluster::Cluster;
use super::failure;
use super::names::{self, Holder, LABEL_PURPOSE, TRIAL, WORK};
use super::pod::trial_limit;
use super::standing::{self, Standing};
use crate::environment::container::name::{LABEL_NETWORK, LABEL_RUN, LABEL_WARM, Purpose};
use crate::environment::driver::{Listed, ListedContainer};
use crate::environment::error::EnvironmentError;
use crate::environment::processes::Failure;
use crate::task::id::{RunId, TaskId};

/// Pauses between two looks at a pod.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Time in which a node must have removed a pod; then the object goes without it.
pub(super) const REMOVAL_LIMIT: Duration = Duration::from_mins(1);

/// The same for one that was asked for by an earlier look, by two clocks that may differ.
const OVERDUE: Duration = Duration::from_mins(10);

/// Most pods of one answer to a list.
const PAGE: u32 = 500;

/// Separates a pod's name from the version in which it was listed, in a handle.
const VERSION: char = '@';

impl Cluster {
    /// Lists the pods of this installation.
    pub(super) async fn listed(&self, which: Listed) -> Result<Vec<ListedContainer>, EnvironmentError> {
        let mut params = ListParams::default()
            .labels(&names::selector(&self.shared.instance))
            .limit(PAGE);
        let trial = trial_limit(&self.shared.choice);
        let mut found = Vec::new();
        loop {
            let listed = self.ask(self.pods().list(&params)).await;
            let listed = listed.map_err(|failure| self.error_of("listing pods", failure))?;
            let is_wanted = |pod: &Pod| {
                let standing = standing::judge_one(pod, WORK);
                which == Listed::All || matches!(standing, Standing::Running | Standing::Away(_))
            };
            let pods = listed
                .items
                .iter()
                .filter(|pod| is_wanted(pod) && !is_on_trial(pod, trial));
            found.extend(pods.filter_map(entry));
            match listed.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    /// Makes a waiting pod a run's. Labels say whose it is from then on, whatever its name.
    pub(super) async fn label(
        &self,
        pod: &str,
        (task, run): (&TaskId, RunId),
        purpose: Purpose,
    ) -> Result<Pod, EnvironmentError> {
        let what = "taking a waiting pod";
        let metadata = json!({
            "metadata": {
                "labels": names::labels_of_run(run, purpose),
                "annotations": names::annotations(Holder::Run(task, run, purpose)),
            }
        });
        let patched = self
            .ask(
                self.pods()
                    .patch(pod, &PatchParams::default(), &Patch::Merge(&metadata)),
            )
            .await;
        let patched = patched.map_err(|failure| {
            if failure.is_absent() {
                lost(pod, "was removed while it waited")
            } else {
                self.error_of(what, failure)
            }
        })?;
        match standing::judge(&patched) {
            Standing::Running => Ok(patched),
            Standing::Ended(ending) => Err(lost(pod, &ending.words())),
            Standing::Away(node) => Err(lost(pod, &away(&node))),
            Standing::Waiting(_) | Standing::Receiving => Err(lost(pod, "does not run any more")),
        }
    }

    /// Removes the pods of a run and purpose, and waits until they are gone, so that the next one
    /// finds their room.
    pub(super) async fn make_room(&self, run: RunId, purpose: Purpose) -> Result<(), EnvironmentError> {
        for found in self.listed(Listed::All).await? {
            if found.run == Some(run) && found.purpose == purpose {
                let removed = async {
                    self.remove_pod(&found.id).await?;
                    self.until_removed(&found.id).await
                };
                removed
                    .await
                    .map_err(|failure| self.error_of("removing a pod", failure))?;
            }
        }
        Ok(())
    }

    /// Has a pod removed, which its node does within seconds; one whose node has not done so in
    /// [`OVERDUE`] goes without it at the next sweep. The handle of a waiting pod removes it only
    /// as it was listed: whoever took it meanwhile has changed it.
    pub(super) async fn remove_pod(&self, handle: &str) -> Result<(), Failure> {
        let (name, version) = match handle.split_once(VERSION) {
            Some((name, version)) => (name, Some(version.to_owned())),
            None => (handle, None),
        };
        let params = DeleteParams {
            preconditions: version.map(|version| Preconditions {
                resource_version: Some(version),
                uid: None,
            }),
            ..DeleteParams::default()
        };
        let removed = match self.ask(self.pods().delete(name, &params)).await {
            Ok(removed) => match removed.left() {
                Some(pod) if is_overdue(&pod) => self.give_up(name).await,
                Some(_) | None => Ok(()),
            },
            Err(failure) if failure.is_absent() => Ok(()),
            // It is not as it was listed, so it is somebody's.
            Err(failure) if failure.is_conflict() && params.preconditions.is_some() => Ok(()),
            Err(failure) => Err(failure),
        };
        if removed.is_err() {
            self.note_leftover();
        }
        removed
    }

    /// Waits until a pod that is being removed is gone, and has the cluster forget one whose node
    /// does not remove it: at once if the cluster has no such node any more.
    pub(super) async fn until_removed(&self, name: &str) -> Result<(), Failure> {
        let deadline = Instant::now() + REMOVAL_LIMIT;
        let (mut pause, mut is_asked) = (FIRST_PAUSE, false);
        while Instant::now() < deadline {
            match self.ask(self.pods().get(name)).await {
                Ok(_) => {}
                Err(failure) if failure.is_absent() => return Ok(()),
                Err(failure) => return Err(failure),
            }
            // Most are gone before.
            if pause == LONGEST_PAUSE && !is_asked {
                is_asked = true;
                if self.missing_node(name).await.is_some() {
                    break;
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.give_up(name).await
    }

    /// Returns the node of a pod, if the cluster does not have it any more.
    ///
    /// The account may not look at nodes, so it asks for something that only the pod's node knows.
    async fn missing_node(&self, pod: &str) -> Option<String> {
        let params = LogParams {
            container: Some(WORK.to_owned()),
            limit_bytes: Some(1),
            ..LogParams::default()
        };
        let failure = self.ask(self.pods().logs(pod, &params)).await.err()?;
        failure::missing_node(&failure, pod).map(str::to_owned)
    }

    /// Has the cluster forget a pod whose node does not remove it. Nothing of it goes on working:
    /// its executor ends without a worker.
    async fn give_up(&self, name: &str) -> Result<(), Failure> {
        tracing::warn!(
            pod = name,
            "its node is gone or did not remove the pod in time, so it is given up"
        );
        match self
            .ask(self.pods().delete(name, &DeleteParams::default().grace_period(0)))
            .await
        {
            Err(failure) if !failure.is_absent() => Err(failure),
            _ => Ok(()),
        }
    }
}

/// Returns true if a pod is one of a trial that may be going on, of this process or of another one
/// of the installation, and not older than `limit`. Whoever made it removes it, and otherwise it
/// ends by itself.
fn is_on_trial(pod: &Pod, limit: Duration) -> bool {
    let metadata = &pod.metadata;
    let purpose = metadata.labels.as_ref().and_then(|labels| labels.get(LABEL_PURPOSE));
    let limit = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
    let created = metadata.creation_timestamp.as_ref();
    purpose.is_some_and(|purpose| purpose == TRIAL)
        && created.is_some_and(|created| Utc::now().timestamp() - created.0.as_second() < limit)
}

/// Returns true if a pod should have been removed by its node long ago, whatever the clocks of this
/// machine and of the cluster say.
fn is_overdue(pod: &Pod) -> bool {
    let limit = i64::try_from(OVERDUE.as_secs()).unwrap_or(i64::MAX);
    let since = pod.metadata.deletion_timestamp.as_ref();
    since.is_some_and(|since| Utc::now().timestamp() - since.0.as_second() > limit)
}

/// Returns what is said of a pod whose node is away.
pub(super) fn away(node: &str) -> String {
    format!("is on the node {node}, which does not answer")
}

/// Returns what is said of a pod whose node is gone.
pub(super) fn without_node(node: &str) -> String {
    format!("is on the node {node}, which the cluster does not have any more")
}

pub(super) fn lost(pod: &str, reason: &str) -> EnvironmentError {
    EnvironmentError::ContainerLost {
        container: pod.to_owned(),
        reason: format!("the pod {reason}"),
    }
}

/// Returns a listed pod as the rest of the program knows containers.
fn entry(pod: &Pod) -> Option<ListedContainer> {
    let metadata = &pod.metadata;
    let name = metadata.name.clone()?;
    let label = |key: &str| metadata.labels.as_ref()?.get(key).cloned();
    let run: Option<RunId> = label(LABEL_RUN).and_then(|run| run.parse().ok());
    let warmed_by = label(LABEL_WARM).and_then(|worker| worker.parse().ok());
    let handle = match &metadata.resource_version {
        Some(version) if run.is_none() => format!("{name}{VERSION}{version}"),
        _ => name.clone(),
    };
    let purpose = if label(LABEL_PURPOSE).as_deref() == Some(names::word(Purpose::Checks)) {
        Purpose::Checks
    } else {
        Purpose::Work
    };
    Some(ListedContainer {
        id: name.clone(),
        name,
        run,
        purpose,
        warmed_by,
        service: None,
        network: label(LABEL_NETWORK),
        created: metadata
            .creation_timestamp
            .as_ref()
            .map_or(0, |time| time.0.as_second()),
        handle,
    })
}

/// Returns the digest of the image that a container of the pod runs.
pub(super) fn digest(pod: &Pod, container: &str) -> String {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    let found = statuses.into_iter().flatten().find(|status| status.name == container);
    let id = found.map(|status| status.image_id.as_str()).unwrap_or_default();
    id.split_once("://").map_or(id, |(_, id)| id).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::config::engine_choice::Kubernetes;

    fn pod(labels: &serde_json::Value) -> Pod {
        let value = json!({
            "metadata": {
                "name": "coding-agent-x",
                "resourceVersion": "42",
                "creationTimestamp": "2026-11-25T18:00:00Z",
                "labels": labels,
            }
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_pod_of_a_trial_is_left_alone_for_as_long_as_its_start_may_take() {
        let mut pod = pod(&json!({ "coding-agent.purpose": "trial" }));
        let created = Utc::now() - chrono::TimeDelta::minutes(25);
        let created = serde_json::from_value(json!(created.format("%Y-%m-%dT%H:%M:%SZ").to_string()));
        pod.metadata.creation_timestamp = created.unwrap();
        let starting_for = |start_seconds| Kubernetes {
            start_seconds,
            ..Kubernetes::default()
        };
        assert!(is_on_trial(&pod, trial_limit(&starting_for(1_200))));
        assert!(!is_on_trial(&pod, trial_limit(&starting_for(300))));
    }

    #[test]
    fn whose_a_pod_is_stands_in_its_labels() {
        let run = RunId::new();
        let of_run = entry(&pod(&json!({
            "coding-agent.run": run.to_string(),
            "coding-agent.warm": "0190a6b2-0000-7000-8000-000000000000",
            "coding-agent.purpose": "checks",
            "coding-agent.network": "none",
        })))
        .unwrap();
        assert_eq!(
            (of_run.run, of_run.purpose, of_run.waits_with()),
            (Some(run), Purpose::Checks, None)
        );
        assert_eq!(
            (of_run.handle.as_str(), of_run.created),
            ("coding-agent-x", 1_795_629_600)
        );
        assert_eq!(of_run.network.as_deref(), Some("none"));

        let waiting = entry(&pod(
            &json!({ "coding-agent.warm": "0190a6b2-0000-7000-8000-000000000000" }),
        ))
        .unwrap();
        assert!(waiting.waits_with().is_some());
        assert_eq!(
            waiting.handle, "coding-agent-x@42",
            "it is removed only as it was listed"
        );
    }
}
