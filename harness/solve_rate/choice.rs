//! The choice of the tasks that are measured: those that ship, and those that others wrote where all
//! are asked for, or some of them by name.

use crate::borrowed;
use crate::setting::{Size, Wanted};
use crate::task::{self, Task};

/// Returns the tasks that are asked for.
pub fn of(wanted: &Wanted) -> anyhow::Result<Vec<Task>> {
    let tasks = among(task::shipped()?, borrowed::of_environment()?, wanted);
    anyhow::ensure!(!tasks.is_empty(), "there is no such task");
    Ok(tasks)
}

fn among(mut tasks: Vec<Task>, borrowed: Vec<Task>, wanted: &Wanted) -> Vec<Task> {
    if wanted.size == Size::Full || !wanted.names.is_empty() {
        tasks.extend(borrowed);
    } else if !borrowed.is_empty() {
        eprintln!("solve-rate: the tasks that others wrote are left out; FULL=1 takes all, ONLY=quixbugs some of them");
    }
    if wanted.names.is_empty() {
        let count = match wanted.size {
            Size::Short => 8,
            Size::Usual => 20,
            Size::Full => tasks.len(),
        };
        tasks = chosen(tasks, count);
    } else {
        tasks.retain(|task| wanted.names.iter().any(|word| task.name.contains(word.as_str())));
    }
    if let Some(half) = &wanted.half {
        tasks.retain(|task| half_of(&task.name) == half);
    }
    tasks
}

/// Returns the half of the tasks that this one belongs to: what was changed by looking at one half
/// is confirmed on the other.
pub fn half_of(name: &str) -> &'static str {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(name.as_bytes());
    if digest[0].is_multiple_of(2) { "a" } else { "b" }
}

/// Returns some of these tasks, of all languages and, in their shares, of the first grades: the
/// second of each language comes after the first of all.
pub fn chosen(tasks: Vec<Task>, count: usize) -> Vec<Task> {
    let mut ranked: Vec<(usize, Task)> = Vec::new();
    for task in tasks {
        // Grade 3 comes up half as often: a small model does hardly any of them.
        let before = ranked
            .iter()
            .filter(|(_, other)| (other.language, other.grade) == (task.language, task.grade))
            .count();
        let rank = match task.grade {
            3 => 2 * before + 2,
            grade => 2 * before + usize::from(grade) - 1,
        };
        ranked.push((rank, task));
    }
    ranked.sort_by(|(one, a), (other, b)| (one, &a.language, &a.name).cmp(&(other, &b.language, &b.name)));
    ranked.into_iter().map(|(_, task)| task).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::{Anew, Edits, Limits, Setting};
    use crate::task::{Files, Language};

    fn task(name: &str) -> Task {
        Task {
            name: name.to_owned(),
            language: Language::Python,
            grade: 1,
            title: String::new(),
            body: String::new(),
            files: Files::new(),
            hidden: Files::new(),
            mend: Files::new(),
        }
    }

    fn named(size: Size, words: &[&str]) -> Vec<String> {
        let wanted = wanted(size, None, words);
        let tasks = among(vec![task("python/one")], vec![task("quixbugs/two")], &wanted);
        tasks.into_iter().map(|task| task.name).collect()
    }

    fn wanted(size: Size, half: Option<&str>, words: &[&str]) -> Wanted {
        Wanted {
            size,
            half: half.map(str::to_owned),
            names: words.iter().map(|word| (*word).to_owned()).collect(),
            anew: Anew::Nothing,
            compare: None,
            is_with_peer: false,
            setting: Setting {
                limits: Limits {
                    turns: 1,
                    minutes: 1,
                    window: None,
                },
                plan: false,
                edits: Some(Edits::Auto),
                round: String::new(),
            },
        }
    }

    #[test]
    fn tasks_of_others_are_added_where_all_are_asked_for_or_by_name() {
        assert_eq!(named(Size::Short, &[]), ["python/one"]);
        assert_eq!(named(Size::Usual, &[]), ["python/one"]);
        assert_eq!(named(Size::Full, &[]), ["python/one", "quixbugs/two"]);
        assert_eq!(named(Size::Usual, &["quixbugs/"]), ["quixbugs/two"]);
        assert_eq!(named(Size::Short, &["one", "two"]), ["python/one", "quixbugs/two"]);
    }

    #[test]
    fn halves_are_of_the_tasks_that_are_chosen() {
        let names = |size: Size, half: Option<&str>| -> Vec<String> {
            let tasks = among(task::shipped().unwrap(), Vec::new(), &wanted(size, half, &[]));
            tasks.into_iter().map(|task| task.name).collect()
        };
        for (size, all) in [(Size::Short, 8), (Size::Usual, 20), (Size::Full, 60)] {
            let (a, b) = (names(size, Some("a")), names(size, Some("b")));
            assert_eq!(a.len() + b.len(), all);
            let mut both = [a, b].concat();
            let mut of_all = names(size, None);
            both.sort();
            of_all.sort();
            assert_eq!(both, of_all);
        }
    }
}
