//! The file that keeps the outcomes with one model, so that a measurement that was broken off goes
//! on, and rounds can be held against one another. Lines are only added; what is measured anew is
//! taken out first.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::outcome::{Outcome, Worker};
use crate::setting::Setting;

/// The outcomes so far with one model.
pub struct Book {
    path: PathBuf,
    pub outcomes: Vec<Outcome>,
}

impl Book {
    /// Opens the book of a model.
    pub fn open(folder: &Path, model: &str) -> anyhow::Result<Self> {
        let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || ".-_".contains(*letter);
        let name: String = model
            .chars()
            .map(|letter| if is_plain(&letter) { letter } else { '-' })
            .collect();
        let path = folder.join(format!("{name}.jsonl"));
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
        };
        if !text.is_empty() && !text.ends_with('\n') {
            // The last line is half a one, and the next is to be a whole one.
            append(&path, "\n")?;
        }
        let outcomes = text.lines().flat_map(serde_json::from_str).collect();
        Ok(Self { path, outcomes })
    }

    /// Returns the path of the last report on it.
    pub fn report(&self) -> PathBuf {
        self.path.with_extension("json")
    }

    /// Tells whether the task was measured under these conditions.
    pub fn has(&self, task: &str, worker: Worker, setting: &Setting) -> bool {
        self.outcomes
            .iter()
            .any(|outcome| outcome.task == task && outcome.worker == worker && outcome.setting == *setting)
    }

    pub fn add(&mut self, outcome: Outcome) -> anyhow::Result<()> {
        append(&self.path, &line_of(&outcome)?)?;
        self.outcomes.push(outcome);
        Ok(())
    }

    /// Takes out what is to be measured once more.
    pub fn forget(&mut self, is_wanted_anew: impl Fn(&Outcome) -> bool) -> anyhow::Result<()> {
        let before = self.outcomes.len();
        self.outcomes.retain(|outcome| !is_wanted_anew(outcome));
        if self.outcomes.len() == before {
            return Ok(());
        }
        let lines = self.outcomes.iter().map(line_of).collect::<anyhow::Result<String>>()?;
        let beside = self.path.with_extension("jsonl.new");
        std::fs::write(&beside, lines)?;
        Ok(std::fs::rename(beside, &self.path)?)
    }

    /// Returns the settings that the program was measured in, in the order of their first outcomes.
    pub fn rounds(&self) -> Vec<&Setting> {
        let mut rounds: Vec<&Setting> = Vec::new();
        for outcome in &self.outcomes {
            if outcome.worker == Worker::Program && !rounds.contains(&&outcome.setting) {
                rounds.push(&outcome.setting);
            }
        }
        rounds
    }

    /// Returns the program's outcomes in a setting.
    pub fn of_round(&self, setting: &Setting) -> Vec<&Outcome> {
        let outcomes = self.outcomes.iter();
        outcomes
            .filter(|outcome| outcome.worker == Worker::Program && outcome.setting == *setting)
            .collect()
    }
}

fn append(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}

fn line_of(outcome: &Outcome) -> anyhow::Result<String> {
    Ok(serde_json::to_string(outcome)? + "\n")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::choice;
    use crate::outcome::tests::outcome;
    use crate::task;

    const MEASURED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/solve_rate/measured");

    /// Returns the book that ships of a model.
    fn measured(model: &str) -> Book {
        Book::open(Path::new(MEASURED), model).unwrap()
    }

    #[test]
    fn a_measurement_goes_on_where_it_was_broken_off() {
        let folder = tempfile::tempdir().unwrap();
        let mut book = Book::open(folder.path(), "a/b:1").unwrap();
        let one = outcome("one", "now", true);
        book.add(one.clone()).unwrap();
        let path = folder.path().join("a-b-1.jsonl");
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{whole}{}", &whole[..20])).unwrap();
        let mut again = Book::open(folder.path(), "a/b:1").unwrap();
        assert!(again.has("one", Worker::Program, &one.setting));
        assert!(!again.has("one", Worker::Floor, &one.setting));
        again.add(outcome("two", "now", false)).unwrap();
        let outcomes = Book::open(folder.path(), "a/b:1").unwrap().outcomes;
        assert_eq!(outcomes, [one, outcome("two", "now", false)]);
    }

    #[test]
    fn rounds_do_not_mix_and_baselines_outlive_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut book = Book::open(folder.path(), "m").unwrap();
        let (before, now) = (outcome("one", "before", false), outcome("one", "now", true));
        let floor = Outcome {
            worker: Worker::Floor,
            setting: Setting::baseline(now.setting.limits, ""),
            ..now.clone()
        };
        for outcome in [&before, &floor, &now] {
            book.add(outcome.clone()).unwrap();
        }
        let planned = Setting {
            plan: true,
            ..now.setting.clone()
        };
        assert!(book.has("one", Worker::Program, &now.setting));
        assert!(!book.has("one", Worker::Program, &planned));
        assert_eq!(book.rounds(), [&before.setting, &now.setting]);
        assert_eq!(book.of_round(&before.setting), [&before]);
        book.forget(|outcome| outcome.setting == now.setting).unwrap();
        assert_eq!(Book::open(folder.path(), "m").unwrap().outcomes, [before, floor]);
    }

    /// A line that cannot be read is left out of a book without a word.
    #[test]
    fn every_line_that_ships_is_the_outcome_of_a_task_that_ships() {
        let tasks = task::shipped().unwrap();
        let grades: HashMap<&str, u8> = tasks.iter().map(|task| (task.name.as_str(), task.grade)).collect();
        let mut books = 0;
        for entry in std::fs::read_dir(MEASURED).unwrap() {
            let path = entry.unwrap().path();
            let mut book = Book {
                path: path.clone(),
                outcomes: Vec::new(),
            };
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let outcome: Outcome = serde_json::from_str(line).unwrap();
                assert_eq!(grades.get(outcome.task.as_str()), Some(&outcome.grade), "{line}");
                let is_twice = book.has(&outcome.task, outcome.worker, &outcome.setting);
                assert!(!is_twice, "measured before: {line}");
                book.outcomes.push(outcome);
            }
            books += 1;
        }
        assert_eq!(books, 2);
    }

    #[test]
    fn the_documents_have_the_figures_that_ship() {
        let (larger, smaller) = (
            "qwen2.5-coder-1.5b-instruct-q4_k_m",
            "qwen2.5-coder-0.5b-instruct-q4_k_m",
        );
        let (larger, smaller) = (measured(larger), measured(smaller));
        let usual = choice::chosen(task::shipped().unwrap(), 20);
        let is_usual = |outcome: &&Outcome| usual.iter().any(|task| task.name == outcome.task);
        let solved = |outcomes: &[&Outcome]| {
            let solved = outcomes.iter().filter(|outcome| outcome.solved).count();
            (solved, outcomes.len())
        };
        let of = |book: &Book, worker: Worker, round: &str| -> Vec<Outcome> {
            let outcomes = book.outcomes.iter();
            let own = outcomes.filter(|outcome| outcome.worker == worker && outcome.setting.round == round);
            own.cloned().collect()
        };
        let peer = "mini-swe-agent 2.4.6";
        for (book, worker, round, of_all, of_usual) in [
            (&larger, Worker::Program, "tests", (10, 32), (6, 20)),
            (&larger, Worker::Program, "before", (7, 32), (4, 20)),
            (&larger, Worker::Floor, "", (7, 32), (5, 20)),
            (&larger, Worker::Peer, peer, (0, 20), (0, 20)),
            (&smaller, Worker::Program, "short", (0, 8), (0, 8)),
        ] {
            let outcomes = of(book, worker, round);
            let all: Vec<&Outcome> = outcomes.iter().collect();
            let usual: Vec<&Outcome> = outcomes.iter().filter(is_usual).collect();
            assert_eq!((solved(&all), solved(&usual)), (of_all, of_usual), "{worker:?} {round}");
            let dishonest: Vec<&str> = outcomes
                .iter()
                .filter(|outcome| worker == Worker::Program && outcome.is_dishonest())
                .map(|outcome| outcome.task.as_str())
                .collect();
            assert_eq!(dishonest, Vec::<&str>::new(), "{round}");
        }
    }
}
