//! Why the program did not solve tasks, by what its own log and the tests tell, never by the words
//! of a model. A task has one cause: the first of those that hold, from the outside inwards.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::outcome::{Checks, End, Outcome};
use crate::report::of_program;

/// The most causes that are listed.
const MOST: usize = 10;
/// The most tasks that are named with a cause.
const MOST_TASKS: usize = 12;

/// A cause with the tasks that were not solved for it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    pub name: &'static str,
    pub tasks: Vec<String>,
    /// The reason for the failure that is kept with the first of the tasks.
    pub example: String,
}

/// Returns the causes of the program's failures, the commonest first.
pub fn of(outcomes: &[&Outcome]) -> Vec<Cause> {
    let mut causes: BTreeMap<&'static str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in of_program(outcomes).filter(|outcome| !outcome.solved) {
        causes.entry(cause(outcome)).or_default().push(outcome);
    }
    let mut causes: Vec<Cause> = causes
        .into_iter()
        .map(|(name, outcomes)| Cause {
            name,
            example: outcomes
                .first()
                .map(|outcome| outcome.reason.clone())
                .unwrap_or_default(),
            tasks: outcomes.iter().map(|outcome| outcome.task.clone()).collect(),
        })
        .collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.tasks.len()));
    causes
}

/// Prints the ten commonest.
pub fn show(causes: &[Cause]) {
    if causes.is_empty() {
        return;
    }
    println!("\n| tasks | why the program did not solve them | which | for example |\n|---:|---|---|---|");
    for cause in causes.iter().take(MOST) {
        let shown = cause
            .tasks
            .iter()
            .take(MOST_TASKS)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        let more = cause.tasks.len().saturating_sub(MOST_TASKS);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        println!(
            "| {} | {} | {shown}{more} | {} |",
            cause.tasks.len(),
            cause.name,
            cause.example.replace('|', "\\|")
        );
    }
}

/// Returns the cause of one failure.
fn cause(outcome: &Outcome) -> &'static str {
    let facts = &outcome.facts;
    if facts.is_cut {
        return "it did not end, and was ended";
    }
    if facts.lacks_reply {
        return "the model's server gave no reply in time, or an error";
    }
    match outcome.end {
        End::Failed => without_result(outcome),
        End::Ready | End::Draft if !facts.changes_files => "said to be done, and no file was changed",
        End::Draft if facts.checks == Checks::Failed && outcome.passes_visible => {
            "a draft: the project's tests pass, but not its own checks"
        }
        End::Draft => "a draft: its checks failed to the end",
        End::Ready if facts.checks == Checks::None && !outcome.passes_visible => {
            "nothing was checked, and the test that fails for all to see still does"
        }
        End::Ready if !outcome.passes_visible => {
            "the checks let it through, and the test that fails for all to see still does"
        }
        End::Ready if facts.checks == Checks::None => "nothing was checked, and only the hidden tests fail",
        End::Ready => "checked, and only the hidden tests fail",
    }
}

/// Returns the cause of an end without a result.
fn without_result(outcome: &Outcome) -> &'static str {
    let facts = &outcome.facts;
    let is_at_limit = facts.ending.contains("limit");
    if facts.ending.contains("unreadable") {
        "replies that could not be read"
    } else if is_at_limit && facts.unreadable > outcome.turns / 2 {
        "at its limit, most replies unreadable"
    } else if facts.circles > 0 {
        "went round in circles"
    } else if is_at_limit && facts.missed_calls > outcome.turns / 2 {
        "at its limit, most calls of tools refused"
    } else if is_at_limit && facts.checks == Checks::Failed {
        "at its limit, its checks failing"
    } else if is_at_limit {
        "at its limit, before any check"
    } else {
        "it gave up"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Facts;
    use crate::outcome::tests::outcome;

    fn with(end: End, passes_visible: bool, facts: Facts) -> Outcome {
        Outcome {
            end,
            passes_visible,
            facts,
            ..outcome("a", "now", false)
        }
    }

    fn changed(checks: Checks) -> Facts {
        Facts {
            changes_files: true,
            checks,
            ..Facts::default()
        }
    }

    fn ended(ending: &str) -> Facts {
        Facts {
            ending: ending.to_owned(),
            ..Facts::default()
        }
    }

    #[test]
    fn each_failure_has_the_cause_that_its_facts_tell() {
        let limit = "paused: a limit is reached";
        let circles = Facts {
            circles: 1,
            ..ended(limit)
        };
        let missed = Facts {
            missed_calls: 3,
            ..ended(limit)
        };
        let cut = Facts {
            is_cut: true,
            ..ended("")
        };
        let silent = Facts {
            lacks_reply: true,
            ..ended("put back until later")
        };
        for (end, passes_visible, facts, wanted) in [
            (End::Failed, false, cut, "it did not end, and was ended"),
            (
                End::Failed,
                false,
                silent,
                "the model's server gave no reply in time, or an error",
            ),
            (
                End::Failed,
                false,
                ended("failed: unreadable replies"),
                "replies that could not be read",
            ),
            (End::Failed, false, circles, "went round in circles"),
            (End::Failed, false, missed, "at its limit, most calls of tools refused"),
            (End::Failed, false, ended(limit), "at its limit, before any check"),
            (End::Failed, false, ended("failed"), "it gave up"),
            (
                End::Ready,
                false,
                ended("done"),
                "said to be done, and no file was changed",
            ),
            (
                End::Draft,
                false,
                changed(Checks::Failed),
                "a draft: its checks failed to the end",
            ),
            (
                End::Ready,
                false,
                changed(Checks::None),
                "nothing was checked, and the test that fails for all to see still does",
            ),
            (
                End::Ready,
                true,
                changed(Checks::Passed),
                "checked, and only the hidden tests fail",
            ),
        ] {
            assert_eq!(cause(&with(end, passes_visible, facts)), wanted);
        }
    }

    #[test]
    fn the_commonest_comes_first_and_what_was_solved_has_none() {
        let one = with(End::Failed, false, ended("failed"));
        let other = with(End::Ready, true, changed(Checks::Passed));
        let third = Outcome {
            task: "b".to_owned(),
            ..other.clone()
        };
        let solved = outcome("c", "now", true);
        let causes = of(&[&one, &other, &third, &solved]);
        let named: Vec<(&str, &[String])> = causes
            .iter()
            .map(|cause| (cause.name, cause.tasks.as_slice()))
            .collect();
        assert_eq!(
            named,
            [
                (
                    "checked, and only the hidden tests fail",
                    &["a".to_owned(), "b".to_owned()][..]
                ),
                ("it gave up", &["a".to_owned()][..]),
            ]
        );
    }
}
