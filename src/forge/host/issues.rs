//! Issues that the bot opens for people.

use crate::forge::host::Host;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::{Platform, Right};
use crate::forge::{ForgeError, NewIssue, OpenedIssue};
use crate::task::id::ItemKind;

impl<P: Platform> Host<P> {
    /// Opens an issue, once.
    pub(super) async fn new_issue(&self, repository: &str, issue: &NewIssue<'_>) -> Result<OpenedIssue, ForgeError> {
        let opened = self.platform.post_issue(repository, issue).await;
        let (number, url) = opened.map_err(|failure| {
            let what = format!("opening an issue in {repository}");
            self.refused(failure, &what, Right::WriteIssues, repository)
        })?;
        let address = ItemAddress {
            kind: ItemKind::Issue,
            number,
            repository,
        };
        let task = self.platform.settings().task(address);
        Ok(OpenedIssue { task, url })
    }
}
