//! What people say to a run while it is worked on: who listens, and what has come in.

pub mod authority; // whose words count
pub(crate) mod command_table; // the meaning of each command
pub mod mailbox; // what has come in and was not taken yet
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

/// The messages of one run, and the watchers that put them there.
pub struct Inbox {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) thread_watcher: Arc<Mutex<ThreadWatcher>>,
    pub(crate) control_watcher: Arc<Mutex<ControlWatcher>>,
}

impl Inbox {
    /// Starts both watchers; they end when what is returned is dropped.
    pub(crate) fn watch(&self) -> [AbortOnDropHandle<()>; 2] {
        [
            AbortOnDropHandle::new(tokio::spawn(ControlWatcher::listen(Arc::clone(&self.control_watcher)))),
            AbortOnDropHandle::new(tokio::spawn(ThreadWatcher::listen(Arc::clone(&self.thread_watcher)))),
        ]
    }

    /// Takes the comments that begin the task as heard, and listens to the thread from here on.
    /// Returns those the model is to read. Commands to the program are left out; commands that are
    /// still to be obeyed stay with the watcher, and so do the words below them.
    pub(crate) async fn begin_to_listen(&self, claim: &mut Claim, comments: Vec<Comment>) -> Vec<Comment> {
        let mut watcher = self.thread_watcher.lock().await;
        let mut has_commands = false;
        let mut for_model = Vec::new();
        for comment in &comments {
            if watcher.is_new_command(comment, &claim.record.heard) {
                has_commands = true;
                continue;
            }
            let heard = HeardComment::of(comment);
            claim.record.heard.insert(heard.key, heard.fingerprint);
            for_model.extend(message::for_model(comment));
        }
        watcher.open(claim.record.heard.clone());
        if !has_commands {
            watcher.has_looked();
        }
        for_model
    }

    /// Looks at once at all places where people can say something.
    pub(crate) async fn listen_now(&self) {
        self.control_watcher.lock().await.look().await;
        self.thread_watcher.lock().await.look_at_thread().await;
    }

    /// Looks at the thread unless it was looked at within the interval.
    pub(crate) async fn listen_when_due(&self) {
        self.thread_watcher.lock().await.look_when_due().await;
    }

    /// Looks once more and tells whether people wrote something that the model has not read.
    pub(crate) async fn has_news(&self) -> bool {
        self.thread_watcher.lock().await.look_at_comments().await;
        self.mailbox.has_words()
    }
}
