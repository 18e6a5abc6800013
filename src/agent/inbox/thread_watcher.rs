//! Listens for a run while it works: to its thread on the forge, and to the store.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::agent::inbox::authority::Authority;
use crate::agent::inbox::mailbox::Mailbox;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::{self, HeardComment, Order, Origin, UserMessage};
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::services::Services;
use crate::forge::who::Who;
use crate::forge::{Comment, CommentKey, Forge, ForgeError, Item, Permissions, Reaction};
use crate::journal::fact::{Fact, Subject};
use crate::store::Lease;
use crate::task::command::{Command, Said};
use crate::task::id::{RunId, TaskId};
use crate::task::labels::Labels;

/// How often the store is looked at.
const TICK: Duration = Duration::from_secs(1);
/// Longest time for one look at the forge.
const LOOK_TIME: Duration = Duration::from_mins(2);

/// How far the forge's clock may be behind this machine's.
const CLOCKS_DIFFER: TimeDelta = TimeDelta::minutes(5);

/// The ear of one run.
pub struct ThreadWatcher {
    workshop: Arc<Services>,
    task: TaskId,
    run: RunId,
    /// Commands from before are not meant for this run.
    since: DateTime<Utc>,
    thread: ReportTarget,
    mailbox: Arc<Mailbox>,
    /// What was heard already; `None` until the comments that begin the task were read.
    heard: Option<BTreeMap<CommentKey, Uuid>>,
    looked_at: Option<Instant>,
    /// Who may write, by login and id. It counts for one look at the thread, in which one person
    /// may have said many things.
    rights: HashMap<(String, Option<u64>), bool>,
    /// Whether the item was seen with the label of a run at work, and assigned to the bot.
    was_shown: bool,
    was_assigned: bool,
    bot: Option<String>,
}

impl ThreadWatcher {
    /// `created_at` is when the run was admitted.
    pub fn new(
        workshop: Arc<Services>,
        lease: &Lease,
        created_at: DateTime<Utc>,
        thread: ReportTarget,
        mailbox: Arc<Mailbox>,
    ) -> Self {
        Self {
            workshop,
            task: lease.task.clone(),
            run: lease.run,
            since: created_at - CLOCKS_DIFFER,
            thread,
            mailbox,
            heard: None,
            looked_at: None,
            rights: HashMap::new(),
            was_shown: false,
            was_assigned: false,
            bot: None,
        }
    }

    /// Begins to listen to the thread; what is in `heard` is not heard again.
    pub fn open(&mut self, heard: BTreeMap<CommentKey, Uuid>) {
        self.heard.get_or_insert(heard);
    }

    /// Tells whether a comment has a command to this run and was not heard to its end yet: the
    /// command, or the words below it.
    pub fn is_new_command(&self, comment: &Comment, heard: &BTreeMap<CommentKey, Uuid>) -> bool {
        let before = heard.get(&comment.key);
        let is_known = before == Some(&HeardComment::of(comment).fingerprint);
        !is_known && self.is_meant(comment, before.is_some()) && Said::of(&comment.body).command.is_some()
    }

    /// Tells whether a command in the comment can be meant for this run: it was written or edited
    /// since. The time of the last change would not do: on GitLab a reaction moves it.
    fn is_meant(&self, comment: &Comment, was_heard_before: bool) -> bool {
        was_heard_before || comment.created_at >= self.since
    }

    /// Puts the next look at the thread off by a whole interval, because somebody else has just
    /// looked.
    pub fn has_looked(&mut self) {
        self.looked_at = Some(Instant::now());
    }

    /// Listens until it is dropped.
    pub async fn listen(watcher: Arc<Mutex<Self>>) {
        loop {
            tokio::time::sleep(TICK).await;
            watcher.lock().await.look_when_due().await;
        }
    }

    /// Looks at the thread if the last look is older than the interval.
    pub async fn look_when_due(&mut self) {
        let pause = Duration::from_secs(self.workshop.settings.steering.interval_seconds);
        if self.looked_at.is_none_or(|at| at.elapsed() >= pause) {
            self.look_at_thread().await;
        }
    }

    /// Looks at the item and at what people wrote below it. A forge that does not answer is passed
    /// over.
    pub async fn look_at_thread(&mut self) {
        self.look_at(true).await;
    }

    /// Looks at what people wrote, where the item itself is looked at anyway.
    pub async fn look_at_comments(&mut self) {
        self.look_at(false).await;
    }

    async fn look_at(&mut self, with_item: bool) {
        let ReportTarget::Item { forge, labels } = self.thread.clone() else {
            return;
        };
        if self.heard.is_none() {
            return;
        }
        self.looked_at = Some(Instant::now());
        self.forget_rights();
        let look = async {
            if with_item && !self.is_wanted(forge.as_ref(), &labels).await? {
                return Ok(());
            }
            for comment in forge.comments(&self.task).await? {
                self.hear(forge.as_ref(), comment).await?;
            }
            Ok::<(), ForgeError>(())
        };
        let looked = tokio::time::timeout(LOOK_TIME, look).await;
        match looked {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(task = %self.task, "the item could not be looked at: {error}"),
            Err(_) => tracing::warn!(task = %self.task, "the item could not be looked at in time"),
        }
    }

    async fn is_wanted(&mut self, forge: &dyn Forge, labels: &Labels) -> Result<bool, ForgeError> {
        let (reason, item_exists) = match forge.item(&self.task).await {
            Err(ForgeError::Gone { what }) => (Some(format!("{what}: it does not exist any more")), false),
            Err(error) => return Err(error),
            Ok(item) => (self.why_unwanted(forge, &item, labels).await?, true),
        };
        let is_wanted = reason.is_none();
        if let Some(reason) = reason {
            self.mailbox
                .interrupt_now(Interruption::Withdrawn { reason, item_exists });
        }
        Ok(is_wanted)
    }

    /// Returns why people do not want the run any more, if they do not.
    async fn why_unwanted(
        &mut self,
        forge: &dyn Permissions,
        item: &Item,
        labels: &Labels,
    ) -> Result<Option<String>, ForgeError> {
        if !item.is_open {
            return Ok(Some(item.why_closed().to_owned()));
        }
        let carries = |label: &String| item.labels.contains(label);
        let is_shown = carries(&labels.processing);
        if self.was_shown && !is_shown && !carries(&labels.trigger) && !carries(&labels.done) {
            return Ok(Some(format!("the label `{}` was taken off", labels.processing)));
        }
        self.was_shown |= is_shown;
        if item.assignees.is_empty() && !self.was_assigned {
            return Ok(None);
        }
        let bot = match &self.bot {
            Some(bot) => bot.clone(),
            None => self.bot.insert(forge.bot_name().await?).clone(),
        };
        let is_assigned = item.assignees.contains(&bot);
        if self.was_assigned && !is_assigned {
            return Ok(Some(format!("{bot} was unassigned")));
        }
        self.was_assigned = is_assigned;
        Ok(None)
    }

    async fn hear(&mut self, forge: &dyn Forge, comment: Comment) -> Result<(), ForgeError> {
        let heard = HeardComment::of(&comment);
        let before = self.heard.as_ref().and_then(|all| all.get(&heard.key).copied());
        if before == Some(heard.fingerprint) {
            return Ok(());
        }
        let above = Said::of(&comment.body).command;
        let is_meant = above.is_none() || self.is_meant(&comment, before.is_some());
        let may_steer = is_meant && self.hears(forge, &comment).await?;
        if let Some(all) = &mut self.heard {
            all.insert(heard.key, heard.fingerprint);
        }
        if !is_meant {
            return Ok(());
        }
        if !may_steer {
            self.ignore(forge, &comment, above.is_some());
            return Ok(());
        }
        let was_obeyed = before == Some(HeardComment::obeyed(&comment).fingerprint);
        let command = above.clone().filter(|_| !was_obeyed);
        self.note(Fact::Heard {
            author: comment.author.clone(),
            what: command.as_ref().map_or_else(|| "words".to_owned(), ToString::to_string),
        });
        // A sign for people, at once; without it the comment counts all the same.
        if let Err(error) = forge.react(&self.task, heard.key, Reaction::Seen).await {
            tracing::warn!(task = %self.task, "the reaction to {} could not be given: {error}", heard.key);
        }
        // A run that is stopped reads nothing more.
        let words = message::for_model(&comment).filter(|_| command != Some(Command::Stop));
        if let Some(command) = command {
            let origin = match &words {
                Some(_) => Origin::AboveWords(HeardComment::obeyed(&comment)),
                None => Origin::Comment(heard),
            };
            self.mailbox.put_order(Order {
                command,
                by: format!("@{}", comment.author),
                origin,
            });
        }
        if let Some(comment) = words {
            self.mailbox.put_words(UserMessage {
                heard,
                comment,
                below: above,
                is_edit: before.is_some() && !was_obeyed,
            });
        }
        Ok(())
    }

    fn ignore(&self, forge: &dyn Permissions, comment: &Comment, is_command: bool) {
        let what = if is_command { "command" } else { "comment" };
        let nobody = Authority::whom(forge, comment).nobody();
        self.note(Fact::Ignored {
            author: comment.author.clone(),
            reason: format!("the {what} {} is of {nobody}", comment.key),
        });
    }

    /// Tells whether the words of a comment count. For a command the forge is asked each time, for
    /// words once in each look: a right that was taken away counts at once.
    pub(crate) async fn hears(&mut self, forge: &dyn Permissions, comment: &Comment) -> Result<bool, ForgeError> {
        match Authority::whom(forge, comment) {
            Authority::Always => return Ok(true),
            Authority::Never => return Ok(false),
            Authority::IfMayWrite => {}
        }
        let who = comment.who();
        let key = (who.login.to_owned(), who.id);
        let is_command = Said::of(&comment.body).command.is_some();
        // A right may have been taken away since, but whoever had none a moment ago still has none.
        // Else a stranger's many commands would each cost a request, and the look would never come
        // to what others said.
        if let Some(may) = self.rights.get(&key).filter(|may| !**may || !is_command) {
            return Ok(*may);
        }
        let may = self.is_authorised(forge, who).await?;
        self.rights.insert(key, may);
        Ok(may)
    }

    /// Has the forge be asked anew for everybody's rights.
    pub(crate) fn forget_rights(&mut self) {
        self.rights.clear();
    }

    /// Asks the forge whether somebody is to be obeyed.
    pub(crate) async fn is_authorised(&self, forge: &dyn Permissions, who: Who<'_>) -> Result<bool, ForgeError> {
        forge.is_authorised(&self.task, who).await
    }

    fn note(&self, fact: Fact) {
        let subject = Subject {
            task: Some(self.task.clone()),
            run: Some(self.run),
        };
        self.workshop.journal.record(&subject, fact);
    }
}
