//! Searching all sources of a host for items that carry the trigger label.

use std::collections::BTreeSet;

use crate::forge::host::Host;
use crate::forge::http::failure::Failure;
use crate::forge::platform::{Platform, Right};
use crate::forge::settings::source::Source;
use crate::forge::{Search, TriggeredItem};

impl<P: Platform> Host<P> {
    /// Searches each source. Every item is found once, and a source that cannot be read does not
    /// hide the items of the others.
    pub(crate) async fn search_all(&self) -> Search {
        let sources = &self.platform.settings().sources;
        let mut search = Search::default();
        let mut seen = BTreeSet::new();
        for source in sources {
            match self.items_of(source).await {
                Ok(items) => {
                    let unseen = items.into_iter().filter(|item| seen.insert(item.task.clone()));
                    search.items.extend(unseen);
                }
                Err(failure) => {
                    let what = format!("searching {source} for labelled items");
                    let error = self.refused(failure, &what, Right::ReadIssues, &source.to_string());
                    search.errors.push(error);
                }
            }
        }
        if search.errors.len() == sources.len() {
            // They have a cause in common, such as the token or the network, and that is said once.
            search.errors.truncate(1);
        }
        search
    }

    pub(crate) async fn items_of(&self, source: &Source) -> Result<Vec<TriggeredItem>, Failure> {
        let mut found = self.platform.search(source).await?;
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
