//! Work that cannot be taken as it is: something in it cannot be committed, or is refused.
//!
//! Most of it is a slip: a scaffolder that made a repository of its own folder, a virtual
//! environment, whose links lead out of the project, a large build result. To end the run with it
//! would lose everything else, and the model, which could mend it with one command, would never
//! know. So it is told, like of a failing check. Nothing is left out of a result instead: a
//! repository within the project may be what the task is about. Nor are virtual environments
//! looked for and excluded, since a project may keep one among its test data.
//!
//! Nothing passes by this that would not pass without it: each time all is judged anew.

use std::sync::Arc;

use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::stages::working;
use crate::agent::stages::working::another_try;
use crate::agent::workspace::snapshots::{self, Taken};
use crate::journal::fact::Fact;
use crate::repository::CommitId;
use crate::workspace::error::WorkspaceError;

/// Maximum number of times in a run that the model is told; then its try ends with the reason.
const MOST_REFUSALS: u32 = 2;

/// Commits the work and returns the commit. Sends the model back to mend what stands in the way of
/// that, and returns `None` then; so it does where another try, or the result of an earlier one,
/// takes the place of this work.
///
/// # Errors
/// Also with what stands in the way, if the model was told often enough and nothing follows.
pub(super) async fn commit_or_send_back(run: &mut Run) -> Result<Option<CommitId>, Interruption> {
    let refused = match snapshots::take_back(run).await? {
        Taken::Accepted(head) => return Ok(Some(head)),
        Taken::Refused(error) => error,
    };
    if run.claim.record.verified.refusals >= MOST_REFUSALS {
        return give_up(run, refused).await;
    }
    let project = Arc::clone(&run.workspace.opened()?.project);
    match project.bring_back().await {
        Ok(()) => {}
        // A repository in which git can do nothing: the refusal says more of it.
        Err(WorkspaceError::Failed(_)) => return give_up(run, refused).await,
        Err(error) => return Err(error.into()),
    }
    let reason = refused.to_string();
    run.claim.note(Fact::Warned {
        text: format!("the model was told that its work cannot be taken as it is: {reason}"),
    });
    let text = told(&reason, project.base());
    working::send_back(run, &text, |record| {
        record.verified.refusals += 1;
        record.verified.sent_back_at = Some(record.worked.turns);
    })
    .await?;
    Ok(None)
}

/// Ends a try whose work is refused, and with it the run, unless something follows.
async fn give_up(run: &mut Run, refused: WorkspaceError) -> Result<Option<CommitId>, Interruption> {
    if another_try::after_failed_try(run, &refused.to_string()).await? {
        return Ok(None);
    }
    Err(refused.into())
}

fn told(reason: &str, base: &CommitId) -> String {
    format!(
        "Your work cannot be taken as it is: {}\n\n\
         As long as that is so, nothing of your work is delivered. If the task does not need what is named there (a virtual \
         environment, a cloned repository, a build result), delete it or list it in `.gitignore`. If it belongs to the \
         work, change it so that it can be taken: remove the `.git` folder of a repository within the project, make a file \
         readable, have a link point to a file of the project. Look for more of the same kind.\n\
         What git knows already stays in spite of `.gitignore`: take it out with `git rm -r --cached`. Each of your commits is \
         looked at, so if one of them holds it, run `git reset --soft {base}` before that; what is not committed is committed \
         for you. Then finish again.",
        reason.trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_told_what_it_is_and_how_it_gets_rid_of_it() {
        let base: CommitId = "1234567890123456789012345678901234567890".parse().unwrap();
        insta::assert_snapshot!(told("error: 'sub/' does not have a commit checked out\n", &base), @"
        Your work cannot be taken as it is: error: 'sub/' does not have a commit checked out

        As long as that is so, nothing of your work is delivered. If the task does not need what is named there (a virtual environment, a cloned repository, a build result), delete it or list it in `.gitignore`. If it belongs to the work, change it so that it can be taken: remove the `.git` folder of a repository within the project, make a file readable, have a link point to a file of the project. Look for more of the same kind.
        What git knows already stays in spite of `.gitignore`: take it out with `git rm -r --cached`. Each of your commits is looked at, so if one of them holds it, run `git reset --soft 1234567890123456789012345678901234567890` before that; what is not committed is committed for you. Then finish again.
        ");
    }
}
