//! A conversation that goes round in circles begins anew, from the facts: what was tried, and what
//! the project looks like now.
//!
//! Words alone do not break a loop: a small model goes on with the pattern that it reads, and each
//! repetition makes the pattern stronger. As with a summary, nothing that is stored is rewritten.

use crate::agent::dialogue::attempts::Attempts;
use crate::agent::dialogue::{self, ReplyForm};
use crate::agent::prompt;
use crate::agent::prompt::fresh_start::{self, FreshStart};
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::open;
use crate::conversation::Message;
use crate::conversation::compaction::HEAD;
use crate::journal::fact::Fact;
use crate::journal::fact::reply::Restarted;
use crate::llm::chat::Chat;
use crate::llm::config::Edits;

/// A command that prints the changes so far.
const TREE: &str =
    "git --no-pager log --oneline -3; git status --short | head -n 30; git --no-pager diff HEAD --stat | tail -n 15";

/// Replaces everything after the task by the facts so far.
pub(crate) async fn begin_anew(run: &mut Run, chat: &mut Chat, attempts: &Attempts) -> Result<(), Interruption> {
    dialogue::save(&mut run.claim, chat).await?;
    let Some(replaces) = chat.messages().len().checked_sub(HEAD).filter(|replaces| *replaces > 0) else {
        return Ok(());
    };
    let output = open::execute(run, TREE).await?;
    // The last line says how the command ended.
    let tree = output.text.rsplit_once('\n').map_or("", |(tree, _)| tree);
    // Another form of reply breaks the pattern, too.
    let worked = &mut run.claim.record.worked;
    worked.whole_files |= run.claim.services.settings.edits == Edits::Auto && worked.native == Some(false);
    let whole_files = ReplyForm::of(&run.claim) == ReplyForm::Files;
    if whole_files {
        chat.hold_to(None);
        chat.write_results_plainly();
    }
    let planned = &run.claim.record.planned;
    let text = fresh_start::text(&FreshStart {
        attempts: &attempts.list(),
        tree,
        whole_files,
        new_plan: planned.plan.as_ref().filter(|_| !planned.former_plans.is_empty()),
    });
    let text = run.claim.services.redactor.clean(&text).into_string();
    let facts = Message::Summary { replaces, text };
    // What people asked for meanwhile is no part of the circle.
    let kept = prompt::words_in(chat.messages());
    let record = run.claim.written_record()?;
    let messages = [std::slice::from_ref(&facts), kept.as_slice()].concat();
    let store = &run.claim.services.store;
    store
        .append(&run.claim.lease, &record, chat.stored(), &messages)
        .await?;
    chat.compact(facts, kept);
    run.claim
        .note(Fact::ConversationRestarted(Restarted { messages: replaces }));
    Ok(())
}
