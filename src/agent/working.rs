//! The third stage: the model works until it says that it is done.

use std::sync::Arc;

use chrono::Utc;

use super::calls::UNKNOWN_OUTCOME;
use super::dependencies;
use super::prompt::{self, WorkPrompt};
use super::record::{Paused, PausedBy};
use super::rulebook;
use super::run::Run;
use super::setback::Setback;
use super::stored;
use super::wishes::Wishes;
use crate::conversation::circling::{Verdict, Watch};
use crate::conversation::{Message, Reply, ToolResult, decode, form};
use crate::llm::chat::Chat;
use crate::task::state::Signal;

/// How often the model is reminded of files that it should not have changed.
const MOST_REMINDERS: u32 = 2;

/// What the model is told when it is asked again after a gap.
const RESTARTED: &str = "The program was restarted.";
const NEW_CONTAINER: &str = "A new container has taken the place of the one you worked in. The project is as it was last kept, \
     which may be a few steps ago, and the plan's set-up commands were run again; what else was installed or running \
     is gone. Look at `git status` and `git log` before you go on.";

/// Most commands that are remembered for new containers.
const MOST_COMMANDS: usize = 50;

/// Leaves the model's closing words in the record.
pub(super) async fn work(run: &mut Run) -> Result<Signal, Setback> {
    run.show_progress().await?;
    run.take_work_up().await?;
    loop {
        let mut chat = run.open_chat().await?;
        let outcome = converse(run, &mut chat).await;
        match outcome {
            Err(Setback::NoNativeCalls(reason)) if run.record.native != Some(false) => {
                tracing::info!(task = %run.lease.task, "starting again with JSON replies: {reason}");
                run.record.native = Some(false);
            }
            outcome => {
                run.save_conversation(&mut chat).await?;
                if let Some(desk) = &mut run.desk {
                    desk.chat = Some(chat);
                }
                return outcome;
            }
        }
    }
}

/// The loop of the whole program: reply, calls, results, until done.
async fn converse(run: &mut Run, chat: &mut Chat) -> Result<Signal, Setback> {
    let toolbox = Arc::clone(&run.open_desk().await?.toolbox);
    let mut watch = Watch::default();
    loop {
        run.hear(chat).await?;
        run.compact_if_needed(chat).await?;
        let turn = run.ask(chat, decode::turn).await?;
        run.save_conversation(chat).await?;
        run.say_what_is_going_on(&turn.comment).await;
        run.finish_keeping().await;
        let called = run.call_all(&toolbox, turn.calls).await?;
        run.note_refused();
        run.note_installed(&called.results);
        let wishes = run.take_wishes();
        let (has_failures, has_success) = (called.has_failures(), called.has_success());
        let verdict = watch.judge(&called.results);
        if !called.results.is_empty() {
            chat.send_tool_results(called.results);
            run.keep_now_and_then();
        }
        run.heed_refusals(chat, &called.refused, has_success)?;
        if turn.done && !has_failures && run.hear(chat).await?.is_some() {
            // What people said in the meantime may be more than what is done.
            run.save_conversation(chat).await?;
            continue;
        }
        if turn.done && !has_failures && !run.reminds_of_the_rules(chat).await? {
            run.record.summary = Some(run.workshop.redactor.clean(&turn.comment).into_string());
            return Ok(Signal::Finished);
        }
        if turn.done && has_failures {
            run.tell(
                chat,
                "`done` did not count, because a call of the same reply failed. Read its result and go on.",
            );
        }
        if let Some(question) = wishes.question {
            run.save_conversation(chat).await?;
            run.set_aside_for(question).await;
            return Ok(Signal::AnswerNeeded);
        }
        if let Some(reason) = wishes.revision {
            run.revise_plan_as_wished(chat, &reason).await?;
        }
        match verdict {
            Verdict::GoOn => {}
            Verdict::Warn(stuck) => {
                run.tell(chat, stuck.advice());
                run.revise_plan(chat, stuck.reason()).await?;
            }
            Verdict::Enough => {
                return Err(Setback::failed(
                    "the model went round in circles and was told so, in vain",
                ));
            }
        }
        run.save_conversation(chat).await?;
    }
}

impl Run {
    /// Tells the model, a few times, that its changes reach files which the project's rules leave
    /// out; returns whether it did.
    async fn reminds_of_the_rules(&mut self, chat: &mut Chat) -> Result<bool, Setback> {
        if self.record.reminders >= MOST_REMINDERS {
            return Ok(false);
        }
        let files = self.record.rules.files.clone();
        let workspace = Arc::clone(&self.open_desk().await?.workspace);
        let Some(paths) = workspace.outside_the_rules(&files).await? else {
            return Ok(false);
        };
        self.record.reminders += 1;
        let text = rulebook::outside_the_rules(&paths, &files);
        chat.send_user_message(&self.workshop.redactor.clean(&text));
        Ok(true)
    }

    /// Takes the conversation up where it ended, or begins it.
    pub(super) async fn open_chat(&mut self) -> Result<Chat, Setback> {
        if let Some(chat) = self.desk.as_mut().and_then(|desk| desk.chat.take()) {
            return Ok(chat);
        }
        let specs = Arc::clone(&self.open_desk().await?.specs);
        let native = match self.record.native {
            Some(native) => native,
            None => self.model().takes_native_calls().await,
        };
        self.record.native = Some(native);
        let mut chat = self.model().chat(Arc::clone(&specs), native, self.stop.asked.clone());
        chat.hold_to(Some(form::turn(&specs)));
        let stored = self.workshop.store.messages(self.lease.run).await?;
        if stored.is_empty() {
            let system = self.work_prompt(native)?;
            let branch = self.record.base.as_ref().map_or("", |base| base.head_branch.as_str());
            let record = &self.record;
            let text = prompt::assignment(&record.task_text, record.plan.as_ref(), &record.setup, branch);
            chat.send_system_prompt(&self.workshop.redactor.clean(&system));
            chat.send_user_message(&self.workshop.redactor.clean(&text));
        } else {
            chat.resume(stored);
            let is_replacement = std::mem::take(&mut self.record.is_replacement);
            self.close_gap(&mut chat, is_replacement);
        }
        Ok(chat)
    }

    fn work_prompt(&self, native: bool) -> Result<String, Setback> {
        let (name, environment) = self.environment()?;
        let Some(desk) = &self.desk else {
            return Err(Setback::failed("the desk is not open"));
        };
        prompt::work(&WorkPrompt {
            native,
            fence: &prompt::fence(self.lease.run),
            environment: &name,
            libraries: &environment.libraries,
            network: &prompt::network(&self.workshop.settings.environments, &environment),
            rules: &self.rules_prompt(),
            tools: &desk.specs,
            server_prompts: &desk.toolbox.system_prompts(),
        })
        .map_err(|error| Setback::failed(format!("the system prompt: {error:#}")))
    }

    /// Takes back what was committed to be checked, so that the model finds its work as it left it.
    async fn take_work_up(&mut self) -> Result<(), Setback> {
        if self.record.head.is_none() {
            return Ok(());
        }
        self.open_desk().await?.workspace.bring_back().await?;
        self.record.head = None;
        self.save().await
    }

    /// Notes the commands that only installed dependencies: a new container needs them as well.
    fn note_installed(&mut self, results: &[ToolResult]) {
        for result in results.iter().filter(|result| !result.is_error) {
            if let Some(command) = dependencies::installed_by(&result.call) {
                remember(&mut self.record.installed, command);
            }
        }
    }

    /// Takes out what the model wished of the program, and ticks what it called finished.
    fn take_wishes(&mut self) -> Wishes {
        let mut wishes = self.desk.as_ref().map(|desk| desk.wishes.take()).unwrap_or_default();
        let known = |id: &String| self.record.plan.as_ref().is_some_and(|plan| plan.subtask(id).is_some());
        wishes.finished.retain(known);
        self.record.finished_subtasks.append(&mut wishes.finished);
        for command in std::mem::take(&mut wishes.set_up) {
            remember(&mut self.record.added_set_up, &command);
        }
        wishes
    }

    /// Keeps the work and notes the question, before the run is set aside for it.
    async fn set_aside_for(&mut self, question: String) {
        let saved = self.set_work_aside().await;
        self.record.paused = Some(Paused {
            by: PausedBy::Question(self.workshop.redactor.clean(&question).into_string()),
            at: Utc::now(),
            saved,
        });
        self.record.set_aside += 1;
    }

    /// Stores what was said since the last call, and what it has cost. Nothing is stored before the
    /// first reply: a conversation that the provider refused whole is begun again.
    pub(super) async fn save_conversation(&mut self, chat: &mut Chat) -> Result<(), Setback> {
        let has_reply = chat
            .messages()
            .iter()
            .any(|message| matches!(message, Message::Assistant { .. }));
        if has_reply {
            let mut unsaved = chat.unsaved();
            for message in &mut unsaved {
                stored::clean_message(&self.workshop.redactor, message);
            }
            let record = self.written_record()?;
            self.workshop.store.append(&self.lease, &record, &unsaved).await?;
        }
        Ok(())
    }

    /// Answers what the model said last and nobody heard, so that it can be asked again, and says
    /// what became of its container.
    fn close_gap(&self, chat: &mut Chat, is_replacement: bool) {
        let reason = if is_replacement { NEW_CONTAINER } else { RESTARTED };
        let Some(Message::Assistant { text, calls }) = chat.messages().last() else {
            if is_replacement {
                chat.send_user_message(&self.workshop.redactor.clean(reason));
            }
            return;
        };
        let last = Reply {
            text: text.clone(),
            calls: calls.clone(),
            ..Reply::default()
        };
        let calls = decode::turn(&last).map(|turn| turn.calls).unwrap_or_default();
        if !calls.is_empty() {
            let answer = |call| ToolResult {
                call,
                output: UNKNOWN_OUTCOME.to_owned(),
                is_error: true,
            };
            chat.send_tool_results(calls.into_iter().map(answer).collect());
        }
        let text = format!("{reason} Go on with the task; if it is finished, say so again.");
        chat.send_user_message(&self.workshop.redactor.clean(&text));
    }
}

fn remember(commands: &mut Vec<String>, command: &str) {
    if commands.len() < MOST_COMMANDS && !commands.iter().any(|known| known == command) {
        commands.push(command.to_owned());
    }
}
