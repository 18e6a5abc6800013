//! The third stage: the model works until it declares the task done.

mod first_sight; // what the worker sees of the project at once
mod opening_words; // what begins the conversation
mod fresh_start; // a conversation that begins anew from the facts
pub(crate) mod another_try; // the task once more, from the base
mod requests; // what the model asks of the program, and what new containers repeat
mod offline; // a model that wants from the network what it cannot get
mod unseen_files; // files that a model would write without having seen them
mod untouched; // a model that says done and has touched nothing
mod without_calls; // a conversation that goes on without native calls

use std::sync::Arc;

use chrono::Utc;

use crate::agent::approval::plan_question;
use crate::agent::claim::Claim;
use crate::agent::commands;
use crate::agent::dialogue::ask;
use crate::agent::dialogue::attempts::Attempts;
use crate::agent::dialogue::compaction;
use crate::agent::dialogue::control_tools::ControlRequests;
use crate::agent::dialogue::network_refusals;
use crate::agent::dialogue::policy;
use crate::agent::dialogue::replanning;
use crate::agent::dialogue::stuck;
use crate::agent::dialogue::tool_calls;
use crate::agent::dialogue::tool_calls::{Called, UNKNOWN_OUTCOME};
use crate::agent::dialogue::{self, ReplyForm};
use crate::agent::pictures;
use crate::agent::prompt;
use crate::agent::prompt::denied_plan;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::{Paused, PausedBy, Record};
use crate::agent::run::Run;
use crate::agent::stages::project_rules;
use crate::agent::stages::rescue;
use crate::agent::workspace::open;
use crate::agent::workspace::snapshots;
use crate::conversation::breaker::Breaker;
use crate::conversation::circling::{Stuck, Verdict, Watch};
use crate::conversation::decode::files;
use crate::conversation::{Message, Reply, ToolCall, ToolResult, form, tool_name};
use crate::llm::chat::Chat;
use crate::llm::config::role::Role;
use crate::task::state::Signal;
use crate::tool::toolbox::Toolbox;
use another_try::CarriedOut;
use untouched::Untouched;

/// Beginnings of the names of the program's own tools.
const OWN_SERVERS: [&str; 3] = ["workspace/", "repository/", "agent/"];

/// Maximum number of reminders about files that the model should not have changed.
const MOST_REMINDERS: u32 = 2;

/// Result for interrupted calls when the model is asked again after a restart.
const RESTARTED: &str = "The program was restarted.";
const NEW_CONTAINER: &str = "A new container has taken the place of the one you worked in. The project is as it was last kept, \
     which may be a few steps ago, and the plan's set-up commands were run again; what else was installed or running \
     is gone, and so are repositories within the project and files that could not be read. Look at `git status` and `git log` before you go on.";

const DONE_TOO_EARLY: &str =
    "`done` did not count, because a call of the same reply failed. Read its result and go on.";

/// Lets the model work until it is done, and saves its closing summary in the record.
pub(crate) async fn work(run: &mut Run) -> Result<Signal, Interruption> {
    let signal = work_on(run).await?;
    if signal == Signal::Finished {
        // Saved with the step and not before: a process that ends until then asks the model again.
        run.claim.record.verified.sent_back_at = None;
    }
    Ok(signal)
}

async fn work_on(run: &mut Run) -> Result<Signal, Interruption> {
    open::ensure_open(run).await?;
    if another_try::carry_out(run).await? == Some(CarriedOut::TakenBack) {
        return Ok(Signal::Finished);
    }
    take_work_up(run).await?;
    loop {
        let mut chat = open_chat(run).await?;
        let outcome = converse(run, &mut chat).await;
        if let Err(Interruption::NoNativeCalls(reason)) = &outcome
            && run.claim.record.worked.native != Some(false)
        {
            tracing::info!(task = %run.claim.lease.task, "going on with JSON replies: {reason}");
            without_calls::go_on(run, &mut chat).await?;
            continue;
        }
        dialogue::save(&mut run.claim, &mut chat).await?;
        let followed = match outcome {
            Ok(signal) => {
                keep_open(run, chat);
                return Ok(signal);
            }
            Err(interruption) => another_try::after_failure(run, &chat, interruption).await,
        };
        keep_open(run, chat);
        followed?;
        if another_try::carry_out(run).await? == Some(CarriedOut::TakenBack) {
            return Ok(Signal::Finished);
        }
    }
}

/// Keeps the conversation for the next stage in this process.
fn keep_open(run: &mut Run, chat: Chat) {
    if run.workspace.open.is_some() {
        run.dialogue.chat = Some(chat);
    }
}

/// Runs the agent loop: reply, tool calls, results, until the model is done.
async fn converse(run: &mut Run, chat: &mut Chat) -> Result<Signal, Interruption> {
    let opened = run.workspace.opened()?;
    let (toolbox, specs) = (Arc::clone(&opened.toolbox), Arc::clone(&opened.specs));
    let mut watch = Watch::default();
    let mut breaker = Breaker::new(run.claim.services.settings.planning.circuit_breaker.tool_failures);
    let mut is_advised = false;
    let mut attempts = Attempts::default();
    let mut untouched = Untouched::of(run, chat);
    loop {
        if commands::hear(run, chat).await?.is_some() {
            hear_of_more(run, &mut untouched);
        }
        if waits_for_approval(run, chat).await? {
            return Ok(Signal::ApprovalNeeded);
        }
        compaction::compact_if_needed(&mut run.claim, chat).await?;
        let re_asks = if another_try::is_another_left(&run.claim) {
            1
        } else {
            ask::RE_ASKS
        };
        let turn = match ask::ask_for_turn(&mut run.claim, chat, re_asks).await {
            Err(interruption) if untouched.stays_finished(&interruption) => return Ok(Signal::Finished),
            turn => turn?,
        };
        run.reporter.tell_terminal(&run.claim, &turn.comment);
        let mut calls = tool_name::in_full(turn.calls, &specs);
        let left_alone = unseen_files::left_alone(run, chat, &mut calls).await?;
        let (mut called, requested) = carry_out(run, &toolbox, calls).await?;
        called.add_left_out(left_alone);
        let (has_failures, was_cut_off) = (called.has_failures(), called.was_cut_off());
        let noticed = (watch.judge(&called.results), breaker.judge(&called.carried_out));
        attempts.note(&called.results);
        untouched.note(&called.results);
        give_results(run, chat, called)?;
        if turn.done && has_failures {
            dialogue::tell(&run.claim, chat, DONE_TOO_EARLY);
        } else if turn.done && !requested.comes_before_the_end() {
            if commands::hear(run, chat).await?.is_some() {
                // Comments that arrived in the meantime may ask for more than what is done.
                hear_of_more(run, &mut untouched);
                dialogue::save(&mut run.claim, chat).await?;
                continue;
            }
            let comment = run.claim.services.redactor.clean(&turn.comment).into_string();
            if !untouched.sends_back(run, chat, &comment)? && !reminds_of_the_rules(run, chat).await? {
                let worked = &mut run.claim.record.worked;
                worked.summary = Some(untouched.summary(worked.summary.take(), comment));
                return Ok(Signal::Finished);
            }
        }
        if let Some(reason) = requested.revision {
            replanning::revise_plan_as_requested(&mut run.claim, chat, &reason).await?;
        }
        if let Some(question) = requested.question {
            dialogue::save(&mut run.claim, chat).await?;
            set_aside_for(run, question).await;
            return Ok(Signal::AnswerNeeded);
        }
        if was_cut_off && !is_advised {
            is_advised = true;
            offline::advise(run, chat).await?;
        }
        stuck::help(&mut run.claim, chat, noticed, &specs, &attempts).await?;
        if noticed.0 == Verdict::Warn(Stuck::Repeating) {
            fresh_start::begin_anew(run, chat, &attempts).await?;
        }
        dialogue::save(&mut run.claim, chat).await?;
    }
}

/// Notes that people have written: what they ask for counts from now on, and no earlier try has it.
fn hear_of_more(run: &mut Run, untouched: &mut Untouched) {
    untouched.hear_of_more();
    run.claim.record.worked.tries.forget();
}

/// Returns true if the plan is not what was approved: by a revision, or by a configuration that
/// changed. The work is saved then, and the run is prepared again once there is an answer.
async fn waits_for_approval(run: &mut Run, chat: &mut Chat) -> Result<bool, Interruption> {
    if !plan_question::needs_approval(run).await? {
        return Ok(false);
    }
    dialogue::save(&mut run.claim, chat).await?;
    let saved = rescue::set_work_aside(run).await;
    run.claim.record.prepared.is_repeated = true;
    if let Some(paused) = &mut run.claim.record.waiting.paused {
        paused.saved = saved;
    }
    Ok(true)
}

/// Executes the calls of a reply, and records what else they mean for the run.
async fn carry_out(
    run: &mut Run,
    toolbox: &Toolbox,
    calls: Vec<ToolCall>,
) -> Result<(Called, ControlRequests), Interruption> {
    snapshots::finish_snapshot(run).await;
    note_outside_tools(&mut run.claim, toolbox, &calls).await?;
    requests::name_subtasks(run);
    let called = tool_calls::call_all(&run.claim, &run.workspace.ledger, toolbox, calls).await?;
    network_refusals::note_refused(&mut run.claim, &run.workspace.ledger);
    requests::note_installed(&mut run.claim, &called.results);
    let requested = requests::take(run);
    Ok((called, requested))
}

/// Writes down which tools of MCP servers are called, before they are: a result may pass without a
/// person only if the work used no other tools than those that the operator names.
async fn note_outside_tools(claim: &mut Claim, toolbox: &Toolbox, calls: &[ToolCall]) -> Result<(), Interruption> {
    let mut has_news = false;
    for call in calls {
        let tool = toolbox.meant(call).await?.tool;
        let is_own = OWN_SERVERS.iter().any(|server| tool.starts_with(server));
        if !is_own && tool.contains('/') {
            has_news |= claim.record.worked.outside_tools.insert(tool);
        }
    }
    if has_news {
        claim.save().await?;
    }
    Ok(())
}

/// Sends the results to the model, and counts those that rules refused.
fn give_results(run: &mut Run, chat: &mut Chat, called: Called) -> Result<(), Interruption> {
    let has_success = called.has_success();
    if !called.results.is_empty() {
        chat.send_tool_results(called.results);
        snapshots::snapshot_if_due(run);
    }
    policy::count_refusals(&mut run.claim, chat, &called.refused, has_success)
}

/// Tells the model, up to a maximum, that its changes touch files excluded by the project's rules;
/// returns whether it did.
async fn reminds_of_the_rules(run: &mut Run, chat: &mut Chat) -> Result<bool, Interruption> {
    if run.claim.record.worked.reminders >= MOST_REMINDERS {
        return Ok(false);
    }
    let files = run.claim.record.planned.rules.files.clone();
    let workspace = Arc::clone(&run.workspace.opened()?.project);
    let Some(paths) = workspace.outside_the_rules(&files).await? else {
        return Ok(false);
    };
    run.claim.record.worked.reminders += 1;
    let text = project_rules::outside_the_rules(&paths, &files);
    chat.send_user_message(&run.claim.services.redactor.clean(&text));
    Ok(true)
}

/// Sends finished work back with `text`; what `note` records is saved with that message.
pub(crate) async fn send_back(run: &mut Run, text: &str, note: impl FnOnce(&mut Record)) -> Result<(), Interruption> {
    let mut chat = open_chat(run).await?;
    let text = match ReplyForm::of(&run.claim) {
        ReplyForm::Native | ReplyForm::Json => text.to_owned(),
        ReplyForm::Files => format!("{text}\n{}", files::FORM),
    };
    chat.send_user_message(&run.claim.services.redactor.clean(&text));
    note(&mut run.claim.record);
    dialogue::save(&mut run.claim, &mut chat).await?;
    keep_open(run, chat);
    Ok(())
}

/// Returns whether the worker's model takes native calls, which is asked once in a run.
pub(crate) async fn settle_native_calls(claim: &mut Claim) -> bool {
    let native = match claim.record.worked.native {
        Some(native) => native,
        None => claim.model(Role::Worker).takes_native_calls().await,
    };
    claim.record.worked.native = Some(native);
    native
}

/// Resumes the conversation, or starts it.
pub(crate) async fn open_chat(run: &mut Run) -> Result<Chat, Interruption> {
    if let Some(chat) = run.dialogue.chat.take() {
        return Ok(chat);
    }
    let specs = Arc::clone(&run.workspace.opened()?.specs);
    let native = settle_native_calls(&mut run.claim).await;
    let mut chat = run
        .claim
        .model(Role::Worker)
        .chat(Arc::clone(&specs), native, run.claim.stop.asked.clone());
    let reply_form = ReplyForm::of(&run.claim);
    run.workspace.opened()?.offer_tools(reply_form);
    match reply_form {
        ReplyForm::Native | ReplyForm::Json => chat.hold_to(Some(form::turn(&specs))),
        ReplyForm::Files => chat.write_results_plainly(),
    }
    let failed = run.claim.record.worked.tries.failed();
    if failed > 0 {
        chat.ask_for_another(failed);
    }
    let stored = run.claim.services.store.messages(run.claim.lease.run).await?;
    if stored.is_empty() {
        let seen = first_sight::look(run).await?;
        let system = opening_words::system_prompt(run, native, &seen)?;
        let record = &run.claim.record;
        let failing = record.worked.failing_tests.as_deref().unwrap_or_default();
        let sight = pictures::sight(&run.claim, &run.reporter, &record.planned.pictures, &chat).await;
        let text = prompt::assignment(
            &format!("{}{}{}{failing}", record.planned.task_text, sight.words, seen.text),
            record.planned.plan.as_ref(),
            &record.prepared.setup,
            &opening_words::last_line(record, reply_form),
        );
        chat.send_system_prompt(&run.claim.services.redactor.clean(&system));
        chat.send_pictures(&run.claim.services.redactor.clean(&text), sight.pictures);
    } else {
        chat.resume(stored);
        if run.claim.record.worked.is_switched {
            let seen = first_sight::look(run).await?;
            let system = opening_words::system_prompt(run, native, &seen)?;
            chat.replace_system_prompt(&run.claim.services.redactor.clean(&system));
        }
        let is_replacement = std::mem::take(&mut run.claim.record.prepared.is_replacement);
        close_gap(&mut run.claim, &mut chat, is_replacement);
        if let (Some(reason), Some(plan)) = (
            run.claim.record.planned.refused_revision.take(),
            &run.claim.record.planned.plan,
        ) {
            let text = denied_plan::of_worker(plan, &reason);
            chat.send_user_message(&run.claim.services.redactor.clean(&text));
        }
    }
    Ok(chat)
}

/// Reverts the commit that was made for the checks, so that the model finds its work unchanged.
async fn take_work_up(run: &mut Run) -> Result<(), Interruption> {
    if run.claim.record.delivered.head.is_none() {
        return Ok(());
    }
    run.workspace.opened()?.project.bring_back().await?;
    run.claim.record.delivered.head = None;
    run.claim.save().await
}

/// Saves the work and records the question, before the run is paused for it.
async fn set_aside_for(run: &mut Run, question: String) {
    let saved = rescue::set_work_aside(run).await;
    run.claim.record.waiting.paused = Some(Paused {
        by: PausedBy::Question(run.claim.services.redactor.clean(&question).into_string()),
        at: Utc::now(),
        saved,
    });
    run.claim.record.waiting.set_aside += 1;
}

/// Completes a last reply whose calls were never answered, so that the model can be asked again,
/// and reports a replaced container.
fn close_gap(claim: &mut Claim, chat: &mut Chat, is_replacement: bool) {
    let reason = if is_replacement { NEW_CONTAINER } else { RESTARTED };
    let Some(Message::Assistant { text, calls, .. }) = chat.messages().last() else {
        if is_replacement {
            chat.send_user_message(&claim.services.redactor.clean(reason));
        }
        return;
    };
    let last = Reply {
        text: text.clone(),
        calls: calls.clone(),
        ..Reply::default()
    };
    let form = ReplyForm::of(claim);
    let turn = form.turn(&last, &form.shown(claim, chat.messages()));
    let calls = turn.map(|turn| turn.calls).unwrap_or_default();
    if !calls.is_empty() {
        let answer = |call| ToolResult {
            call,
            output: UNKNOWN_OUTCOME.to_owned(),
            is_error: true,
        };
        chat.send_tool_results(calls.into_iter().map(answer).collect());
    }
    let text = format!("{reason} Go on with the task; if it is finished, say so again.");
    chat.send_user_message(&claim.services.redactor.clean(&text));
}
