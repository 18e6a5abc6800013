//! The plan of a run, as the progress comment shows it: a checklist, what it is to achieve, and the
//! plans before it.

use std::collections::BTreeSet;

use crate::agent::record::Record;
use crate::agent::record::sections::Evidence;
use crate::markdown::compose::{Line, Page};
use crate::plan::{Plan, Subtask};
use crate::task::state::State;

/// Maximum characters of a subtask, a criterion or an expectation.
const LONGEST: usize = 1000;
/// Maximum number of criteria and constraints.
const MOST: usize = 12;

/// Writes the plan, and below it the plans that it has replaced.
pub(crate) fn plans(page: &mut Page, state: State, record: &Record) {
    let Some(plan) = &record.planned.plan else { return };
    page.said(&plan.comment);
    let is_ticked = state == State::Done && record.is_verified() && record.has_changes();
    page.items(checklist(plan, &record.worked.finished_subtasks, is_ticked));
    goals(page, plan);
    estimates(page, plan);
    evidence(page, &record.planned.evidence);
    for former in record.planned.former_plans.iter().rev() {
        let mut before = Page::default();
        before.items(checklist(former, &BTreeSet::new(), false));
        page.details("The previous plan", before);
    }
}

/// Writes the plan's goals, as the worker is told them.
pub(crate) fn goals(page: &mut Page, plan: &Plan) {
    let goal = &plan.goal_understanding;
    let expected = plan
        .ordered()
        .into_iter()
        .filter_map(|subtask| plan.expected_outcome(&subtask.id));
    let lists = [
        (
            "Done when: ",
            goal.success_criteria.iter().map(String::as_str).collect::<Vec<_>>(),
        ),
        ("Constraint: ", goal.constraints.iter().map(String::as_str).collect()),
        ("Expected: ", expected.collect()),
    ];
    let items: Vec<Line> = lists
        .into_iter()
        .flat_map(|(what, list)| list.into_iter().map(move |text| (what, text)))
        .filter(|(_, text)| !text.trim().is_empty())
        .take(MOST)
        .map(|(what, text)| Line::from(what).and(Line::said(text, LONGEST)))
        .collect();
    if items.is_empty() {
        return;
    }
    let mut goals = Page::default();
    goals.items(items);
    page.details("What the plan is to achieve", goals);
}

/// Writes what the planner says of risk, approval and cost, as its words.
fn estimates(page: &mut Page, plan: &Plan) {
    let said = [
        ("Risk: ", &plan.risk),
        ("Approval needed: ", &plan.need_approval),
        ("Cost: ", &plan.cost_hint),
    ];
    let items: Vec<Line> = said
        .into_iter()
        .filter(|(_, words)| !words.trim().is_empty())
        .map(|(what, words)| Line::from(what).and(Line::said(words, LONGEST)))
        .collect();
    if items.is_empty() {
        return;
    }
    let mut estimates = Page::default();
    estimates.items(items);
    page.details("What the planner expects (nothing is decided by it)", estimates);
}

/// Writes the places that the plan rests on: links where they hold, and what is wrong where not.
pub(crate) fn evidence(page: &mut Page, evidence: &[Evidence]) {
    let items: Vec<Line> = evidence
        .iter()
        .take(MOST)
        .map(|evidence| {
            let mut line = match (&evidence.fault, &evidence.link) {
                (Some(fault), _) => Line::from("not found: ")
                    .and(Line::code(&evidence.cited.place()))
                    .and(" (")
                    .and(Line::said(fault, LONGEST))
                    .and(")"),
                (None, Some(link)) => Line::code(&evidence.cited.place()).and(" ").and(Line::address(link)),
                (None, None) => Line::code(&evidence.cited.place()),
            };
            if !evidence.cited.why.is_empty() {
                line = line.and(": ").and(Line::said(&evidence.cited.why, LONGEST));
            }
            line
        })
        .collect();
    if items.is_empty() {
        return;
    }
    let mut places = Page::default();
    places.items(items);
    page.details("What the plan rests on", places);
}

/// Marks finished subtasks, or all of them at the end of a run that changed something and whose
/// checks passed.
fn checklist(plan: &Plan, finished: &BTreeSet<String>, is_all_done: bool) -> Vec<Line> {
    let item = |subtask: &Subtask| {
        let is_ticked = is_all_done || finished.contains(&subtask.id);
        let tick = Line::from(if is_ticked { "[x] " } else { "[ ] " });
        tick.and(Line::said(&subtask.description, LONGEST))
    };
    plan.ordered().into_iter().map(item).collect()
}
