//! Faults that the next requests for a reply meet, whatever the script says. They take no step of
//! the script.

use std::time::Duration;

use axum::http::StatusCode;

use super::Model;
use super::script::{Answer, Fault, Step};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Answers with this status.
    Fails(u16),
    /// Answers 429, with the number of seconds to wait.
    Limited(u64),
    /// Breaks the connection off in the middle of a reply.
    BreaksOff,
    /// Answers 200 with a body that is half a JSON document.
    Garbage,
    /// Replies with a text that is no answer.
    Babbles,
    /// Says nothing for so long, and then breaks off.
    Hangs(Duration),
}

impl Trouble {
    pub(super) fn step(self) -> Step {
        let mut step = Step::answer(Answer::done("The half that arrives of this reply is not to be read."));
        match self {
            Self::Fails(status) => {
                step.fault = Some(Fault::Status(StatusCode::from_u16(status).expect("a status of HTTP")));
            }
            Self::Limited(seconds) => step.fault = Some(Fault::RateLimited(Some(seconds))),
            Self::BreaksOff => step.fault = Some(Fault::BreaksOff),
            Self::Garbage => {
                let half = r#"{"choices": [{"message": {"content": "#.to_owned();
                step.fault = Some(Fault::Raw(StatusCode::OK, half));
            }
            Self::Babbles => step.answer = Answer::says("Let me think about that for a moment."),
            Self::Hangs(duration) => {
                step.delay = Some(duration);
                step.fault = Some(Fault::BreaksOff);
            }
        }
        step
    }
}

impl Model {
    /// Lets the next `times` requests for a reply go wrong.
    pub fn misbehaves(&self, trouble: Trouble, times: usize) {
        self.lock().troubles.extend(std::iter::repeat_n(trouble, times));
    }
}
