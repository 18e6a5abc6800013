//! One question to the model, asked again until the answer can be read.

use std::time::Instant;

use chrono::Utc;

use super::run::Run;
use super::setback::Setback;
use super::talk;
use crate::conversation::Reply;
use crate::conversation::decode::Unreadable;
use crate::journal::fact::Fact;
use crate::llm::chat::Chat;

/// How often a reply that cannot be read is asked for again.
const RE_ASKS: u32 = 5;

impl Run {
    /// Gets the next reply and reads it with `read`; what cannot be read is asked again with the exact error.
    ///
    /// # Errors
    /// After five unreadable replies in a row, at the end of the budget or of the allowed turns, and what the model's server causes.
    pub(super) async fn ask<T>(
        &mut self,
        chat: &mut Chat,
        read: impl Fn(&Reply) -> Result<T, Unreadable>,
    ) -> Result<T, Setback> {
        let mut attempt = 0;
        loop {
            let reply = self.get_response(chat).await?;
            let unreadable = match read(&reply) {
                Ok(answer) => return Ok(answer),
                Err(unreadable) => unreadable,
            };
            attempt += 1;
            self.note(Fact::ReplyUnreadable {
                attempt,
                reason: unreadable.to_string(),
            });
            if attempt > RE_ASKS {
                return Err(Setback::unreadable(format!(
                    "the model's replies could not be read, {RE_ASKS} re-asks included; the last error was: {}",
                    unreadable.what
                )));
            }
            let question = format!("Your reply could not be used: {unreadable}\nReply again.");
            chat.send_user_message(&self.workshop.redactor.clean(&question));
        }
    }

    pub(super) async fn get_response(&mut self, chat: &mut Chat) -> Result<Reply, Setback> {
        if self.stop.asked.is_cancelled() {
            return Err(Setback::Interrupted);
        }
        self.check_limits()?;
        let begun = Instant::now();
        let reply = chat.get_response().await?;
        self.record.turns += 1;
        self.record.usage += reply.usage;
        self.record.postponed = 0;
        self.note(Fact::ModelCalled {
            turn: self.record.turns,
            input: reply.usage.input,
            output: reply.usage.output,
            cached: reply.usage.cached,
            milliseconds: milliseconds(begun),
        });
        Ok(reply)
    }

    fn check_limits(&self) -> Result<(), Setback> {
        let settings = &self.workshop.settings;
        if self.record.turns >= settings.max_turns {
            return Err(Setback::failed(format!(
                "the limit of {} is reached before the task was done; raise max_llm_process_num to allow more",
                talk::counted(settings.max_turns, "model turn")
            )));
        }
        let now = Utc::now();
        let started_at = self.record.started_at.unwrap_or(now);
        settings
            .budget
            .exceeded(&self.record.usage, started_at, now)
            .map_or(Ok(()), |text| Err(Setback::failed(text)))
    }
}

/// Returns the whole milliseconds since `begun`.
pub(super) fn milliseconds(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}
