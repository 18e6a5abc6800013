//! Labels and names, by which a later process finds the containers of this one.

use crate::task::id::RunId;

pub(crate) const LABEL_TASK: &str = "coding-agent.task";
pub(crate) const LABEL_RUN: &str = "coding-agent.run";
/// Label with the installation: several may use one engine, and none may sweep another's
/// containers.
pub(crate) const LABEL_INSTANCE: &str = "coding-agent.instance";

/// Label with the network mode; a container with another mode than configured is not resumed.
pub(crate) const LABEL_NETWORK: &str = "coding-agent.network";
/// Label with the service's name, on service containers.
pub(crate) const LABEL_SERVICE: &str = "coding-agent.service";

/// Label with the worker, on containers of a warm pool. Labels cannot be changed when such a
/// container gets its run: from then on only its name identifies the run.
pub(crate) const LABEL_WARM: &str = "coding-agent.warm";

/// Prefix of every container's name.
const PREFIX: &str = "coding-agent-";
/// Second prefix in the name of a container for checks. It is in the name because a container from
/// the warm pool cannot get another label.
const CHECKS: &str = "checks-";

/// The purpose for which a run uses a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The model works in it.
    Work,
    /// The result is checked in it.
    Checks,
}

pub(crate) fn container_name(run: RunId, purpose: Purpose) -> String {
    match purpose {
        Purpose::Work => format!("{PREFIX}{run}"),
        Purpose::Checks => format!("{PREFIX}{CHECKS}{run}"),
    }
}

/// Returns the run that the container with this name belongs to.
pub(crate) fn run_of_name(name: &str) -> Option<RunId> {
    let name = name.strip_prefix(PREFIX)?;
    name.strip_prefix(CHECKS).unwrap_or(name).parse().ok()
}

/// Returns the purpose of the container with this name, or of the one that it is a service of.
pub(crate) fn purpose_of_name(name: &str) -> Purpose {
    match name.strip_prefix(PREFIX) {
        Some(rest) if rest.starts_with(CHECKS) => Purpose::Checks,
        _ => Purpose::Work,
    }
}

pub(crate) fn service_container_name(run: RunId, purpose: Purpose, service: &str) -> String {
    format!("{}-{service}", container_name(run, purpose))
}
