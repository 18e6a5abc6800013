//! Fetches submodules that are on the same forge, each into a mirror of its own with the same
//! limits.

use std::path::Path;

use crate::repository::config::Submodules;
use crate::repository::git::address::{Login, Remote};
use crate::repository::mirror::Mirror;
use crate::repository::reading::submodules::Submodule;
use crate::repository::{Config, RepositoryError};

impl Mirror {
    /// Fetches the contents of a submodule, if the configuration allows it and they are on the same
    /// forge. Returns in a few words why they are not there; `None` if they are.
    pub async fn fetch_submodule(
        &self,
        config: &Config,
        state_dir: &Path,
        login: Option<&Login>,
        submodule: &Submodule,
    ) -> Result<Option<String>, RepositoryError> {
        let why_not = |reason: &str| Ok(Some(reason.to_owned()));
        if config.submodules == Submodules::None {
            return why_not("`git.submodules` is `none`");
        }
        // Whoever opens a request from a fork would choose what this program reads with its token.
        if !self.is_own().await {
            return why_not("submodules of a fork are not fetched");
        }
        let Some(address) = self.address_of(submodule) else {
            return why_not("it is not on the same forge");
        };
        let remote = Remote {
            url: address.url().to_owned(),
            login: login.cloned(),
        };
        let mirror = match self.sibling(&address) {
            // Fetched before, and what is asked for is there.
            Some(mirror) if mirror.tree(&submodule.commit).await.is_ok() => return Ok(None),
            _ => Self::fetch(config, state_dir, &remote).await,
        };
        match mirror {
            Ok(mirror) if mirror.tree(&submodule.commit).await.is_ok() => Ok(None),
            Ok(_) => why_not("no branch or tag has its commit"),
            Err(error @ RepositoryError::Unavailable { .. }) => Err(error),
            Err(error) => Ok(Some(error.to_string())),
        }
    }
}
