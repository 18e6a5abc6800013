//! Files that the project keeps in Git LFS: fetches their contents for the container, and says what
//! the model has to know of them.

use std::fmt::Write as _;

use crate::agent::claim::Claim;
use crate::agent::prompt;
use crate::agent::record::interruption::Interruption;
use crate::agent::reporter::Reporter;
use crate::agent::run::Run;
use crate::agent::workspace::source::Source;
use crate::lfs::Pointer;
use crate::plain::printable;
use crate::repository::CommitId;
use crate::repository::reading::large_files::LargeFile;
use crate::repository::remote::lfs::Unfetched;

/// Number of files without contents that the model is told by name.
const MOST_NAMED: usize = 20;

const USED: &str = "\nThis project keeps large files in Git LFS. In the container they have their contents, and \
     git writes pointers into commits by itself: `git add` is enough, and `git lfs` is not needed.\n";

/// Fetches the contents of the commit's large files. Returns what the model is told of them; empty
/// for a project without any.
pub(crate) async fn fetch(run: &mut Run, source: &Source, commit: &CommitId) -> Result<String, Interruption> {
    let large = source.mirror.large_files(commit).await?;
    if !large.is_used {
        return Ok(String::new());
    }
    let pointers: Vec<Pointer> = large.pointers.iter().map(|file| file.pointer.clone()).collect();
    let login = source.remote.as_ref().and_then(|remote| remote.login.as_ref());
    let (claim, reporter): (&Claim, &Reporter) = (&run.claim, &run.reporter);
    let progress = |line: String| {
        tracing::info!(task = %claim.lease.task, "{line}");
        reporter.tell_terminal(claim, &line);
    };
    let fetching = source.mirror.fetch_contents(login, &pointers, &progress);
    let unfetched = claim.unless_stopped(Box::pin(fetching)).await?;
    let without: Vec<(&LargeFile, &Unfetched)> = large
        .pointers
        .iter()
        .filter_map(|file| {
            let why = unfetched.iter().find(|unfetched| unfetched.pointer == file.pointer);
            why.map(|why| (file, why))
        })
        .collect();
    if let Some((file, why)) = without.first()
        && run.claim.services.settings.repository.lfs.enabled
    {
        run.claim.warn(format!(
            "{} of {} files in Git LFS are only pointers in the container. `{}`: {}.",
            without.len(),
            large.pointers.len(),
            file.path.escape_debug(),
            why.reason
        ));
    }
    Ok(told(&prompt::fence(run.claim.lease.run), &without))
}

/// Returns the text for the model; names of files are text from outside as well.
fn told(fence: &str, without: &[(&LargeFile, &Unfetched)]) -> String {
    let mut text = USED.to_owned();
    if without.is_empty() {
        return text;
    }
    text.push_str("Of these only the pointers are there, without the contents; leave them as they are:\n");
    let _ = writeln!(text, "<{fence}>");
    for (file, _) in without.iter().take(MOST_NAMED) {
        let megabytes = file.pointer.size().div_ceil(1_000_000);
        let _ = writeln!(text, "{} ({megabytes} MB)", printable(&file.path));
    }
    if without.len() > MOST_NAMED {
        let _ = writeln!(text, "[... {} more ...]", without.len() - MOST_NAMED);
    }
    let _ = writeln!(text, "</{fence}>");
    text
}
