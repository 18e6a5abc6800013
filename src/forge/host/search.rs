//! Searching all sources of a host for items.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::forge::host::Host;
use crate::forge::http::failure::Failure;
use crate::forge::platform::{Platform, Right};
use crate::forge::settings::source::Source;
use crate::forge::{ForgeError, FoundItem, Search};

impl<P: Platform> Host<P> {
    /// Searches each source for labelled items. Every item is found once, and a source that cannot
    /// be read does not hide the items of the others.
    pub(crate) async fn search_all(&self) -> Search {
        let mut found = Vec::new();
        for source in &self.platform.settings().sources {
            found.push((source, self.items_of(source).await));
        }
        self.gathered(found, "labelled items")
    }

    /// Searches each source, in the same way, for items that something happened to since then.
    pub(crate) async fn search_touched(&self, since: DateTime<Utc>) -> Search {
        let mut found = Vec::new();
        for source in &self.platform.settings().sources {
            let touched = match self.platform.search_touched(source, since).await {
                Ok(items) => self.own(source, items).await,
                Err(failure) => Err(failure),
            };
            found.push((source, touched));
        }
        self.gathered(found, "items that were changed")
    }

    pub(crate) async fn items_of(&self, source: &Source) -> Result<Vec<FoundItem>, Failure> {
        let found = self.platform.search(source).await?;
        self.own(source, found).await
    }

    fn gathered(&self, found: Vec<(&Source, Result<Vec<FoundItem>, Failure>)>, what: &str) -> Search {
        let sources = found.len();
        let mut search = Search::default();
        let mut seen = BTreeSet::new();
        for (source, items) in found {
            match items {
                Ok(items) => {
                    let unseen = items.into_iter().filter(|item| seen.insert(item.task.clone()));
                    search.items.extend(unseen);
                }
                Err(failure) => {
                    let what = format!("searching {source} for {what}");
                    let error = self.refused(failure, &what, Right::ReadIssues, &source.to_string());
                    search.errors.push(error);
                }
            }
        }
        if search.errors.len() == sources {
            // They have a cause in common, such as the token or the network, and that is said once.
            search.errors.truncate(1);
        }
        search
    }

    /// Returns the full name that a repository has now; `None` if none can be seen by this name.
    pub(super) async fn present_name(&self, repository: &str) -> Result<Option<String>, ForgeError> {
        match self.platform.full_name(repository).await {
            Ok(name) => Ok(Some(name)),
            Err(failure) if failure.is_missing() => Ok(None),
            Err(failure) => {
                let what = format!("asking for the name of {repository}");
                Err(self.refused(failure, &what, Right::ReadIssues, repository))
            }
        }
    }

    async fn own(&self, source: &Source, mut found: Vec<FoundItem>) -> Result<Vec<FoundItem>, Failure> {
        let mut own = source.clone();
        if let Source::Repository(name) = source
            && !own.has_all(&found)
        {
            // One that was renamed still answers to its old name.
            own = Source::Repository(self.platform.full_name(name).await?);
        }
        own.keep_own(&mut found);
        Ok(found)
    }
}
