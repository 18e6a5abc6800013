//! The commands that run the project's own tests.

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::evidence::test_command::{self, Files};
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};

/// Maximum number of files whose names are searched for a test setup.
const MOST_FILES: usize = 20_000;
/// Maximum size of a file that is read to detect the tests, in bytes.
const LARGEST_FILE: u64 = 256 * 1024;

/// The test command that configuration or plan name for the project.
pub(crate) enum NamedTests {
    /// The configuration says that no tests are to be run.
    Off,
    Command(String),
    /// Neither names a command.
    Unnamed,
}

/// Returns the test command that the configuration names, or else the plan.
pub(crate) fn named(claim: &Claim) -> NamedTests {
    let configured = claim.services.settings.planning.verification.test_command.trim();
    let plan = claim.record.planned.plan.as_ref();
    let planned = plan.map_or("", |plan| plan.test_command.trim());
    match (configured, planned) {
        ("none", _) => NamedTests::Off,
        ("auto" | "", "") => NamedTests::Unnamed,
        ("auto" | "", planned) => NamedTests::Command(planned.to_owned()),
        (configured, _) => NamedTests::Command(configured.to_owned()),
    }
}

/// Returns the commands that test the project, as detected from the files of `commit`.
pub(crate) async fn detected(mirror: &Mirror, commit: &CommitId) -> Result<Vec<String>, Interruption> {
    let (entries, _) = mirror.files(commit, MOST_FILES).await?;
    let mut files = Files {
        paths: entries.into_iter().map(|entry| entry.path).collect(),
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
    Ok(test_command::detect(&files))
}
