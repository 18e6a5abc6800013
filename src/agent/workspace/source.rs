//! The repository of a run: mirror, remote, base commit and branches.

pub(crate) mod push_right; // whether the branch of a request may be pushed to
mod earlier_work; // what earlier runs left on branches

use std::time::Duration;

use crate::agent::claim::Claim;
use crate::agent::claim::git_login::login;
use crate::agent::record::interruption::Interruption;
use crate::agent::reporter::Reporter;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::run::Run;
use crate::agent::workspace::confidentiality;
use crate::agent::workspace::fetching::{self, OnStop};
use crate::agent::workspace::unfinished_work;
use crate::forge::Item;
use crate::repository::RepositoryError;
use crate::repository::git::address::Remote;
use crate::repository::mirror::Mirror;
use crate::workspace::base::Base;

/// Longest wait of a finished run for a mirror that another is fetching; commits that are not
/// removed only take space.
const FORGETTING_TIME: Duration = Duration::from_secs(10);

/// The repository of a run.
pub(crate) struct Source {
    pub mirror: Mirror,
    /// `None` for a local task.
    pub remote: Option<Remote>,
}

/// Returns the item's repository, fetched once in each process, or the snapshot of a local task's
/// folder. Later steps need nothing fresher: a push is refused if the branch has moved.
pub(crate) async fn source(run: &mut Run, item: Option<&Item>) -> Result<Source, Interruption> {
    source_unless(run, item, OnStop::GiveUp).await
}

/// Returns the item's repository for a run that ends, and fetches it where this process has not:
/// the order that ends the run does not end this fetch as well. The caller bounds the time.
pub(crate) async fn source_at_end(run: &mut Run, item: &Item) -> Result<Source, Interruption> {
    source_unless(run, Some(item), OnStop::Finish).await
}

async fn source_unless(run: &mut Run, item: Option<&Item>, on_stop: OnStop) -> Result<Source, Interruption> {
    let remote = match item {
        Some(item) => Some(remote(&run.reporter, item).await?),
        None => None,
    };
    if let Some(item) = item {
        note_fork(&mut run.claim, item).await?;
    }
    let is_fork = run.claim.record.planned.fork.is_some();
    let mirror = match (&run.workspace.mirror, &remote) {
        // The forge has renamed the repository. Git follows no redirect to its new address, with
        // which it would send the login to wherever that leads; the item names it.
        (Some(mirror), Some(remote)) if !is_fork && !mirror.is_of(&remote.url) => mirror.renamed(&remote.url)?,
        (Some(mirror), _) => mirror.clone(),
        (None, Some(remote)) => fetching::fetch_telling(run, remote, on_stop).await?,
        (None, None) => {
            let settings = &run.claim.services.settings;
            Mirror::local(
                &settings.repository,
                &settings.state_dir,
                &run.claim.lease.run.to_string(),
            )
            .await?
        }
    };
    if run.workspace.mirror.is_none() && remote.is_some() {
        unfinished_work::restore(&run.claim, &mirror, on_stop).await?;
    }
    run.workspace.mirror = Some(mirror.clone());
    Ok(Source { mirror, remote })
}

/// Records the fork that the run works in before any of it is on disk. A run that began in a fork
/// is refused in another repository, because the history below its commits is the fork's.
async fn note_fork(claim: &mut Claim, item: &Item) -> Result<(), Interruption> {
    let fork = fork_of(item)?;
    if claim.record.planned.fork == fork {
        return Ok(());
    }
    if claim.record.planned.base.is_some() && claim.record.planned.fork.is_some() {
        return Err(Interruption::failed(
            "the branch of this request is in another repository than when the work on it began; set the label again to \
             have it worked on there",
        ));
    }
    claim.record.planned.fork = fork;
    claim.save().await
}

/// Removes the mirror of a fork after the run has ended.
pub(crate) async fn leave_fork(run: &mut Run) {
    let Some(fork) = run.claim.record.planned.fork.clone() else {
        return;
    };
    run.workspace.mirror = None;
    let (settings, id) = (&run.claim.services.settings, run.claim.lease.run.to_string());
    let leaving = Mirror::leave_fork(&settings.repository, &settings.state_dir, &fork, &id);
    match tokio::time::timeout(FORGETTING_TIME, leaving).await {
        Ok(Ok(_)) | Err(_) => {}
        Ok(Err(error)) => tracing::warn!(task = %run.claim.lease.task, "a fork's mirror could not be removed: {error}"),
    }
}

/// Returns the mirror of the run, and fetches it unless this process already did.
pub(crate) async fn mirror_at_hand(run: &mut Run) -> Result<Mirror, Interruption> {
    if let Some(mirror) = &run.workspace.mirror {
        return Ok(mirror.clone());
    }
    let item = run.reporter.item(&mut run.claim).await?;
    Ok(source(run, item.as_ref()).await?.mirror)
}

/// Removes the saved commits of a delivered run from the mirror.
pub(crate) async fn forget_commits(run: &Run) {
    let Some(mirror) = run
        .workspace
        .mirror
        .as_ref()
        .filter(|_| run.claim.record.request.local.is_none())
    else {
        return;
    };
    let id = run.claim.lease.run.to_string();
    match tokio::time::timeout(FORGETTING_TIME, mirror.forget(&id)).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(error)) => tracing::warn!(task = %run.claim.lease.task, "kept commits could not be forgotten: {error}"),
    }
}

/// Fetches a branch after a rejected push, and returns whether it was moved or deleted.
pub(crate) async fn why_moved(claim: &Claim, remote: &Remote, branch: &str) -> Result<Interruption, Interruption> {
    let mirror = fetching::fetch(claim, remote).await?;
    Ok(moved(branch, mirror.branch(branch).await?.is_some()))
}

/// Returns an interruption if the branch of a resumed run's pull/merge request was moved or
/// deleted, since the result could not be pushed.
pub(crate) async fn why_not_there(
    claim: &Claim,
    item: &Item,
    mirror: &Mirror,
) -> Result<Option<Interruption>, Interruption> {
    let (Some(_), Some(base), None) = (&item.change, &claim.record.planned.base, &claim.record.delivered.head) else {
        return Ok(None);
    };
    let there = mirror.branch(&base.head_branch).await?;
    let stands = there.as_ref() == Some(base.pushed_up_to());
    Ok((!stands).then(|| moved(&base.head_branch, there.is_some())))
}

async fn remote(reporter: &Reporter, item: &Item) -> Result<Remote, Interruption> {
    let url = item
        .change
        .as_ref()
        .map_or(&item.clone_url, |change| &change.head_clone_url);
    remote_at(reporter, url, item).await
}

/// Returns the item's own repository, which for a change from a fork does not have the branch.
pub(crate) async fn home(reporter: &Reporter, item: &Item) -> Result<Remote, Interruption> {
    remote_at(reporter, &item.clone_url, item).await
}

async fn remote_at(reporter: &Reporter, url: &str, item: &Item) -> Result<Remote, Interruption> {
    let ReportTarget::Item { forge, .. } = &reporter.destination else {
        return Err(Interruption::failed("a local task has no remote repository"));
    };
    let credentials = forge.git_credentials(&item.task).await?;
    Ok(Remote {
        url: url.to_owned(),
        login: Some(login(credentials)),
    })
}

/// Creates the snapshot of a local task's folder and returns its base.
pub(crate) async fn snapshot(claim: &Claim) -> Result<Base, Interruption> {
    let Some(local) = &claim.record.request.local else {
        return Err(Interruption::failed("the local task has no folder"));
    };
    let settings = &claim.services.settings;
    let name = claim.lease.run.to_string();
    let copying = Box::pin(Mirror::snapshot(
        &settings.repository,
        &settings.state_dir,
        &name,
        &local.folder,
    ));
    let (_, commit) = claim.unless_stopped(copying).await?;
    Ok(Base {
        commit,
        branch: "main".to_owned(),
        head_branch: "main".to_owned(),
        holds_work: false,
        before_work: None,
        pushed_up_to: None,
    })
}

/// Determines the base commit of the work and the branch for the result.
pub(crate) async fn find_base(
    claim: &Claim,
    reporter: &Reporter,
    item: &Item,
    mirror: &Mirror,
) -> Result<Base, Interruption> {
    if let Some(change) = &item.change {
        let head = &change.head_branch;
        let gone = || {
            Interruption::failed(match crate::repository::branch_name(head) {
                Ok(_) => format!("the branch `{head}` does not exist any more"),
                Err(_) => format!(
                    "the branch `{head}` has a name that git takes for something else, such as an option; open the request from a branch \
                     with a plain name"
                ),
            })
        };
        let tip = mirror.branch(head).await?.ok_or_else(gone)?;
        let unfinished = earlier_work::unfinished_on_request(claim, change, &tip, mirror).await?;
        let pushed_up_to = unfinished.is_some().then(|| tip.clone());
        let commit = unfinished.unwrap_or(tip);
        // What fails on the branch of others is no fault of the program.
        let before_work = if earlier_work::is_own(claim, reporter, item).await? {
            earlier_work::before_work(mirror, &commit, &[change.base_branch.as_str()]).await?
        } else {
            pushed_up_to.clone()
        };
        return Ok(Base {
            commit,
            branch: change.base_branch.clone(),
            head_branch: change.head_branch.clone(),
            holds_work: pushed_up_to.is_some(),
            before_work,
            pushed_up_to,
        });
    }
    let empty = || {
        Interruption::failed(
            "the repository has no commit yet, so there is nothing a pull request could be based on; push a first commit (a README is enough)",
        )
    };
    let branch = item.default_branch.clone().ok_or_else(empty)?;
    let Some(commit) = mirror.branch(&branch).await? else {
        return Err(if mirror.has_branches().await? {
            Interruption::failed(format!(
                "the repository's default branch `{branch}` does not exist; push it, or choose another one in the \
                 repository's settings"
            ))
        } else {
            empty()
        });
    };
    choose_branch(
        claim,
        reporter,
        item,
        mirror,
        Base {
            commit,
            branch,
            head_branch: String::new(),
            holds_work: false,
            before_work: None,
            pushed_up_to: None,
        },
    )
    .await
}

/// Chooses an unused branch name, or an earlier run's branch if its work is still wanted: it has an
/// open pull/merge request, or the previous run left unfinished work on it that can go where this
/// one's goes. Earlier branches are known by the records of their runs, since the item may have
/// another title by now.
async fn choose_branch(
    claim: &Claim,
    reporter: &Reporter,
    item: &Item,
    mirror: &Mirror,
    base: Base,
) -> Result<Base, Interruption> {
    let ReportTarget::Item { forge, .. } = &reporter.destination else {
        return Ok(base);
    };
    let earlier = earlier_work::earlier_branches(claim).await?;
    for branch in &earlier {
        let Some(commit) = mirror.branch(&branch.name).await? else {
            continue;
        };
        let is_open = forge.change_from(&item.task, &branch.name).await?.is_some();
        if is_open || (branch.was_cut_short && leads_to(mirror, &branch.began, &base).await) {
            let targets = [branch.began.branch.as_str(), base.branch.as_str()];
            let before_work = earlier_work::before_work(mirror, &commit, &targets).await?;
            return Ok(Base {
                holds_work: !is_open && commit != base.commit,
                before_work,
                commit,
                head_branch: branch.name.clone(),
                ..base
            });
        }
    }
    let wanted = confidentiality::branch_of(claim, &item.title);
    for attempt in 1.. {
        let name = if attempt == 1 {
            wanted.clone()
        } else {
            format!("{wanted}-{attempt}")
        };
        let Some(commit) = mirror.branch(&name).await? else {
            return Ok(Base {
                head_branch: name,
                ..base
            });
        };
        let is_over = earlier.iter().any(|branch| branch.name == name);
        if !is_over && forge.change_from(&item.task, &name).await?.is_some() {
            let before_work = earlier_work::before_work(mirror, &commit, &[base.branch.as_str()]).await?;
            return Ok(Base {
                before_work,
                commit,
                head_branch: name,
                ..base
            });
        }
    }
    Err(RepositoryError::Unexpected {
        what: "choosing a branch".to_owned(),
        reason: "all names are taken".to_owned(),
    }
    .into())
}

/// Tells whether work that began elsewhere can go where the work from `base` goes: a request into
/// another branch would carry the commits along that this one does not have.
async fn leads_to(mirror: &Mirror, began: &Base, base: &Base) -> bool {
    // A commit that is not in the mirror is in no branch, either.
    began.branch == base.branch || mirror.descends(&base.commit, &began.commit).await.unwrap_or(false)
}

/// Returns the clone address of the fork that has the item's branch; `None` if the branch is in the
/// item's own repository.
fn fork_of(item: &Item) -> Result<Option<String>, Interruption> {
    match &item.change {
        // For a deleted or hidden fork, the forge reports the address of the item's own repository.
        Some(change) if change.is_fork && change.head_clone_url == item.clone_url => Err(Interruption::failed(
            "the fork that this request comes from was deleted, or this program may not see it; its branch cannot be worked on",
        )),
        Some(change) if change.is_fork => Ok(Some(change.head_clone_url.clone())),
        Some(_) | None => Ok(None),
    }
}

fn moved(branch: &str, is_there: bool) -> Interruption {
    Interruption::failed(if is_there {
        format!(
            "the branch `{branch}` got other commits while this was worked on, so nothing was pushed to it and nothing of it was \
             overwritten"
        )
    } else {
        format!("the branch `{branch}` was deleted while this was worked on; restore it to go on with it")
    })
}
