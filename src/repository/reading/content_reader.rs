//! Reads the contents of files by their ids, through one git that stays open between readings.
//!
//! Starting git takes longer than all that it has to do for a few files. It is ended when nobody
//! has read for a while, when a reading is given up halfway, and with its reader. Whatever goes
//! wrong with it, the rest is read once by a git of its own, whose errors are told.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::repository::RepositoryError;
use crate::repository::git::process_group::ProcessGroup;
use crate::repository::mirror::Mirror;
use crate::repository::reading::objects::{BatchReader, ObjectKind};

const IDLE: Duration = Duration::from_secs(30);
/// Longest time for the files of one turn, before another git is asked.
const PATIENCE: Duration = Duration::from_secs(10);
/// Files of one turn. Their ids fit into the pipe to git, so that writing them never waits for it.
const TURN: usize = 256;
/// Git's setting for the size of its cache of objects that others are stored as differences to.
const CACHE: &str = "core.deltaBaseCacheLimit=16m";

/// Reads contents of files of one mirror. Its clones share one git.
#[derive(Debug, Clone)]
pub struct ContentReader {
    mirror: Mirror,
    /// How long git stays open after a reading.
    idle: Duration,
    open: Arc<Mutex<Option<Kept>>>,
}

/// A git that waits for the next reading.
#[derive(Debug)]
struct Kept {
    process: Process,
    /// Ends it after a time.
    _closing: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Process {
    group: ProcessGroup,
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    reading: BatchReader,
    chunk: Vec<u8>,
}

impl ContentReader {
    pub fn of(mirror: &Mirror) -> Self {
        Self {
            mirror: mirror.clone(),
            idle: IDLE,
            open: Arc::default(),
        }
    }

    /// Calls `look` with the id and the content of each of these files, in their order. What is
    /// missing is left out.
    pub async fn each(&self, ids: &[&str], mut look: impl FnMut(&str, &[u8]) + Send) -> Result<(), RepositoryError> {
        let mut done = 0;
        while let Some(turn) = ids.get(done..).filter(|rest| !rest.is_empty()) {
            let turn = &turn[..turn.len().min(TURN)];
            // It is back in its place only after a whole turn: a reading that was given up would
            // leave the rest of its answers for the next.
            let Some(mut process) = self.taken().or_else(|| Process::start(&self.mirror)) else {
                break;
            };
            let (before, mut answered) = (done, 0);
            let read = process.read(turn, &mut look, &mut answered);
            let is_whole = matches!(timeout(PATIENCE, read).await, Ok(Some(())));
            done = before + answered;
            if !is_whole {
                break;
            }
            self.keep(process);
        }
        self.mirror
            .each_content(ids.get(done..).unwrap_or_default(), look)
            .await
    }

    fn taken(&self) -> Option<Process> {
        let kept = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut process = kept?.process;
        (!process.has_ended()).then_some(process)
    }

    fn keep(&self, process: Process) {
        let (open, idle) = (Arc::downgrade(&self.open), self.idle);
        let closing = tokio::spawn(async move {
            sleep(idle).await;
            if let Some(open) = open.upgrade() {
                drop(open.lock().unwrap_or_else(PoisonError::into_inner).take());
            }
        });
        let kept = Kept {
            process,
            _closing: AbortOnDropHandle::new(closing),
        };
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }
}

impl Process {
    /// Starts git; `None` where that fails, which the git that is asked instead will say.
    fn start(mirror: &Mirror) -> Option<Self> {
        let git =
            mirror
                .git("reading files")
                .args(["-c", CACHE, "cat-file", "--batch=%(objecttype) %(objectsize) %(rest)"]);
        let (mut child, group) = git.start_open().ok()?;
        Some(Self {
            stdin: child.stdin.take()?,
            stdout: child.stdout.take()?,
            group,
            child,
            reading: BatchReader::default(),
            chunk: vec![0; 64 * 1024],
        })
    }

    fn has_ended(&mut self) -> bool {
        let has_ended = !matches!(self.child.try_wait(), Ok(None));
        if has_ended {
            // Its number may be another's from now on.
            self.group.is_over();
        }
        has_ended
    }

    /// Reads some files; `None` if git ended, with the number of those that were answered.
    async fn read(
        &mut self,
        ids: &[&str],
        look: &mut (impl FnMut(&str, &[u8]) + Send),
        answered: &mut usize,
    ) -> Option<()> {
        let wanted: String = ids.iter().flat_map(|id| [*id, " ", *id, "\n"]).collect();
        self.stdin.write_all(wanted.as_bytes()).await.ok()?;
        let before = self.reading.answers();
        while *answered < ids.len() {
            let length = self
                .stdout
                .read(&mut self.chunk)
                .await
                .ok()
                .filter(|length| *length > 0)?;
            self.reading.take(&self.chunk[..length], &mut |object| {
                if object.kind == ObjectKind::File {
                    look(object.path, object.content);
                }
            });
            *answered = self.reading.answers() - before;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::repository::Config;

    /// Returns a mirror, and the ids of its files by their paths.
    async fn mirror(folder: &Path) -> (Mirror, BTreeMap<String, String>) {
        let project = folder.join("project");
        std::fs::create_dir(&project).unwrap();
        for (path, text) in [("a.txt", "one\n"), ("b.txt", ""), ("c.txt", &"three\n".repeat(50_000))] {
            std::fs::write(project.join(path), text).unwrap();
        }
        let (mirror, commit) = Mirror::snapshot(&Config::default(), &folder.join("state"), "one", &project)
            .await
            .unwrap();
        let (files, _) = mirror.files(&commit, 10).await.unwrap();
        (mirror, files.into_iter().map(|file| (file.path, file.object)).collect())
    }

    async fn read(reader: &ContentReader, ids: &[&str]) -> Vec<(String, usize)> {
        let mut seen = Vec::new();
        let look = |id: &str, content: &[u8]| seen.push((id.to_owned(), content.len()));
        reader.each(ids, look).await.unwrap();
        seen
    }

    /// Returns the number of the process that waits for the next reading.
    fn open(reader: &ContentReader) -> Option<Pid> {
        let open = reader.open.lock().unwrap();
        Pid::from_raw(open.as_ref()?.process.child.id()?.cast_signed())
    }

    #[tokio::test]
    async fn one_git_reads_again_and_again_and_what_is_missing_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let (mirror, ids) = mirror(folder.path()).await;
        let reader = ContentReader::of(&mirror);
        let missing = "0".repeat(40);
        let of = |path: &str| ids[path].as_str();
        let expected = |path: &str, length| (ids[path].clone(), length);
        let seen = read(&reader, &[of("c.txt"), &missing, of("a.txt"), of("b.txt")]).await;
        assert_eq!(
            seen,
            [expected("c.txt", 300_000), expected("a.txt", 4), expected("b.txt", 0)]
        );
        let first = open(&reader).unwrap();
        // More than fit into one turn.
        let many = vec![of("a.txt"); TURN + 3];
        assert_eq!(read(&reader.clone(), &many).await.len(), TURN + 3);
        assert_eq!(open(&reader), Some(first));
        assert_eq!(read(&reader, &[]).await, []);
        assert_eq!(read(&reader, &[&missing]).await, []);
        assert_eq!(open(&reader), Some(first));
    }

    #[tokio::test]
    async fn a_git_that_ended_or_was_given_up_halfway_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (mirror, ids) = mirror(folder.path()).await;
        let reader = ContentReader::of(&mirror);
        let expected = [(ids["a.txt"].clone(), 4)];
        assert_eq!(read(&reader, &[&ids["a.txt"]]).await, expected);
        let first = open(&reader).unwrap();
        kill_process(first, Signal::KILL).unwrap();
        assert_eq!(read(&reader, &[&ids["a.txt"]]).await, expected);
        tokio::select! {
            biased;
            () = async { drop(read(&reader, &[&ids["c.txt"]]).await) } => panic!("nothing was waited for"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(open(&reader), None);
        assert_eq!(read(&reader, &[&ids["a.txt"]]).await, expected);
        assert!(open(&reader).is_some_and(|now| now != first));
    }

    #[tokio::test]
    async fn a_git_that_nobody_needs_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (mirror, ids) = mirror(folder.path()).await;
        let reader = ContentReader {
            idle: Duration::from_millis(20),
            ..ContentReader::of(&mirror)
        };
        assert_eq!(read(&reader, &[&ids["a.txt"]]).await.len(), 1);
        let ended = async {
            while open(&reader).is_some() {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, ended).await.unwrap();
    }
}
