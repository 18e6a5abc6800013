//! Watches the item of a run and the comments on it while the run is worked on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::agent::inbox::authority::{Authority, KnownRights};
use crate::agent::inbox::mailbox::Mailbox;
use crate::agent::inbox::visit::Visit;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::{self, HeardComment, Order, OrderSource, SeenComment, UserMessage};
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::services::Services;
use crate::forge::item::account::Account;
use crate::forge::{CLOCKS_DIFFER, Comment, CommentKey, Forge, ForgeError, Item, Permissions, Reaction};
use crate::journal::fact::{Fact, Subject};
use crate::store::Lease;
use crate::task::command::{Command, Said};
use crate::task::id::{RunId, TaskId};
use crate::task::labels::Labels;

/// Interval between two checks whether a poll is due.
const TICK: Duration = Duration::from_secs(1);
/// Longest time for one poll of the forge.
const LOOK_TIME: Duration = Duration::from_mins(2);
/// Longest time for the reactions to what was heard in one poll.
const REACTION_TIME: Duration = Duration::from_secs(10);

/// Time within which a command and the request for the run are one deed: GitLab stores a comment
/// with quick actions before it carries them out.
const AT_ONCE: TimeDelta = TimeDelta::seconds(5);

/// What one poll looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    ItemAndComments,
    Comments,
}

/// Polls the item of one run for comments, and for signs that the run is no longer wanted.
pub struct ThreadWatcher {
    services: Arc<Services>,
    task: TaskId,
    run: RunId,
    /// Commands in comments before this time are not meant for this run.
    since: DateTime<Utc>,
    thread: ReportTarget,
    mailbox: Arc<Mailbox>,
    /// Comments that were read; `None` until those that begin the task were.
    heard: Option<BTreeMap<CommentKey, Uuid>>,
    /// Set while a run is visited that waits.
    visit: Option<Visit>,
    /// Comments that were heard and have no reaction yet.
    unacknowledged: Vec<CommentKey>,
    looked_at: Option<Instant>,
    /// Permission to write, by login and id. Kept for one poll, in which a person may have several
    /// comments.
    rights: KnownRights,
    /// Whether the item was seen with the label of a run at work.
    was_shown: bool,
    /// Whether the item was seen assigned to the bot, by this watcher or one before it.
    was_assigned: Arc<AtomicBool>,
    bot: Option<String>,
}

impl ThreadWatcher {
    /// Creates a watcher that is not open yet. Commands in comments before `since` are not meant
    /// for the run (see [`meant_since`]); `was_assigned` is set once the item is seen assigned to
    /// the bot's account.
    pub fn new(
        services: Arc<Services>,
        lease: &Lease,
        since: DateTime<Utc>,
        thread: ReportTarget,
        mailbox: Arc<Mailbox>,
        was_assigned: Arc<AtomicBool>,
    ) -> Self {
        Self {
            services,
            task: lease.task.clone(),
            run: lease.run,
            since,
            thread,
            mailbox,
            heard: None,
            visit: None,
            unacknowledged: Vec::new(),
            looked_at: None,
            rights: KnownRights::default(),
            was_shown: false,
            was_assigned,
            bot: None,
        }
    }

    /// Starts watching the thread; the comments in `heard` count as read.
    pub fn open(&mut self, heard: BTreeMap<CommentKey, Uuid>) {
        self.heard.get_or_insert(heard);
    }

    /// Starts watching for a visit to a run that waits. The comments in `heard` count as read, and
    /// those in `seen` as dealt with by earlier visits.
    pub fn visit(
        &mut self,
        heard: BTreeMap<CommentKey, Uuid>,
        seen: BTreeMap<CommentKey, SeenComment>,
        wants_answer: bool,
    ) {
        self.open(heard);
        self.visit = Some(Visit::new(seen, wants_answer));
    }

    /// Ends a visit; returns the comments that were dealt with by now.
    pub fn leave(&mut self) -> BTreeMap<CommentKey, SeenComment> {
        self.visit.take().map(Visit::end).unwrap_or_default()
    }

    /// Returns true if a comment has a command to this run and was not read completely: neither the
    /// command nor the text below it may be lost.
    pub fn is_new_command(&self, comment: &Comment, heard: &BTreeMap<CommentKey, Uuid>) -> bool {
        let before = heard.get(&comment.key);
        let is_known = before == Some(&HeardComment::of(comment).fingerprint);
        !is_known && self.is_meant(comment, before.is_some()) && Said::of(&comment.body).command.is_some()
    }

    /// Returns true if a command in the comment can be meant for this run: it was written or edited
    /// since the run was asked for. The time of the last change is no criterion, because on GitLab
    /// a reaction updates it.
    fn is_meant(&self, comment: &Comment, was_heard_before: bool) -> bool {
        was_heard_before || comment.created_at >= self.since
    }

    /// Postpones the next poll by a whole interval, because the thread was just read elsewhere.
    pub fn has_looked(&mut self) {
        self.looked_at = Some(Instant::now());
    }

    /// Polls at the configured interval until it is dropped.
    pub async fn listen(watcher: Arc<Mutex<Self>>) {
        loop {
            tokio::time::sleep(TICK).await;
            watcher.lock().await.look_when_due().await;
        }
    }

    /// Polls the thread if the last poll is older than the interval.
    pub async fn look_when_due(&mut self) {
        let pause = Duration::from_secs(self.services.settings.steering.interval_seconds);
        if self.looked_at.is_none_or(|at| at.elapsed() >= pause) {
            self.look_at_thread().await;
        }
    }

    /// Polls the item and its comments. An error of the forge is logged and ignored.
    pub async fn look_at_thread(&mut self) {
        self.look_at(Parts::ItemAndComments).await;
    }

    /// Polls only the comments, for callers that read the item themselves.
    pub async fn look_at_comments(&mut self) {
        self.look_at(Parts::Comments).await;
    }

    async fn look_at(&mut self, parts: Parts) {
        let ReportTarget::Item { forge, labels } = self.thread.clone() else {
            return;
        };
        if self.heard.is_none() {
            return;
        }
        self.looked_at = Some(Instant::now());
        self.forget_rights();
        let look = async {
            if parts == Parts::ItemAndComments && !self.is_wanted(forge.as_ref(), &labels).await? {
                return Ok(());
            }
            let comments = forge.comments(&self.task).await?;
            if let Some(visit) = &mut self.visit {
                visit.keep(&comments);
            }
            for comment in comments {
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
        self.acknowledge(forge.as_ref()).await;
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

    /// Returns the reason why the run is no longer wanted, if there is one. Once people have its
    /// result, whatever they do with the item withdraws nothing.
    async fn why_unwanted(
        &mut self,
        forge: &dyn Permissions,
        item: &Item,
        labels: &Labels,
    ) -> Result<Option<String>, ForgeError> {
        if self.mailbox.is_handed_over() {
            return Ok(None);
        }
        if !item.is_open {
            return Ok(Some(item.why_closed().to_owned()));
        }
        let carries = |label: &String| item.labels.contains(label);
        let is_shown = carries(&labels.processing);
        if self.was_shown && !is_shown && !carries(&labels.trigger) && !carries(&labels.done) {
            return Ok(Some(format!("the label `{}` was taken off", labels.processing)));
        }
        self.was_shown |= is_shown;
        let was_assigned = self.was_assigned.load(Ordering::Relaxed);
        if item.assignees.is_empty() && !was_assigned {
            return Ok(None);
        }
        let bot = match &self.bot {
            Some(bot) => bot.clone(),
            None => self.bot.insert(forge.bot_name().await?).clone(),
        };
        let is_assigned = item.assignees.iter().any(|login| login.eq_ignore_ascii_case(&bot));
        if was_assigned && !is_assigned {
            return Ok(Some(format!("{bot} was unassigned")));
        }
        self.was_assigned.store(is_assigned, Ordering::Relaxed);
        Ok(None)
    }

    async fn hear(&mut self, forge: &dyn Forge, comment: Comment) -> Result<(), ForgeError> {
        let heard = HeardComment::of(&comment);
        let before = self.heard.as_ref().and_then(|all| all.get(&heard.key).copied());
        let is_passed_over = self.visit.as_ref().is_some_and(|visit| visit.passes_over(&heard));
        if before == Some(heard.fingerprint) || is_passed_over {
            return Ok(());
        }
        let above = Said::of(&comment.body).command;
        let is_meant = above.is_none() || self.is_meant(&comment, before.is_some());
        let may_steer = is_meant && self.may_steer(forge, &comment).await?;
        let was_obeyed = before == Some(HeardComment::obeyed(&comment).fingerprint);
        let command = above.clone().filter(|_| !was_obeyed);
        if may_steer && command == Some(Command::AutoApproveOff) {
            self.end_automatic_approval(&comment.author).await;
        }
        // Nothing is waited for from here on: a poll that is broken off after the comment counts as
        // read would lose what it says.
        if let Some(all) = &mut self.heard {
            all.insert(heard.key, heard.fingerprint);
        }
        if !is_meant {
            self.saw(heard, false);
            return Ok(());
        }
        if !may_steer {
            self.ignore(forge, &comment, above.is_some());
            self.saw(heard, false);
            return Ok(());
        }
        if !self.visit.as_ref().is_some_and(|visit| visit.has_noted(&heard)) {
            self.note(Fact::Heard {
                author: comment.author.clone(),
                what: command.as_ref().map_or_else(|| "words".to_owned(), ToString::to_string),
            });
            self.unacknowledged.push(heard.key);
        }
        // A stopped run reads no more text.
        let words = message::for_model(&comment).filter(|_| command != Some(Command::Stop));
        if command.is_none() {
            self.saw(heard, words.is_some());
        }
        if let Some(command) = command {
            let origin = match &words {
                Some(_) => OrderSource::AboveWords(HeardComment::obeyed(&comment)),
                None => OrderSource::Comment(heard),
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

    fn saw(&mut self, comment: HeardComment, has_words: bool) {
        if let Some(visit) = &mut self.visit {
            visit.saw(comment, has_words);
        }
    }

    /// Gives the comments that were heard their reaction, for people; if it fails, they still
    /// count. It comes last and has little time: a forge that throttles reactions has each of them
    /// wait for minutes.
    async fn acknowledge(&mut self, forge: &dyn Forge) {
        let comments = std::mem::take(&mut self.unacknowledged);
        let reacting = async {
            for comment in comments {
                if let Err(error) = forge.react(&self.task, comment, Reaction::Seen).await {
                    tracing::warn!(task = %self.task, "the reaction to {comment} could not be given: {error}");
                }
            }
        };
        if tokio::time::timeout(REACTION_TIME, reacting).await.is_err() {
            tracing::warn!(task = %self.task, "the reactions could not be given in time");
        }
    }

    /// Switches automatic approval off at once. The run itself would do so at its next safe point
    /// only, and until then another result could pass.
    async fn end_automatic_approval(&self, author: &str) {
        match self.services.store.end_automatic_approval().await {
            Ok(true) => self.note(Fact::AutomaticApprovalEnded {
                by: format!("@{author}"),
            }),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(task = %self.task, "automatic approval could not be switched off yet: {error}");
            }
        }
    }

    fn ignore(&self, forge: &dyn Permissions, comment: &Comment, is_command: bool) {
        let what = if is_command { "command" } else { "comment" };
        let author = Authority::of(forge, comment).described();
        self.note(Fact::Ignored {
            author: comment.author.clone(),
            reason: format!("the {what} {} is of {author}", comment.key),
        });
    }

    /// Returns true if the author of a comment may steer the run. The forge is asked again for each
    /// command, and once in a poll for other text: a withdrawn permission takes effect at once.
    pub(crate) async fn may_steer(&mut self, forge: &dyn Permissions, comment: &Comment) -> Result<bool, ForgeError> {
        let is_command = Said::of(&comment.body).command.is_some();
        self.rights.has(forge, &self.task, comment, is_command).await
    }

    /// Drops the cached permissions, so that the forge is asked again.
    pub(crate) fn forget_rights(&mut self) {
        self.rights.forget();
    }

    /// Asks the forge whether an account may write.
    pub(crate) async fn is_authorised(&self, forge: &dyn Permissions, who: Account<'_>) -> Result<bool, ForgeError> {
        forge.is_authorised(&self.task, who).await
    }

    fn note(&self, fact: Fact) {
        let subject = Subject {
            task: Some(self.task.clone()),
            run: Some(self.run),
        };
        self.services.journal.record(&subject, fact);
    }
}

/// Returns the time from which on commands can be meant for a run: that at which it was asked for,
/// which is a time of the forge as those of comments are, or a moment before, for a comment that
/// sets the label with it. Where that is not known, or long ago, it is when the run was admitted,
/// by the clock of this machine. An earlier command was meant for an earlier run, whose end may
/// have to be shown yet.
pub fn meant_since(admitted_at: DateTime<Utc>, asked_at: Option<DateTime<Utc>>) -> DateTime<Utc> {
    let admitted = admitted_at - CLOCKS_DIFFER;
    asked_at.map_or(admitted, |asked| (asked - AT_ONCE).max(admitted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_before_a_run_was_asked_for_is_not_meant_for_it() {
        let admitted = DateTime::UNIX_EPOCH + TimeDelta::hours(1);
        let before = |minutes| admitted - TimeDelta::minutes(minutes);
        assert_eq!(meant_since(admitted, Some(before(2))), before(2) - AT_ONCE);
        assert_eq!(meant_since(admitted, Some(before(60))), before(5));
        assert_eq!(meant_since(admitted, None), before(5));
    }
}
