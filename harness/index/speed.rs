//! Time and size: a first commit, the next one, questions.

use std::path::{Path, PathBuf};
use std::time::Instant;

use coding_agent::index::Wanted;
use coding_agent::secret::Redactor;

use super::opened::{Opened, git, newest};

/// Questions of which the slow ones count.
const QUESTIONS: usize = 200;

/// Measures each repository, and prints a row for it.
pub async fn measure(repositories: &[PathBuf]) -> anyhow::Result<()> {
    println!(
        "\nTime and size (targets: 3,000 files in 5 s, the next commit in 100 ms, a question in 10 ms, 40 % of the text)\n\n\
         | repository | files | indexed text, MB | cold, s | s for 3,000 files | next commit, ms | question p50, ms | p95, ms | index, % of the text |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    for repository in repositories {
        match row(repository).await {
            Ok(row) => println!("{row}"),
            Err(error) => println!("| {} | not measured: {error:#} | | | | | | | |", name(repository)),
        }
    }
    Ok(())
}

async fn row(repository: &Path) -> anyhow::Result<String> {
    let commits = newest(repository, 2)?;
    let [new, old] = &commits[..] else {
        anyhow::bail!("it has fewer than two commits");
    };
    let opened = Opened::of(repository).await?;
    let begun = Instant::now();
    let filled = opened.index.fill(old).await?;
    let cold = begun.elapsed().as_secs_f64();
    // Of one commit, beside the text of that commit.
    let source = opened.index.counts(old).await?.bytes;
    let (opened, bytes) = opened.reopened().await?;
    let begun = Instant::now();
    opened.index.fill(new).await?;
    let next = begun.elapsed().as_secs_f64() * 1_000.0;
    let redactor = Redactor::default();
    let mut times = Vec::new();
    for question in questions(repository)? {
        let wanted = Wanted {
            question: &question,
            top_k: 8,
            path_prefix: "",
            takes: &|_| true,
            redactor: &redactor,
        };
        let begun = Instant::now();
        opened.index.search(new, &wanted).await?;
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    times.sort_by(f64::total_cmp);
    #[expect(clippy::cast_precision_loss, reason = "bytes and counts")]
    let (source, bytes, files) = (source as f64, bytes as f64, filled.files.max(1) as f64);
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
    Ok(format!(
        "| {} | {files} | {:.1} | {cold:.2} | {:.2} | {next:.0} | {:.1} | {:.1} | {:.0} |",
        name(repository),
        source / 1e6,
        cold / files * 3_000.0,
        at(50),
        at(95),
        100.0 * bytes / source
    ))
}

/// Returns the subjects of the newest commits: what people say of a change.
fn questions(repository: &Path) -> anyhow::Result<Vec<String>> {
    let subjects = git(
        repository,
        &["log", &format!("--max-count={QUESTIONS}"), "--all", "--format=%s"],
    )?;
    Ok(subjects.lines().map(str::to_owned).collect())
}

fn name(repository: &Path) -> String {
    let parts = repository.iter().rev().map(|part| part.to_string_lossy().into_owned());
    let is_telling = |part: &String| !["repo", ".git"].contains(&part.as_str());
    parts.into_iter().find(is_telling).unwrap_or_default()
}
