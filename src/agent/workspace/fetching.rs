//! Fetches the repository of a run. If that takes long, people see how far it is: in the log and in
//! the progress comment, which is posted earlier for that.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::journal::fact::Fact;
use crate::repository::RepositoryError;
use crate::repository::git::address::Remote;
use crate::repository::mirror::Mirror;

/// Time after which a fetch is one that takes long.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two lines about it.
const PAUSE: Duration = Duration::from_secs(15);

/// The effect of a request to stop on a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnStop {
    GiveUp,
    /// The run ends by that order already, and fetches what it needs for its end.
    Finish,
}

/// Fetches the repository, and tells of it while it takes long.
pub(crate) async fn fetch_telling(run: &mut Run, remote: &Remote, on_stop: OnStop) -> Result<Mirror, Interruption> {
    let (tell, told) = watch::channel("nothing has arrived yet".to_owned());
    let progress = move |line: &str| {
        tell.send_replace(line.to_owned());
    };
    let mut fetching = Box::pin(fetching(&run.claim, remote.clone(), Box::new(progress)));
    let stop = run.claim.stop.asked.clone();
    let mut pause = PATIENCE;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled(), if on_stop == OnStop::GiveUp => return Err(Interruption::Cancelled),
            fetched = &mut fetching => return Ok(fetched?),
            () = sleep(pause) => pause = PAUSE,
        }
        let line = told.borrow().clone();
        show(run, &line).await;
    }
}

/// Fetches the repository again, which brings little.
pub(crate) async fn fetch(claim: &Claim, remote: &Remote) -> Result<Mirror, Interruption> {
    claim
        .unless_stopped(Box::pin(fetching(claim, remote.clone(), Box::new(|_| {}))))
        .await
}

/// Returns the mirror of a repository that this machine has, as it was fetched last.
pub(crate) async fn at_hand(claim: &Claim, url: &str) -> Result<Option<Mirror>, RepositoryError> {
    let settings = &claim.services.settings;
    Mirror::at_hand(&settings.repository, &settings.state_dir, url).await
}

/// The fetch, which borrows nothing of the run.
fn fetching(
    claim: &Claim,
    remote: Remote,
    progress: Box<dyn Fn(&str) + Send + Sync>,
) -> impl Future<Output = Result<Mirror, RepositoryError>> + Send + use<> {
    let services = Arc::clone(&claim.services);
    let run = claim.lease.run.to_string();
    let is_fork = claim.record.planned.fork.as_ref() == Some(&remote.url);
    async move {
        let (config, state_dir) = (&services.settings.repository, &services.settings.state_dir);
        if is_fork {
            return Mirror::fetch_fork(config, state_dir, &remote, &run, &*progress).await;
        }
        Mirror::fetch_telling(config, state_dir, &remote, &*progress).await
    }
}

async fn show(run: &mut Run, line: &str) {
    let line = run.claim.services.redactor.clean(line).into_string();
    tracing::info!(task = %run.claim.lease.task, "the repository is being fetched: {line}");
    if let Err(interruption) = run.reporter.post_progress(&mut run.claim).await {
        tracing::warn!(task = %run.claim.lease.task, "the progress could not be shown: {interruption:?}");
    }
    run.claim.note(Fact::RepositoryArriving { progress: line });
}
