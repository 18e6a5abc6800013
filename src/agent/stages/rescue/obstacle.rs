//! Why the work of a run that ends is not brought to people, and whether that passes.

use chrono::{DateTime, TimeDelta, Utc};

use crate::agent::record::Failure;
use crate::agent::record::interruption::Interruption;
use crate::repository::RepositoryError;
use crate::workspace::error::WorkspaceError;

/// A reason why the work of a run that ends is not brought to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// It may be gone at this time. The container that has the work stays until then.
    Passes { until: DateTime<Utc>, reason: String },
    /// It does not go away by itself: the work was judged and refused, or the forge refuses it. In
    /// words for people.
    Stays(String),
    /// The work is not wanted there, or another worker has the run.
    Moot,
}

impl Obstacle {
    /// Returns an obstacle that may be gone at the next attempt.
    pub(super) fn passes(reason: impl Into<String>) -> Self {
        Self::Passes {
            until: Utc::now() + TimeDelta::minutes(2),
            reason: reason.into(),
        }
    }

    /// Returns the obstacle of something that was given up because it took too long.
    pub(super) fn too_late(what: &str) -> Self {
        Self::passes(format!("{what} took too long"))
    }

    /// Returns the reason in words for people; `None` if there is nothing to tell.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Passes { reason, .. } | Self::Stays(reason) => Some(reason),
            Self::Moot => None,
        }
    }

    /// Returns why work does not come out of its container, or is not accepted. Only what was
    /// judged and refused stays so: an engine that restarts, a full disk, a container that is slow
    /// or has no memory left say nothing of the work, which is nowhere else.
    pub(super) fn of_taking(error: WorkspaceError) -> Self {
        match error {
            // Whoever works in the container can make room there, and is told so. At the end of a
            // run nobody does, but a disk that it shares may have room again.
            WorkspaceError::Uncommittable(ref complaint) if is_of_full_disk(complaint) => {
                Self::passes(error.shortened().to_string())
            }
            WorkspaceError::OutsideRules(_)
            | WorkspaceError::Uncommittable(_)
            | WorkspaceError::Repository(RepositoryError::Unacceptable(_)) => {
                Self::Stays(error.shortened().to_string())
            }
            WorkspaceError::Environment(_)
            | WorkspaceError::Repository(_)
            | WorkspaceError::Tool(_)
            | WorkspaceError::Cancelled
            | WorkspaceError::Failed(_) => Self::passes(error.to_string()),
        }
    }

    /// Returns why work on a fork is not put into a file where this program runs, in words without
    /// a path of that machine. A folder that is not there, or may not be written to, stays so until
    /// somebody mends it; anything else passes, a full disk above all.
    pub(super) fn of_file(error: &anyhow::Error) -> Self {
        let told = format!("{error:#}");
        if UNUSABLE.iter().any(|words| told.contains(words)) {
            let reason = "this request comes from a fork, and commits of a fork are never pushed to this repository";
            return Self::Stays(reason.to_owned());
        }
        Self::passes("it cannot be put into a file where this program runs, and the log there says why")
    }
}

/// The system's words for a folder or file that cannot be used, whoever reports them.
const UNUSABLE: [&str; 6] = [
    "Is a directory",
    "No such file or directory",
    "Not a directory",
    "Operation not permitted",
    "Permission denied",
    "Read-only file system",
];

/// Returns true if git, or a program beside it, found no room for what it had to write.
fn is_of_full_disk(complaint: &str) -> bool {
    ["No space left on device", "Disk quota exceeded"]
        .iter()
        .any(|words| complaint.contains(words))
}

impl From<Interruption> for Obstacle {
    fn from(interruption: Interruption) -> Self {
        let now = Utc::now();
        let (until, reason) = match interruption {
            Interruption::Postponed { until, reason } => (until, reason),
            Interruption::ClaimedElsewhere { until } => {
                let reason = "another installation has claimed the item on the forge";
                (until, reason.to_owned())
            }
            Interruption::Unsaved(error) => (now, error.to_string()),
            Interruption::Cancelled => (now, "the program was asked to stop".to_owned()),
            Interruption::Failed(Failure { text, .. })
            | Interruption::WorkspaceLost(text)
            | Interruption::NoNativeCalls(text) => return Self::Stays(text),
            Interruption::Withdrawn { .. }
            | Interruption::FinishedElsewhere
            | Interruption::Stopped { .. }
            | Interruption::Paused { .. }
            | Interruption::Disowned(_) => return Self::Moot,
        };
        Self::Passes { until, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::EnvironmentError;

    #[test]
    fn only_a_judgement_on_the_work_stays() {
        let link = "`outside`: the link points to an absolute path";
        let refused = RepositoryError::Unacceptable(link.to_owned());
        let told = format!("the commits from the container were refused: {link}");
        assert_eq!(Obstacle::of_taking(refused.into()), Obstacle::Stays(told));
        for refused in [
            WorkspaceError::OutsideRules("the work changes what is left out".to_owned()),
            WorkspaceError::Uncommittable("'app/' does not have a commit checked out".to_owned()),
        ] {
            let told = refused.to_string();
            assert_eq!(Obstacle::of_taking(refused), Obstacle::Stays(told));
        }
    }

    #[test]
    fn only_a_folder_that_cannot_be_used_keeps_work_out_of_a_file_for_good() {
        let git = |reason: &str| {
            anyhow::Error::from(RepositoryError::Unexpected {
                what: "keeping the work in a file".to_owned(),
                reason: reason.to_owned(),
            })
        };
        let denied = anyhow::Error::from(std::io::Error::from_raw_os_error(13));
        for error in [
            denied,
            git("Unable to create '/srv/logs/work.bundle.lock': Read-only file system"),
        ] {
            let obstacle = Obstacle::of_file(&error);
            assert!(
                matches!(&obstacle, Obstacle::Stays(reason) if reason.contains("from a fork")),
                "{error:#}: {obstacle:?}"
            );
        }
        let full = anyhow::Error::from(std::io::Error::from_raw_os_error(28));
        for error in [
            full,
            git("write error: No space left on device"),
            git("git was lost: /srv/logs"),
        ] {
            let obstacle = Obstacle::of_file(&error);
            assert!(
                matches!(&obstacle, Obstacle::Passes { reason, .. } if !reason.contains('/')),
                "{error:#}: {obstacle:?}"
            );
        }
    }

    #[test]
    fn trouble_of_the_worker_and_of_a_slow_container_passes() {
        let full = RepositoryError::Unexpected {
            what: "taking the commits back from the container".to_owned(),
            reason: "the disk is full".to_owned(),
        };
        let slow = RepositoryError::TooSlow("the container sent nothing for 10 seconds".to_owned());
        let away = EnvironmentError::EngineUnavailable {
            address: "unix:///var/run/docker.sock".to_owned(),
            reason: "it did not answer within 60 s".to_owned(),
        };
        let cut = EnvironmentError::Unexpected {
            what: "a script of the program's own in the container".to_owned(),
            reason: "it did not end within 600 s".to_owned(),
        };
        let killed = WorkspaceError::Failed("git ended with 137".to_owned());
        let complaint = "git ended with 1: cp: write error: No space left on device";
        let full_inside = WorkspaceError::Uncommittable(complaint.to_owned());
        for trouble in [killed, full.into(), full_inside, slow.into(), away.into(), cut.into()] {
            let told = trouble.to_string();
            let obstacle = Obstacle::of_taking(trouble);
            assert!(
                matches!(&obstacle, Obstacle::Passes { until, reason } if *until > Utc::now() && *reason == told),
                "{obstacle:?}"
            );
        }
    }
}
