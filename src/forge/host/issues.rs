//! Issues that the bot opens for people.

use crate::forge::host::Host;
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::{Platform, Right};
use crate::forge::{ForgeError, NewIssue, OpenedIssue};
use crate::task::id::ItemKind;

impl<P: Platform> Host<P> {
    /// Opens an issue, once. The task is named as searches name it: people may write the repository
    /// in another case, or by an earlier name.
    pub(super) async fn new_issue(&self, repository: &str, issue: &NewIssue<'_>) -> Result<OpenedIssue, ForgeError> {
        let opening = async {
            let full_name = self.platform.full_name(repository).await?;
            let (number, url) = self.platform.post_issue(&full_name, issue).await?;
            Ok::<_, Failure>((full_name, number, url))
        };
        let (full_name, number, url) = opening.await.map_err(|failure| {
            let what = format!("opening an issue in {repository}");
            self.refused(failure, &what, Right::WriteIssues, repository)
        })?;
        let address = ItemAddress {
            kind: ItemKind::Issue,
            number,
            repository: &full_name,
        };
        let task = self.platform.settings().task(address);
        Ok(OpenedIssue { task, url })
    }
}
