//! Switches automatic approval on and off for the whole installation.

use chrono::{DateTime, TimeDelta, Utc};

use super::Service;
use crate::journal::fact::{Fact, Subject};
use crate::store::StoreError;

/// Why automatic approval is not switched on.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    #[error(
        "the configuration does not allow it: set approval.auto_approve.enabled to true, with the scope that it may have, \
         and restart the service"
    )]
    NotEnabled,
    #[error(
        "{asked} minutes are more than approval.auto_approve.ttl_minutes allows ({most}); write at most --ttl {most}m"
    )]
    TooLong { asked: i64, most: u32 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Service {
    /// Switches it on for `time`, or for as long as the configuration allows; returns until when.
    pub async fn start_automatic_approval(
        &self,
        by: &str,
        time: Option<TimeDelta>,
    ) -> Result<DateTime<Utc>, NotStarted> {
        let config = &self.config.approval.auto_approve;
        if !config.enabled {
            return Err(NotStarted::NotEnabled);
        }
        let most = TimeDelta::minutes(config.ttl_minutes.into());
        let time = time.unwrap_or(most);
        if time > most {
            return Err(NotStarted::TooLong {
                asked: time.num_minutes(),
                most: config.ttl_minutes,
            });
        }
        let until = self.services.store.start_automatic_approval(by, time).await?;
        let by = by.to_owned();
        let fact = Fact::AutomaticApprovalStarted { by, until };
        self.services.journal.record(&Subject::default(), fact);
        Ok(until)
    }

    /// Switches it off, at once and for all; returns whether it was on.
    pub async fn end_automatic_approval(&self, by: &str) -> Result<bool, StoreError> {
        let was_on = self.services.store.end_automatic_approval().await?;
        if was_on {
            let fact = Fact::AutomaticApprovalEnded { by: by.to_owned() };
            self.services.journal.record(&Subject::default(), fact);
        }
        Ok(was_on)
    }
}
