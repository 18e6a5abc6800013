//! Comments on the item: one function for each, so that all are in one place.
//!
//! A text is a [`Page`] of parts. The program's own text is Markdown that GitHub and GitLab render
//! alike; text by a model, a stranger or a command can only be inserted as data, without any effect
//! there.

use chrono::TimeDelta;

use crate::agent::record::follow_up::Kind;
use crate::agent::record::sections::{StartedBy, WaitingRecord};
use crate::agent::record::{Failure, KeptWork, Parked, PausedBy, Record, SavedWork, WorkFile};
use crate::agent::services::Settings;
use crate::agent::text::plans;
use crate::agent::text::refused_hosts;
use crate::agent::text::reviews;
use crate::agent::text::usage::{spent, used};
use crate::agent::text::verification::{to_look_at, verification, what_is_wrong};
use crate::markdown::compose::{Line, Page};
use crate::markdown::visible;
use crate::plain::{counted, grouped};
use crate::task::id::RunId;
use crate::task::labels::Labels;
use crate::task::state::{Judged, State};

/// Maximum characters of the model's current activity.
const LONGEST_DOING: usize = 200;
/// Maximum characters of a reason within a sentence.
pub(crate) const LONGEST_REASON: usize = 1000;

/// Returns the comment for a person who set the label without permission, or for everybody if that
/// person cannot be determined.
pub fn turned_away(by: Option<&str>, trigger: &str) -> Page {
    let mut page = Page::default();
    page.paragraph(match by.filter(|by| !visible::line(by).is_empty()) {
        Some(by) => Line::filled(
            "Thank you, {}. I begin work only where somebody who may write to this repository puts the label {} on, \
             so I have taken it off again. Whoever may write can read this through and put it on.",
            [Line::name(by), Line::code(trigger)],
        ),
        None => Line::filled(
            "I cannot tell who put the label {} on, so I have taken it off again. Somebody who may write to this \
             repository can put it on once more.",
            [Line::code(trigger)],
        ),
    });
    page
}

/// Comment for people who asked for work in other ways than by the label, and may not; `None` where
/// the forge does not tell who it was.
pub fn not_begun(by: Option<&str>, trigger: &str) -> Page {
    let mut page = Page::default();
    page.paragraph(match by.filter(|by| !visible::line(by).is_empty()) {
        Some(by) => Line::filled(
            "Thank you, {}. I begin work only where somebody who may write to this repository asks for it. Whoever may \
             write can read this through, and mention me or put the label {} on.",
            [Line::name(by), Line::code(trigger)],
        ),
        None => Line::filled(
            "I cannot tell who assigned this to me, so I do not begin. Somebody who may write to this repository can put \
             the label {} on.",
            [Line::code(trigger)],
        ),
    });
    page
}

/// Comment for whoever asked for work on a confidential issue, which is not worked on.
pub fn confidential(started_by: StartedBy, trigger: &str) -> Page {
    let label = [Line::code(trigger)];
    let (done, again) = match started_by {
        StartedBy::Label => (
            Line::filled(" and have taken the label {} off again", label),
            Line::from("put the label on once more"),
        ),
        StartedBy::Mention | StartedBy::Assignment => (Line::default(), Line::filled("put the label {} on", label)),
    };
    let mut page = Page::default();
    page.paragraph(Line::filled(
        "This issue is confidential, and more people can read the project than the issue. What I would make of it, a branch \
         and a merge request, could be read by all of them, so I do not work on it{}. Make \
         the issue or the project visible to the same people, or have the operator set \
         `gitlab.confidential_issues: neutral_names`, and {}.",
        [done, again],
    ));
    page
}

/// Returns the line that says that a long reply of the model is arriving.
pub(crate) fn arriving(tokens: u64) -> String {
    format!("the model is replying; about {} tokens have arrived", grouped(tokens))
}

/// Returns the progress comment. At the end of the run it is collapsed: the final comment below it
/// has the result.
pub fn progress(run: RunId, state: State, record: &Record, settings: &Settings, labels: &Labels) -> Page {
    let parked = shown_wait(state, &record.waiting);
    let mut page = Page::default();
    match parked {
        Some(parked) if record.waiting.ended_at.is_some() => ending(&mut page, parked),
        Some(parked) => waiting(&mut page, parked, &labels.trigger),
        None if state.is_final() => {}
        None => page.heading(Line::from("🛠️ ").and(headline(state))),
    }
    plans::plans(&mut page, state, record);
    reviews::reviews(&mut page, record, settings);
    if matches!(state, State::Planning | State::Working) && !record.worked.doing.is_empty() {
        let first = record.worked.doing.trim().lines().next().unwrap_or_default();
        page.paragraph(Line::from("**Now:** ").and(Line::said(first, LONGEST_DOING)));
    }
    approvals(&mut page, state, record, settings);
    notes(&mut page, &record.thread.notes);
    refused_hosts::list(&mut page, &record.worked.refused);
    let mut footer = match &record.planned.environment {
        Some(environment) => Line::filled("Environment {} · ", [Line::code(environment)]),
        None => Line::default(),
    };
    footer = footer
        .and(Line::figures(&spent(record, settings)))
        .and(Line::filled(" · run {}", [Line::code(&run.to_string())]));
    let mut small = vec![footer];
    if !state.is_final() && !state.is_set_aside() && parked.is_none() {
        small.push(Line::filled(
            "Comments are read before the next step. To stop it, write `/agent stop` or remove the label {}; \
             `/agent help` tells more.",
            [Line::code(&labels.processing)],
        ));
    }
    page.small(small);
    if !state.is_final() {
        return page;
    }
    let mut folded = Page::default();
    folded.details(Line::from("🛠️ ").and(headline(state)).and(": how it went"), page);
    folded
}

/// Returns the wait that the comment begins with. What a run that is set aside waits for stands in
/// a comment of its own, unless the run has ended.
fn shown_wait(state: State, waiting: &WaitingRecord) -> Option<&Parked> {
    let is_shown = !state.is_set_aside() || waiting.ended_at.is_some();
    waiting.parked.as_ref().filter(|_| is_shown && !state.is_final())
}

/// Writes who approved the plan and the result, or until when an answer is waited for.
fn approvals(page: &mut Page, state: State, record: &Record, settings: &Settings) {
    let paused = record.waiting.paused.as_ref();
    // Where the plan is asked for again, what was given before is void.
    let is_void = paused.is_some_and(|paused| matches!(paused.by, PausedBy::Plan(_)));
    let plan = record.planned.approval.as_ref().filter(|_| !is_void);
    let plan = plan.map(|approval| &approval.grant);
    for (what, grant) in [("Plan", plan), ("Result", record.delivered.approval.as_ref())] {
        if let Some(grant) = grant {
            let by = Line::name(grant.by.trim_start_matches('@'));
            page.paragraph(Line::from(what).and(" approved by ").and(by).and("."));
        }
    }
    if let Some(passed) = &record.delivered.passed {
        page.paragraph(Line::filled(
            "Result passed by automatic approval, which {} had switched on.",
            [Line::name(passed.by.trim_start_matches('@'))],
        ));
    }
    if let (State::AwaitingApproval(_), Some(paused), None) = (state, paused, record.waiting.ended_at) {
        let lapses = paused.at + TimeDelta::days(i64::from(settings.steering.expire_days));
        page.paragraph(Line::filled(
            "Somebody who may write to the repository can approve it until {}.",
            [Line::figures(&lapses.format("%Y-%m-%d %H:%M UTC").to_string())],
        ));
    }
}

/// Writes the start of the progress comment of a run that waits for a remote service.
fn waiting(page: &mut Page, parked: &Parked, trigger: &str) {
    wait(page, parked);
    page.paragraph(Line::filled(
        "Then it goes on by itself, and reads what was written here meanwhile. Put the label {} on to have it go on at once.",
        [Line::code(trigger)],
    ));
}

/// Writes the start of the progress comment of a run that has ended, and whose work is brought
/// later.
fn ending(page: &mut Page, parked: &Parked) {
    wait(page, parked);
    page.own("The run has ended. Its work is brought here as soon as that can be done, and then people are told.");
}

fn wait(page: &mut Page, parked: &Parked) {
    let until = parked.until.format("%Y-%m-%d %H:%M UTC").to_string();
    page.heading(Line::from("⏳ Waiting until ").and(Line::figures(&until)));
    page.said(&sentence(&parked.reason));
}

/// Returns a short description of the activity in a stage.
pub fn headline(state: State) -> &'static str {
    match state {
        State::Queued => "Waiting for a free worker",
        State::Planning => "Planning",
        State::Reviewing(Judged::Plan) => "Reviewing the plan",
        State::Reviewing(Judged::Result) => "Reviewing the result",
        State::AwaitingApproval(_) => "Waiting for approval",
        State::Preparing => "Preparing the environment",
        State::Working => "Working",
        State::AwaitingAnswer => "Waiting for an answer",
        State::Verifying => "Checking the result",
        State::Delivering => "Delivering",
        State::Paused(_) => "Paused",
        State::Done => "Done",
        State::Stopped => "Stopped",
        State::Failed => "Failed",
    }
}

pub(crate) fn notes(page: &mut Page, notes: &[String]) {
    for note in notes {
        page.note(note);
    }
}

/// Returns the final comment of a run that completed.
pub fn done(record: &Record, settings: &Settings) -> Page {
    let branch = || Line::code(record.head_branch());
    let done = if record.is_checked() {
        "✅ Done: "
    } else {
        "☑️ Done, unchecked: "
    };
    let mut page = Page::default();
    page.heading(
        match (&record.delivered.change, record.has_changes(), record.is_verified()) {
            (Some(change), _, true) => Line::from(done).and(Line::address(&change.url)),
            (Some(change), _, false) => Line::filled(
                "⚠️ Done, but {}: {} is a draft",
                [what_is_wrong(record).into(), Line::address(&change.url)],
            ),
            (None, true, true) => Line::from(done).and("pushed to ").and(branch()),
            (None, true, false) => Line::filled("⚠️ Pushed to {}, but {}", [branch(), what_is_wrong(record).into()]),
            (None, false, true) => "☑️ Nothing was changed".into(),
            (None, false, false) => "⚠️ Nothing was changed, and the checks do not pass".into(),
        },
    );
    summary(&mut page, record);
    verification(&mut page, record, &settings.planning.verification);
    reviews::reviews(&mut page, record, settings);
    to_look_at(&mut page, &record.verified.findings);
    notes(&mut page, &record.thread.notes);
    refused_hosts::list(&mut page, &record.worked.refused);
    page.small(vec![Line::figures(&spent(record, settings))]);
    page
}

/// Returns the final comment of a run that failed.
pub fn failed(
    failure: &Failure,
    record: &Record,
    settings: &Settings,
    trigger: &str,
    saved: Option<&SavedWork>,
) -> Page {
    let mut page = Page::default();
    page.heading("❌ This could not be done");
    page.said(&sentence(&failure.in_words()));
    handed_over(&mut page, record);
    work_so_far(&mut page, saved, &failure.text);
    earlier_work(&mut page, saved, record);
    reviews::reviews(&mut page, record, settings);
    notes(&mut page, &record.thread.notes);
    refused_hosts::list(&mut page, &record.worked.refused);
    page.paragraph(new_run(trigger));
    used(&mut page, record, settings);
    page
}

pub(crate) fn new_run(trigger: &str) -> Line {
    Line::filled("To start a new run, set the label {} again.", [Line::code(trigger)])
}

/// Writes where the result of a run is that ended although people have it.
pub(crate) fn handed_over(page: &mut Page, record: &Record) {
    if let Some(change) = record.delivered.change.as_ref().filter(|_| record.is_handed_over()) {
        page.paragraph(Line::filled("The result is in {}", [Line::address(&change.url)]));
    }
}

/// Writes where the undelivered work is. A reason that stands in `told` already is not repeated.
pub(crate) fn work_so_far(page: &mut Page, saved: Option<&SavedWork>, told: &str) {
    let nowhere = "The work so far is on no branch: this request comes from a fork, and commits of a fork are never pushed to this \
                   repository.";
    match saved {
        None => {}
        Some(SavedWork::Branch(branch)) => {
            page.paragraph(Line::filled(
                "The work so far is on the branch {}.",
                [Line::code(branch)],
            ));
        }
        Some(SavedWork::Kept(KeptWork::Mirror)) => {
            page.paragraph(Line::from(nowhere).and(" It is kept with this program, and the run goes on from it."));
        }
        Some(SavedWork::Kept(KeptWork::File(file))) => {
            page.paragraph(Line::from(nowhere).and(in_file(file)).and(" of the fork."));
        }
        Some(SavedWork::Unbrought { reason, file }) => {
            let why = if told.contains(reason.as_str()) {
                Line::default()
            } else {
                Line::filled(": {}", [Line::said(reason, LONGEST_REASON)])
            };
            let place = match file {
                Some(file) => in_file(file).and(" of this repository."),
                None => " Nor could it be put into a file where this program runs; its log says why.".into(),
            };
            let line = Line::filled("The work so far could not be brought to this repository{}.", [why]);
            page.paragraph(line.and(place));
        }
    }
}

/// Names the branch that has an earlier state of work that could not be brought, or tells why the
/// last of the work may be missing where it is.
pub(crate) fn earlier_work(page: &mut Page, saved: Option<&SavedWork>, record: &Record) {
    let (before, left_out) = (&record.delivered.pushed_before, &record.delivered.left_out);
    if let (Some(SavedWork::Unbrought { .. }), Some(SavedWork::Branch(branch))) = (saved, before) {
        page.paragraph(Line::filled(
            "An earlier state of it is on the branch {}.",
            [Line::code(branch)],
        ));
    } else if let (Some(SavedWork::Branch(_) | SavedWork::Kept(_)), Some(reason)) = (saved, left_out) {
        let is_told = record.failure.as_ref().is_some_and(|told| told.text.contains(reason));
        let why = Line::filled(": {}", [Line::said(reason, LONGEST_REASON)]);
        let why = if is_told { Line::default() } else { why };
        page.paragraph(Line::filled("The last of it may be missing there{}.", [why]));
    }
}

/// Returns the sentence about the file that has the work, up to what it can be fetched into.
fn in_file(WorkFile { file, reference }: &WorkFile) -> Line {
    Line::filled(
        " It is kept where this program runs, in the file {} below `logs.directory`; with its whole path, {} brings it into a clone",
        [Line::code(file), Line::code(&format!("git fetch {file} {reference}"))],
    )
}

/// Returns the final comment of a run whose item another installation has ended its work on.
pub fn finished_elsewhere() -> Page {
    let mut page = Page::default();
    page.heading("⏹️ Stopped");
    page.own(
        "Another installation of this program, which looks for the same label, has ended its work on this. What this run did \
         is not delivered, and the labels are left as they are. Where the forge takes no claims (`coding-agent doctor` \
         tells), give each installation a label of its own (`labels.trigger`).",
    );
    page
}

/// Returns the comment that ends the rounds of follow-up on the program's own pull/merge request.
pub fn needs_people(kind: Kind, most: u32, trigger: &str) -> Page {
    let (what, key) = match kind {
        Kind::Review => ("reviews", "`follow_up.max_review_rounds`"),
        Kind::Checks => ("failing checks", "`follow_up.max_ci_rounds`"),
    };
    let mut page = Page::default();
    page.heading("🙋 This needs a human");
    page.paragraph(Line::filled(
        "{} of work on {} did not settle it, and no more rounds are allowed ({}). To have the work go on all the \
         same, put the label {} on.",
        [
            Line::figures(&counted(most, "round")),
            what.into(),
            key.into(),
            Line::code(trigger),
        ],
    ));
    page
}

pub(crate) fn summary(page: &mut Page, record: &Record) {
    let words = record.worked.summary.as_deref().unwrap_or_default();
    if !words.trim().is_empty() && !record.has_changes() {
        page.own("The model says:");
    }
    page.said(words);
}

/// Formats an error as a sentence, with a capital letter and a full stop.
pub fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut characters = text.chars();
    let first = characters
        .next()
        .map(|first| first.to_uppercase().to_string())
        .unwrap_or_default();
    let stop = if text.ends_with(['.', '!', '?', '`']) { "" } else { "." };
    format!("{first}{}{stop}", characters.as_str())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::secret::Redactor;
    use crate::task::state::Stage;

    #[test]
    fn errors_become_sentences() {
        assert_eq!(sentence("the token is wrong"), "The token is wrong.");
        assert_eq!(sentence("Why?"), "Why?");
    }

    #[test]
    fn people_are_told_why_the_last_of_the_work_may_be_missing() {
        let branch = SavedWork::Branch("mine".to_owned());
        let told = |record: &Record| {
            let mut page = Page::default();
            earlier_work(&mut page, Some(&branch), record);
            page.written(&Redactor::default()).as_str().to_owned()
        };
        let mut record = Record::default();
        assert_eq!(told(&record), "");
        let reason = "the commits have too many bytes";
        record.delivered.left_out = Some(reason.to_owned());
        let with_reason = format!("The last of it may be missing there: {reason}.");
        assert_eq!(told(&record), with_reason);
        record.failure = Some(Failure::of_task(reason));
        assert_eq!(told(&record), "The last of it may be missing there.");
    }

    #[test]
    fn a_run_that_is_set_aside_shows_the_wait_for_its_end_and_no_other() {
        let parked = Parked {
            until: DateTime::UNIX_EPOCH,
            reason: "git does not answer".to_owned(),
        };
        let mut waiting = WaitingRecord {
            parked: Some(parked),
            ..WaitingRecord::default()
        };
        let states = [
            State::Working,
            State::Paused(Stage::Working),
            State::AwaitingAnswer,
            State::AwaitingApproval(Judged::Result),
            State::Stopped,
        ];
        let shown = |waiting: &WaitingRecord| states.map(|state| shown_wait(state, waiting).is_some());
        assert_eq!(shown(&waiting), [true, false, false, false, false]);
        waiting.ended_at = Some(DateTime::UNIX_EPOCH);
        assert_eq!(shown(&waiting), [true, true, true, true, false]);
    }
}
