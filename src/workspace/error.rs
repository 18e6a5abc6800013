//! Errors of opening and using a workspace.

use crate::conversation::excerpt;
use crate::environment::{Container, EnvironmentError};
use crate::repository::RepositoryError;
use crate::tool::ToolError;

/// Maximum bytes of what is told of work that stands in the way.
const LONGEST_REASON: usize = 4 * 1024;

/// Error of opening or using a workspace. The cause is kept, since it determines how the run ends.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// Aborted because the program was asked to stop.
    #[error("the program is asked to stop")]
    Cancelled,
    /// The result changes files that the project's rules exclude.
    #[error("{0}")]
    OutsideRules(String),
    /// Git cannot commit what lies in the work tree.
    #[error("{0}")]
    Uncommittable(String),
    /// A retry would fail as well.
    #[error("{0}")]
    Failed(String),
}

impl WorkspaceError {
    /// Returns true if the work itself stands in the way, so that whoever works in the container
    /// can mend it. What the project's rules exclude is not meant: the model was told of that
    /// before.
    pub fn is_about_the_work(&self) -> bool {
        matches!(
            self,
            Self::Uncommittable(_) | Self::Repository(RepositoryError::Unacceptable(_) | RepositoryError::TooSlow(_))
        )
    }

    /// Returns the error for work that did not come out of its container in time, once it is known
    /// whether the engine still answers.
    pub(crate) async fn of_delay(slow: RepositoryError, container: &Container) -> Self {
        let what = "taking the work out of its container";
        told_apart(slow, container.broken(what, "it did not come in time").await)
    }

    /// Returns the error with the beginning and the end of what is said of the work: git names each
    /// path that it cannot add.
    #[must_use]
    pub fn shortened(self) -> Self {
        let cut = |text: &str| excerpt::middle_cut(text.trim(), LONGEST_REASON, None);
        match self {
            Self::Uncommittable(text) => Self::Uncommittable(cut(&text)),
            Self::Repository(RepositoryError::Unacceptable(text)) => RepositoryError::Unacceptable(cut(&text)).into(),
            other => other,
        }
    }
}

/// Returns whose fault it is that work did not come out in time, by what was `found` of its
/// container: whoever works there can do nothing about an engine that does not answer, nor about a
/// container that is gone.
fn told_apart(slow: RepositoryError, found: EnvironmentError) -> WorkspaceError {
    match found {
        EnvironmentError::Unexpected { .. } => slow.into(),
        of_the_engine => of_the_engine.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_complaint_its_beginning_and_its_end_are_told() {
        let complaint = format!("the first\n{}the last\n", "and another\n".repeat(6_000));
        let refused = RepositoryError::Unacceptable(complaint.clone());
        for error in [WorkspaceError::Uncommittable(complaint), refused.into()] {
            let told = error.shortened().to_string();
            assert!(
                told.len() < 5 * 1024 && told.contains("the first\n") && told.ends_with("the last"),
                "{told}"
            );
        }
    }

    #[test]
    fn a_slow_engine_is_not_told_as_a_fault_of_the_work() {
        let slow = || RepositoryError::TooSlow("the container sent nothing for 600 seconds".to_owned());
        let silent = EnvironmentError::EngineUnavailable {
            address: "unix:///var/run/docker.sock".to_owned(),
            reason: "it did not answer within 60 s".to_owned(),
        };
        let gone = EnvironmentError::ContainerLost {
            container: "0123456789ab".to_owned(),
            reason: "it ran out of memory".to_owned(),
        };
        for found in [silent, gone] {
            assert!(!told_apart(slow(), found).is_about_the_work());
        }
        let alive = EnvironmentError::Unexpected {
            what: "taking the work out of its container".to_owned(),
            reason: "it did not come in time".to_owned(),
        };
        assert!(told_apart(slow(), alive).is_about_the_work());
    }

    #[test]
    fn only_what_lies_in_the_work_can_be_mended_there() {
        let refused = RepositoryError::Unacceptable("outside: the link points to an absolute path".to_owned());
        assert!(WorkspaceError::from(refused).is_about_the_work());
        assert!(WorkspaceError::Uncommittable("no commit checked out".to_owned()).is_about_the_work());
        for other in [
            WorkspaceError::Failed("git ended with 137".to_owned()),
            WorkspaceError::OutsideRules("the work changes what is left out".to_owned()),
            WorkspaceError::Cancelled,
        ] {
            assert!(!other.is_about_the_work(), "{other}");
        }
    }
}
