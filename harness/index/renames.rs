//! Files that moved in real histories: they are found where they are now, and not read again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use coding_agent::repository::CommitId;

use super::opened::{Opened, git};

/// Renames that are looked at in all, and commits of one repository.
const MOST: usize = 1_000;
const COMMITS: usize = 40;

/// Fills commits before and after renames without a change, and counts those that are reflected.
pub async fn measure(repositories: &[PathBuf]) -> anyhow::Result<()> {
    let (mut all, mut reflected, mut read) = (0, 0, 0);
    for repository in repositories {
        if all >= MOST {
            break;
        }
        let renames = renames(repository)?;
        let opened = Opened::of(repository).await?;
        for ((before, after), moved) in renames.iter().take(COMMITS) {
            // The oldest commit of a part of a history has no parent.
            let (before, after): (CommitId, CommitId) = (before.parse()?, after.parse()?);
            if opened.index.fill(&before).await.is_err() {
                continue;
            }
            let known = opened.index.contents(&before).await?;
            opened.index.fill(&after).await?;
            let now = opened.index.contents(&after).await?;
            for (from, to) in moved {
                all += 1;
                reflected += usize::from(now.contains_key(to) && !now.contains_key(from));
                read += usize::from(known.get(from) != now.get(to));
            }
        }
    }
    println!("\nRenames without a change, from the histories: {all}; reflected: {reflected}; read again: {read}");
    Ok(())
}

type Renames = BTreeMap<(String, String), Vec<(String, String)>>;

/// Returns the files that moved unchanged, by the commits before and after.
fn renames(repository: &Path) -> anyhow::Result<Renames> {
    let log = git(
        repository,
        &[
            "log",
            "--all",
            "--no-merges",
            "--diff-filter=R",
            "-M100%",
            "--name-status",
            "--format=@%H %P",
        ],
    )?;
    let mut renames = Renames::new();
    let mut commits = None;
    for line in log.lines() {
        if let Some(ids) = line.strip_prefix('@') {
            commits = ids
                .split_once(' ')
                .filter(|(_, parent)| !parent.contains(' ') && !parent.is_empty());
        } else if let (Some((after, before)), ["R100", from, to]) = (commits, &line.split('\t').collect::<Vec<_>>()[..])
        {
            let key = (before.to_owned(), after.to_owned());
            // Of the same kind by name: another language is another parser.
            if from.rsplit('.').next() == to.rsplit('.').next() {
                renames
                    .entry(key)
                    .or_default()
                    .push(((*from).to_owned(), (*to).to_owned()));
            }
        }
    }
    Ok(renames)
}
