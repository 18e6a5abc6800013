//! Decides who may start runs: the person who set the label must have the right to write, or be in
//! `allowed_users`.
//!
//! The label alone proves nothing: GitHub's role Triage and GitLab's Planner may label and not
//! write, and an issue from a template can bring the label along, whoever opens it.

use chrono::Utc;

use super::Service;
use super::forges::Connected;
use super::producer::claiming::still_asks;
use super::producer::{AdmitError, HISTORY_COMES};
use crate::agent::record::sections::StartedBy;
use crate::agent::text::comments;
use crate::forge::{FoundItem, ItemEvent};
use crate::journal::fact::Fact;
use crate::task::id::TaskId;

impl Service {
    /// Returns who asked for the work, if they may. Otherwise tells them so, once, and removes the
    /// label; of a label that is gone already nothing is told.
    pub(super) async fn let_in(
        &self,
        connected: &Connected,
        item: &FoundItem,
    ) -> Result<Option<ItemEvent>, AdmitError> {
        let forge = &connected.forge;
        let Some(trigger) = forge.triggered_by(&item.task).await? else {
            let seen = forge.item(&item.task).await?;
            // Taken off since it was found: there is nothing to ask anybody about.
            if !still_asks(connected, &seen) {
                return Ok(None);
            }
            // The history may come a moment after the label.
            if Utc::now() - seen.updated_at < HISTORY_COMES {
                return Err(AdmitError::Untold);
            }
            self.turn_away(connected, item, None).await?;
            return Ok(None);
        };
        if forge.is_authorised(&item.task, trigger.who()).await? {
            return Ok(Some(trigger));
        }
        // The program put it on for somebody whom the configuration lets do that.
        if self.has_opened(&item.task).await? && forge.bot_name().await? == trigger.by {
            return Ok(Some(trigger));
        }
        self.turn_away(connected, item, Some(&trigger)).await?;
        Ok(None)
    }

    /// Tells people that an item is not worked on which fewer of them may read than its result, and
    /// takes the label off, if it is there.
    pub(super) async fn decline(
        &self,
        connected: &Connected,
        task: &TaskId,
        started_by: StartedBy,
        trigger: &ItemEvent,
    ) -> Result<(), AdmitError> {
        let label = &connected.labels.trigger;
        let text = comments::confidential(started_by, label);
        let at = trigger.at.timestamp().to_string();
        self.say(connected, task, ("gate", &at), &text).await?;
        connected.forge.remove_label(task, label).await?;
        let reason = "the issue is confidential in a project that more people can read".to_owned();
        let author = trigger.by.clone();
        self.record(task, None, Fact::Ignored { author, reason });
        Ok(())
    }

    async fn turn_away(
        &self,
        connected: &Connected,
        item: &FoundItem,
        trigger: Option<&ItemEvent>,
    ) -> Result<(), AdmitError> {
        let label = &connected.labels.trigger;
        let at = trigger.map_or(0, |trigger| trigger.at.timestamp());
        let text = comments::turned_away(trigger.map(|trigger| trigger.by.as_str()), label);
        // The label goes last: until then the item is found again, and the comment is not written
        // twice.
        self.say(connected, &item.task, ("gate", &at.to_string()), &text)
            .await?;
        connected.forge.remove_label(&item.task, label).await?;
        let author = trigger.map(|trigger| trigger.by.clone()).unwrap_or_default();
        let reason = format!("the label {label} was put on by somebody who may not write to the repository");
        self.record(&item.task, None, Fact::Ignored { author, reason });
        Ok(())
    }
}
