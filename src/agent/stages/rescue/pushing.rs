//! Pushes unfinished work to a branch of the program's own.

use crate::agent::approval::result_guard;
use crate::agent::claim::Claim;
use crate::agent::claim::on_forge::fenced;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::{KeptWork, SavedWork};
use crate::agent::run::Run;
use crate::agent::workspace::confidentiality;
use crate::agent::workspace::source;
use crate::forge::Item;
use crate::journal::fact::Fact;
use crate::repository::git::address::Login;
use crate::repository::remote::pushing::Pushable;
use crate::repository::{CommitId, RepositoryError};

/// Pushes `head` to the run's own branch, or to one beside it if others pushed to that; `None` if
/// it may not be shown. The branch of a pull/merge request only receives finished work.
pub(super) async fn show_work(run: &mut Run, head: &CommitId, item: &Item) -> Result<Option<SavedWork>, Interruption> {
    let Some(base) = run.claim.record.planned.base.clone() else {
        return Ok(None);
    };
    if confidentiality::may_be_published(&run.claim, item).is_err() {
        return Ok(None);
    }
    let source = source::source_at_end(run, item).await?;
    let mirror = source.mirror;
    if run.claim.record.planned.fork.is_some() || !mirror.is_of(&item.clone_url) {
        run.claim.note(Fact::WorkKept {
            place: "the mirror of the fork".to_owned(),
        });
        return Ok(Some(SavedWork::Kept(KeptWork::Mirror)));
    }
    if !result_guard::may_be_shown(&mut run.claim, &mirror, &base.commit, head).await {
        return Ok(None);
    }
    let pushable = mirror.pushable(&run.claim.lease.run.to_string(), head).await?;
    let login = source.remote.and_then(|remote| remote.login);
    let aside = Aside {
        pushable,
        login,
        home: item.clone_url.clone(),
    };
    let beside = format!(
        "{}-unfinished",
        confidentiality::branch_of(&run.claim, &run.claim.record.request.title)
    );
    let own = item.change.is_none().then(|| base.head_branch.clone());
    let last_resort = format!("{beside}-{}", run.claim.lease.run);
    for branch in own.into_iter().chain([beside, last_resort]) {
        if aside.put_on(&branch, &mut run.claim).await? {
            return Ok(Some(SavedWork::Branch(branch)));
        }
    }
    Ok(None)
}

/// Unfinished work that is pushed to a branch of the program's own.
struct Aside {
    pushable: Pushable,
    login: Option<Login>,
    /// The clone address of the item's repository.
    home: String,
}

impl Aside {
    /// Pushes to this branch; returns false if it has commits of others.
    async fn put_on(&self, branch: &str, claim: &mut Claim) -> Result<bool, Interruption> {
        let known = known(claim, branch);
        note_own(claim, branch, self.pushable.commit()).await?;
        let on_forge = claim.on_forge.clone();
        let fenced = fenced(on_forge.as_deref(), self.pushable.clone(), &self.home).await?;
        let Some(shown) = set_branch(claim, &fenced.pushable, self.login.as_ref(), branch).await? else {
            drop(fenced);
            claim.record.delivered.unfinished.insert(branch.to_owned(), known);
            // The branch was moved, or the claim.
            if let Some(on_forge) = &on_forge {
                on_forge.confirm_now().await?;
            }
            return Ok(false);
        };
        fenced.passed();
        claim.note(Fact::Pushed {
            branch: branch.to_owned(),
            commit: shown.as_str().to_owned(),
        });
        claim.record.delivered.unfinished.insert(branch.to_owned(), vec![shown]);
        Ok(true)
    }
}

/// Sets a branch of the program's own to a commit, and returns the commit that it is at then:
/// another one with the same files where the forge takes no forced push. The branch may be new, at
/// a commit that the record has of it, which need not be an ancestor, or at an ancestor; anything
/// else was pushed by others and gives `None`.
pub(crate) async fn set_branch(
    claim: &mut Claim,
    pushable: &Pushable,
    login: Option<&Login>,
    branch: &str,
) -> Result<Option<CommitId>, Interruption> {
    let head = pushable.commit();
    let mut known = known(claim, branch);
    known.retain(|commit| commit != head);
    for from in known.iter().rev() {
        match pushable.advance(login, from, branch).await {
            Err(RepositoryError::Moved { .. }) => {}
            Err(RepositoryError::ForceRefused { .. }) => {
                tracing::info!(task = %claim.lease.task, "`{branch}` may not be forced, so its commits stay below the new one");
                let next = pushable.on_top_of(from).await?;
                note_own(claim, branch, next.commit()).await?;
                return reached(next.commit(), next.push(login, branch).await);
            }
            ended => return reached(head, ended),
        }
    }
    reached(head, pushable.push(login, branch).await)
}

/// Returns the commit that a branch is at after a push; `None` if it was not where it should be.
pub(crate) fn reached(
    commit: &CommitId,
    pushed: Result<(), RepositoryError>,
) -> Result<Option<CommitId>, Interruption> {
    match pushed {
        Ok(()) => Ok(Some(commit.clone())),
        Err(RepositoryError::Moved { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the commits of the run that a branch may be at, newest last.
fn known(claim: &Claim, branch: &str) -> Vec<CommitId> {
    let noted = claim.record.delivered.unfinished.get(branch);
    noted.cloned().unwrap_or_default()
}

/// Saves that a branch may be at a commit, before that is pushed: a process that takes over after a
/// crash recognizes the branch as its own. It stands there once, however often it is tried.
async fn note_own(claim: &mut Claim, branch: &str, commit: &CommitId) -> Result<(), Interruption> {
    let noted = claim.record.delivered.unfinished.entry(branch.to_owned()).or_default();
    noted.retain(|known| known != commit);
    noted.push(commit.clone());
    claim.save().await
}
