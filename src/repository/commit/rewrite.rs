//! Rewrites commits from a container: same trees, same dates, our author, the run's trailer.
//!
//! The same commits give the same ids each time, so a repeated delivery pushes what is there
//! already. That holds for signed ones too: only keys with deterministic signatures are accepted.

use std::collections::HashMap;

use crate::repository::commit::identity::committed;
use crate::repository::commit::message::delivered;
use crate::repository::commit::signing::SigningKey;
use crate::repository::git::command::Git;
use crate::repository::mirror::{Mirror, accepted_ref, wip_ref};
use crate::repository::{CommitId, Config, RepositoryError};

/// The parts of a container's commit that the rewritten one keeps.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::repository) struct ReceivedCommit {
    tree: String,
    /// Seconds since 1970 and time zone, in git's format.
    date: String,
    message: String,
}

/// A new commit of the container and its parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::repository) struct NewCommit {
    pub(in crate::repository) commit: CommitId,
    pub(in crate::repository) parents: Vec<CommitId>,
}

/// Writes commits, with the author, key and trailer of a run.
pub(in crate::repository) struct CommitWriter<'a> {
    pub(in crate::repository) git: &'a (dyn Fn(&str) -> Git<'static> + Send + Sync),
    pub(in crate::repository) config: &'a Config,
    pub(in crate::repository) key: Option<SigningKey>,
    pub(in crate::repository) run: &'a str,
}

impl CommitWriter<'_> {
    /// Rewrites a chain of commits, parents first, without those that change nothing; returns the
    /// new id of `head` and how many were written.
    pub(in crate::repository) async fn chain(
        &self,
        links: &[NewCommit],
        head: &CommitId,
    ) -> Result<(CommitId, usize), RepositoryError> {
        let mut ours: HashMap<&CommitId, (CommitId, String)> = HashMap::new();
        let mut written = 0;
        for link in links {
            let original = self.original(&link.commit).await?;
            let parents: Vec<CommitId> = link
                .parents
                .iter()
                .map(|parent| ours.get(parent).map_or(parent, |(id, _)| id).clone())
                .collect();
            if let [parent] = parents.as_slice()
                && self.tree(parent).await? == original.tree
            {
                ours.insert(&link.commit, (parent.clone(), original.tree));
                continue;
            }
            let id = self.write(&original, &parents).await?;
            written += 1;
            ours.insert(&link.commit, (id, original.tree));
        }
        Ok((ours.remove(head).map_or_else(|| head.clone(), |(id, _)| id), written))
    }

    /// Writes one commit with the tree of `head` and another message on top of `base`.
    pub(in crate::repository) async fn as_one(
        &self,
        base: &CommitId,
        head: &CommitId,
        message: &str,
    ) -> Result<CommitId, RepositoryError> {
        let original = self.original(head).await?;
        if self.tree(base).await? == original.tree {
            return Ok(base.clone());
        }
        let message = message.to_owned();
        self.write(&ReceivedCommit { message, ..original }, std::slice::from_ref(base))
            .await
    }

    /// Writes one commit with the tree and message of `head` on top of `base`.
    pub(in crate::repository) async fn squashed(
        &self,
        base: Option<&CommitId>,
        head: &CommitId,
    ) -> Result<(CommitId, usize), RepositoryError> {
        let original = self.original(head).await?;
        if let Some(base) = base
            && self.tree(base).await? == original.tree
        {
            return Ok((base.clone(), 0));
        }
        let id = self
            .write(&original, base.map(std::slice::from_ref).unwrap_or_default())
            .await?;
        Ok((id, 1))
    }

    async fn original(&self, commit: &CommitId) -> Result<ReceivedCommit, RepositoryError> {
        let raw = (self.git)("reading a commit")
            .args(["cat-file", "commit", commit.as_str()])
            .bytes()
            .await?;
        original(&String::from_utf8_lossy(&raw))
            .ok_or_else(|| RepositoryError::Unacceptable(format!("the commit {commit} cannot be read")))
    }

    async fn tree(&self, commit: &CommitId) -> Result<String, RepositoryError> {
        (self.git)("reading a tree")
            .args(["rev-parse", &format!("{commit}^{{tree}}")])
            .text()
            .await
    }

    async fn write(&self, original: &ReceivedCommit, parents: &[CommitId]) -> Result<CommitId, RepositoryError> {
        let git = match &self.key {
            None => (self.git)("writing a commit").arg("commit-tree"),
            Some(key) => key
                .by((self.git)(
                    "signing a commit with git.signing_key_file (`coding-agent doctor` tries it)",
                ))
                .args(["commit-tree", "-S"]),
        };
        let git = git.arg(&original.tree);
        let git = parents
            .iter()
            .fold(git, |git, parent| git.args(["-p", parent.as_str()]));
        let git = git.args(["-F", "-"]).input(delivered(&original.message, self.run));
        committed(git, self.config, Some(&original.date)).await
    }
}

impl Mirror {
    /// Replaces an accepted result by one commit on top of `base` with `message`. Doing it twice
    /// gives the same id.
    pub async fn as_one(
        &self,
        base: &CommitId,
        head: &CommitId,
        message: &str,
        run: &str,
    ) -> Result<CommitId, RepositoryError> {
        let git = |what: &str| self.git(what);
        let writer = CommitWriter {
            git: &git,
            config: self.config(),
            key: SigningKey::of(self.config())?,
            run,
        };
        let lock = self.lock().await?;
        let one = writer.as_one(base, head, message).await?;
        self.point(&lock, &accepted_ref(run)?, &one).await?;
        Ok(one)
    }

    /// Writes one commit with the tree and message of `head`, an accepted result, on top of `from`;
    /// it is `from` itself if that has the tree. Doing it twice gives the same id. Nothing refers
    /// to the commit: it is for a push at once, and pruning spares what was just written.
    pub(in crate::repository) async fn on_top_of(
        &self,
        from: &CommitId,
        head: &CommitId,
        run: &str,
    ) -> Result<CommitId, RepositoryError> {
        let git = |what: &str| self.git(what);
        let writer = CommitWriter {
            git: &git,
            config: self.config(),
            key: SigningKey::of(self.config())?,
            run,
        };
        let (commit, _) = writer.squashed(Some(from), head).await?;
        Ok(commit)
    }

    /// Makes what there was before the work the run's work in progress, so that a new container
    /// begins there. Work in progress is a commit on top of what was committed, so this one changes
    /// nothing.
    pub async fn begin_again(&self, base: &CommitId, run: &str) -> Result<(), RepositoryError> {
        let git = |what: &str| self.git(what);
        let writer = CommitWriter {
            git: &git,
            config: self.config(),
            key: None,
            run,
        };
        let lock = self.lock().await?;
        let original = writer.original(base).await?;
        let message = "work in progress".to_owned();
        let nothing = writer
            .write(&ReceivedCommit { message, ..original }, std::slice::from_ref(base))
            .await?;
        self.point(&lock, &wip_ref(run)?, &nothing).await
    }
}

/// Parses a commit object.
fn original(raw: &str) -> Option<ReceivedCommit> {
    let (head, message) = raw.split_once("\n\n").unwrap_or((raw, ""));
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    Some(ReceivedCommit {
        tree: field("tree ")?.to_owned(),
        date: date(field("author ")?),
        message: message.to_owned(),
    })
}

/// Returns the date of an author line; 1970 if it is invalid.
fn date(author: &str) -> String {
    let mut words = author.rsplit(' ');
    let (zone, seconds) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // A date after 2100 is not honest, and some programs fail on it.
    let seconds = seconds
        .parse::<u32>()
        .ok()
        .filter(|seconds| *seconds < 4_102_444_800)
        .unwrap_or(0);
    let is_zone = zone.len() == 5
        && zone.starts_with(['+', '-'])
        && zone[1..].bytes().all(|byte| byte.is_ascii_digit())
        && zone[1..].parse::<u16>().is_ok_and(|zone| zone <= 1400);
    format!("@{seconds} {}", if is_zone { zone } else { "+0000" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_kept_and_nonsense_is_not() {
        for (author, expected) in [
            ("A <a@b> 1700000000 +0900", "@1700000000 +0900"),
            ("A <a@b> 99999999999999 +0900", "@0 +0900"),
            ("A <a@b> 1700000000 +9999", "@1700000000 +0000"),
            ("A <a@b> -5 x", "@0 +0000"),
            ("", "@0 +0000"),
        ] {
            assert_eq!(date(author), expected, "{author}");
        }
    }

    #[test]
    fn a_commit_s_message_is_what_follows_the_first_empty_line() {
        let raw = "tree abc\nparent def\nauthor A <a@b> 5 +0000\ncommitter A <a@b> 6 +0000\n\nGreet\n\nBecause\n";
        assert_eq!(
            original(raw),
            Some(ReceivedCommit {
                tree: "abc".to_owned(),
                date: "@5 +0000".to_owned(),
                message: "Greet\n\nBecause\n".to_owned(),
            })
        );
        assert_eq!(original("author A"), None);
    }
}
