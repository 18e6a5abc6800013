//! Messages to a run at work: the watchers that collect them, and the mailbox that holds them.

pub mod authority; // whose words count
pub(crate) mod command_table; // the meaning of each command
pub mod mailbox; // what has come in and was not taken yet
mod visit; // what a visit to a run that waits need not deal with again
pub mod thread_watcher; // looks at the item and its comments
pub mod control_watcher; // looks at the store: requests, and a pause of all runs

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;

use crate::agent::claim::Claim;
use crate::agent::inbox::control_watcher::ControlWatcher;
use crate::agent::inbox::mailbox::Mailbox;
use crate::agent::inbox::thread_watcher::ThreadWatcher;
use crate::agent::record::message::{self, HeardComment};
use crate::forge::Comment;

/// The mailbox of one run, and the watchers that fill it.
pub struct Inbox {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) thread_watcher: Arc<Mutex<ThreadWatcher>>,
    pub(crate) control_watcher: Arc<Mutex<ControlWatcher>>,
}

impl Inbox {
    /// Starts both watchers; they end when the returned handles are dropped.
    pub(crate) fn watch(&self) -> [AbortOnDropHandle<()>; 2] {
        [
            AbortOnDropHandle::new(tokio::spawn(ControlWatcher::listen(Arc::clone(&self.control_watcher)))),
            AbortOnDropHandle::new(tokio::spawn(ThreadWatcher::listen(Arc::clone(&self.thread_watcher)))),
        ]
    }

    /// Marks the comments that begin the task as read, and watches the thread from here on. Returns
    /// the text for the model. Comments with commands that are still to be executed are left to the
    /// watcher, together with the text below the command.
    pub(crate) async fn begin_to_listen(&self, claim: &mut Claim, comments: Vec<Comment>) -> Vec<Comment> {
        let mut watcher = self.thread_watcher.lock().await;
        let mut has_commands = false;
        let mut for_model = Vec::new();
        for comment in &comments {
            if watcher.is_new_command(comment, &claim.record.thread.heard) {
                has_commands = true;
                continue;
            }
            let heard = HeardComment::of(comment);
            claim.record.thread.heard.insert(heard.key, heard.fingerprint);
            for_model.extend(message::for_model(comment));
        }
        watcher.open(claim.record.thread.heard.clone());
        if !has_commands {
            watcher.has_looked();
        }
        for_model
    }

    /// Polls all sources of messages at once. The thread comes first, because a request counts as
    /// given after the comments that there are when it is heard.
    pub(crate) async fn listen_now(&self) {
        self.thread_watcher.lock().await.look_at_thread().await;
        self.control_watcher.lock().await.look().await;
    }

    /// Polls the thread unless it was polled within the interval.
    pub(crate) async fn listen_when_due(&self) {
        self.thread_watcher.lock().await.look_when_due().await;
    }

    /// Polls the comments and returns true if there is text that the model has not read.
    pub(crate) async fn has_news(&self) -> bool {
        self.thread_watcher.lock().await.look_at_comments().await;
        self.mailbox.has_words()
    }
}
