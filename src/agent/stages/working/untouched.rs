//! A model that says that all is done, and has changed nothing: it has called no tool, or what it
//! wrote is what was there.
//!
//! Small models do that, and the run ended as done, with nothing changed and nothing checked. Where
//! a plan was made, the planner has looked: such a model is asked once more, and what it says then
//! counts. In a later round, the model's words may be all that is wanted. Who finds that nothing
//! has to be changed says so, and that counts; of finished work that was looked at once more, or
//! against which nothing counts, it counts at once, and without a reply that can be read the work
//! stays finished.

use crate::agent::dialogue::{self, ReplyForm};
use crate::agent::record::interruption::Interruption;
use crate::agent::record::{PausedBy, Record};
use crate::agent::run::Run;
use crate::agent::stages::working::{another_try, unseen_files};
use crate::conversation::decode::files;
use crate::conversation::{Message, ToolResult, circling};
use crate::executor::UNCHANGED;
use crate::llm::chat::Chat;

const NO_TOOL: &str = "`done` did not count: no tool was called, so nothing was read, changed or checked. Read the files that the \
     task is about, change them, and run the tests. If nothing has to be changed, find that out with a tool first.";
const NO_CHANGE: &str = "This did not count: what you wrote is what was there before, word for word. Find the line that does what the task \
     says is wrong, change that line, and write its file again.";
const LEFT_ALONE: &str = "This did not count: nothing is changed by it. Write the file that is at fault, whole.";
const NOTHING_BEGUN: &str = "`done` did not count: nothing was changed in the project. Do what the plan asks for. If no change is needed, as \
     where only a question is asked, finish again and say why.";
const NO_FILE: &str = "This did not count: you wrote no file.";

/// Number of replies in a row that change nothing; the next one ends the run. While the task may
/// begin again, the first one ends the try: at temperature 0 more of the same follows.
const MOST_WITHOUT_CHANGE: u32 = 3;

/// Whether the project is still untouched, as far as it matters.
#[derive(Debug)]
pub(super) struct Untouched {
    is_over: bool,
    was_told: bool,
    /// Replies in a row whose writes changed nothing.
    without_change: u32,
    unseen: Unseen,
    second_look: SecondLook,
    /// Whether the model was only asked to say once more that it is done: nothing counts against
    /// the result, and nothing was changed since.
    awaits_word: bool,
    begun: Begun,
}

/// The files of the last reply that the model would have written without having seen them whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unseen {
    None,
    /// Tests alone, which stay as they are.
    Test,
    /// A file that the model was told to print first.
    ToBePrinted,
}

/// Whether anything of planned work was begun: where nothing was, it is sent back once.
#[derive(Debug)]
enum Begun {
    Yes,
    No,
    /// It was sent back for that, after the model had said this.
    Asked(String),
}

/// Whether the model looks at finished work once more, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecondLook {
    No,
    /// It has changed nothing yet.
    Idle,
    Acted,
}

impl Untouched {
    /// Begins with a conversation; one that goes on after a restart is not looked at again.
    pub(super) fn of(run: &Run, chat: &Chat) -> Self {
        let record = &run.claim.record;
        let goes_on = chat
            .messages()
            .iter()
            .any(|message| matches!(message, Message::Assistant { .. } | Message::Summary { .. }));
        let has_work = record.planned.base.as_ref().is_some_and(|base| base.holds_work);
        let is_planned = run.claim.services.settings.planning.enabled;
        Self {
            is_over: is_planned || record.request.round.is_some() || record.worked.turns > 0,
            was_told: false,
            without_change: 0,
            unseen: Unseen::None,
            second_look: if record.verified.asked_twice_at.is_some()
                && record.verified.asked_twice_at == record.verified.sent_back_at
            {
                SecondLook::Idle
            } else {
                SecondLook::No
            },
            // Where there are several tries, the best of them is delivered.
            awaits_word: is_asked_about_result(record)
                && record.worked.tries.failed() == 0
                && !another_try::is_another_left(&run.claim),
            begun: if record.planned.plan.is_some() && record.request.round.is_none() && !goes_on && !has_work {
                Begun::No
            } else {
                Begun::Yes
            },
        }
    }

    pub(super) fn note(&mut self, results: &[ToolResult]) {
        self.is_over |= !results.is_empty();
        let begins = |result: &ToolResult| {
            !result.call.tool.starts_with("agent/") && circling::does_more_than_look(&result.call)
        };
        if results.iter().any(begins) {
            self.begun = Begun::Yes;
        }
        let is_in_vain =
            |result: &ToolResult| result.output.contains(UNCHANGED) || unseen_files::was_left_alone(result);
        let may_change = |result: &ToolResult| circling::does_something(result) && !is_in_vain(result);
        if results.iter().any(may_change) {
            self.awaits_word = false;
            if self.second_look == SecondLook::Idle {
                self.second_look = SecondLook::Acted;
            }
        }
        let changes_nothing = |result: &ToolResult| result.call.tool.ends_with("/write_file") && is_in_vain(result);
        self.unseen = if results.iter().any(unseen_files::is_to_be_printed) {
            Unseen::ToBePrinted
        } else if results.iter().any(unseen_files::was_left_alone) {
            Unseen::Test
        } else {
            Unseen::None
        };
        if !results.is_empty() && results.iter().all(changes_nothing) {
            self.without_change += 1;
        } else {
            self.without_change = 0;
        }
    }

    /// Returns the summary of work that ends with `comment`. What was said when it was finished
    /// stays true after a second look, and the answer to a question after it was sent back.
    pub(super) fn summary(&self, earlier: Option<String>, comment: String) -> String {
        let comment = match &self.begun {
            Begun::Asked(said) if !comment.contains(said.trim()) => format!("{}\n\n{comment}", said.trim()),
            _ => comment,
        };
        match (earlier, self.second_look) {
            (Some(earlier), SecondLook::Acted) => format!("{}\n\n{comment}", earlier.trim_end()),
            (Some(earlier), SecondLook::Idle) => earlier,
            (Some(_) | None, _) => comment,
        }
    }

    /// Tells whether the work is as finished as it was, although no reply to the second look, or to
    /// a question about a result that nothing counts against, could be used, or none be asked for
    /// any more.
    pub(super) fn stays_finished(&self, interruption: &Interruption) -> bool {
        let ends_it = matches!(
            interruption,
            Interruption::Failed(_)
                | Interruption::Paused {
                    by: PausedBy::Limit(_),
                    ..
                }
        );
        (self.second_look == SecondLook::Idle || self.awaits_word) && ends_it
    }

    /// Notes that people have written: what they ask for may not be done.
    pub(super) fn hear_of_more(&mut self) {
        self.second_look = SecondLook::No;
        self.awaits_word = false;
    }

    /// Tells the model, which says `comment`, that it is not done; returns whether it did.
    ///
    /// # Errors
    /// If it was told often enough: work that nobody did must not end as done.
    pub(super) fn sends_back(&mut self, run: &Run, chat: &mut Chat, comment: &str) -> Result<bool, Interruption> {
        if self.second_look != SecondLook::No {
            return Ok(false);
        }
        let is_another_left = another_try::is_another_left(&run.claim);
        let most = match self.unseen {
            _ if !is_another_left => MOST_WITHOUT_CHANGE,
            Unseen::ToBePrinted => 1,
            Unseen::None | Unseen::Test => 0,
        };
        if self.without_change > most {
            if run.claim.record.verified.checked.is_some() {
                // There is earlier work, whose checks say what is open.
                return Ok(false);
            }
            return Err(Interruption::failed(if is_another_left {
                "what the model wrote changes nothing"
            } else {
                "the model wrote the same files again and again, though it was told that nothing changes by it; a larger model may do better"
            }));
        }
        if self.without_change > 0 {
            let text = if self.unseen == Unseen::None {
                NO_CHANGE
            } else {
                LEFT_ALONE
            };
            dialogue::tell(&run.claim, chat, text);
            return Ok(true);
        }
        let no_file = || {
            format!(
                "{NO_FILE} {} If nothing has to be changed, say why once more.",
                files::FORM
            )
        };
        if self.is_over {
            let is_unbegun = matches!(self.begun, Begun::No);
            if is_unbegun {
                self.begun = Begun::Asked(comment.to_owned());
                let text = match ReplyForm::of(&run.claim) {
                    ReplyForm::Native | ReplyForm::Json => NOTHING_BEGUN.to_owned(),
                    ReplyForm::Files => no_file(),
                };
                dialogue::tell(&run.claim, chat, &text);
            }
            return Ok(is_unbegun);
        }
        if ReplyForm::of(&run.claim) == ReplyForm::Files {
            // Said twice it counts; the project's tests have a say in it then.
            let counts = std::mem::replace(&mut self.was_told, true);
            if !counts {
                dialogue::tell(&run.claim, chat, &no_file());
            }
            return Ok(!counts);
        }
        if self.was_told {
            return Err(Interruption::failed(
                "the model says that the task is done and has called no tool, though it was told that this does not count; a larger \
                 model may do better",
            ));
        }
        self.was_told = true;
        dialogue::tell(&run.claim, chat, NO_TOOL);
        Ok(true)
    }
}

/// Tells whether the model was sent back by a verification of its work, and not because something
/// counts against that: it was asked about tests that failed before, or about findings.
fn is_asked_about_result(record: &Record) -> bool {
    let verified = &record.verified;
    // Work that cannot be taken as it is, say, is sent back before it is checked.
    let checked_at = verified.checked.as_ref().map(|work| work.turns);
    verified.sent_back_at.is_some() && verified.sent_back_at == checked_at && record.is_verified()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_a_verification_against_which_nothing_counts_leaves_no_more_than_a_word_to_say() {
        let is_asked = |verified: Value| {
            let record: Record = serde_json::from_value(json!({ "verified": verified })).unwrap();
            is_asked_about_result(&record)
        };
        let checked = json!({ "tree": null, "turns": 4 });
        let check = |excuse: Value| json!([{ "command": "make test", "exit_code": 1, "excuse": excuse }]);
        let excused = check(json!("failed_before"));
        assert!(is_asked(
            json!({ "sent_back_at": 4, "checked": checked, "checks": excused })
        ));
        assert!(!is_asked(
            json!({ "sent_back_at": 4, "checked": checked, "checks": check(Value::Null) })
        ));
        // Refused before it was checked, and not sent back at all.
        assert!(!is_asked(
            json!({ "sent_back_at": 6, "checked": checked, "checks": excused })
        ));
        assert!(!is_asked(json!({ "checked": checked, "checks": excused })));
        assert!(!is_asked(json!({})));
        let deleted = json!([{ "kind": "test_deleted", "path": "a_test.py", "line": null, "text": "test_a" }]);
        assert!(!is_asked(
            json!({ "sent_back_at": 4, "checked": checked, "findings": deleted })
        ));
    }
}
