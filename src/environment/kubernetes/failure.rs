//! Failures of calls to a cluster, and the sentences that say who must mend what.

use kube::Error;
use kube::client::UpgradeConnectionError;

use crate::environment::error::EnvironmentError;
use crate::environment::processes::Failure;
use crate::http::remedy::without_semicolons;

/// The file that grants all that the program does in a cluster.
const LIST_OF_RIGHTS: &str = "packaging/kubernetes/role.yaml";

/// Words of the API server where a quota is reached.
const QUOTA: &str = "exceeded quota";

/// The beginning of its words where a quota wants a limit that a pod has not.
const QUOTA_OF_ALL: &str = "failed quota";

/// Its words where a pod names something that is not there, with the key that names it.
const NOT_FOUND: [(&str, &str); 3] = [
    ("RuntimeClass", "runtime_class"),
    ("no PriorityClass with name", "priority_class"),
    ("error looking up service account", "service_account"),
];

/// Its words where two calls changed the same object at once, such as a quota's count.
const BUSY: &str = "Operation cannot be fulfilled";

/// The mend for what only the cluster's own rules know.
const OF_THE_CLUSTER: &str = "a rule of the cluster refuses it: ask whoever runs it; the run is tried again";

/// Words with which webhooks and policies of the cluster refuse.
const DENIED: [&str; 2] = ["denied the request", "denied request"];

/// Returns true if the same call will be taken when it is made again.
pub(super) fn is_busy(failure: &Failure) -> bool {
    failure.is_conflict() && failure.complaint().is_some_and(|message| message.contains(BUSY))
}

/// Returns true if the API server could not answer now.
pub(super) fn may_pass(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Silent(_)
            | Failure::Refused {
                status: 429 | 500..,
                ..
            }
    )
}

/// Its words where it does not reach a pod's node.
const NO_NODE: &str = "error dialing backend";

/// Returns the node that the cluster does not have any more, by the API server's words where it was
/// to ask the node of `pod`.
///
/// Only the name tells: the server's words have the kind that it was asked about, also where it is
/// the node that is missing (`pods "node-1" not found`).
pub(super) fn missing_node<'a>(failure: &'a Failure, pod: &str) -> Option<&'a str> {
    let message = failure.complaint().filter(|_| failure.is_absent())?;
    let (_, named) = message.split_once('"')?;
    let (name, _) = named.split_once("\" not found")?;
    (name != pod).then_some(name)
}

/// Returns true if a quota is reached.
pub(super) fn is_of_quota(failure: &Failure) -> bool {
    failure.complaint().is_some_and(|message| message.contains(QUOTA))
}

/// Returns the failure of a call, as far as the answer tells.
pub(super) fn of(error: Error) -> Failure {
    match error {
        Error::Api(status) => Failure::Refused {
            status: status.code,
            message: without_semicolons(&status.message),
        },
        Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(status)) => Failure::Refused {
            status: status.as_u16(),
            message: format!("the API server answered with {status} instead of a stream"),
        },
        Error::Auth(error) => Failure::Refused {
            status: 401,
            message: innermost(&error),
        },
        Error::SerdeError(error) => Failure::Other(format!("an answer that cannot be read: {error}")),
        error @ (Error::HyperError(_) | Error::Service(_) | Error::UpgradeConnection(_) | Error::ReadEvents(_)) => {
            Failure::Silent(innermost(&error))
        }
        error => Failure::Other(innermost(&error)),
    }
}

/// Returns the innermost cause; the outer texts only say that a client failed.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

/// Returns all causes, the outermost first: what a program that the kubeconfig names could not do
/// says nothing without the words that it was run.
pub(super) fn all_causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !words.contains(&said) {
            words = format!("{words}: {said}");
        }
        cause = inner.source();
    }
    words
}

/// Converts a failure of `what` into an error that says who must act. `place` names the cluster and
/// the namespace.
pub(super) fn error(place: &str, what: &str, failure: Failure) -> EnvironmentError {
    let unavailable = |reason: String| EnvironmentError::ClusterUnavailable {
        place: place.to_owned(),
        reason,
    };
    match failure {
        Failure::Silent(reason) => unavailable(format!("{what}: {reason}; the run goes on when it answers again")),
        Failure::Refused { status: 401, .. } => unavailable(format!(
            "{what}: it does not know who asks; renew the credentials in the kubeconfig or the service account's token, and start the program anew \
             if they stand in the kubeconfig itself"
        )),
        Failure::Refused { status: 403, message } => {
            let mend =
                refusal(&message).unwrap_or_else(|| "ask whoever runs the cluster; the run is tried again".to_owned());
            unavailable(format!("{what}: {message}; {mend}"))
        }
        Failure::Refused {
            status: 400 | 422,
            message,
        } if DENIED.iter().any(|words| message.contains(words)) => {
            unavailable(format!("{what}: {message}; {OF_THE_CLUSTER}"))
        }
        // The API server answers for a node that it does not reach.
        Failure::Refused {
            status: 500.., message, ..
        } if message.contains(NO_NODE) => unavailable(format!(
            "{what}: the node of the pod does not answer ({message}); look at `kubectl get nodes`; the run goes on when it answers \
             again, or in another pod once the cluster has given this one up"
        )),
        Failure::Refused {
            status: 429 | 500..,
            message,
        } => unavailable(format!("{what}: {message}; the run goes on when it answers again")),
        Failure::Refused { message, .. } | Failure::Other(message) => EnvironmentError::Unexpected {
            what: what.to_owned(),
            reason: message,
        },
    }
}

/// Returns the mend for what the API server forbids.
fn refusal(message: &str) -> Option<String> {
    if message.contains(QUOTA) {
        return Some(
            "raise the quota, or lower `consumers`, `command_executor.resources` or `command_executor.warm`; the run goes \
             on when there is room"
                .to_owned(),
        );
    }
    if message.contains(QUOTA_OF_ALL) && message.contains("must specify") {
        return Some(
            "the quota wants all of these to be limited: write `command_executor.resources.disk_limit` for ephemeral-storage"
                .to_owned(),
        );
    }
    if message.contains("security context constraint") {
        return Some(
            "let the pods' service account have the SCC nonroot-v2: `oc adm policy add-scc-to-user nonroot-v2 -z` with its name"
                .to_owned(),
        );
    }
    for (words, key) in NOT_FOUND {
        if message.contains(words) {
            return Some(format!("name one that is there in environment.kubernetes.{key}"));
        }
    }
    if message.contains("minimum") && (message.contains("usage per Container") || message.contains("usage per Pod")) {
        return Some(
            "the namespace's LimitRange wants more than the program's small pods have, those of a trial (100m, 128 MiB) above all: \
             lower its minimum"
                .to_owned(),
        );
    }
    if message.contains("LimitRange") || message.contains("usage per Container") || message.contains("usage per Pod") {
        return Some("the namespace's LimitRange forbids it: change it, or `command_executor.resources`".to_owned());
    }
    if message.contains("violates PodSecurity") || message.contains("pod security") {
        return Some(
            "the pods keep to the standard \"restricted\", so something else is asked for here: compare it with the namespace's \
             labels pod-security.kubernetes.io, and with environment.kubernetes"
                .to_owned(),
        );
    }
    if let Some((verb, resource, group)) = lacking(message) {
        return Some(format!(
            "give the program's account `{verb}` on `{resource}`{} in this namespace, as {LIST_OF_RIGHTS} does",
            if group.is_empty() {
                String::new()
            } else {
                format!(" of `{group}`")
            }
        ));
    }
    if message.contains("namespace") && message.contains("being terminated") {
        return Some("name a namespace that stays in environment.kubernetes.namespace".to_owned());
    }
    message.contains("admission webhook").then(|| OF_THE_CLUSTER.to_owned())
}

/// Returns verb, resource and group that an account lacks: `User "x" cannot create resource "pods"
/// in API group "" in the namespace "y"`.
fn lacking(message: &str) -> Option<(&str, &str, &str)> {
    let (_, rest) = message.split_once(" cannot ")?;
    let (verb, rest) = rest.split_once(" resource \"")?;
    let (resource, rest) = rest.split_once('"')?;
    let group = rest
        .split_once("API group \"")
        .and_then(|(_, rest)| rest.split_once('"'));
    Some((verb, resource, group.map_or("", |(group, _)| group)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, message: &str) -> String {
        let failure = Failure::Refused {
            status,
            message: message.to_owned(),
        };
        error("https://10.0.0.1:6443, namespace agents", "creating a pod", failure).to_string()
    }

    #[test]
    fn a_node_that_is_gone_is_told_from_anything_else_that_is_not_there() {
        let refused = |status: u16, message: &str| Failure::Refused {
            status,
            message: message.to_owned(),
        };
        let of = |failure: Failure| missing_node(&failure, "coding-agent-x").map(str::to_owned);
        for message in [r#"pods "node-1" not found"#, r#"nodes "node-1" not found"#] {
            assert_eq!(of(refused(404, message)), Some("node-1".to_owned()));
        }
        assert_eq!(of(refused(404, r#"pods "coding-agent-x" not found"#)), None);
        assert_eq!(of(refused(404, "pod does not exist")), None);
        assert_eq!(of(refused(403, r#"nodes "node-1" not found"#)), None);
        let away = "error dialing backend: dial tcp 10.0.0.2:10250: connect: connection refused";
        assert_eq!(of(refused(500, away)), None, "it may come back");
        assert_eq!(of(Failure::Silent(r#"nodes "node-1" not found"#.to_owned())), None);
    }

    #[test]
    fn what_the_cluster_refuses_is_told_with_the_mend() {
        insta::assert_snapshot!(refused(
            403,
            r#"pods is forbidden: User "system:serviceaccount:agents:coding-agent" cannot create resource "pods" in API group "" in the namespace "agents""#
        ), @r#"the Kubernetes cluster https://10.0.0.1:6443, namespace agents, cannot be used: creating a pod: pods is forbidden: User "system:serviceaccount:agents:coding-agent" cannot create resource "pods" in API group "" in the namespace "agents"; give the program's account `create` on `pods` in this namespace, as packaging/kubernetes/role.yaml does"#);
        insta::assert_snapshot!(refused(
            403,
            r#"networkpolicies.networking.k8s.io "coding-agent-x" is forbidden: User "u" cannot patch resource "networkpolicies" in API group "networking.k8s.io" in the namespace "agents""#
        ), @r#"the Kubernetes cluster https://10.0.0.1:6443, namespace agents, cannot be used: creating a pod: networkpolicies.networking.k8s.io "coding-agent-x" is forbidden: User "u" cannot patch resource "networkpolicies" in API group "networking.k8s.io" in the namespace "agents"; give the program's account `patch` on `networkpolicies` of `networking.k8s.io` in this namespace, as packaging/kubernetes/role.yaml does"#);
        insta::assert_snapshot!(refused(
            403,
            r#"pods "coding-agent-x" is forbidden: exceeded quota: compute, requested: limits.cpu=2, used: limits.cpu=4, limited: limits.cpu=4"#
        ), @r#"the Kubernetes cluster https://10.0.0.1:6443, namespace agents, cannot be used: creating a pod: pods "coding-agent-x" is forbidden: exceeded quota: compute, requested: limits.cpu=2, used: limits.cpu=4, limited: limits.cpu=4; raise the quota, or lower `consumers`, `command_executor.resources` or `command_executor.warm`; the run goes on when there is room"#);
        insta::assert_snapshot!(refused(
            403,
            r#"pods "coding-agent-x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true"#
        ), @r#"the Kubernetes cluster https://10.0.0.1:6443, namespace agents, cannot be used: creating a pod: pods "coding-agent-x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true; the pods keep to the standard "restricted", so something else is asked for here: compare it with the namespace's labels pod-security.kubernetes.io, and with environment.kubernetes"#);
        insta::assert_snapshot!(refused(
            403,
            r#"pods "coding-agent-x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 4294967296"#
        ), @r#"the Kubernetes cluster https://10.0.0.1:6443, namespace agents, cannot be used: creating a pod: pods "coding-agent-x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 4294967296; the namespace's LimitRange forbids it: change it, or `command_executor.resources`"#);
        insta::assert_snapshot!(refused(401, "Unauthorized"), @"the Kubernetes cluster https://10.0.0.1:6443, namespace agents, cannot be used: creating a pod: it does not know who asks; renew the credentials in the kubeconfig or the service account's token, and start the program anew if they stand in the kubeconfig itself");
        for (message, mend) in [
            (
                r#"pods "x" is forbidden: failed quota: compute: must specify limits.ephemeral-storage"#,
                "write `command_executor.resources.disk_limit`",
            ),
            (
                r#"pods "x" is forbidden: unable to validate against any security context constraint: [provider "restricted-v2"]"#,
                "the SCC nonroot-v2",
            ),
            (
                r#"pods "x" is forbidden: minimum memory usage per Container is 256Mi, but request is 128Mi"#,
                "lower its minimum",
            ),
            (
                r#"pods "x" is forbidden: pod rejected: RuntimeClass "gvisor" not found"#,
                "environment.kubernetes.runtime_class",
            ),
            (
                r#"pods "x" is forbidden: no PriorityClass with name batch was found"#,
                "environment.kubernetes.priority_class",
            ),
            (
                r#"pods "x" is forbidden: error looking up service account agents/runs: serviceaccount "runs" not found"#,
                "environment.kubernetes.service_account",
            ),
        ] {
            let told = refused(403, message);
            assert!(told.contains(mend), "{told}");
        }
        insta::assert_snapshot!(refused(503, "the server is currently unable to handle the request"), @"the Kubernetes cluster https://10.0.0.1:6443, namespace agents, cannot be used: creating a pod: the server is currently unable to handle the request; the run goes on when it answers again");
        insta::assert_snapshot!(refused(500, "error dialing backend: dial tcp 10.0.0.2:10250: connect: connection refused"), @"the Kubernetes cluster https://10.0.0.1:6443, namespace agents, cannot be used: creating a pod: the node of the pod does not answer (error dialing backend: dial tcp 10.0.0.2:10250: connect: connection refused); look at `kubectl get nodes`; the run goes on when it answers again, or in another pod once the cluster has given this one up");
        insta::assert_snapshot!(refused(422, "Pod is invalid: spec.containers[0].image: Required value"), @"creating a pod: Pod is invalid: spec.containers[0].image: Required value");
    }
}
