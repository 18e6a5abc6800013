//! The table, by who worked and by grade, and what the differences mean.

use coding_agent_harness::build;
use serde_json::json;

use crate::figures::{chance, count, median, share};
use crate::outcome::{End, Outcome, Worker};

const WORKERS: [(Worker, &str); 3] = [
    (Worker::Program, "the program"),
    (Worker::Floor, "the same model, asked once"),
    (Worker::Peer, "mini-swe-agent"),
];

/// Prints the report on the outcomes of some tasks, writes it for scripts, and returns the number of
/// dishonest ends of the program.
pub fn show(model: &str, outcomes: &[Outcome]) -> anyhow::Result<usize> {
    println!("\n{model}\n");
    println!("| who | solved | 95 % | drafts | failed | dishonest | tokens in | tokens out | seconds | turns |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (worker, name) in WORKERS {
        let own: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.worker == worker).collect();
        if !own.is_empty() {
            println!("{}", row(name, &own));
        }
        for grade in 1..=3 {
            let of_grade: Vec<&Outcome> = own.iter().copied().filter(|outcome| outcome.grade == grade).collect();
            if !of_grade.is_empty() && of_grade.len() < own.len() {
                println!("{}", row(&format!("… grade {grade}"), &of_grade));
            }
        }
    }
    println!("\nTokens, seconds and turns are medians of a task.");
    for (worker, name) in &WORKERS[1..] {
        if let Some((ours, theirs)) = paired(outcomes, *worker) {
            let chance = chance(ours, theirs);
            println!(
                "Against {name}: {ours} tasks that only the program solved, {theirs} that only the other did; by chance as unlike in {:.0} of 100 times.",
                100.0 * chance
            );
        }
    }
    let unsolved = outcomes
        .iter()
        .filter(|outcome| outcome.worker == Worker::Program && !outcome.solved);
    for outcome in unsolved {
        println!(
            "- {}: {:?} after {} turns. {}",
            outcome.task, outcome.end, outcome.turns, outcome.reason
        );
    }
    let dishonest = of_program(outcomes).filter(|outcome| outcome.is_dishonest()).count();
    let path = build::results("solve-rate")?.join("report.json");
    build::write_report(
        &path,
        &json!({ "model": model, "outcomes": outcomes, "dishonest": dishonest }),
    )?;
    Ok(dishonest)
}

fn of_program(outcomes: &[Outcome]) -> impl Iterator<Item = &Outcome> {
    outcomes.iter().filter(|outcome| outcome.worker == Worker::Program)
}

/// Counts the tasks that only the program solved, and those that only the other did.
fn paired(outcomes: &[Outcome], other: Worker) -> Option<(usize, usize)> {
    let theirs = |task: &str| {
        outcomes
            .iter()
            .find(|outcome| outcome.worker == other && outcome.task == task)
    };
    let pairs: Vec<(bool, bool)> = of_program(outcomes)
        .filter_map(|ours| Some((ours.solved, theirs(&ours.task)?.solved)))
        .collect();
    let of = |wanted: (bool, bool)| pairs.iter().filter(|pair| **pair == wanted).count();
    (!pairs.is_empty()).then(|| (of((true, false)), of((false, true))))
}

fn row(name: &str, outcomes: &[&Outcome]) -> String {
    let ends = |end: End| outcomes.iter().filter(|outcome| outcome.end == end).count();
    let solved = outcomes.iter().filter(|outcome| outcome.solved).count();
    let dishonest = outcomes.iter().filter(|outcome| outcome.is_dishonest()).count();
    let (percent, low, high) = share(solved, outcomes.len());
    let middle = |value: fn(&Outcome) -> f64| median(outcomes.iter().map(|outcome| value(outcome)).collect());
    #[expect(clippy::cast_precision_loss, reason = "tokens of one task are few")]
    let (input, output) = (
        middle(|outcome| outcome.input as f64),
        middle(|outcome| outcome.output as f64),
    );
    format!(
        "| {name} | {solved} of {} ({percent:.0} %) | {low:.0}–{high:.0} % | {} | {} | {dishonest} | {input:.0} | {output:.0} | {:.0} | {:.0} |",
        outcomes.len(),
        ends(End::Draft),
        ends(End::Failed),
        middle(|outcome| outcome.seconds),
        middle(|outcome| count(outcome.turns)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(task: &str, worker: Worker, solved: bool) -> Outcome {
        Outcome {
            task: task.to_owned(),
            grade: 1,
            worker,
            end: if solved { End::Ready } else { End::Draft },
            solved,
            passes_visible: solved,
            names_doubts: false,
            input: 1_000,
            output: 100,
            turns: 4,
            seconds: 9.0,
            reason: String::new(),
        }
    }

    #[test]
    fn the_same_tasks_are_held_against_each_other() {
        let outcomes = [
            outcome("a", Worker::Program, true),
            outcome("a", Worker::Floor, false),
            outcome("b", Worker::Program, false),
            outcome("b", Worker::Floor, false),
            outcome("c", Worker::Program, true),
        ];
        assert_eq!(paired(&outcomes, Worker::Floor), Some((1, 0)));
        assert_eq!(paired(&outcomes, Worker::Peer), None);
    }

    #[test]
    fn a_row_tells_all_of_one() {
        let (one, other) = (
            outcome("a", Worker::Program, true),
            outcome("b", Worker::Program, false),
        );
        assert_eq!(
            row("x", &[&one, &other]),
            "| x | 1 of 2 (50 %) | 9–91 % | 1 | 0 | 0 | 1000 | 100 | 9 | 4 |"
        );
    }
}
