//! Functions by their own documentation: thousands of pairs that are cut from the Python packages
//! which this machine has installed, for where no issues are at hand.
//!
//! The documentation is taken out of the files before they are indexed, so that what is asked is
//! not what stands there. A sentence that documents several functions is left out.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use coding_agent::index::{Config, FolderIndex, Wanted};
use coding_agent::repository;
use coding_agent::secret::Redactor;

use super::grep;
use super::issues::{files, is_code};
use super::judge::{HEAD, Score};

/// The most files that are indexed, and the most questions that are asked of them.
const MOST_FILES: usize = 3_000;
const MOST_QUESTIONS: usize = 5_000;
/// The number of questions that ripgrep is asked, which takes a process for each of their words.
const MOST_GREPS: usize = 100;
const LARGEST: u64 = 512 * 1024;
/// The fewest and the most letters of a sentence that is used as a question.
const LENGTH: std::ops::RangeInclusive<usize> = 30..=160;
/// The most lines of a documentation.
const LONGEST: usize = 400;
const PLACES: usize = 30;

/// A function, and the first sentence of its documentation.
struct Pair {
    question: String,
    path: String,
    /// The line of the `def`, counted from 1.
    line: usize,
}

/// The scores of the questions.
#[derive(Debug, Default)]
pub struct Measured {
    files: Score,
    functions: Score,
    /// The files that ripgrep finds, for some of the questions.
    grep: Score,
}

/// Looks for Python functions by the first sentence of their documentation.
pub async fn measure() -> anyhow::Result<()> {
    let sources = installed();
    if sources.is_empty() {
        println!("\nNo functions are looked for by their documentation: this machine has no Python with packages.");
        return Ok(());
    }
    let measured = asked_of(&sources, grep::is_installed().then_some(MOST_GREPS)).await?;
    println!(
        "\nFunctions by the first sentence of their documentation, which was taken out of the {} indexed files\n\n{HEAD}\n{}\n{}\n{}",
        sources.len(),
        measured.files.row("index, the file"),
        measured.functions.row("index, the function"),
        measured.grep.row("ripgrep, the file, for some of these questions")
    );
    Ok(())
}

/// Asks for each function of these files by the first sentence of its documentation; `greps` of the
/// questions are given to ripgrep, too.
async fn asked_of(sources: &[(PathBuf, String)], greps: Option<usize>) -> anyhow::Result<Measured> {
    let (state, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut pairs = Vec::new();
    for (file, path) in sources {
        let Ok(text) = std::fs::read_to_string(file) else {
            continue;
        };
        let (without, found) = cut(&text);
        let copy = folder.path().join(path);
        std::fs::create_dir_all(copy.parent().context("a file lies in a folder")?)?;
        std::fs::write(copy, without)?;
        pairs.extend(found.into_iter().map(|(question, line)| Pair {
            question,
            path: path.clone(),
            line,
        }));
    }
    let pairs = unique(pairs);
    let opened = FolderIndex::open(
        &Config::default(),
        &repository::Config::default(),
        state.path(),
        folder.path(),
    )
    .await?;
    let mut measured = Measured::default();
    let redactor = Redactor::default();
    let step = greps.map(|greps| pairs.len().div_ceil(greps.max(1)).max(1));
    for (number, pair) in pairs.iter().enumerate() {
        let wanted = Wanted {
            question: &pair.question,
            top_k: PLACES,
            path_prefix: "",
            takes: &|_| true,
            redactor: &redactor,
        };
        let hits = opened.search(&wanted).await?;
        let is_right = |path: &String| *path == pair.path;
        measured.files.take_place(files(&hits).iter().position(is_right));
        measured.functions.take_place(
            hits.iter()
                .position(|hit| hit.path == pair.path && (hit.first..=hit.last).contains(&pair.line)),
        );
        if step.is_some_and(|step| number % step == 0) {
            let found = grep::files(&pair.question, folder.path())?;
            measured.grep.take_place(found.iter().position(is_right));
        }
    }
    Ok(measured)
}

/// Returns Python files of installed packages, with the paths under which they are indexed.
fn installed() -> Vec<(PathBuf, String)> {
    let asked = Command::new("python3")
        .args(["-c", "import sys; print('\\n'.join(sys.path))"])
        .output();
    let Ok(asked) = asked else { return Vec::new() };
    let printed = String::from_utf8_lossy(&asked.stdout).into_owned();
    let mut files = Vec::new();
    for (number, root) in printed.lines().filter(|line| line.starts_with('/')).enumerate() {
        let root = Path::new(root);
        let mut found = Vec::new();
        find(root, &mut found);
        found.sort();
        for file in found {
            let below = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
            if is_code(&below) && !below.contains("site-packages") {
                files.push((file, format!("{number}/{below}")));
            }
        }
    }
    files.truncate(MOST_FILES);
    files
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            find(&entry.path(), found);
        } else if kind.is_file()
            && entry.path().extension().is_some_and(|end| end == "py")
            && entry.metadata().is_ok_and(|metadata| metadata.len() <= LARGEST)
        {
            found.push(entry.path());
        }
    }
}

/// Returns a file without the documentation of its functions, on as many lines, and the first
/// sentences with the lines of their functions.
fn cut(text: &str) -> (String, Vec<(String, usize)>) {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for at in 1..lines.len() {
        let (above, line) = (lines[at - 1], lines[at].trim_start());
        let is_function = above.trim_start().starts_with("def ") && above.trim_end().ends_with(':');
        let Some(rest) = line.strip_prefix("\"\"\"").filter(|_| is_function) else {
            continue;
        };
        let last = if rest.contains("\"\"\"") {
            Some(at)
        } else {
            (at + 1..lines.len().min(at + LONGEST)).find(|line| lines[*line].contains("\"\"\""))
        };
        let Some(last) = last else { continue };
        let sentence = rest.split("\"\"\"").next().unwrap_or_default().trim();
        if LENGTH.contains(&sentence.chars().count()) {
            found.push((sentence.to_owned(), at));
        }
        // What is within three quotes at the beginning of a body is its documentation.
        lines[at..=last].fill("");
    }
    (lines.join("\n") + "\n", found)
}

/// Returns the pairs whose sentence is there once, evenly chosen where there are too many.
fn unique(pairs: Vec<Pair>) -> Vec<Pair> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for pair in &pairs {
        *counts.entry(pair.question.clone()).or_default() += 1;
    }
    let once: Vec<Pair> = pairs
        .into_iter()
        .filter(|pair| counts.get(&pair.question) == Some(&1))
        .collect();
    let step = once.len().div_ceil(MOST_QUESTIONS).max(1);
    once.into_iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{asked_of, cut};

    /// The folder with three files of a library of our own.
    const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/index/shipped");

    #[tokio::test]
    async fn the_functions_of_the_shipped_files_are_found_by_their_documentation() {
        let path = |name: &str| (Path::new(SHIPPED).join(name), format!("0/{name}"));
        let sources = ["intervals.py", "ledger.py", "routes.py"].map(path);
        let measured = asked_of(&sources, None).await.unwrap();
        let row = |score: &super::Score| (score.count(), score.within(1), score.within(3));
        assert_eq!(row(&measured.files), (9, 1.0, 1.0));
        // Of one function the words alone do not tell it from its neighbours.
        assert!(measured.functions.within(3) > 0.85, "{:?}", measured.functions);
    }

    #[test]
    fn documentation_is_cut_out_and_lines_stay_where_they_are() {
        let text = "def one(a):\n    \"\"\"Returns the first of them, or nothing at all.\n\n    More.\n    \"\"\"\n    return a\n\n\nclass A:\n    def two(self):\n        \"\"\"Short.\"\"\"\n        return 2\n";
        let (without, found) = cut(text);
        assert_eq!(found, [("Returns the first of them, or nothing at all.".to_owned(), 1)]);
        assert_eq!(without.lines().count(), text.lines().count());
        assert!(!without.contains("\"\"\"") && without.contains("    return a\n") && without.contains("return 2"));
    }
}
