//! The report on a measurement: a table by worker and by grade, what the differences mean, and why
//! tasks were not solved.

mod figures; // shares, and what is due to chance
mod table; // the rows
pub mod comparison; // a round beside another one
mod causes; // why tasks were not solved

use coding_agent_harness::{build, machine};
use serde_json::json;

use crate::book::Book;
use crate::outcome::{Outcome, Worker};
use crate::setting::Setting;

const WORKERS: [(Worker, &str); 3] = [
    (Worker::Program, "the program"),
    (Worker::Floor, "the same model, asked once"),
    (Worker::Peer, "mini-swe-agent"),
];

/// A measurement that is over.
pub struct Report<'a> {
    pub model: &'a str,
    pub setting: &'a Setting,
    /// The names of the tasks that were asked for.
    pub tasks: Vec<&'a str>,
    pub workers: Vec<(Worker, Setting)>,
    /// Tasks and workers that the time of the measurement did not suffice for.
    pub not_measured: Vec<(String, Worker)>,
}

impl Report<'_> {
    /// Prints the report, writes it for scripts, and returns the number of dishonest ends of the
    /// program.
    pub fn show(&self, book: &Book) -> anyhow::Result<usize> {
        let outcomes = self.outcomes(book);
        let limits = self.setting.limits;
        println!(
            "\n{}, {}: {} turns and {} minutes a task\n",
            self.model,
            self.setting.label(),
            limits.turns,
            limits.minutes
        );
        for line in table::lines(&outcomes, self.tasks.len()) {
            println!("{line}");
        }
        for (worker, name) in WORKERS {
            let missing: Vec<&str> = self
                .not_measured
                .iter()
                .filter(|(_, other)| *other == worker)
                .map(|(task, _)| task.as_str())
                .collect();
            if !missing.is_empty() {
                println!(
                    "Not measured for want of time, {name}: {} of {} tasks ({}). The same command goes on with them.",
                    missing.len(),
                    self.tasks.len(),
                    missing.join(", ")
                );
            }
        }
        let against: Vec<_> = WORKERS[1..]
            .iter()
            .filter_map(|(worker, name)| comparison::show_against(&outcomes, *worker, name))
            .collect();
        comparison::show_rounds_before(book, &self.tasks, self.setting);
        let causes = causes::of(&outcomes);
        causes::show(&causes);
        let dishonest = of_program(&outcomes).filter(|outcome| outcome.is_dishonest()).count();
        let described = machine::described();
        println!("\n{}", machine::sentence(&described));
        let report = json!({
            "machine": described, "against": against,
            "model": self.model, "setting": self.setting, "outcomes": outcomes, "dishonest": dishonest,
            "causes": causes, "not_measured": self.not_measured,
        });
        build::write_report(&book.report(), &report)?;
        Ok(dishonest)
    }

    fn outcomes<'b>(&self, book: &'b Book) -> Vec<&'b Outcome> {
        let outcomes = book.outcomes.iter();
        outcomes
            .filter(|outcome| self.tasks.contains(&outcome.task.as_str()))
            .filter(|outcome| self.workers.contains(&(outcome.worker, outcome.setting.clone())))
            .collect()
    }
}

fn of_program<'a>(outcomes: &[&'a Outcome]) -> impl Iterator<Item = &'a Outcome> {
    let outcomes = outcomes.iter().copied();
    outcomes.filter(|outcome| outcome.worker == Worker::Program)
}
