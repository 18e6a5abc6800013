//! Processes and all their descendants: finding and ending them, adopting and reaping orphans.
//!
//! Linux only, through `/proc`. A process that leaves its group, its session and its parent is
//! still found, because whoever wants to end a tree has become its subreaper ([`adopt_orphans`])
//! before the tree began to grow. Process groups alone failed at exactly this: one `setsid`, and
//! the grandchild outlives the time-out.
//!
//! Everything here blocks and uses no runtime: two of its callers are small processes that should
//! start in a millisecond. An async caller goes through `spawn_blocking`.

pub mod arenas;
pub mod descent;
pub mod ending;
pub mod framed;
pub mod init;
pub mod search_path; // where a program lies
pub mod stat;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, WaitOptions, getpid, set_child_subreaper, set_dumpable_behavior, wait};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Keeps other processes of the same user out of this one: none may trace it, read its memory and
/// environment, or open its streams through `/proc`, and it leaves no core dump. Programs that it
/// starts are open to them again.
///
/// File modes do not help here: these processes have the same user.
pub fn keep_private() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Makes this process the parent of every descendant whose own parent dies.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Waits until any child has ended and reaps it; `None` if there is no child left.
///
/// Other code that waits for that child does not get its exit status.
pub fn reap_any_child() -> io::Result<Option<(u32, ExitStatus)>> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((process, status))) => {
                let id = process.as_raw_nonzero().get().unsigned_abs();
                return Ok(Some((id, ExitStatus::from_raw(status.as_raw()))));
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}
