//! Files by the texts of issues.

use std::collections::BTreeMap;
use std::path::Path;

use coding_agent::index::Wanted;

use super::cases::{Issue, variable};
use super::judge::{HEAD, Score};
use super::opened::Opened;

/// Places of an answer; each file has at most three.
const PLACES: usize = 60;

/// Looks for the files of each issue, over the code without tests and over everything.
pub async fn measure(issues: &[Issue]) -> anyhow::Result<()> {
    let mut by_repository: BTreeMap<&Path, Vec<&Issue>> = BTreeMap::new();
    for issue in issues {
        by_repository.entry(&issue.folder).or_default().push(issue);
    }
    let (mut code, mut everything) = (Score::default(), Score::default());
    for (folder, issues) in by_repository {
        let opened = Opened::of(folder).await?;
        for issue in issues {
            let commit = issue.commit.parse()?;
            for (score, takes) in [
                (&mut code, is_code as fn(&str) -> bool),
                (&mut everything, |_: &str| true),
            ] {
                let wanted = Wanted {
                    question: &issue.text,
                    top_k: PLACES,
                    path_prefix: "",
                    takes: &takes,
                };
                let hits = opened.index.search(&commit, &wanted).await?;
                let mut files: Vec<String> = Vec::new();
                for hit in hits {
                    if !files.contains(&hit.path) {
                        files.push(hit.path);
                    }
                }
                if variable("SHOW").is_some() {
                    let place = files.iter().position(|path| issue.gold.contains(path));
                    println!(
                        "{} {place:?} gold {:?} first {:?}",
                        issue.id,
                        issue.gold,
                        &files[..files.len().min(3)]
                    );
                }
                score.take(&files, &issue.gold);
            }
        }
    }
    println!("\nFiles by the text of an issue that they were changed for\n\n{HEAD}");
    println!("{}", code.row("index, Python files without tests"));
    println!("{}", everything.row("index, all files"));
    println!("| *target* | | .50 | | .82 | .90 | .65 |");
    Ok(())
}

/// True for a file that counts where the files of tests, documents and others do not.
pub fn is_code(path: &str) -> bool {
    let is_test = path.split('/').any(|part| {
        matches!(part, "test" | "tests" | "testing") || part.starts_with("test_") || part.ends_with("_test.py")
    });
    path.rsplit('.').next() == Some("py") && !is_test
}
