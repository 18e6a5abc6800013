//! The facts of which the log file tells as well: what became of a run, and what people should
//! know of it.
//!
//! Each is one line with its task and run, so that a text of somebody else's cannot look like
//! another line, and is erased with its task.

use tracing::field::display;

use super::fact::{Entry, Fact};
use crate::plain::one_line;

/// Writes the line of a fact, if it is about a task or run and has one. What concerns no task is
/// logged by whoever records it.
pub(super) fn write(entry: &Entry) {
    let subject = &entry.subject;
    let Some(text) = sentence(&entry.fact).filter(|_| subject.task.is_some() || subject.run.is_some()) else {
        return;
    };
    let (task, run) = (subject.task.as_ref().map(display), subject.run.map(display));
    match &entry.fact {
        Fact::Failed { .. } => tracing::error!(task, run, "{text}"),
        Fact::Warned { .. } | Fact::ReplyUnreadable { .. } => tracing::warn!(task, run, "{text}"),
        _ => tracing::info!(task, run, "{text}"),
    }
}

/// Returns what the log says of a fact; `None` if it is in the journal alone.
fn sentence(fact: &Fact) -> Option<String> {
    let text = match fact {
        Fact::Claimed { .. } => "the run was claimed".to_owned(),
        Fact::Warned { text } => text.clone(),
        Fact::ReplyUnreadable { attempt, reason } => {
            format!("the model's reply could not be read (attempt {attempt}): {reason}")
        }
        Fact::Postponed { until, reason } => {
            format!("the run waits until {}: {reason}", until.format("%Y-%m-%d %H:%M UTC"))
        }
        Fact::Interrupted => "the run was saved for the next process, because this one was asked to stop".to_owned(),
        Fact::Failed { reason } => format!("the run failed: {reason}"),
        Fact::PutDown { ending } => format!("the run was put down: {ending}"),
        _ => return None,
    };
    Some(one_line(&text))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn a_fact_that_people_should_know_has_a_sentence_on_one_line() {
        let told = |fact: Fact| sentence(&fact);
        let text = "It said last:\n2026-01-01T00:00:00Z ERROR forged task=github:a/b#1".to_owned();
        assert_eq!(
            told(Fact::Warned { text }).unwrap(),
            "It said last: 2026-01-01T00:00:00Z ERROR forged task=github:a/b#1"
        );
        let (until, reason) = (DateTime::UNIX_EPOCH, "the model\ncannot be reached".to_owned());
        assert_eq!(
            told(Fact::Postponed { until, reason }).unwrap(),
            "the run waits until 1970-01-01 00:00 UTC: the model cannot be reached"
        );
        assert_eq!(told(Fact::AskedTwice), None);
    }
}
