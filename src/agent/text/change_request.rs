//! The text of a pull/merge request, in the two sections that the program owns: what it is about,
//! and how the last result stands.

use crate::agent::record::Record;
use crate::agent::record::follow_up::{Kind, Round};
use crate::agent::services::Settings;
use crate::agent::text::comments::{notes, summary};
use crate::agent::text::refused_hosts;
use crate::agent::text::reviews;
use crate::agent::text::usage::spent;
use crate::agent::text::verification::{has_something_to_say, no_test_mentions, to_look_at, verification};
use crate::conversation::excerpt::middle_cut;
use crate::markdown::compose::{Line, Page};
use crate::plan::Subtask;
use crate::task::id::RunId;

/// Maximum characters of a subtask.
const LONGEST_SUBTASK: usize = 300;
/// Maximum bytes of the summary in a reviewer's thread.
const LONGEST_ANSWER: usize = 1000;

/// Returns what a pull/merge request is about.
pub fn about(record: &Record) -> Page {
    if record.request.is_discreet {
        return Page::from("What this is about can be read in its issue, by those who may see it.");
    }
    let mut page = Page::default();
    summary(&mut page, record);
    page
}

/// Returns how the last result of a pull/merge request stands. That of a follow-up has its own
/// summary, because the section about the work stays as it was.
pub fn standing(record: &Record, settings: &Settings, closes: Option<u64>, (run, is_follow_up): (RunId, bool)) -> Page {
    let mut page = Page::default();
    if record.request.is_discreet {
        if let Some(number) = closes {
            page.closes(number);
        }
        page.small(vec![Line::filled("run {}", [Line::code(&run.to_string())])]);
        return page;
    }
    if is_follow_up {
        page.paragraph(why_changed(record.request.round.as_ref()));
        summary(&mut page, record);
    }
    unfinished(&mut page, record);
    verification(&mut page, record, &settings.planning.verification);
    for check in record
        .verified
        .checks
        .iter()
        .filter(|check| has_something_to_say(check))
    {
        let mut said = Page::default();
        said.code(&format!("$ {}\n{}", check.command, check.tail));
        page.details("What the failing check said", said);
    }
    no_test_mentions(&mut page, &record.verified.unmentioned);
    reviews::delivered(&mut page, record, settings);
    to_look_at(&mut page, &record.verified.findings);
    notes(&mut page, &record.thread.notes);
    refused_hosts::list(&mut page, &record.worked.refused);
    if let Some(number) = closes {
        page.closes(number);
    }
    let spent = Line::figures(&spent(record, settings));
    page.small(vec![
        spent.and(Line::filled(" · run {}", [Line::code(&run.to_string())])),
    ]);
    page
}

/// Returns the reply in a reviewer's thread that a round worked on.
pub fn thread_answer(record: &Record) -> Page {
    let mut page = Page::default();
    let done = record.delivered.head.as_ref().filter(|_| record.has_changes());
    page.paragraph(match done {
        Some(commit) => Line::filled("Worked on in {}.", [Line::code(commit.as_str())]),
        None => "Looked at; nothing was changed.".into(),
    });
    if let Some(summary) = &record.worked.summary {
        page.said(&middle_cut(summary, LONGEST_ANSWER, None));
    }
    page
}

fn why_changed(round: Option<&Round>) -> Line {
    let Some(round) = round else {
        return Line::from("**Changed on request**");
    };
    let why = match round.kind {
        Kind::Review => "**Changed after a review** (round {})",
        Kind::Checks => "**Changed after failed checks** (round {})",
    };
    Line::filled(why, [Line::figures(&round.number.to_string())])
}

/// Names the subtasks that are still open. A model that ticked none off does not tell.
fn unfinished(page: &mut Page, record: &Record) {
    let Some(plan) = &record.planned.plan else { return };
    let finished = &record.worked.finished_subtasks;
    let is_open = |subtask: &&Subtask| !finished.contains(&subtask.id);
    let open: Vec<Line> = plan
        .ordered()
        .into_iter()
        .filter(is_open)
        .map(|subtask| Line::said(&subtask.description, LONGEST_SUBTASK))
        .collect();
    if finished.is_empty() || open.is_empty() {
        return;
    }
    page.own("**Not finished**");
    page.items(open);
}
