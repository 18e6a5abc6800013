//! Labels and names of what the program has in a cluster.
//!
//! Labels hold no task id, whose characters are not allowed in them: that is an annotation.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::environment::config::engine_choice::LABEL_MANAGER;
use crate::environment::container::name::{
    LABEL_INSTANCE, LABEL_NETWORK, LABEL_RUN, LABEL_TASK, LABEL_WARM, Purpose, container_name,
};
use crate::task::id::{RunId, TaskId};

/// Label with what a run uses its pod for.
pub(super) const LABEL_PURPOSE: &str = "coding-agent.purpose";
/// The value of [`LABEL_MANAGER`] on everything that the program made.
pub(super) const MANAGER: &str = "coding-agent";

/// Container of the executor, in which a run works.
pub(super) const WORK: &str = "work";
/// Container that brings the executor into the pod.
pub(super) const INIT_CONTAINER: &str = "executor";
/// Prefix of the containers of services.
const SERVICE: &str = "service-";

/// Whom a pod is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Holder<'a> {
    Run(&'a TaskId, RunId, Purpose),
    /// No run yet: it waits in this worker's warm pool.
    Pool(Uuid),
    /// Nobody: it tries whether the network policy holds.
    Trial,
}

/// Returns the name of the object that everything of the installation belongs to, and that of its
/// network policy.
pub(super) fn installation(instance: &str) -> String {
    format!("{MANAGER}-{instance}")
}

/// The purpose of a pod with which the network policy is tried.
pub(super) const TRIAL: &str = "trial";

/// Returns a new name for a pod of a run.
///
/// Each pod has one of its own: with the name of the run alone, a pod that took the place of a lost
/// one could not be told from it, and a process that was started meanwhile took it over for ready.
pub(super) fn pod_of(run: RunId, purpose: Purpose) -> String {
    let own = Uuid::now_v7().simple().to_string();
    // The end is random.
    let (_, own) = own.split_at(own.len() - 6);
    format!("{}-{own}", container_name(run, purpose))
}

/// Returns the name of a service's container.
pub(super) fn service(name: &str) -> String {
    format!("{SERVICE}{name}")
}

/// Returns the service that this is the container of.
pub(super) fn service_of(container: &str) -> Option<&str> {
    container.strip_prefix(SERVICE)
}

/// Splits the id of a container into its pod and its container there.
pub(super) fn place(id: &str) -> (&str, &str) {
    id.split_once('/').unwrap_or((id, WORK))
}

/// Returns the id of a service's container.
pub(super) fn id_of_service(pod: &str, name: &str) -> String {
    format!("{pod}/{}", service(name))
}

/// Returns the word for a purpose, as in [`LABEL_PURPOSE`].
pub(super) fn word(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Work => "work",
        Purpose::Checks => "checks",
    }
}

/// Returns the labels of everything of an installation.
pub(super) fn labels_of_all(instance: &str) -> BTreeMap<String, String> {
    owned([(LABEL_INSTANCE, instance), (LABEL_MANAGER, MANAGER)])
}

/// Returns the labels of a pod.
pub(super) fn labels(instance: &str, network: &str, holder: Holder<'_>) -> BTreeMap<String, String> {
    let mut labels = labels_of_all(instance);
    labels.insert(LABEL_NETWORK.to_owned(), network.to_owned());
    match holder {
        Holder::Run(_, run, purpose) => labels.extend(labels_of_run(run, purpose)),
        Holder::Pool(worker) => labels.extend(owned([(LABEL_WARM, worker.to_string().as_str())])),
        Holder::Trial => labels.extend(owned([(LABEL_PURPOSE, TRIAL)])),
    }
    labels
}

/// Returns the labels by which a pod is a run's.
pub(super) fn labels_of_run(run: RunId, purpose: Purpose) -> BTreeMap<String, String> {
    owned([(LABEL_RUN, run.to_string().as_str()), (LABEL_PURPOSE, word(purpose))])
}

/// Returns the annotations of a pod.
pub(super) fn annotations(holder: Holder<'_>) -> BTreeMap<String, String> {
    match holder {
        Holder::Run(task, ..) => owned([(LABEL_TASK, task.to_string().as_str())]),
        Holder::Pool(_) | Holder::Trial => BTreeMap::new(),
    }
}

/// Returns the selector for all pods of an installation.
pub(super) fn selector(instance: &str) -> String {
    format!("{LABEL_INSTANCE}={instance}")
}

fn owned<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::config::engine_choice::LABEL_PREFIX;

    #[test]
    fn no_configured_label_or_annotation_can_take_the_place_of_an_own_one() {
        let task: TaskId = "github:owner/repo#12".parse().unwrap();
        for holder in [
            Holder::Run(&task, RunId::new(), Purpose::Work),
            Holder::Pool(Uuid::now_v7()),
            Holder::Trial,
        ] {
            let labels = labels("here", "none", holder);
            assert!(labels.contains_key(LABEL_MANAGER), "{labels:?}");
            let names = labels.into_keys().chain(annotations(holder).into_keys());
            for name in names {
                assert!(name.starts_with(LABEL_PREFIX) || name == LABEL_MANAGER, "{name}");
            }
        }
    }

    #[test]
    fn each_pod_of_a_run_has_a_name_of_its_own_that_a_cluster_takes() {
        let run = RunId::new();
        let (one, other) = (pod_of(run, Purpose::Checks), pod_of(run, Purpose::Checks));
        assert_ne!(one, other);
        assert!(
            one.starts_with(&container_name(run, Purpose::Checks)) && one.len() <= 63,
            "{one}"
        );
    }
}
