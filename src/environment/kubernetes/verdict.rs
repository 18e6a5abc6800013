//! The verdict of a trial of the network policy, and how long it is believed.

use std::time::{Duration, Instant};

use k8s_openapi::api::networking::v1::NetworkPolicy;

/// How long a verdict is believed.
const GOOD_FOR: Duration = Duration::from_hours(6);
const BAD_FOR: Duration = Duration::from_mins(5);

/// How much longer a good one is, where there is no room to try again.
const WITHOUT_ROOM: Duration = Duration::from_hours(1);

/// How long a trial that could not be made is not made again: all runs that wait for it would try
/// one after the other.
const FAILED_FOR: Duration = Duration::from_mins(1);

/// What is known of the network policy.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) verdict: Option<Verdict>,
    /// When a trial could not be made, and why.
    pub(super) failed: Option<(Instant, String)>,
}

impl Known {
    /// Returns why a trial that was made just now could not be made.
    pub(super) fn lasting_failure(&self) -> Option<&str> {
        let (at, reason) = self.failed.as_ref()?;
        (at.elapsed() < FAILED_FOR).then_some(reason)
    }
}

/// Identifies a policy as it was when it was looked at: another one, or a changed one, has another
/// state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PolicyState {
    uid: String,
    generation: i64,
}

impl PolicyState {
    pub(super) fn of(policy: NetworkPolicy) -> Self {
        Self {
            uid: policy.metadata.uid.unwrap_or_default(),
            generation: policy.metadata.generation.unwrap_or_default(),
        }
    }
}

/// The kind of a place that a pod tries to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetKind {
    Internet,
    /// The server that tells a machine of a cloud about itself, its credentials included.
    Metadata,
    OtherPod,
    OtherNode,
    /// The node that the pod runs on.
    OwnNode,
    ApiServer,
    NameServers,
    /// The pod itself, which may reach itself: so it is known to listen.
    Itself,
}

/// A target that was reached.
pub(super) struct Reached {
    pub(super) kind: TargetKind,
    /// The address at which it was reached.
    pub(super) detail: String,
}

impl TargetKind {
    /// Returns what people call it.
    fn name(self) -> &'static str {
        match self {
            Self::Internet => "the internet",
            Self::Metadata => "the cloud's metadata",
            Self::OtherPod => "another pod",
            Self::OtherNode => "another node",
            Self::OwnNode => "its own node",
            Self::ApiServer => "the API server",
            Self::NameServers => "the name servers",
            Self::Itself => "itself",
        }
    }
}

impl Reached {
    /// Returns true if it may be reached although the policy holds.
    pub(super) fn is_tolerated(&self) -> bool {
        self.kind == TargetKind::OwnNode
    }

    /// Returns it for people.
    fn told(&self) -> String {
        format!("{} ({})", self.kind.name(), self.detail)
    }
}

/// The verdict of one trial.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    at: Instant,
    /// The policy that was tried.
    pub(super) of: PolicyState,
    /// The targets that were reached; empty if the policy holds.
    pub(super) reached: Vec<String>,
    /// What was reached although the policy holds.
    tolerated: Vec<String>,
}

impl Verdict {
    /// Returns the verdict on the policy `of`, which was tried just now, by all that was reached.
    pub(super) fn now(of: PolicyState, found: Vec<Reached>) -> Self {
        let (tolerated, reached): (Vec<_>, Vec<_>) = found.into_iter().partition(Reached::is_tolerated);
        let told = |found: &[Reached]| -> Vec<String> { found.iter().map(Reached::told).collect() };
        Self {
            at: Instant::now(),
            of,
            reached: told(&reached),
            tolerated: told(&tolerated),
        }
    }

    /// Returns what was reached although the policy holds.
    pub(super) fn tolerated(&self) -> Vec<String> {
        self.tolerated.clone()
    }

    /// Returns true if it need not be tried again yet.
    pub(super) fn is_believed(&self) -> bool {
        let long = if self.reached.is_empty() { GOOD_FOR } else { BAD_FOR };
        self.at.elapsed() < long
    }

    /// Returns true if it may be relied on although it is due to be tried again, which was not
    /// possible.
    pub(super) fn outlasts(&self) -> bool {
        self.reached.is_empty() && self.at.elapsed() < GOOD_FOR + WITHOUT_ROOM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_node_alone_says_nothing_about_the_policy() {
        let found = [TargetKind::OwnNode, TargetKind::OtherNode].map(|kind| Reached {
            kind,
            detail: "10.0.0.3:10250".to_owned(),
        });
        let verdict = Verdict::now(PolicyState::default(), found.into());
        assert_eq!(verdict.reached, ["another node (10.0.0.3:10250)"]);
        assert_eq!(verdict.tolerated(), ["its own node (10.0.0.3:10250)"]);
    }

    #[test]
    fn a_verdict_is_tried_again_now_and_then() {
        let verdict = |age: Duration, reached: &[&str]| Verdict {
            at: Instant::now().checked_sub(age).unwrap(),
            of: PolicyState::default(),
            reached: reached.iter().map(|word| (*word).to_owned()).collect(),
            tolerated: Vec::new(),
        };
        assert!(verdict(Duration::from_mins(6), &[]).is_believed());
        assert!(
            !verdict(Duration::from_mins(6), &["its node"]).is_believed(),
            "it may be mended by now"
        );
        assert!(verdict(Duration::from_mins(1), &["its node"]).is_believed());
    }
}
