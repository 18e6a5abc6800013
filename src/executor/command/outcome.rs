//! The outcome of a command, in words for the model and in fields for the program.

use serde_json::{Value, json};
use std::time::Duration;

/// Shortest duration that is reported.
const TELLING_TIME: Duration = Duration::from_secs(10);

/// The way in which a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::executor) enum How {
    Exited(i32),
    Signalled(i32),
    NotStarted(String),
    /// The kernel gave no process or thread for it.
    NoProcessLeft,
    /// The process above it was killed, and with it the report.
    SupervisorKilled,
    TimedOut(Duration),
    Cancelled,
}

/// A command that has ended.
#[derive(Debug, Clone)]
pub(in crate::executor) struct Outcome {
    pub(in crate::executor) how: How,
    pub(in crate::executor) duration: Duration,
    /// Output of both streams, in the order it came.
    pub(in crate::executor) output: String,
    pub(in crate::executor) cut_bytes: u64,
    pub(in crate::executor) memory_ran_out: bool,
    /// `ID NAME` of each process that still runs.
    pub(in crate::executor) in_background: Vec<String>,
}

impl Outcome {
    /// Tells whether the call failed. A command that reports failure is a failed call: `done`
    /// beside it must not count.
    pub(in crate::executor) fn is_error(&self) -> bool {
        self.how != How::Exited(0)
    }

    pub(in crate::executor) fn timed_out(&self) -> bool {
        matches!(self.how, How::TimedOut(_))
    }

    /// Returns the limit in seconds at which the command was ended.
    fn reached_limit(&self) -> Option<u64> {
        match &self.how {
            How::TimedOut(limit) => Some(limit.as_secs()),
            How::Exited(_)
            | How::Signalled(_)
            | How::NotStarted(_)
            | How::NoProcessLeft
            | How::SupervisorKilled
            | How::Cancelled => None,
        }
    }

    /// Returns the output and, below it in brackets, what the output does not show.
    pub(in crate::executor) fn text(&self) -> String {
        // Models act on a long wait and on no other, and read each word in every later request.
        let took = if self.duration < TELLING_TIME {
            String::new()
        } else {
            format!(", {}", in_words(self.duration))
        };
        let mut lines = vec![format!("[{}{took}]", self.how_in_words())];
        if self.memory_ran_out {
            let reason = "the memory limit was reached and the kernel killed a process; use less memory or fewer jobs";
            lines.push(format!("[{reason}]"));
        }
        if !self.in_background.is_empty() {
            lines.push(format!(
                "[still running in the background: {}]",
                self.in_background.join(", ")
            ));
        }
        let needs_line_end = !self.output.is_empty() && !self.output.ends_with('\n');
        let line_end = if needs_line_end { "\n" } else { "" };
        format!("{}{line_end}{}", self.output, lines.join("\n"))
    }

    pub(in crate::executor) fn fields(&self) -> Value {
        let (exit_code, signal) = match self.how {
            How::Exited(code) => (Some(code), None),
            How::Signalled(signal) => (Some(128 + signal), Some(signal)),
            How::NotStarted(_) | How::NoProcessLeft | How::SupervisorKilled | How::TimedOut(_) | How::Cancelled => {
                (None, None)
            }
        };
        json!({
            "exit_code": exit_code,
            "signal": signal,
            "duration_ms": u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
            "cut_bytes": self.cut_bytes,
            "timed_out": self.timed_out(),
            "reached_limit_s": self.reached_limit(),
            "out_of_memory": self.memory_ran_out,
        })
    }

    fn how_in_words(&self) -> String {
        match &self.how {
            How::Exited(code) => format!("exit code {code}"),
            How::Signalled(signal) => format!("killed by signal {signal}"),
            How::NotStarted(reason) => format!("not started: {reason}"),
            How::NoProcessLeft => "not started: the container's processes are used up, and threads count as such; \
                                   what earlier commands had left in the background was ended, so run it again, \
                                   and start fewer at a time"
                .to_owned(),
            How::SupervisorKilled => "ended, and nobody knows how: the process above it was killed, as by a kill or \
                                      pkill that takes more than was meant; everything it started was ended"
                .to_owned(),
            How::TimedOut(limit) => format!(
                "timed out after {}; the command and everything it started were ended",
                in_words(*limit)
            ),
            How::Cancelled => "cancelled; the command and everything it started were ended".to_owned(),
        }
    }
}

fn in_words(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        return format!("{} ms", duration.as_millis());
    }
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(how: How) -> Outcome {
        Outcome {
            how,
            duration: Duration::from_millis(12),
            output: "no newline".to_owned(),
            cut_bytes: 0,
            memory_ran_out: false,
            in_background: Vec::new(),
        }
    }

    #[test]
    fn the_model_reads_what_the_output_does_not_say() {
        assert_eq!(outcome(How::Exited(3)).text(), "no newline\n[exit code 3]");
        let killed = Outcome {
            memory_ran_out: true,
            in_background: vec!["42 node".to_owned()],
            output: String::new(),
            ..outcome(How::Signalled(9))
        };
        insta::assert_snapshot!(killed.text(), @r"
        [killed by signal 9]
        [the memory limit was reached and the kernel killed a process; use less memory or fewer jobs]
        [still running in the background: 42 node]
        ");
        insta::assert_snapshot!(outcome(How::TimedOut(Duration::from_secs(5))).text(), @r"
        no newline
        [timed out after 5.0 s; the command and everything it started were ended]
        ");
        let refused = Outcome {
            output: String::new(),
            ..outcome(How::NoProcessLeft)
        };
        insta::assert_snapshot!(refused.text(), @"[not started: the container's processes are used up, and threads count as such; what earlier commands had left in the background was ended, so run it again, and start fewer at a time]");
        let long = Outcome {
            duration: Duration::from_millis(12_340),
            ..outcome(How::Exited(0))
        };
        assert_eq!(long.text(), "no newline\n[exit code 0, 12.3 s]");
    }

    #[test]
    fn only_exit_code_zero_is_success() {
        assert!(!outcome(How::Exited(0)).is_error());
        assert!(outcome(How::Exited(1)).is_error());
        assert!(outcome(How::Cancelled).is_error());
    }

    #[test]
    fn the_program_reads_fields() {
        assert_eq!(
            outcome(How::Signalled(9)).fields(),
            json!({
                "exit_code": 137, "signal": 9, "duration_ms": 12, "cut_bytes": 0,
                "timed_out": false, "reached_limit_s": null, "out_of_memory": false
            })
        );
        let fields = outcome(How::TimedOut(Duration::from_secs(5))).fields();
        assert_eq!(
            (&fields["exit_code"], &fields["reached_limit_s"]),
            (&json!(null), &json!(5))
        );
    }
}
