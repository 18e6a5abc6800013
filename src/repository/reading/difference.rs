//! Differences for people, and the complete difference of a result for its digest.
//!
//! Differences for people contain no object ids: in a mirror an id is enough to request its
//! content, whether it was shown or not.

use std::ops::ControlFlow;

use crate::approval::difference::{Difference, Unreadable, read_raw, read_removed};
use crate::repository::git::failure::classify;
use crate::repository::mirror::Mirror;
use crate::repository::reading::files::whole_lines;
use crate::repository::{CommitId, RepositoryError};

impl Mirror {
    /// Returns the files that differ, each with the number of added and removed lines; 0 for a
    /// binary file.
    pub async fn touched(&self, from: &CommitId, to: &CommitId) -> Result<Vec<(String, u64)>, RepositoryError> {
        let listed = self
            .git(format!("measuring {from} against {to}"))
            .args(["diff-tree", "-r", "-z", "--numstat", "--no-renames"])
            .args([from.as_str(), to.as_str(), "--"])
            .bytes()
            .await?;
        let text = String::from_utf8_lossy(&listed);
        let touched = text.split('\0').filter_map(|line| {
            let mut fields = line.splitn(3, '\t');
            let mut count = || fields.next().map(|count| count.parse().unwrap_or(0));
            let lines: u64 = count()? + count()?;
            Some((fields.next()?.to_owned(), lines))
        });
        Ok(touched.collect())
    }

    /// Returns the difference of one file, at most `max_bytes` of whole lines, and whether it was
    /// cut. Empty for a path that is not UTF-8.
    pub async fn difference_of(
        &self,
        (from, to): (&CommitId, &CommitId),
        path: &str,
        max_bytes: usize,
    ) -> Result<(String, bool), RepositoryError> {
        let comparison = self
            .git(format!("comparing a file of {from} and {to}"))
            .env("GIT_LITERAL_PATHSPECS", "1")
            .args(["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"])
            .args([from.as_str(), to.as_str(), "--", path]);
        let (difference, is_cut) = whole_lines(comparison, max_bytes).await?;
        Ok((without_ids(&difference), is_cut))
    }

    /// Returns what `base..head` does to files, as a whole and in each of its commits.
    pub async fn changes(&self, base: &CommitId, head: &CommitId) -> Result<Difference, RepositoryError> {
        let whole = ["diff-tree", "-r", "-z", "--no-abbrev"];
        let ends = [base.as_str(), head.as_str(), "--"];
        let what = format!("reading what {head} changes");
        let unreadable = |error: Unreadable| RepositoryError::Unexpected {
            what: what.clone(),
            reason: error.to_string(),
        };
        let changes = self.git(&what).args(whole).args(["--raw", "-M"]).args(ends);
        let removed = self
            .git(&what)
            .args(whole)
            .args(["--numstat", "--no-renames"])
            .args(ends);
        let steps = self
            .git(&what)
            .args([
                "log",
                "-m",
                "--root",
                "--format=",
                "-r",
                "-z",
                "--raw",
                "-M",
                "--no-abbrev",
            ])
            .args([head.as_str(), "--not", base.as_str(), "--"]);
        Ok(Difference {
            changes: read_raw(&changes.bytes().await?).map_err(unreadable)?,
            steps: read_raw(&steps.bytes().await?).map_err(unreadable)?,
            removed: read_removed(&removed.bytes().await?),
        })
    }

    /// Returns the number of commits in `base..head`.
    pub async fn count(&self, base: &CommitId, head: &CommitId) -> Result<usize, RepositoryError> {
        let counted = self
            .git(format!("counting the commits of {head}"))
            .args(["rev-list", "--count", head.as_str(), "--not", base.as_str()])
            .text()
            .await?;
        Ok(counted.trim().parse().unwrap_or(0))
    }

    /// Calls `take` with everything that identifies `base..head`: the difference, and each commit's
    /// message and own difference, with the ids of the files' contents. Nothing of untouched files
    /// is included, so a rebase onto other changes does not alter it.
    pub async fn each_step(
        &self,
        base: &CommitId,
        head: &CommitId,
        mut take: impl FnMut(&[u8]) + Send,
    ) -> Result<(), RepositoryError> {
        let raw = ["-r", "-z", "--raw", "--no-renames", "--no-abbrev"];
        let whole = self
            .git("comparing a result with its base")
            .arg("diff-tree")
            .args(raw)
            .args([base.as_str(), head.as_str(), "--"]);
        let steps = self
            .git("listing the commits of a result")
            .args([
                "log",
                "--topo-order",
                "--reverse",
                "--format=tformat:%B",
                "-m",
                "--root",
            ])
            .args(raw)
            .args([head.as_str(), "--not", base.as_str(), "--"]);
        for (part, git) in [whole, steps].into_iter().enumerate() {
            take(&[u8::try_from(part).unwrap_or_default()]);
            let what = git.what().to_owned();
            let ended = git
                .each(|chunk| {
                    take(chunk);
                    ControlFlow::Continue(())
                })
                .await?;
            if ended.code != Some(0) {
                return Err(classify(&what, &ended.complaint));
            }
        }
        Ok(())
    }
}

/// Removes the lines with object ids. Lines of file content cannot match: they have a prefix.
fn without_ids(difference: &str) -> String {
    let lines = difference.split_inclusive('\n');
    lines.filter(|line| !line.starts_with("index ")).collect()
}
