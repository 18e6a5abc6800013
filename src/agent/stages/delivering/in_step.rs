//! Keeps a pull/merge request in step with the last result: its text, its title, and whether it is
//! a draft.
//!
//! Only what the program wrote is changed: the sections of the text that it owns, a title that
//! nobody else gave, and whether it is a draft where the verdict on the result is another than the
//! last time. Each step looks at what is there, so that repeating it changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::DateTime;

use crate::agent::claim::Claim;
use crate::agent::record::follow_up::Notes;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::text::change_request;
use crate::agent::text::template;
use crate::forge::{ChangeEdit, Discretion, EditedPart, Forge, ForgeError, Item, ItemEvent};
use crate::journal::fact::Fact;
use crate::markdown::owned::{self, Stamp, title_id, without_draft_mark};
use crate::repository::commit::message;
use crate::secret::Redactor;
use crate::task::id::TaskId;

/// The contents of the sections that the program owns, made from a result.
pub(super) struct Sections {
    about: String,
    standing: String,
    stamp: Stamp,
}

impl Sections {
    /// Returns the sections of the result of a run on an issue, for a request with this title.
    pub(super) fn of_issue(claim: &Claim, title: &str) -> Self {
        Self::of(claim, title, claim.lease.task.number(), false)
    }

    fn of(claim: &Claim, title: &str, closes: Option<u64>, is_follow_up: bool) -> Self {
        let (record, settings) = (&claim.record, &claim.services.settings);
        let redactor = &claim.services.redactor;
        let standing = change_request::standing(record, settings, closes, (claim.lease.run, is_follow_up));
        Self {
            about: change_request::about(record).written(redactor).into_string(),
            standing: standing.written(redactor).into_string(),
            stamp: Stamp {
                is_draft: !record.is_verified(),
                is_discreet: record.request.is_discreet,
                title: title_id(title),
            },
        }
    }

    /// Returns the text of a new change request, in the project's template where it has one.
    pub(super) fn text(&self, template: Option<&str>, redactor: &Redactor) -> String {
        let (about, standing) = (owned::summary(&self.about), owned::result(&self.standing, self.stamp));
        match template {
            Some(template) => template::filled(template, &about, &standing, redactor),
            None => format!("{about}\n\n{standing}"),
        }
    }
}

/// Brings a request that was open before in step with the result of a new run on its issue. One
/// that this run opened before it was interrupted is that already. Returns whether this is so.
pub(super) async fn renew(
    run: &mut Run,
    forge: &Arc<dyn Forge>,
    number: u64,
    title: &str,
) -> Result<bool, Interruption> {
    let Some(change) = forge.change_id(&run.claim.lease.task, number) else {
        return Ok(false);
    };
    let change = match forge.item(&change).await {
        // It was deleted since it was found; the issue was not.
        Err(ForgeError::Gone { .. }) => return Ok(false),
        read => read?,
    };
    if change.body.contains(&run.claim.lease.run.to_string()) {
        return Ok(true);
    }
    let sections = Sections::of_issue(&run.claim, title);
    let about = Some(sections.about.clone());
    bring(run, forge, &change, Wanted { title, about, sections }).await?;
    Ok(false)
}

/// Brings the run's own item in step with the result of a round of follow-up, if it is a request
/// that the program opened. What it is about stays as it was written.
pub(super) async fn after_round(run: &mut Run, forge: &Arc<dyn Forge>, change: &Item) -> Result<(), Interruption> {
    if owned::stamp(&change.body).is_none() {
        return Ok(());
    }
    let followed = run.claim.services.store.followed(&change.task).await?;
    // Anybody can write the program's marks into a request of their own.
    if followed.is_none() && !forge.bot_name().await?.eq_ignore_ascii_case(&change.author) {
        return Ok(());
    }
    let notes = followed.and_then(|followed| serde_json::from_value::<Notes>(followed.notes).ok());
    let origin = notes.map(|notes| notes.origin);
    let title = present_title(forge, change, origin.as_ref()).await;
    // The text says whether people want a line on what is closed, and not which number it has.
    let number = origin.as_ref().and_then(TaskId::number);
    let closes = owned::closes(&change.body).map(|written| number.unwrap_or(written));
    let sections = Sections::of(&run.claim, &title, closes, true);
    let wanted = Wanted {
        title: &title,
        about: None,
        sections,
    };
    bring(run, forge, change, wanted).await
}

struct Wanted<'a> {
    title: &'a str,
    about: Option<String>,
    sections: Sections,
}

async fn bring(run: &mut Run, forge: &Arc<dyn Forge>, change: &Item, wanted: Wanted<'_>) -> Result<(), Interruption> {
    let (Some(last), Some(head)) = (owned::stamp(&change.body), &change.change) else {
        return Ok(());
    };
    let Wanted { title, about, sections } = wanted;
    let mut stamp = Stamp {
        is_discreet: last.is_discreet,
        ..sections.stamp
    };
    let mut shown = change.title.clone();
    // What people made of it since the last time stays, until the verdict is another one.
    if last.is_draft != stamp.is_draft && head.is_draft != stamp.is_draft {
        let set = forge.set_draft(&change.task, &shown, stamp.is_draft).await;
        match unless_refused(run, set)? {
            Some(now) => shown = now,
            None => stamp.is_draft = last.is_draft,
        }
    }
    let is_ours = title_id(&shown) == last.title;
    let renamed = (is_ours && stamp.title != last.title).then(|| {
        let bare = without_draft_mark(&shown);
        format!("{}{title}", &shown[..shown.len() - bare.len()])
    });
    if renamed.is_none() {
        stamp.title = last.title;
    }
    // A text that more people can read than the issue says nothing of the work.
    let (about, standing) = if stamp.is_discreet {
        (None, None)
    } else {
        (about, Some(sections.standing))
    };
    let body = owned::renewed(&change.body, about.as_deref(), standing.as_deref(), stamp);
    let is_changed = body != change.body.replace("\r\n", "\n");
    if renamed.is_some() || is_changed {
        let redactor = &run.claim.services.redactor;
        let edit = ChangeEdit {
            title: renamed.map(|title| redactor.clean(&title)),
            body: is_changed.then(|| redactor.clean(&body)),
        };
        let edited = forge.edit_change(&change.task, &edit).await;
        unless_refused(run, edited)?;
    }
    run.claim.note(Fact::ChangeBroughtInStep {
        change: change.task.to_string(),
        is_draft: stamp.is_draft,
    });
    Ok(())
}

/// Returns what the forge did. Where it refuses, people are told so, and the work is delivered all
/// the same. Where it refuses the token, it refuses all that is left to do: that is done later.
pub(super) fn unless_refused<T>(run: &mut Run, done: Result<T, ForgeError>) -> Result<Option<T>, Interruption> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error @ ForgeError::Refused { status: 401, .. }) => Err(error.into()),
        Err(error @ (ForgeError::Refused { .. } | ForgeError::Unexpected { .. })) => {
            run.claim.warn(error.to_string());
            Ok(None)
        }
        // What is gone needs nothing; if it is the run's own item, its next step notices.
        Err(ForgeError::Gone { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the title that the program would give a request today: that of its issue. A request that
/// more people can read than the issue keeps its title, as does one whose issue cannot be read, or
/// was changed by somebody who may not have the program work.
async fn present_title(forge: &Arc<dyn Forge>, change: &Item, origin: Option<&TaskId>) -> String {
    let as_it_is = without_draft_mark(&change.title).to_owned();
    let Some(origin) = origin else {
        return as_it_is;
    };
    let read = forge.item(origin).await;
    let Some(issue) = read.ok().filter(|issue| issue.discretion == Discretion::NotNeeded) else {
        return as_it_is;
    };
    let title = message::title(&issue.title);
    let is_another = title_id(&title) != title_id(&as_it_is);
    if is_another && is_vouched(forge, &issue).await.unwrap_or(false) {
        return title;
    }
    as_it_is
}

/// Tells whether everybody who changed the words of an issue may have the program work.
async fn is_vouched(forge: &Arc<dyn Forge>, issue: &Item) -> Result<bool, ForgeError> {
    let edits = forge.edits_since(issue, DateTime::UNIX_EPOCH).await?;
    let of_words = edits.iter().filter(|edit| edit.what == EditedPart::Text);
    let editors: BTreeMap<&str, &ItemEvent> = of_words.map(|edit| (edit.event.by.as_str(), &edit.event)).collect();
    for editor in editors.values() {
        if !forge.is_authorised(&issue.task, editor.who()).await? {
            return Ok(false);
        }
    }
    Ok(true)
}
