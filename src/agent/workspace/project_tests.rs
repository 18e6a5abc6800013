//! The commands that run the project's own tests.

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::evidence::test_command::{self, Files};
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};

/// Maximum number of files whose names are searched for a test setup.
const MOST_FILES: usize = 100_000;
/// Maximum size of a file that is read to detect the tests, in bytes.
const LARGEST_FILE: u64 = 256 * 1024;

/// The ways to test a project.
pub(crate) struct Detected {
    /// The commands, the best first.
    pub(crate) commands: Vec<String>,
    /// Whether the configuration or the plan name the command; otherwise the files tell of it.
    pub(crate) is_named: bool,
    /// Whether the commit has more files than were looked at.
    is_cut: bool,
}

impl Detected {
    /// Returns the remark for people, if there may be tests that were not found.
    pub(crate) fn remark(&self) -> Option<String> {
        (self.is_cut && self.commands.is_empty()).then(|| {
            format!(
                "No tests were found among the first {MOST_FILES} files of the project; name the command that runs \
                 them in `planning.verification.test_command`."
            )
        })
    }
}

/// Returns the commands that test the project: the one that the configuration names, or else the
/// plan, or else those that the files of a commit tell of, which is the first of `commits` that
/// tells of any.
pub(crate) async fn commands(mirror: &Mirror, claim: &Claim, commits: &[&CommitId]) -> Result<Detected, Interruption> {
    let configured = claim.services.settings.planning.verification.test_command.trim();
    let plan = claim.record.planned.plan.as_ref();
    let planned = plan.map_or("", |plan| plan.test_command.trim());
    let named = match (configured, planned) {
        ("none", _) => Vec::new(),
        ("auto" | "", "") => return first_detected(mirror, commits).await,
        ("auto" | "", planned) => vec![planned.to_owned()],
        (configured, _) => vec![configured.to_owned()],
    };
    Ok(Detected {
        commands: named,
        is_named: true,
        is_cut: false,
    })
}

async fn first_detected(mirror: &Mirror, commits: &[&CommitId]) -> Result<Detected, Interruption> {
    let mut detected = Detected {
        commands: Vec::new(),
        is_named: false,
        is_cut: false,
    };
    for commit in commits {
        detected = detected_among(mirror, commit, MOST_FILES).await?;
        if !detected.commands.is_empty() {
            break;
        }
    }
    Ok(detected)
}

/// Returns what the root and the first `most` files say.
async fn detected_among(mirror: &Mirror, commit: &CommitId, most: usize) -> Result<Detected, Interruption> {
    let (entries, is_cut) = mirror.files(commit, most).await?;
    let mut paths: Vec<String> = entries.into_iter().map(|entry| entry.path).collect();
    if is_cut {
        // The files come in the order of their paths, and those in the root say most.
        let root = mirror.names_in_root(commit, most).await?;
        paths.retain(|path| path.contains('/'));
        paths.extend(root.into_iter().filter(|name| !name.ends_with('/')));
    }
    let mut files = Files {
        paths,
        ..Files::default()
    };
    let telling: Vec<String> = test_command::telling(&files.paths)
        .into_iter()
        .map(str::to_owned)
        .collect();
    for path in telling {
        match mirror.file(commit, &path, LARGEST_FILE).await {
            Ok(Some(bytes)) => {
                files
                    .contents
                    .insert(path, String::from_utf8_lossy(&bytes).into_owned());
            }
            // Too large to be the file that its name suggests.
            Ok(None) | Err(RepositoryError::Unexpected { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Detected {
        commands: test_command::detect(&files),
        is_named: false,
        is_cut,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Config;

    #[tokio::test]
    async fn what_the_root_says_counts_however_many_files_come_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let (state, project) = (folder.path().join("state"), folder.path().join("project"));
        std::fs::create_dir_all(project.join("apps")).unwrap();
        for name in ["apps/a.txt", "apps/b.txt"] {
            std::fs::write(project.join(name), "").unwrap();
        }
        let config = Config::default();
        let snapshot = async || Mirror::snapshot(&config, &state, "one", &project).await.unwrap();
        let (mirror, commit) = snapshot().await;
        let nothing = detected_among(&mirror, &commit, 1).await.unwrap();
        assert_eq!(nothing.commands, [""; 0]);
        assert!(nothing.remark().is_some_and(|remark| remark.contains("test_command")));
        let nothing = detected_among(&mirror, &commit, 2).await.unwrap();
        assert_eq!(nothing.remark(), None);

        let package = r#"{"scripts": {"test": "vitest run"}}"#;
        std::fs::write(project.join("package.json"), package).unwrap();
        let (mirror, commit) = snapshot().await;
        for most in [2, 3] {
            let found = detected_among(&mirror, &commit, most).await.unwrap();
            assert_eq!((found.commands, found.is_cut), (vec!["npm test".to_owned()], most == 2));
        }
    }
}
