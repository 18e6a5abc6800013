//! Errors of opening and using a workspace.

use crate::conversation::excerpt;
use crate::environment::EnvironmentError;
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
            Self::Uncommittable(_) | Self::Repository(RepositoryError::Unacceptable(_))
        )
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
