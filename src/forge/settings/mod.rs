//! Settings that every host has, whatever its platform.

pub mod allowed_users;
pub(crate) mod label_style;
pub(crate) mod source;
pub mod trigger;

use crate::forge::item::address::ItemAddress;
use crate::task::id::{HostName, ItemId, TaskId};
use crate::task::labels::Labels;
use allowed_users::AllowedUsers;
use source::Source;
use trigger::Trigger;

/// The words in which people are told of a platform.
pub struct Terms {
    pub(crate) platform: &'static str,
    /// Its section of the configuration.
    pub(crate) section: &'static str,
    /// The API that has to answer at `api_url`, and where it is.
    pub(crate) api: &'static str,
    /// The platform's word for a request to merge.
    pub(crate) change: &'static str,
    /// The platform's word for the checks of a commit.
    pub(crate) checks: &'static str,
    /// The platform's word for a repository.
    pub(crate) repository: &'static str,
    /// The remedy if the token is not accepted at all.
    pub(crate) renew: &'static str,
}

/// The part of a host's configuration that is the same for every platform.
pub struct HostSettings {
    pub(crate) name: HostName,
    /// The platform, and the name where it is another, for people.
    pub(crate) title: String,
    pub(crate) labels: Labels,
    pub(crate) trigger: Trigger,
    pub(crate) sources: Vec<Source>,
    pub(crate) allowed_users: AllowedUsers,
}

impl HostSettings {
    /// Reads the settings of the host called `name`; without a name it is called like its section.
    pub(crate) fn new(
        terms: &Terms,
        name: Option<&str>,
        labels: &Labels,
        trigger: &Trigger,
        sources: &[String],
        allowed_users: &[String],
    ) -> Option<Self> {
        let title = match name {
            Some(name) => format!("{} {name}", terms.platform),
            None => terms.platform.to_owned(),
        };
        Some(Self {
            name: HostName::parse(name.unwrap_or(terms.section))?,
            title,
            labels: labels.clone(),
            trigger: trigger.clone(),
            sources: sources.iter().map(|entry| Source::parse(entry)).collect(),
            allowed_users: AllowedUsers::new(allowed_users),
        })
    }

    /// Returns the id of an item on this host.
    pub(crate) fn task(&self, address: ItemAddress<'_>) -> TaskId {
        TaskId::Item(ItemId {
            host: self.name.clone(),
            repository: address.repository.to_owned(),
            kind: address.kind,
            number: address.number,
        })
    }
}
