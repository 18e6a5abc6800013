//! Scripts of the program that run in the container, to copy the project in and take the work out.
//! Arguments are passed as such, and never become part of the script.
//!
//! Two notes are kept in the project's own `.git`. `refs/coding-agent/work` exists from the commit
//! for verification until the model continues: changes found in between are not the model's. The
//! index `coding-agent-set-up` lists what the set-up commands created. The model could change both,
//! but that would only affect what it delivers.

use crate::repository::Config as Author;
use crate::repository::reading::submodules::SubmoduleContents;

/// Path of the project in the container.
pub(crate) const PROJECT: &str = "/workspace/project";

/// The beginning of a script that touches the project.
///
/// The locks of a git that was killed, by the kernel for want of memory or at a time-out, stay, and
/// every later git would stop at them: they are removed first. The calls of the model have ended at
/// that moment. Processes that a call left in the background may still run; their git then fails,
/// or this one does once.
macro_rules! beginning {
    () => {
        "set -e\ncd /workspace/project\nrm -f .git/index.lock .git/HEAD.lock .git/coding-agent-set-up.lock\n"
    };
}

/// Joins the files of a script that touches the work.
macro_rules! in_project {
    ($($file:literal),+) => {
        concat!(
            beginning!(),
            include_str!("show_work.sh"),
            $(include_str!($file)),+
        )
    };
}

/// Receives the project on stdin: one line each for branch, its commit, base branch, its commit,
/// commit of unfinished work or nothing, and the executor or nothing; up to an empty line each the
/// settings, the commits at which the history was cut, and tree and path of submodules; contents of
/// large files, if there is an executor; the pack. Nothing
/// is an argument, so that the process can start before the project is known. The shell reads a
/// pipe byte by byte and leaves the pack to git. There are as few git calls as possible, since each
/// takes some milliseconds of waiting.
pub(crate) const HAND_IN: &str = include_str!("hand_in.sh");

/// Ends the set-up: restores the project's files, and excludes files that the set-up commands
/// created from the work unless somebody changes them. Otherwise a rewritten lock file, or a folder
/// that the project does not ignore, would be delivered as the model's. Created files are excluded
/// one by one, because the model may add files beside them; where there are thousands (an installed
/// library, a build) their folders are.
pub(crate) const END_SET_UP: &str = concat!(beginning!(), include_str!("end_set_up.sh"));

/// Reverts changes of the checks to the project.
pub(crate) const UNDO_CHECKS: &str = in_project!("undo_checks.sh");

/// Replaces the files of the work by those of an earlier commit, until the work is restored:
/// installed, built and ignored files stay. A copy beside the project would be simpler, but its
/// tests would find the changed code wherever a path was recorded at installation. Argument: the
/// commit.
pub(crate) const EXCHANGE: &str = in_project!("exchange.sh");

/// Undoes [`COMMIT`] and all later changes, so that the model finds its work unchanged; no effect
/// without such a commit. Scripts that take the work out run this first, so that nothing is lost if
/// a process is killed in between.
pub(crate) const BRING_BACK: &str = in_project!("bring_back.sh");

/// Commits all changes and prints the commit. Argument: message. A merge in progress stays
/// committed, because its other parent is recorded nowhere else. Where git cannot add a path, all
/// such paths are named and nothing is committed: without them the work would not be the model's.
pub(crate) const COMMIT: &str = in_project!("bring_back.sh", "adopt.sh", "commit.sh");

/// Writes a commit of the current state without moving the branch, and prints it; the previous one
/// if nothing changed. Paths that git cannot add are left out, and repositories within the project
/// that are in no commit, which no judge lets pass: the rest would be lost with the container. Then
/// a line `without` follows. Argument: the previous one, or empty.
pub(crate) const SNAPSHOT: &str = in_project!("bring_back.sh", "adopt.sh", "snapshot.sh");

/// Environment of the program's own scripts: only the system's programs, none that the model put in
/// the search path.
pub(crate) const ENVIRONMENT: [&str; 4] = [
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    // Git before 2.32 ignores the first of these, and reads the files below the other two.
    "GIT_CONFIG_GLOBAL=/dev/null",
    "HOME=/nonexistent",
    "XDG_CONFIG_HOME=/nonexistent",
];

/// Prints the paths that differ from the base, each followed by NUL; at most a million bytes, so
/// that the last one may be cut. Argument: base commit.
pub(crate) const TOUCHED: &str = include_str!("touched.sh");

/// Prints the pack of new commits. Arguments: head, base.
pub(crate) const PACK: &str = include_str!("pack.sh");

/// Returns what git itself writes into the repository's folder: the configuration, with `filter`,
/// the commits at which the history was cut, and trees and paths of submodules.
pub(crate) fn settings(author: &Author, filter: &str, cut_at: &str, submodules: &[SubmoduleContents]) -> String {
    let quoted = |text: &str| {
        let escaped = text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        format!("\"{escaped}\"")
    };
    let (name, email) = (quoted(&author.author_name), quoted(&author.author_email));
    let lines = submodules.iter().map(|it| format!("{} {}\n", it.tree, it.path));
    format!(
        "[user]\n\tname = {name}\n\temail = {email}\n[advice]\n\tdetachedHead = false\n{filter}\n{cut_at}\n{}",
        lines.collect::<String>()
    )
}
