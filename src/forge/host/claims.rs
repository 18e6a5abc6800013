//! The forge's part in claims on items: its clock, and the repository that the item lives in.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::forge::host::Host;
use crate::forge::platform::{Platform, Right};
use crate::forge::{ClaimHost, CodeHost, ForgeError, GitCredentials};
use crate::task::id::TaskId;

#[async_trait]
impl<P: Platform> ClaimHost for Host<P> {
    async fn now(&self, task: &TaskId) -> Result<DateTime<Utc>, ForgeError> {
        if let Some(now) = self.platform.clock().now() {
            return Ok(now);
        }
        let repository = self.address(task)?.repository;
        let answered = self.platform.probe_repository(repository).await;
        // A server between may take the date out of all answers; then the machines' clocks must do.
        match (self.platform.clock().now(), answered) {
            (Some(now), _) => Ok(now),
            (None, Ok(())) => Ok(Utc::now()),
            (None, Err(failure)) => {
                let what = format!("asking for the time in {repository}");
                Err(self.refused(failure, &what, Right::ReadContents, repository))
            }
        }
    }

    async fn home(&self, task: &TaskId) -> Result<(String, GitCredentials), ForgeError> {
        let repository = self.address(task)?.repository;
        let url = self.platform.clone_url(repository).await.map_err(|failure| {
            let what = format!("asking for the address of {repository}");
            self.refused(failure, &what, Right::ReadContents, repository)
        })?;
        Ok((url, self.git_credentials(task).await?))
    }
}
