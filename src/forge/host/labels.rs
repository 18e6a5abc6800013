//! The program's labels on the items of a host: made on first use.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::forge::Item;
use crate::forge::host::Host;
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::Platform;
use crate::forge::settings::label_style::LabelStyle;

impl<P: Platform> Host<P> {
    /// Puts a label on an item, and creates it first if the repository does not have it. A forge
    /// would create it by itself, but without colour and description. The repository's labels are
    /// cached, so this costs one list now and then.
    pub(crate) async fn put_label(&self, at: ItemAddress<'_>, label: &str) -> Result<(), Failure> {
        let known = self.known_labels(at.repository).await?;
        let key = P::label_key(label);
        if !known.contains(&key) {
            let look = LabelStyle::of(label, &self.platform.settings().labels);
            self.platform.make_label(at.repository, label, look).await?;
            let mut names = BTreeSet::clone(&known);
            names.insert(key);
            self.known_labels.learn(at.repository, names);
        }
        self.platform.put_label(at, label).await
    }

    /// Spells the program's labels on an item as the configuration does. GitHub ignores case: it
    /// keeps the spelling in which a repository's label was created.
    pub(super) fn with_own_labels(&self, mut item: Item) -> Item {
        let own = self.platform.settings().labels.all();
        for label in &mut item.labels {
            let key = P::label_key(label);
            if let Some(same) = own.iter().find(|own| P::label_key(own) == key) {
                (*same).clone_into(label);
            }
        }
        item
    }

    /// Returns the labels that items of the repository can carry, in the form in which the platform
    /// compares their names.
    pub(crate) async fn known_labels(&self, repository: &str) -> Result<Arc<BTreeSet<String>>, Failure> {
        if let Some(known) = self.known_labels.fact(repository) {
            return Ok(known);
        }
        let names = self.platform.label_names(repository).await?;
        let names = names.iter().map(|name| P::label_key(name)).collect();
        Ok(self.known_labels.learn(repository, names))
    }
}
