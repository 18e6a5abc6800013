//! How much a question names a path: as a path, as a module, by the name of the file.
//!
//! Each file of a commit is looked at for each question, so that what the question names is
//! arranged by what a path would have to end with.

use std::collections::{HashMap, HashSet};

use super::question::Question;

// What mentions are worth beside the words of the best file, which count 1. A trace of calls names
// many files, of which one is at fault, so that they count less than words do.
const OF_PATH: f64 = 0.32;
const OF_FILE_NAME: f64 = 0.2;
const OF_MODULE: f64 = 0.28;
const OF_STEM: f64 = 0.06;
/// Fewest letters of a file's name that counts by itself: shorter ones are everyday words.
const SHORTEST: usize = 4;

/// The names in a question, arranged to be looked up for each path and definition.
pub(super) struct Mentions<'q> {
    /// Paths by the names of their files.
    paths: HashMap<&'q str, Vec<&'q str>>,
    /// Beginnings of dotted names, of two parts at least, by their last part.
    modules: HashMap<&'q str, Vec<&'q [String]>>,
    /// Identifiers in small letters.
    identifiers: HashSet<String>,
}

impl<'q> Mentions<'q> {
    pub(super) fn of(question: &'q Question) -> Self {
        let mut paths: HashMap<&str, Vec<&str>> = HashMap::new();
        for path in &question.paths {
            paths.entry(name(path)).or_default().push(path);
        }
        let mut modules: HashMap<&str, Vec<&[String]>> = HashMap::new();
        for dotted in &question.dotted {
            for length in 2..=dotted.len() {
                let beginning = &dotted[..length];
                modules.entry(&dotted[length - 1]).or_default().push(beginning);
            }
        }
        let identifiers = question.identifiers.iter();
        Self {
            paths,
            modules,
            identifiers: identifiers.map(|word| word.to_ascii_lowercase()).collect(),
        }
    }

    /// Returns how much the question names a path.
    pub(super) fn worth(&self, path: &str) -> f64 {
        let mut score: f64 = 0.0;
        for mentioned in self.paths.get(name(path)).into_iter().flatten() {
            let has_folder = mentioned.contains('/');
            if ends_with_path(path, mentioned) || (has_folder && ends_with_path(mentioned, path)) {
                score = score.max(if has_folder { OF_PATH } else { OF_FILE_NAME });
            } else if has_folder && shares_folder(path, mentioned) {
                score = score.max(OF_PATH);
            }
        }
        let (stem, module) = module_of(path);
        let modules = self.modules.get(name(module)).into_iter().flatten();
        if modules.into_iter().any(|dotted| is_module(module, dotted)) {
            score = score.max(OF_MODULE);
        }
        if score == 0.0 && stem.len() >= SHORTEST && self.identifiers.contains(&stem.to_ascii_lowercase()) {
            score = OF_STEM;
        }
        score
    }
}

/// Returns the last part of a path.
fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn ends_with_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// True if the folders right above the files have the same name: a traceback has another root.
fn shares_folder(path: &str, other: &str) -> bool {
    let folder = |path: &str| path.rsplit('/').nth(1).map(str::to_owned);
    folder(path).is_some() && folder(path) == folder(other)
}

/// Returns the name of a file without its end, and the path of the module that it is.
fn module_of(path: &str) -> (&str, &str) {
    let module = path.rsplit_once('.').map_or(path, |(rest, _)| rest);
    let stem = name(module);
    if ["__init__", "index", "mod"].contains(&stem) {
        return (stem, module.rsplit_once('/').map_or("", |(folder, _)| folder));
    }
    (stem, module)
}

/// True if the end of a module's path has these parts.
fn is_module(module: &str, parts: &[String]) -> bool {
    let mut folders = module.rsplit('/');
    parts.iter().rev().all(|part| folders.next() == Some(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_modules_and_names_of_files_are_worth_what_they_tell() {
        let question = Question::read(
            "Crash in pkg.core.run.Loop and app.py\n  File \"/usr/lib/site-packages/pkg/cli.py\", line 4\n\
             See src/net/sessions.py, `Adapters` and index.",
        );
        let mentions = Mentions::of(&question);
        for (path, worth) in [
            ("src/net/sessions.py", OF_PATH),
            ("lib/src/net/sessions.py", OF_PATH),
            ("net/sessions.py", OF_PATH),
            ("other/sessions.py", OF_STEM),
            ("src/pkg/cli.py", OF_PATH),
            ("src/other/cli.py", 0.0),
            ("src/app.py", OF_FILE_NAME),
            ("src/myapp.py", 0.0),
            ("src/pkg/core/run.py", OF_MODULE),
            ("src/pkg/core/__init__.py", OF_MODULE),
            ("core/run.py", 0.0),
            ("src/adapters.py", OF_STEM),
            ("src/net/index.ts", OF_STEM),
            ("run.py", 0.0),
            ("", 0.0),
        ] {
            assert!((mentions.worth(path) - worth).abs() < f64::EPSILON, "{path}");
        }
    }
}
