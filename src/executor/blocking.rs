//! A thread for work that blocks, which is there before the first command: a command may use up
//! the container's processes, and from then on the kernel refuses every new thread.
//!
//! The runtime's own threads for such work are started when they are needed and end when they are
//! idle. Where one is refused the runtime panics, and the call that needed it is never answered.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use anyhow::Context;
use async_channel::{Receiver, Sender};
use tokio::sync::oneshot;

type Work = Box<dyn FnOnce() + Send>;

/// The thread, which takes one piece of work after the other. It ends with the last handle.
///
/// One is enough, because the longest work is the end of a command's processes, for some seconds;
/// and each one counts against the limit of processes, of which the smallest allowed is eight.
#[derive(Clone)]
pub(super) struct Blocking {
    work: Sender<Work>,
}

impl Blocking {
    pub(super) fn start() -> io::Result<Self> {
        let (work, taken) = async_channel::bounded(1);
        thread::Builder::new()
            .name("blocking".to_owned())
            .spawn(move || work_off(&taken))?;
        Ok(Self { work })
    }

    /// Returns the result of `work`, which is done whether or not somebody still waits for it.
    /// Fails if it panics.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> anyhow::Result<T> {
        let (result, awaited) = oneshot::channel();
        let work = move || {
            let _ = result.send(work());
        };
        let given = self.work.send(Box::new(work)).await;
        given.ok().context("the thread for work that blocks has ended")?;
        awaited.await.context("the work broke off")
    }
}

fn work_off(taken: &Receiver<Work>) {
    while let Ok(work) = taken.recv_blocking() {
        // Whoever waits for a piece that panics hears of it; the next piece is done all the same.
        let _ = catch_unwind(AssertUnwindSafe(work));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_panics_is_told_and_costs_no_other() {
        let blocking = Blocking::start().unwrap();
        let broken: anyhow::Result<()> = blocking.run(|| panic!("a fault of the program")).await;
        assert_eq!(broken.unwrap_err().to_string(), "the work broke off");
        assert_eq!(blocking.run(|| 1 + 1).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn all_work_is_done_by_the_thread_that_is_there() {
        let blocking = Blocking::start().unwrap();
        let id = || thread::current().id();
        let (one, other) = tokio::join!(blocking.run(id), blocking.run(id));
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_eq!(one, other);
        assert_ne!(one, id());
    }
}
