//! Functions by their own documentation: pairs that are cut from the repositories themselves, so
//! that there are thousands of them where no issues are at hand.
//!
//! The documentation stands in the function's own text, which makes this easier than an issue: it
//! shows what is lost between the parts of the index, not how well it understands people.

use std::path::PathBuf;

use coding_agent::index::Wanted;

use super::judge::{HEAD, Score};
use super::opened::{Opened, git, newest};

/// Most questions of one repository.
const MOST: usize = 400;
/// Fewest and most letters of a sentence that is a question.
const LENGTH: std::ops::RangeInclusive<usize> = 30..=160;

/// Looks for Python functions by the first sentence of their documentation.
pub async fn measure(repositories: &[PathBuf]) -> anyhow::Result<()> {
    let mut score = Score::default();
    for repository in repositories {
        let Some(commit) = newest(repository, 1)?.pop() else {
            continue;
        };
        let listed = git(repository, &["ls-tree", "-r", "--name-only", commit.as_str()])?;
        let files: Vec<&str> = listed.lines().filter(|path| super::issues::is_code(path)).collect();
        let mut pairs = Vec::new();
        for path in files {
            if pairs.len() >= MOST {
                break;
            }
            // The largest files of a snapshot may be missing.
            if let Ok(text) = git(repository, &["show", &format!("{commit}:{path}")]) {
                pairs.extend(sentences(&text).into_iter().map(|sentence| (sentence, path.to_owned())));
            }
        }
        pairs.truncate(MOST);
        if pairs.is_empty() {
            continue;
        }
        let opened = Opened::of(repository).await?;
        for (question, path) in &pairs {
            let wanted = Wanted {
                question,
                top_k: 30,
                path_prefix: "",
                takes: &|_| true,
            };
            let mut files: Vec<String> = Vec::new();
            for hit in opened.index.search(&commit, &wanted).await? {
                if !files.contains(&hit.path) {
                    files.push(hit.path);
                }
            }
            score.take(&files, std::slice::from_ref(path));
        }
    }
    println!(
        "\nFiles by the first sentence of a function's documentation\n\n{HEAD}\n{}",
        score.row("index, all files")
    );
    Ok(())
}

/// Returns the first sentences of documentation, in three quotes below a `def`.
fn sentences(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines
        .windows(2)
        .filter(|pair| pair[0].trim_start().starts_with("def ") && pair[0].ends_with(':'));
    let sentences = pairs.filter_map(|pair| {
        let sentence = pair[1].trim().strip_prefix("\"\"\"")?;
        Some(sentence.trim_end_matches("\"\"\"").trim().to_owned())
    });
    sentences.filter(|sentence| LENGTH.contains(&sentence.len())).collect()
}
