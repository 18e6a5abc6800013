//! Reads streamed answers as they come, and ends those that only repeat themselves.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use reqwest::Client;
use serde_json::Value;

use crate::conversation::repetition::{Repetition, Watch};
use crate::llm::transport::attempt::AttemptFailure;
use crate::llm::transport::error_response::ErrorResponse;
use crate::llm::transport::event_stream::{EventStream, Framing, StreamEvent};
use crate::llm::transport::server_info::ServerInfo;
use crate::llm::transport::{MAX_BODY_BYTES, ReplyRequest, Transport};

/// Time for the rest of a stream after the reply is finished.
const PATIENCE_AFTER_THE_END: Duration = Duration::from_secs(2);

impl Transport {
    /// Reads a streamed answer as it comes. Between two pieces of it no more than the time-out may
    /// pass; comments that only keep the connection alive are pieces, too. Of a reply that repeats
    /// itself no more is read: the server notices that nobody listens, and stops.
    pub(super) async fn attempt_stream<R: ReplyRequest>(
        &self,
        info: &ServerInfo,
        client: &Client,
        sent: reqwest::RequestBuilder,
        request: &R,
    ) -> Result<Received, AttemptFailure> {
        let silence = self.reply_timeout;
        let longest = self.whole_timeout.max(silence);
        let too_silent = |_| AttemptFailure::TooSlow(silence);
        let sending = self.send(info, client, sent, longest);
        let mut response = tokio::time::timeout(silence, sending).await.map_err(too_silent)??;
        if !response.status().is_success() || !is_stream(&response) {
            // A server that does not stream, or refuses.
            let answer = self.whole_answer(info, response, longest, request).await?;
            return Ok(answer.into());
        }
        let mut streamed = StreamedAnswer::new(request.framing());
        let mut bytes = 0;
        loop {
            let patience = if streamed.is_finished {
                PATIENCE_AFTER_THE_END
            } else {
                silence
            };
            let piece = match tokio::time::timeout(patience, response.chunk()).await {
                // What comes behind the end, such as the count of tokens, may also not come.
                Err(_) | Ok(Err(_)) if streamed.is_finished => return Ok(streamed.answer.into()),
                Err(_) => return Err(AttemptFailure::Silent(silence)),
                Ok(Err(error)) if error.is_timeout() => return Err(AttemptFailure::Endless(longest)),
                Ok(Err(error)) => return Err(self.failure(info, &error, longest).midway(streamed.has_come)),
                Ok(Ok(piece)) => piece,
            };
            bytes += piece.as_ref().map_or(0, Bytes::len);
            if bytes > MAX_BODY_BYTES {
                return Err(AttemptFailure::from(format!(
                    "the answer has more than {MAX_BODY_BYTES} bytes"
                )));
            }
            let taken = streamed.take(piece.as_deref(), |answer, event| {
                if let Some(response) = self.error_in(&event) {
                    return Err(AttemptFailure::Answered(response));
                }
                request.arrived();
                Ok(request.add(answer, event)?)
            });
            if piece.is_none() {
                // The end may also have come in the middle of an event.
                let has_come = streamed.has_come;
                taken.map_err(|failure: AttemptFailure| failure.midway(has_come))?;
                let answer = streamed.whole();
                let answer = answer.map_err(|reason| AttemptFailure::from(reason).midway(has_come))?;
                return Ok(answer.into());
            }
            taken?;
            if let Some(repetition) = streamed.ended_for(request) {
                return Ok(Received {
                    answer: streamed.answer,
                    repetition: Some(repetition),
                });
            }
        }
    }

    /// Reads an answer that is not streamed although streaming was asked for: a refusal, one
    /// document, or events under a wrong content type.
    async fn whole_answer<R: ReplyRequest>(
        &self,
        info: &ServerInfo,
        mut response: reqwest::Response,
        limit: Duration,
        request: &R,
    ) -> Result<Value, AttemptFailure> {
        let body = self.body(info, &mut response, limit).await?;
        let mut values = if request.framing() == Framing::ServerSentEvents && !body.trim_ascii_start().starts_with(b"{")
        {
            let mut stream = EventStream::new(Framing::ServerSentEvents);
            let mut events = stream.push(&body).map_err(AttemptFailure::from)?;
            events.extend(stream.finish().map_err(AttemptFailure::from)?);
            let json = events.into_iter().filter_map(|event| match event {
                StreamEvent::Json(event) => Some(event),
                StreamEvent::Done => None,
            });
            json.collect()
        } else {
            let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(&body).into_iter().collect();
            values.map_err(|error| AttemptFailure::from(format!("the answer is not JSON: {error}")))?
        };
        if values.is_empty() {
            return Err(AttemptFailure::from("the answer is not JSON".to_owned()));
        }
        if values.len() == 1 {
            return Ok(values.remove(0));
        }
        let mut answer = Value::Null;
        let mut is_finished = false;
        for value in values {
            if let Some(response) = self.error_in(&value) {
                return Err(AttemptFailure::Answered(response));
            }
            is_finished |= request.add(&mut answer, value).map_err(AttemptFailure::from)?;
        }
        is_finished
            .then_some(answer)
            .ok_or_else(|| AttemptFailure::CutOff("the reply broke off in the middle".to_owned().into()))
    }

    /// Returns the error that an event of a stream, or a whole answer, reports inside of a success,
    /// as the answer it would have been if it had come before the first token. Routers report the
    /// failure of the server behind them in this way.
    pub(super) fn error_in(&self, event: &Value) -> Option<ErrorResponse> {
        let error = event.get("error").filter(|error| !error.is_null())?;
        let number = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let code = number.or_else(|| error["code"].as_str()?.parse().ok());
        let mut words = [&error["code"], &error["type"]].into_iter().filter_map(Value::as_str);
        let status = match code {
            Some(code @ 400..=599) => code,
            Some(_) | None => words.find_map(status_of).unwrap_or(500),
        };
        Some(ErrorResponse {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            retry_after: None,
            proxy: None,
            body: self.without_secrets(&event.to_string()),
        })
    }
}

/// An answer that was received.
pub(crate) struct Received {
    pub(crate) answer: Value,
    /// What it was ended for, before its end.
    pub(crate) repetition: Option<Repetition>,
}

impl From<Value> for Received {
    fn from(answer: Value) -> Self {
        Self {
            answer,
            repetition: None,
        }
    }
}

/// A streamed answer as far as it has come.
pub(crate) struct StreamedAnswer {
    stream: EventStream,
    answer: Value,
    watch: Watch,
    is_finished: bool,
    has_come: bool,
}

impl StreamedAnswer {
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            stream: EventStream::new(framing),
            answer: Value::Null,
            watch: Watch::default(),
            is_finished: false,
            has_come: false,
        }
    }

    /// Takes the next piece, or with `None` the end of the stream. `add` adds an event to the
    /// answer and says whether the reply is finished.
    pub(crate) fn take<E: From<String>>(
        &mut self,
        piece: Option<&[u8]>,
        mut add: impl FnMut(&mut Value, Value) -> Result<bool, E>,
    ) -> Result<(), E> {
        let events = match piece {
            Some(piece) => self.stream.push(piece),
            None => self.stream.finish(),
        };
        for event in events? {
            let StreamEvent::Json(event) = event else {
                // Some servers do not say why a reply ends.
                self.is_finished |= self.has_come;
                continue;
            };
            self.has_come = true;
            self.is_finished |= add(&mut self.answer, event)?;
        }
        Ok(())
    }

    /// Ends the answer if it repeats itself, and returns what it repeats.
    fn ended_for<R: ReplyRequest>(&mut self, request: &R) -> Option<Repetition> {
        if self.is_finished {
            return None;
        }
        let repetition = self.watch.look(request.written_on(&mut self.answer)?)?;
        request.end_at_limit(&mut self.answer);
        Some(repetition)
    }

    /// Returns the answer at the end of the stream, if it is whole.
    pub(crate) fn whole(self) -> Result<Value, String> {
        if self.is_finished {
            Ok(self.answer)
        } else {
            Err("the reply broke off in the middle".to_owned())
        }
    }
}

/// Returns the status with which an error of this code or type comes outside of a stream, if that
/// is known.
fn status_of(word: &str) -> Option<u16> {
    match word {
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => Some(429),
        "authentication_error" | "permission_error" | "invalid_api_key" => Some(401),
        "invalid_request_error" | "content_filter" | "context_length_exceeded" => Some(400),
        _ => None,
    }
}

/// Tells whether an answer calls itself a stream of events.
fn is_stream(response: &reqwest::Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| {
        ["event-stream", "ndjson", "jsonl"]
            .iter()
            .any(|name| kind.contains(name))
    })
}
