//! The request of a conversation to its model, or to one that takes that model's place.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::conversation::circling;
use crate::conversation::decode;
use crate::conversation::{Message, Reply, ReplyOrigin};
use crate::llm::calls_as_json;
use crate::llm::chat::{Chat, PaidReply};
use crate::llm::connection::{Connection, PromptRequest};
use crate::llm::error::LlmError;
use crate::llm::provider::{Answer, Prompt};
use crate::llm::replies::{self, AnsweredRequest};
use crate::llm::transport::error_response::RequestSummary;
use crate::llm::window_estimate::{self, LastCount};

impl Chat {
    /// Sends the conversation and returns the model's reply, which is appended to the history. If
    /// the model cannot be reached or has reached its limit, the one that takes its place is asked.
    pub async fn get_response(&mut self) -> Result<Reply, LlmError> {
        self.answer_open_calls(&mut Vec::new());
        let mut connection = Arc::clone(self.connection.in_order(|other| self.has_room(other)));
        let mut failed: Option<LlmError> = None;
        let mut short: Vec<String> = Vec::new();
        let (reply, origin) = loop {
            let error = match self.ask(&connection).await {
                Ok(reply) => break reply,
                Err(error) => error,
            };
            let may_answer = |other: &Connection| !short.contains(&other.name) && self.has_room(other);
            let next = connection.instead_after(&error, may_answer);
            if let Some(next) = next.map(Arc::clone) {
                tracing::warn!(%error, "the model {} is asked in the place of {}", next.name, connection.name);
                failed.get_or_insert(error);
                connection = next;
                continue;
            }
            if connection.name == self.connection.name || !error.is_shortcoming() {
                return Err(error);
            }
            // What takes the model's place in other work may not, or cannot, in this one. That is
            // no fault of the task, which waits for the model as if nobody else could be asked.
            tracing::warn!(%error, "the model {} cannot take the place of another", connection.name);
            if let Some(before) = failed.take() {
                return Err(before);
            }
            short.push(connection.name.clone());
            connection = Arc::clone(&self.connection);
        };
        self.answered_by.clone_from(&connection.name);
        self.history.push(Message::Assistant {
            text: decode::without_thinking(&reply.text),
            calls: reply.calls.clone(),
            origin,
        });
        Ok(reply)
    }

    /// Like [`Chat::get_response`]; adds what is paid to `paid`: the reply, and those before it
    /// that came to nothing.
    pub async fn get_counted_response(&mut self, paid: &mut Vec<PaidReply>) -> Result<Reply, LlmError> {
        let begun = Instant::now();
        let answer = self.get_response().await;
        paid.extend(self.take_unused());
        if let Ok(reply) = &answer {
            paid.push(PaidReply {
                model: self.answered_by.clone(),
                usage: reply.usage,
                took: begun.elapsed(),
            });
        }
        answer
    }

    /// Sends the conversation to one model.
    async fn ask(&mut self, connection: &Connection) -> Result<(Reply, Option<ReplyOrigin>), LlmError> {
        let info = connection.provider.info();
        let messages = calls_as_json::rendered_for(connection, self.native, &self.history);
        let messages = messages.as_ref();
        let tools = self.native.then_some(self.tools.as_ref());
        let counted = self.counted_by(connection);
        let needed = window_estimate::needed(messages, counted, tools.unwrap_or_default());
        if needed > info.room() {
            return Err(LlmError::TooLong {
                needed,
                window: info.room(),
            });
        }
        let is_held = connection.constrains_replies && !self.native;
        let summary = RequestSummary {
            with_tools: self.native,
            needed,
            ..RequestSummary::default()
        };
        let circling = circling::repeats_itself(messages).then_some(messages.len());
        let request = PromptRequest {
            connection,
            prompt: Prompt {
                messages,
                tools,
                form: self.form.as_deref().filter(|_| is_held),
                variation: self.variation.or(circling),
            },
            arrived: &self.arrived,
        };
        let _slot = connection.limit.slot(&self.cancel).await?;
        let begun = Instant::now();
        let answer = self.answer_in_time(connection, &request, summary).await?;
        let usage = answer.usage(needed);
        let checked = answer.unless_refused(info).and_then(|answer| {
            let Some(count) = answer.counted else {
                return Ok((answer, None));
            };
            let size = window_estimate::size(messages, &self.history, counted, count.input);
            let size = size.ok_or_else(|| LlmError::Truncated {
                sent: needed,
                counted: count.input,
                hint: info.window_hint.clone(),
            })?;
            Ok((answer, Some(size)))
        });
        match checked {
            Ok((answer, size)) => {
                self.counted = size.or(self.counted);
                Ok(self.reply(connection, answer, needed))
            }
            Err(error) => {
                self.unused.push(PaidReply {
                    model: connection.name.clone(),
                    usage,
                    took: begun.elapsed(),
                });
                Err(error)
            }
        }
    }

    /// Returns the answer to a request whose turn has come, unless it takes longer than it may.
    async fn answer_in_time(
        &self,
        connection: &Connection,
        request: &PromptRequest<'_>,
        summary: RequestSummary,
    ) -> Result<Answer, LlmError> {
        tokio::select! {
            biased;
            answer = self.answer(connection, request, summary) => answer,
            () = passed(self.limit) => Err(LlmError::TimedOut {
                address: connection.provider.info().address.clone(),
                seconds: self.limit.unwrap_or_default().as_secs(),
            }),
        }
    }

    async fn answer(
        &self,
        connection: &Connection,
        request: &PromptRequest<'_>,
        summary: RequestSummary,
    ) -> Result<Answer, LlmError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(LlmError::Cancelled),
            checked = connection.check_window() => checked?,
        }
        let (provider, transport) = (&connection.provider, &connection.transport);
        transport
            .call(provider.info(), &provider.chat_url(), request, summary, &self.cancel)
            .await
    }

    /// Tells whether the conversation fits the window of `connection`, as far as can be told before
    /// it is sent.
    fn has_room(&self, connection: &Connection) -> bool {
        let messages = calls_as_json::rendered_for(connection, self.native, &self.history);
        let tools = if self.native { self.tools.as_ref() } else { &[] };
        let needed = window_estimate::needed(&messages, self.counted_by(connection), tools);
        needed <= connection.provider.info().room()
    }

    /// Returns the last count, if it is this model's: each model counts in its own way.
    pub(super) fn counted_by(&self, connection: &Connection) -> Option<LastCount> {
        self.counted.filter(|_| self.answered_by == connection.name)
    }

    pub(super) fn reply(&self, connection: &Connection, answer: Answer, needed: u64) -> (Reply, Option<ReplyOrigin>) {
        let asked = AnsweredRequest {
            model: connection.provider.info().describe(),
            needed,
            is_native: self.native,
            tools: &self.tools,
            history: &self.history,
        };
        replies::read(answer, asked)
    }
}

/// Waits until `limit` has passed; for ever where there is none.
async fn passed(limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep(limit).await,
        None => std::future::pending().await,
    }
}
