//! Fetches submodules that are on the same forge, each into a mirror of its own with the same
//! limits.

use std::path::Path;

use crate::repository::config::Submodules;
use crate::repository::git::address::Remote;
use crate::repository::mirror::Mirror;
use crate::repository::reading::submodules::Submodule;
use crate::repository::{Config, RepositoryError};

/// Where the contents of a submodule are to be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whereabouts {
    /// On this machine, since they were fetched before.
    Here,
    /// At this address of the same forge, in the repository of this name.
    There { url: String, repository: String },
    /// Nowhere, for a reason in a few words.
    Nowhere(&'static str),
}

impl Mirror {
    /// Tells where the contents of a submodule are to be had: on the same forge alone, if the
    /// configuration allows it.
    pub async fn whereabouts(&self, submodule: &Submodule) -> Whereabouts {
        if self.config().submodules == Submodules::None {
            return Whereabouts::Nowhere("`git.submodules` is `none`");
        }
        // Whoever opens a request from a fork would choose what this program reads with its token.
        if !self.is_own().await {
            return Whereabouts::Nowhere("submodules of a fork are not fetched");
        }
        let Some(address) = self.address_of(submodule) else {
            return Whereabouts::Nowhere("it is not on the same forge");
        };
        match self.sibling(&address) {
            Some(mirror) if mirror.tree(&submodule.commit).await.is_ok() => Whereabouts::Here,
            Some(_) | None => Whereabouts::There {
                url: address.url().to_owned(),
                repository: address.name().to_owned(),
            },
        }
    }

    /// Fetches the repository of a submodule. Returns false if none of its branches and tags has
    /// the submodule's commit.
    pub async fn fetch_submodule(
        config: &Config,
        state_dir: &Path,
        remote: &Remote,
        submodule: &Submodule,
    ) -> Result<bool, RepositoryError> {
        let mirror = Self::fetch(config, state_dir, remote).await?;
        Ok(mirror.tree(&submodule.commit).await.is_ok())
    }
}
