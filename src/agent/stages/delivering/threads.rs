//! Answers the reviewers' threads that a round worked on, in place: what was done, and in which
//! commit. Only people resolve a thread.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::agent::record::follow_up::Kind;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::stages::delivering::in_step::unless_refused;
use crate::agent::text::change_request;
use crate::forge::{CommentKey, CommentKind, Forge};

/// Maximum number of threads that are answered; the final comment has the same words.
const MOST: usize = 30;

/// Replies once in each thread whose remarks this round worked on.
pub(super) async fn answer(run: &mut Run, forge: &Arc<dyn Forge>) -> Result<(), Interruption> {
    let Some(round) = run.claim.record.request.round.clone() else {
        return Ok(());
    };
    let is_remark = |key: &&CommentKey| key.kind == CommentKind::Inline;
    if round.kind != Kind::Review || !round.comments.iter().any(|key| is_remark(&key)) {
        return Ok(());
    }
    let comments = forge.comments(&run.claim.lease.task).await?;
    let worked_on = comments.iter().filter(|comment| round.comments.contains(&comment.key));
    let threads: BTreeSet<CommentKey> = worked_on
        .filter(|comment| is_remark(&&comment.key))
        .map(|comment| comment.thread.unwrap_or(comment.key))
        .collect();
    let text = change_request::thread_answer(&run.claim.record);
    for thread in threads.into_iter().take(MOST) {
        let replied = run.reporter.reply(&mut run.claim, thread, &text).await?;
        unless_refused(run, replied)?;
    }
    Ok(())
}
