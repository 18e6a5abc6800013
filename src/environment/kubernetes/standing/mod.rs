//! Judges how a pod stands, by what the cluster says of it. Decides nothing and asks nobody.

pub(super) mod patience; // for how long it may have a trouble

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};

use super::names::INIT_CONTAINER;

/// How a pod stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It does not run yet; the words say what it waits for.
    Waiting(Wait),
    /// The container that brings the executor runs and waits for it.
    Receiving,
    /// All of its containers run.
    Running,
    /// They ran when their node was last heard of, which is the one that is named. It may come
    /// back, and the cluster decides when it does not.
    Away(String),
    /// It does not run any more, or never will; the words follow `it`.
    Ended(PodEnd),
}

/// The reason why a pod waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wait {
    /// Something usual.
    Usual(String),
    /// No node has room for it, or may have it.
    Place(String),
    /// A container that could not be started when it was last tried; the words say which and why.
    Container(String),
    /// An image that could not be pulled when it was last tried.
    Image { image: String, reason: String },
}

/// Why a pod does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodEnd {
    /// The node had no room for it, or needed its room for others.
    NoRoom(String),
    /// An image that can never be pulled.
    Image { image: String, reason: String },
    /// The executor did not get into it: the stream was cut while it was sent.
    NotBrought(String),
    /// Something else.
    Other(String),
}

impl PodEnd {
    /// Returns the words that say why, which follow `the pod`.
    pub(super) fn words(&self) -> String {
        match self {
            Self::NoRoom(words) | Self::NotBrought(words) | Self::Other(words) => words.clone(),
            Self::Image { image, reason } => format!("cannot get the image {image}: {reason}"),
        }
    }
}

/// Reasons of the node for not taking a pod, or for throwing it out.
const NO_ROOM: [&str; 9] = [
    "Evicted",
    "NodeAffinity",
    "NodeShutdown",
    "Preempting",
    "SMTAlignmentError",
    "TaintToleration",
    "Terminated",
    "TopologyAffinityError",
    "UnexpectedAdmissionError",
];

/// The beginning of such reasons that name what the node has too little of.
const OUT_OF: &str = "OutOf";

/// Exit codes of a container whose command could not be run.
const CANNOT_RUN: std::ops::RangeInclusive<i32> = 126..=128;

/// Reasons for which an image will not come by waiting.
const NEVER: [&str; 2] = ["InvalidImageName", "ErrImageNeverPull"];

/// Reasons for which an image may come yet.
const NOT_YET: [&str; 4] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "RegistryUnavailable",
    "ImageInspectError",
];

/// Reasons for which a container could not be started when it was last tried.
const NOT_STARTED: [&str; 5] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PreCreateHookError",
    "PostStartHookError",
];

/// Judges a pod.
pub(super) fn judge(pod: &Pod) -> Standing {
    let Some(status) = &pod.status else {
        return Standing::Waiting(Wait::Usual("the cluster has not looked at it yet".to_owned()));
    };
    if pod.metadata.deletion_timestamp.is_some() {
        return other("is being removed");
    }
    let containers = || {
        status
            .init_container_statuses
            .iter()
            .chain(&status.container_statuses)
            .flatten()
    };
    if let Some(ended) = containers().find_map(|container| ended(container, status)) {
        return Standing::Ended(ended);
    }
    if let Some("Failed" | "Succeeded") = status.phase.as_deref() {
        return Standing::Ended(of_pod(status));
    }
    if let Some(trouble) = containers().find_map(trouble) {
        return trouble;
    }
    let is_running =
        |container: &ContainerStatus| container.state.as_ref().is_some_and(|state| state.running.is_some());
    let brings = status.init_container_statuses.iter().flatten();
    if brings
        .clone()
        .any(|container| container.name == INIT_CONTAINER && is_running(container))
    {
        return Standing::Receiving;
    }
    let wanted = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    let running = status
        .container_statuses
        .iter()
        .flatten()
        .filter(|container| is_running(container));
    if status.phase.as_deref() == Some("Running") && running.count() == wanted {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        return if is_away(status) {
            Standing::Away(node.unwrap_or_default())
        } else {
            Standing::Running
        };
    }
    Standing::Waiting(what_for(status))
}

/// Judges one container of a pod that has come up: another one that has ended, such as a service,
/// does not end this one.
pub(super) fn judge_one(pod: &Pod, name: &str) -> Standing {
    let standing = judge(pod);
    let Some(status) = pod
        .status
        .as_ref()
        .filter(|_| pod.metadata.deletion_timestamp.is_none())
    else {
        return standing;
    };
    let mut containers = status.container_statuses.iter().flatten();
    let goes_on = status.phase.as_deref() == Some("Running")
        && containers.any(|container| {
            container.name == name && container.state.as_ref().is_some_and(|state| state.running.is_some())
        });
    match standing {
        Standing::Ended(_) if goes_on => Standing::Running,
        standing => standing,
    }
}

fn other(words: &str) -> Standing {
    Standing::Ended(PodEnd::Other(words.to_owned()))
}

/// Returns how a container ended. An init container that did its work has not.
fn ended(container: &ContainerStatus, status: &PodStatus) -> Option<PodEnd> {
    let ended = container.state.as_ref()?.terminated.as_ref()?;
    let is_init = status
        .init_container_statuses
        .iter()
        .flatten()
        .any(|init| init.name == container.name);
    if is_init && ended.exit_code == 0 {
        return None;
    }
    // The pod's own reason says more: a container of an evicted pod was only killed.
    if status.reason.is_some() {
        return Some(of_pod(status));
    }
    if ended.reason.as_deref() == Some("OOMKilled") {
        let words = format!("ran out of memory in its container {}", container.name);
        return Some(PodEnd::Other(words));
    }
    let said = ended.message.as_deref().map(str::trim).filter(|said| !said.is_empty());
    let mut words = format!(
        "has ended: its container {} with exit code {}",
        container.name, ended.exit_code
    );
    if let Some(said) = said {
        words.push_str(" (");
        words.push_str(said);
        words.push(')');
    }
    let has_no_shell = CANNOT_RUN.contains(&ended.exit_code)
        || matches!(ended.reason.as_deref(), Some("StartError" | "ContainerCannotRun"));
    Some(if container.name == INIT_CONTAINER && has_no_shell {
        PodEnd::Other(format!(
            "{words}; the image needs /bin/sh with head, tail, wc, cat, cp, mv and chmod, with which the executor is brought: use \
             another image, or name environment.kubernetes.executor_image"
        ))
    } else if container.name == INIT_CONTAINER {
        PodEnd::NotBrought(words)
    } else {
        PodEnd::Other(words)
    })
}

/// Returns how a pod ended as a whole.
fn of_pod(status: &PodStatus) -> PodEnd {
    let reason = status.reason.as_deref().unwrap_or_default();
    let message = status.message.as_deref().unwrap_or_default().trim();
    let words = match (reason, message) {
        ("", "") => "has ended".to_owned(),
        ("Evicted", message) => format!("was thrown out by its node: {message}"),
        ("DeadlineExceeded", _) => "was older than a pod may become".to_owned(),
        (reason, "") => format!("has failed: {reason}"),
        (reason, message) => format!("has failed: {reason}: {message}"),
    };
    if NO_ROOM.contains(&reason) || reason.starts_with(OUT_OF) {
        PodEnd::NoRoom(words)
    } else {
        PodEnd::Other(words)
    }
}

/// Returns what keeps a container from starting.
fn trouble(container: &ContainerStatus) -> Option<Standing> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    let message = waiting.message.as_deref().unwrap_or(reason).trim().to_owned();
    let image = container.image.clone();
    if NEVER.contains(&reason) {
        return Some(Standing::Ended(PodEnd::Image { image, reason: message }));
    }
    if NOT_YET.contains(&reason) {
        return Some(Standing::Waiting(Wait::Image { image, reason: message }));
    }
    NOT_STARTED.contains(&reason).then(|| {
        let words = format!("cannot start its container {}: {reason}: {message}", container.name);
        Standing::Waiting(Wait::Container(words))
    })
}

/// Returns true if the cluster takes the pod for one whose node is away: not for ready, although
/// the node said last that all of its containers are. One that a webhook has added to the pod may
/// be probed, and says nothing of the node.
fn is_away(status: &PodStatus) -> bool {
    let is = |kind: &str, value: &str| {
        let mut conditions = status.conditions.iter().flatten();
        conditions.any(|condition| {
            condition.type_ == kind
                && condition.status == value
                && condition.reason.as_deref() != Some("ReadinessGatesNotReady")
        })
    };
    is("Ready", "False") && !is("ContainersReady", "False")
}

fn what_for(status: &PodStatus) -> Wait {
    let scheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled");
    if let Some(scheduled) = scheduled.filter(|scheduled| scheduled.status == "False") {
        let message = scheduled.message.as_deref().unwrap_or("no node may have it");
        return Wait::Place(message.to_owned());
    }
    let containers = status
        .init_container_statuses
        .iter()
        .chain(&status.container_statuses)
        .flatten();
    let mut reasons = containers.filter_map(|container| {
        let reason = container.state.as_ref()?.waiting.as_ref()?.reason.as_deref()?;
        Some(format!("{} is at {reason}", container.name))
    });
    Wait::Usual(reasons.next().unwrap_or_else(|| "it has no node yet".to_owned()))
}

#[cfg(test)]
mod tests;
