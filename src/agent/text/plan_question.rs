//! The question whether a plan may be carried out, as people read it in the thread.

use crate::agent::record::Record;
use crate::agent::services::Settings;
use crate::agent::text::plans;
use crate::agent::text::usage::spent;
use crate::approval::proposal::{Egress, HeldPlan, Part, Reason};
use crate::markdown::compose::{Line, Page};
use crate::plain::{counted, grouped};

/// Most characters of one line that a model wrote.
const LONGEST: usize = 1000;
/// Most hosts, and most lines of a list, that are named.
const MOST: usize = 20;

/// Writes the question.
pub(crate) fn question(page: &mut Page, held: &HeldPlan, record: &Record, settings: &Settings) {
    page.heading(if held.is_at_work {
        "🔐 The new plan needs your approval"
    } else {
        "🔐 The plan needs your approval"
    });
    if held.was_denied {
        page.own("This is the plan that was denied before: asked for another one, the planner made the same again.");
    }
    page.paragraph(why(held));
    page.items(what_would_happen(held));
    page.paragraph(environment(held));
    page.paragraph(match named(&held.files) {
        Some(files) => Line::from("Files of the project that it names: ").and(files).and("."),
        None => "It names no file of the project. Which files the work changes is seen in its result.".into(),
    });
    page.own(
        "The work is done in a container that is thrown away, so it can be undone. What programs send to hosts that they may \
         reach cannot.",
    );
    page.paragraph(cost(held, record, settings));
    let approve = format!("/agent approve {}", held.question.digest.short());
    page.paragraph(Line::filled(
        if held.is_at_work {
            "{} has the work go on with it, `/agent deny <reason>` as before, `/agent stop` ends it."
        } else {
            "{} has it carried out, `/agent deny <reason>` has another one made, `/agent stop` ends it."
        },
        [Line::code(&approve)],
    ));
    page.small(vec![Line::filled(
        "Question {}, digest {}, lapses {}",
        [
            Line::code(&held.question.id.to_string()),
            Line::code(held.question.digest.as_str()),
            Line::figures(&until(held, settings)),
        ],
    )]);
    page.details("The plan", plan(held));
    if let Some(plan) = &record.planned.plan {
        plans::goals(page, plan);
    }
    plans::evidence(page, &record.planned.evidence);
}

/// Returns the time at which the question lapses.
fn until(held: &HeldPlan, settings: &Settings) -> String {
    let lapses = held.question.lapses(settings.steering.expire_days);
    lapses.format("%Y-%m-%d %H:%M UTC").to_string()
}

fn why(held: &HeldPlan) -> Line {
    let reason = match &held.reason {
        Reason::Configured => {
            "It waits before anything is done, because the configuration has every plan wait (`approval.plan`).".into()
        }
        Reason::Cost { estimated, limit } => Line::filled(
            "It may cost more than is allowed without asking: {} are estimated, {} is the limit (`approval.cost_limit_usd`).",
            [dollars(*estimated), dollars(*limit)],
        ),
        Reason::Review { outcome } => Line::filled("A review did not let it pass: {}", [Line::said(outcome, LONGEST)]),
    };
    if held.changed.is_empty() {
        return reason;
    }
    let before = if held.is_void {
        "What was approved before is not what would be done now: "
    } else {
        "What was asked before is not what would be done now: "
    };
    Line::from(before)
        .and(changed(&held.changed))
        .and(" changed. ")
        .and(reason)
}

/// Names the parts that changed.
pub(crate) fn changed(parts: &[Part]) -> Line {
    let mut line = Line::default();
    for (number, part) in parts.iter().enumerate() {
        let joint = match number {
            0 => "",
            _ if number + 1 == parts.len() => " and ",
            _ => ", ",
        };
        line = line.and(joint).and(part.in_words());
    }
    line
}

/// One to three lines: the goal, the size of the plan, and what is run before the work.
fn what_would_happen(held: &HeldPlan) -> Vec<Line> {
    let mut lines = Vec::new();
    if !held.goal.is_empty() {
        lines.push(Line::said(&held.goal, LONGEST));
    }
    let sum = |list: &[String], what| counted(list.len(), what);
    lines.push(Line::filled(
        "{} by the model, then {} and the project's tests by the program",
        [
            Line::figures(&sum(&held.steps, "step")),
            Line::figures(&sum(&held.checks, "check")),
        ],
    ));
    if !held.set_up.is_empty() {
        lines.push(Line::filled(
            "before it {}",
            [Line::figures(&sum(&held.set_up, "set-up command"))],
        ));
    }
    lines
}

fn environment(held: &HeldPlan) -> Line {
    let line = Line::filled(
        "Environment {}, image {}. ",
        [Line::code(&held.environment), Line::code(&held.image)],
    );
    line.and(match &held.egress {
        Egress::Nothing => "It has no network.".into(),
        Egress::Everything => "It reaches the whole network.".into(),
        Egress::Hosts {
            hosts,
            only_during_set_up,
        } => {
            let hosts = Line::from("It reaches ").and(named(hosts).unwrap_or_default());
            hosts.and(if *only_during_set_up {
                ", and only while the set-up commands run."
            } else {
                "."
            })
        }
    })
}

fn cost(held: &HeldPlan, record: &Record, settings: &Settings) -> Line {
    let mut line = Line::from("So far: ")
        .and(Line::figures(&spent(record, settings)))
        .and(". Estimated, with all of it: about ")
        .and(Line::figures(&grouped(held.estimate.tokens)))
        .and(" tokens");
    if let Some(cost) = held.estimate.cost_usd {
        line = line.and(", ").and(dollars(cost));
    }
    line.and(". Limits: ")
        .and(Line::figures(&held.budget.join(", ")))
        .and(".")
}

fn plan(held: &HeldPlan) -> Page {
    let mut page = Page::default();
    page.items(held.steps.iter().map(|step| Line::said(step, LONGEST)).collect());
    for (what, commands) in [
        ("Set-up commands:", &held.set_up),
        ("The program checks the result with:", &held.checks),
    ] {
        if !commands.is_empty() {
            page.own(what);
            page.code(&commands.join("\n"));
        }
    }
    page
}

fn named(list: &[String]) -> Option<Line> {
    let (first, rest) = list.split_first()?;
    let mut line = Line::code(first);
    for name in rest.iter().take(MOST - 1) {
        line = line.and(", ").and(Line::code(name));
    }
    let more = list.len().saturating_sub(MOST);
    if more > 0 {
        line = line.and(" and ").and(Line::figures(&more.to_string())).and(" more");
    }
    Some(line)
}

fn dollars(cost: f64) -> Line {
    Line::figures(&format!("${cost:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Redactor;

    #[test]
    fn what_changed_is_a_list_of_words() {
        let said = |parts: &[Part]| {
            let mut page = Page::default();
            page.paragraph(changed(parts));
            page.written(&Redactor::default()).as_str().to_owned()
        };
        assert_eq!(said(&[Part::Egress]), "the hosts that may be reached");
        assert_eq!(
            said(&[Part::Plan, Part::SetUp, Part::Budget]),
            "the plan, its set-up commands and the budget"
        );
    }
}
