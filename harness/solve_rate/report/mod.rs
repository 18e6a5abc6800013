//! The report on a measurement: a table by worker and by grade, what the differences mean, and why
//! tasks were not solved.

mod figures; // shares, and what is due to chance
mod table; // the rows
pub mod comparison; // a round beside another one
mod causes; // why tasks were not solved

use coding_agent::plain::counted;
use coding_agent_harness::{build, machine};
use serde_json::json;

use crate::book::Book;
use crate::outcome::{Outcome, Worker};
use crate::setting::{Anew, Setting};

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
    /// The outcomes that were measured once more.
    pub anew: Anew,
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
            "\n{}, {}: {} and {} a task\n",
            self.model,
            self.setting.label(),
            counted(limits.turns, "turn"),
            counted(limits.minutes, "minute")
        );
        for line in table::lines(&outcomes, self.tasks.len()) {
            println!("{line}");
        }
        for (worker, name) in WORKERS {
            if let Some(sentence) = self.missing(worker, name) {
                println!("{sentence}");
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

    /// Returns a sentence on the tasks that there was no time for, if there are any.
    fn missing(&self, worker: Worker, name: &str) -> Option<String> {
        let missing: Vec<&str> = self
            .not_measured
            .iter()
            .filter(|(_, other)| *other == worker)
            .map(|(task, _)| task.as_str())
            .collect();
        (!missing.is_empty()).then(|| {
            format!(
                "Not measured for want of time, {name}: {} of {} tasks ({}); {} goes on with them.",
                missing.len(),
                self.tasks.len(),
                missing.join(", "),
                self.anew.going_on()
            )
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::outcome;

    #[test]
    fn what_there_was_no_time_for_is_named_with_the_command_that_goes_on() {
        let setting = outcome("a", "now", true).setting;
        let report = |anew: Anew| Report {
            model: "m",
            setting: &setting,
            tasks: vec!["a", "b", "c"],
            workers: Vec::new(),
            anew,
            not_measured: vec![("b".to_owned(), Worker::Peer), ("c".to_owned(), Worker::Peer)],
        };
        let said = |anew: Anew| report(anew).missing(Worker::Peer, "mini-swe-agent");
        let same =
            "Not measured for want of time, mini-swe-agent: 2 of 3 tasks (b, c); the same command goes on with them.";
        assert_eq!(said(Anew::Nothing).as_deref(), Some(same));
        // With it, the same command would begin once more.
        let without = same.replace("command", "command without ANEW");
        assert_eq!(said(Anew::Program), Some(without.clone()));
        assert_eq!(said(Anew::All), Some(without));
        assert_eq!(report(Anew::All).missing(Worker::Floor, "the floor"), None);
    }
}
