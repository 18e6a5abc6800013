//! Comparisons of two workers by the tasks that both worked on: the program against the floor and
//! the peer, and one round of the program against an earlier one.

use serde_json::{Value, json};

use crate::book::Book;
use crate::outcome::{Outcome, Worker};
use crate::report::figures::chance;
use crate::report::of_program;
use crate::setting::{Limits, Setting};
use crate::task::Task;

/// The most earlier rounds that a report looks back to.
const MOST_ROUNDS: usize = 5;

/// The same tasks as one and the other did them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pairs<'a> {
    pub tasks: usize,
    pub only_one: Vec<&'a str>,
    pub only_other: Vec<&'a str>,
}

/// Puts the outcomes of the same tasks side by side.
pub fn pairs<'a>(one: &[&'a Outcome], other: &[&'a Outcome]) -> Pairs<'a> {
    let mut pairs = Pairs::default();
    for ours in one {
        let Some(theirs) = other.iter().find(|outcome| outcome.task == ours.task) else {
            continue;
        };
        pairs.tasks += 1;
        match (ours.solved, theirs.solved) {
            (true, false) => pairs.only_one.push(&ours.task),
            (false, true) => pairs.only_other.push(&ours.task),
            _ => {}
        }
    }
    pairs
}

/// The chance below which a difference is taken for a real one.
const SIGNIFICANT: f64 = 0.05;

/// Prints how the program did beside another worker, and returns it for scripts.
pub fn show_against(outcomes: &[&Outcome], worker: Worker, name: &str) -> Option<Value> {
    let others: Vec<&Outcome> = outcomes
        .iter()
        .copied()
        .filter(|outcome| outcome.worker == worker)
        .collect();
    let pairs = pairs(&of_program(outcomes).collect::<Vec<_>>(), &others);
    if pairs.tasks == 0 {
        return None;
    }
    println!("{}", pairs.in_words("the program", name));
    Some(json!({
        "against": name, "tasks": pairs.tasks, "only_program": pairs.only_one, "only_other": pairs.only_other,
        "chance": chance(pairs.only_one.len(), pairs.only_other.len()), "is_significant_loss": pairs.is_significant_loss(),
    }))
}

/// Prints how this round of the program did beside the earlier ones with the same limits.
pub fn show_rounds_before(book: &Book, tasks: &[&str], now: &Setting) {
    let rounds = book.rounds();
    let before = rounds
        .iter()
        .rev()
        .filter(|other| **other != now && other.limits == now.limits);
    for other in before.take(MOST_ROUNDS) {
        show_rounds(book, tasks, (other, now));
    }
}

/// Prints two rounds side by side that were measured before.
pub fn of_two(book: &Book, tasks: &[Task], (one, other): (&str, &str), limits: Limits) -> anyhow::Result<()> {
    let tasks: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
    let rounds: Vec<&Setting> = book
        .rounds()
        .into_iter()
        .filter(|round| round.limits == limits)
        .collect();
    let (one, other) = (called(&rounds, one)?, called(&rounds, other)?);
    anyhow::ensure!(
        show_rounds(book, &tasks, (one, other)),
        "both rounds have none of these tasks in common"
    );
    Ok(())
}

/// Returns the only round with this name, or with this name and what was unusual about it.
fn called<'a>(rounds: &[&'a Setting], name: &str) -> anyhow::Result<&'a Setting> {
    let exact = rounds.iter().filter(|round| round.label() == name);
    let named = rounds.iter().filter(|round| round.round == name);
    let found: Vec<&&Setting> = exact.chain(named).collect();
    let labels = |rounds: &[&Setting]| {
        let labels: Vec<String> = rounds.iter().map(|round| round.label()).collect();
        labels.join(", ")
    };
    match found.as_slice() {
        [only] => Ok(**only),
        [first, ..] if first.label() == name => Ok(**first),
        [] => anyhow::bail!(
            "no round with these limits is called {name}; there are: {}",
            labels(rounds)
        ),
        several => anyhow::bail!(
            "several rounds are called {name}: {}",
            labels(&several.iter().map(|round| **round).collect::<Vec<_>>())
        ),
    }
}

/// Prints two rounds side by side, and tells whether they have a task in common.
fn show_rounds(book: &Book, tasks: &[&str], (before, after): (&Setting, &Setting)) -> bool {
    let (old, new) = (of_round(book, tasks, before), of_round(book, tasks, after));
    let pairs = pairs(&new, &old);
    if pairs.tasks == 0 {
        return false;
    }
    let solved = |outcomes: &[&Outcome], others: &[&Outcome]| {
        let is_in_both = |outcome: &&&Outcome| others.iter().any(|other| other.task == outcome.task);
        outcomes
            .iter()
            .filter(is_in_both)
            .filter(|outcome| outcome.solved)
            .count()
    };
    println!(
        "Round {} beside round {}: {} and {} of {} tasks solved.",
        after.label(),
        before.label(),
        solved(&new, &old),
        solved(&old, &new),
        pairs.tasks
    );
    println!("{}", pairs.in_words(&after.label(), &before.label()));
    for (round, tasks) in [(after, &pairs.only_one), (before, &pairs.only_other)] {
        if !tasks.is_empty() {
            println!("- only {}: {}", round.label(), tasks.join(", "));
        }
    }
    true
}

fn of_round<'a>(book: &'a Book, tasks: &[&str], round: &Setting) -> Vec<&'a Outcome> {
    let outcomes = book.of_round(round).into_iter();
    outcomes
        .filter(|outcome| tasks.contains(&outcome.task.as_str()))
        .collect()
}

impl Pairs<'_> {
    /// Returns true if the other solved more, by more than chance would make it at 5 %.
    fn is_significant_loss(&self) -> bool {
        let (ours, theirs) = (self.only_one.len(), self.only_other.len());
        ours < theirs && chance(ours, theirs) < SIGNIFICANT
    }

    fn in_words(&self, one: &str, other: &str) -> String {
        let (ours, theirs) = (self.only_one.len(), self.only_other.len());
        format!(
            "{one} against {other}, {} tasks: {ours} that only the former solved, {theirs} that only the latter did; by chance as \
             unlike in {:.1} of 100 times, {}.",
            self.tasks,
            100.0 * chance(ours, theirs),
            if self.is_significant_loss() {
                "a loss that is significant at 5 %"
            } else {
                "no loss that is significant at 5 %"
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::outcome;

    #[test]
    fn the_same_tasks_are_held_against_each_other() {
        let now = [
            outcome("a", "now", true),
            outcome("b", "now", false),
            outcome("c", "now", true),
        ];
        let before = [
            outcome("b", "before", true),
            outcome("a", "before", false),
            outcome("d", "before", true),
        ];
        let found = pairs(&now.iter().collect::<Vec<_>>(), &before.iter().collect::<Vec<_>>());
        let wanted = Pairs {
            tasks: 2,
            only_one: vec!["a"],
            only_other: vec!["b"],
        };
        assert_eq!(found, wanted);
        assert_eq!(
            found.in_words("now", "before"),
            "now against before, 2 tasks: 1 that only the former solved, 1 that only the latter did; by chance as unlike in 100.0 \
             of 100 times, no loss that is significant at 5 %."
        );
        let lost = |ours: usize, theirs: usize| Pairs {
            tasks: 20,
            only_one: vec!["a"; ours],
            only_other: vec!["b"; theirs],
        };
        assert!(!lost(0, 5).is_significant_loss(), "1 of 16");
        assert!(lost(0, 6).is_significant_loss(), "1 of 32");
        assert!(!lost(6, 0).is_significant_loss(), "it is a gain");
        assert_eq!(pairs(&[], &[&now[0]]), Pairs::default());
    }

    #[test]
    fn a_round_is_called_by_its_name_or_its_label() {
        let plain = outcome("a", "now", true).setting;
        let planned = Setting {
            plan: true,
            ..plain.clone()
        };
        assert_eq!(called(&[&plain], "now").unwrap(), &plain);
        let both = [&plain, &planned];
        assert_eq!(called(&both, "now/auto/plan").unwrap(), &planned);
        assert_eq!(called(&both, "now/auto").unwrap(), &plain);
        let several = called(&both, "now").unwrap_err().to_string();
        assert_eq!(several, "several rounds are called now: now/auto, now/auto/plan");
        let none = called(&both, "then").unwrap_err().to_string();
        assert!(none.ends_with("there are: now/auto, now/auto/plan"), "{none}");
    }
}
