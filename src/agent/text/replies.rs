//! Replies to people, and comments on a run that waits for them. See also
//! [`crate::agent::text::comments`].

use crate::agent::record::{HeldResult, PausedBy, Record, SavedWork};
use crate::agent::services::Settings;
use crate::agent::text::comments::{LONGEST_REASON, earlier_work, handed_over, new_run, sentence, work_so_far};
use crate::agent::text::plan_question;
use crate::agent::text::reviews;
use crate::agent::text::usage::{spent, used};
use crate::approval::Refusal;
use crate::approval::digest::Digest;
use crate::approval::extent::Extent;
use crate::approval::proposal::Part;
use crate::forge::item::{ISSUE_CLOSED, REQUEST_CLOSED, REQUEST_MERGED};
use crate::markdown::compose::{Line, Page};
use crate::plain::{agreeing, grouped, noun};
use crate::task::command::Command;
use crate::task::state::{Judged, Stage, State};

/// Most files that are named where an approval is void.
const MOST_CHANGED: usize = 20;
/// Most characters of one objection.
const LONGEST_OBJECTION: usize = 2000;

/// Reply to `resume` while the run is at work.
pub const NOT_PAUSED: &str = "It is already running.";
/// Reply to `resume` of a paused run.
pub const RESUMED: &str = "▶️ It resumes where it was.";
/// Reply to `approve` of a result.
const APPROVED: &str = "▶️ Approved: it is delivered as it was shown.";
/// Reply to `approve` with text below it: the approved result is no longer changed.
const APPROVED_AS_SHOWN: &str = "▶️ It is delivered as it was shown. What stands below your command changes nothing of it: \
     say it on the change request, or write `/agent deny` first where it must not be delivered like this.";
/// Reply to `pause` of a run that waits.
pub const ALREADY_PAUSED: &str = "It waits already. `/agent resume` resumes it.";
/// Reply to `resume` of a run that has reached a limit.
pub const NEEDS_BUDGET: &str = "A limit is reached: `/agent budget 500k` lets it go on with at most 500,000 more \
     tokens, the trigger label with the limits as they are. Either way all limits count anew.";
/// Reply to `resume` of a run that waits for approval.
pub const NEEDS_APPROVAL: &str = "It waits for a decision: `/agent approve` or `/agent deny <reason>`.";
/// Reply to `approve` of a plan. What stands below the command is read by the model.
pub const PLAN_APPROVED: &str = "▶️ The plan is carried out.";
/// Reply to the first `deny` of a plan, with a reason.
pub const PLAN_DENIED: &str = "🔁 Another plan is made, with your reason in mind.";
/// Reply to `deny` of a revised plan.
pub const REVISION_DENIED: &str = "▶️ The work goes on by the plan before.";
/// Reply to a decision after another one.
pub const ALREADY_DECIDED: &str = "This is decided already.";
/// Reply to `approve` and `deny` when nothing waits for approval.
pub const NOTHING_TO_APPROVE: &str = "Nothing waits for approval.";
/// Reply to `auto-approve off`.
pub const NOTHING_PASSES: &str =
    "🔒 Automatic approval is off, for all tasks. It is switched on again on the command line only.";
/// Reply to `resume` while all runs are paused, and the end of the reply to a decision or a budget
/// that counts.
pub const ALL_PAUSED: &str = "All work is paused by the operator; it goes on when that ends.";
/// Comment on an item whose run is to begin while all runs are paused.
pub const BEGINS_LATER: &str = "⏸️ All work is paused by the operator; this begins when that ends.";
/// End of the reply to an approval of what was approved before and is paused since.
pub const PAUSED_SINCE: &str = "Somebody has paused it since: `/agent resume` resumes it.";

/// Returns the reply to an `approve` of a result that counts; it says so if text below the command
/// changes nothing.
pub fn approved(has_words: bool) -> Page {
    if has_words { APPROVED_AS_SHOWN } else { APPROVED }.into()
}

/// Returns the reply to `budget`.
pub fn allowed(tokens: u64) -> Page {
    let mut page = Page::default();
    page.paragraph(Line::filled(
        "👍 {} more tokens, counted from now.",
        [Line::figures(&grouped(tokens))],
    ));
    page
}

/// Returns the reply to `help`, and to an unknown command.
pub fn help(command: &Command) -> Page {
    let unknown = match command {
        Command::Unknown(unknown) if is_approval(unknown) => Line::filled(
            "{} approves nothing: write `/agent approve`, or `/agent approve <digest>` with 8 to 64 digits of the digest that the \
             question names, and nothing else on that line. ",
            [Line::code(&format!("/agent {unknown}"))],
        ),
        Command::Unknown(unknown) => Line::filled("{} is not a command. ", [Line::code(&format!("/agent {unknown}"))]),
        _ => Line::default(),
    };
    let mut page = Page::default();
    page.paragraph(unknown.and(
        "These are, at the very beginning of the first line of a comment, for people who may write to the repository:",
    ));
    page.own(
        "| | |\n|---|---|\n\
         | `/agent stop` | end the work for good; what was done stays on a branch |\n\
         | `/agent pause` | pause it at the next safe point |\n\
         | `/agent resume` | resume it |\n\
         | `/agent budget 500k` | allow 500,000 more tokens |\n\
         | `/agent auto-approve off` | let nothing pass any more without a person, in any task |\n\
         | `/agent approve`, `/agent deny <reason>` | decide on a plan or result that waits for approval |\n\n\
         Any other comment is read before the next step, and so is what stands below a command.",
    );
    page
}

fn is_approval(unknown: &str) -> bool {
    let verb = unknown.split_whitespace().next().unwrap_or_default();
    verb.eq_ignore_ascii_case("approve")
}

/// Returns the reply to an approval that does not count.
pub fn not_approved(refusal: Refusal, digest: &Digest) -> Page {
    let mut page = Page::default();
    page.paragraph(Line::filled(
        "Nothing was approved: {}. Read what it would cover in the last question above, and write {} in a comment of its own.",
        [
            Line::said(&refusal.to_string(), LONGEST_OBJECTION),
            Line::code(&format!("/agent approve {}", digest.short())),
        ],
    ));
    page
}

/// Reply to an approval of a plan that is not what was asked for any more.
pub fn plan_changed(changed: &[Part]) -> Page {
    let mut page = Page::default();
    page.paragraph(Line::filled(
        "Nothing was approved: {} changed since the question was asked. It is asked again.",
        [plan_question::changed(changed)],
    ));
    page
}

/// Returns the reply to a denial that does not count.
pub fn not_denied(refusal: Refusal) -> Page {
    let mut page = Page::default();
    page.paragraph(Line::filled(
        "Nothing was denied: {}. Write `/agent deny <reason>` in a new comment, or `/agent stop`.",
        [Line::said(&refusal.to_string(), LONGEST_OBJECTION)],
    ));
    page
}

/// Returns the comment on a run that waits for people; `None` if the progress comment suffices.
pub fn set_aside(record: &Record, settings: &Settings, trigger: &str) -> Option<Page> {
    let paused = record.waiting.paused.as_ref()?;
    let mut page = Page::default();
    match &paused.by {
        PausedBy::AllRuns => return None,
        PausedBy::Person(name) => {
            page.heading("⏸️ Paused");
            page.paragraph(Line::filled(
                "As {} asked. `/agent resume` resumes it where it is, `/agent stop` ends it.",
                [person(name)],
            ));
        }
        PausedBy::Limit(limit) => {
            page.heading("⏸️ Paused: a limit is reached");
            page.said(&sentence(limit));
            page.paragraph(Line::filled(
                "`/agent budget 500k` lets it go on with at most 500,000 more tokens, the label {} with the limits as \
                 they are; either way all limits count anew. `/agent stop` ends it.",
                [Line::code(trigger)],
            ));
        }
        PausedBy::Question(question) => {
            page.heading("❓ A question");
            page.said(question);
            page.own(
                "The work goes on when somebody who may write to the repository answers below; `/agent resume` resumes it \
                 without an answer, `/agent stop` ends it.",
            );
        }
        PausedBy::Objections(held) => {
            question(&mut page, held, record, settings);
            reviews::result(&mut page, record, settings);
        }
        PausedBy::Plan(held) => {
            plan_question::question(&mut page, held, record, settings);
            reviews::plan(&mut page, record, settings);
        }
    }
    work_so_far(&mut page, paused.saved.as_ref(), "");
    if !matches!(paused.by, PausedBy::Plan(_)) {
        page.small(vec![Line::figures(&spent(record, settings))]);
    }
    Some(page)
}

/// Writes the question whether a result may be pushed.
fn question(page: &mut Page, held: &HeldResult, record: &Record, settings: &Settings) {
    page.heading("🔐 It needs your approval");
    page.own(if held.is_void {
        "The work is done, and what was approved before is not what would be pushed now. Nothing of it was pushed, \
         because:"
    } else {
        "The work is done, and nothing of it was pushed, because:"
    });
    let objections = held.objections.iter().map(ToString::to_string);
    let reasons = objections.chain(held.more.said());
    page.items(reasons.map(|text| Line::said(&text, LONGEST_OBJECTION)).collect());
    changed_since_approval(page, &held.changed);
    if !held.obstacles.is_empty() {
        page.own("Automatic approval does not let it pass:");
        let obstacles = held.obstacles.iter();
        page.items(obstacles.map(|text| Line::said(text, LONGEST_OBJECTION)).collect());
    }
    let Extent { commits, files, lines } = held.extent;
    page.paragraph(Line::filled(
        "An approval pushes {} to the branch {}: {} in {}, also what is not shown here. The branch can be deleted again; what the \
         forge runs because of the push cannot be undone.",
        [
            number_of(commits as u64, "commit"),
            Line::code(record.head_branch()),
            number_of(lines, "changed line"),
            number_of(files as u64, "file"),
        ],
    ));
    if !held.environment.is_empty() {
        page.paragraph(Line::filled(
            "It was made and checked in the environment {}.",
            [Line::code(&held.environment)],
        ));
    }
    match &held.question {
        Some(question) => {
            let approve = format!("/agent approve {}", question.digest.short());
            page.paragraph(Line::filled(
                "{} delivers it as it is, `/agent deny <reason>` ends it.",
                [Line::code(&approve)],
            ));
            let lapses = question.lapses(settings.steering.expire_days);
            page.small(vec![Line::filled(
                "Question {}, digest {}, lapses {}",
                [
                    Line::code(&question.id.to_string()),
                    Line::code(question.digest.as_str()),
                    Line::figures(&lapses.format("%Y-%m-%d %H:%M UTC").to_string()),
                ],
            )]);
        }
        None => page.own("`/agent approve` delivers it as it is, `/agent deny <reason>` ends it."),
    }
    let mut difference = Page::default();
    difference.code(&held.diff);
    if held.unseen.files > 0 {
        let are = agreeing(held.unseen.files, " is", " are");
        difference.paragraph(Line::filled(
            "**The difference is cut:** {} in {} not shown.",
            [
                number_of(held.unseen.lines, "more changed line"),
                number_of(held.unseen.files as u64, "file").and(are),
            ],
        ));
    }
    page.details("What would be pushed", difference);
}

/// Writes the names of the files in which a result differs from the one that was approved before.
fn changed_since_approval(page: &mut Page, changed: &[String]) {
    if changed.is_empty() {
        return;
    }
    let mut line = Line::from("It differs from what was approved in ");
    for (number, path) in changed.iter().take(MOST_CHANGED).enumerate() {
        line = line.and(if number > 0 { ", " } else { "" }).and(Line::code(path));
    }
    let more = changed.len().saturating_sub(MOST_CHANGED);
    if more > 0 {
        line = line.and(" and ").and(number_of(more as u64, "more file"));
    }
    page.paragraph(line.and("."));
}

fn number_of(number: u64, what: &str) -> Line {
    Line::figures(&format!("{} {}", grouped(number), noun(number, what)))
}

/// Returns the final comment of a run that a person stopped.
pub fn stopped(by: &str, saved: Option<&SavedWork>, record: &Record, settings: &Settings, trigger: &str) -> Page {
    let mut page = Page::default();
    page.heading("⏹️ Stopped");
    page.paragraph(Line::filled("As {} asked.", [person(by)]));
    if let Some(reason) = &record.delivered.denial {
        page.paragraph(Line::filled(
            "The result was not approved: {}",
            [Line::said(&sentence(reason), LONGEST_OBJECTION)],
        ));
    }
    if let Some(denial) = record.planned.denials.last().filter(|_| is_plan_denied(record)) {
        page.paragraph(Line::filled(
            "The plan was not approved: {}",
            [Line::said(&sentence(&denial.reason), LONGEST_OBJECTION)],
        ));
    }
    handed_over(&mut page, record);
    work_so_far(&mut page, saved, "");
    earlier_work(&mut page, saved, record);
    page.paragraph(new_run(trigger));
    used(&mut page, record, settings);
    page
}

/// Returns the final comment of a run that is no longer wanted, which was in this state. Where its
/// work was brought nowhere now, it names the branch that had it when the end was decided: since
/// then a push may have been noted that failed.
pub fn withdrawn(reason: &str, state: State, saved: Option<&SavedWork>, record: &Record, trigger: &str) -> Page {
    let before = record.delivered.pushed_before.as_ref().filter(|_| saved.is_none());
    let unsaved = unsaved_work(state, record).filter(|_| saved.is_none());
    let mut page = Page::default();
    page.heading("⏹️ Stopped");
    page.paragraph(Line::filled(
        "The run was ended because {}.",
        [Line::said(reason, LONGEST_REASON)],
    ));
    handed_over(&mut page, record);
    if let Some(told) = unsaved.filter(|_| before.is_none()) {
        page.own(told);
    }
    work_so_far(&mut page, saved.or(before), reason);
    earlier_work(&mut page, saved, record);
    if unsaved.is_some() && before.is_some() && !state.is_set_aside() {
        page.own("What was done after it was pushed there is on no branch.");
    }
    page.paragraph(match reason {
        ISSUE_CLOSED | REQUEST_CLOSED => reopened(trigger),
        REQUEST_MERGED => Line::filled(
            "Further work needs a new issue with the label {}.",
            [Line::code(trigger)],
        ),
        _ => new_run(trigger),
    });
    page
}

fn reopened(trigger: &str) -> Line {
    Line::filled(
        "To start a new run, reopen this and set the label {} again.",
        [Line::code(trigger)],
    )
}

/// Returns what is said of the work that a run in this state has, where none of it was saved.
fn unsaved_work(state: State, record: &Record) -> Option<&'static str> {
    let has_work = match state {
        State::Working | State::AwaitingAnswer | State::Verifying => true,
        State::Reviewing(judged) | State::AwaitingApproval(judged) => judged == Judged::Result,
        State::Paused(before) => !matches!(
            before,
            Stage::Planning | Stage::Reviewing(Judged::Plan) | Stage::Preparing
        ),
        // A push is noted only when people have the request.
        State::Delivering if record.is_handed_over() => false,
        State::Delivering => return Some("What of its work was not pushed by then is on no branch."),
        State::Queued | State::Planning | State::Preparing | State::Done | State::Stopped | State::Failed => false,
    };
    has_work.then_some("Nothing of its work was pushed.")
}

/// Returns true if the run ended with the denial of its plan.
fn is_plan_denied(record: &Record) -> bool {
    let paused = record.waiting.paused.as_ref();
    let (Some(PausedBy::Plan(held)), Some(denial)) = (paused.map(|paused| &paused.by), record.planned.denials.last())
    else {
        return false;
    };
    denial.question == held.question.id && !denial.reason.is_empty()
}

/// Returns the reply to `stop` on a pull/merge request that no run works on.
pub fn no_longer_followed(by: &str, trigger: &str) -> Page {
    let mut page = Page::default();
    page.heading("⏹️ Stopped");
    page.paragraph(Line::filled(
        "As {} asked: reviews and checks of this are left to people from here. To have work done on it again, put the label {} \
         on.",
        [person(by), Line::code(trigger)],
    ));
    page
}

/// Formats the name of a person without an `@`, since they need no notification.
fn person(by: &str) -> Line {
    Line::name(by.trim_start_matches('@'))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::repository::CommitId;
    use crate::secret::Redactor;

    #[test]
    fn of_work_that_was_pushed_before_the_run_went_on_the_rest_is_named() {
        let said = |state: State, record: &Record| {
            let page = withdrawn("this issue was closed", state, None, record, "coding agent");
            page.written(&Redactor::default()).as_str().to_owned()
        };
        let mut record = Record::default();
        let nothing = said(State::Working, &record);
        assert!(nothing.contains("Nothing of its work was pushed."), "{nothing}");
        let (branch, commits) = ("mine".to_owned(), vec![CommitId::nothing()]);
        record.delivered.unfinished.insert(branch, commits);
        record.end(DateTime::UNIX_EPOCH);
        let pushed = "The work so far is on the branch `mine`.";
        let rest = "What was done after it was pushed there is on no branch.";
        let worked = said(State::Working, &record);
        assert!(worked.contains(pushed) && worked.contains(rest), "{worked}");
        let waited = said(State::AwaitingAnswer, &record);
        assert!(waited.contains(pushed) && !waited.contains(rest), "{waited}");
    }

    #[test]
    fn a_branch_that_a_push_failed_to_make_after_the_end_is_not_named() {
        let mut record = Record::default();
        record.end(DateTime::UNIX_EPOCH);
        let (branch, commits) = ("mine".to_owned(), vec![CommitId::nothing()]);
        record.delivered.unfinished.insert(branch, commits);
        let page = withdrawn("this issue was closed", State::Working, None, &record, "coding agent");
        let said = page.written(&Redactor::default()).as_str().to_owned();
        assert!(said.contains("Nothing of its work was pushed."), "{said}");
        assert!(!said.contains("mine"), "{said}");
    }

    #[test]
    fn a_void_approval_says_what_changed_since() {
        let said = |changed: &[String]| {
            let mut page = Page::default();
            changed_since_approval(&mut page, changed);
            page.written(&Redactor::default()).as_str().to_owned()
        };
        assert_eq!(said(&[]), "");
        let files: Vec<String> = (0..22).map(|number| format!("{number}.txt")).collect();
        assert_eq!(
            said(&files[..2]),
            "It differs from what was approved in `0.txt`, `1.txt`."
        );
        assert!(said(&files).ends_with("`19.txt` and 2 more files."));
    }
}
