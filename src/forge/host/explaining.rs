//! Failures of a platform as errors that say who must act.

use super::Host;
use crate::forge::ForgeError;
use crate::forge::http::failure::{Attempt, Failure};
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::{Platform, Right};

impl<P: Platform> Host<P> {
    /// Returns the error for the failure of `what`, which needs `right` on `place`.
    pub(super) fn refused(&self, failure: Failure, what: &str, right: Right, place: &str) -> ForgeError {
        let attempt = Attempt {
            platform: &self.platform.settings().title,
            what,
            remedy: &P::remedy(right, place),
            renew: P::TERMS.renew,
        };
        attempt.failed(failure)
    }

    /// Turns the failure of an attempt on an item, if it failed, into an error that says why.
    ///
    /// A 404 may mean that the item is gone, that it moved to another repository, or that the token
    /// may not see or do it: forges do not tell them apart. Only in this case the item is read
    /// again to find out.
    pub(super) async fn or_explain<T>(
        &self,
        outcome: Result<T, Failure>,
        at: ItemAddress<'_>,
        what: &str,
        right: Right,
    ) -> Result<T, ForgeError> {
        let failure = match outcome {
            Ok(done) => return Ok(done),
            Err(failure) => self.platform.specified(failure, at),
        };
        let error = |failure| self.refused(failure, what, right, at.repository);
        if !failure.is_missing() {
            return Err(error(failure));
        }
        match self.platform.probe_item(at).await {
            Ok(()) => return Err(error(failure)),
            Err(asked) if asked.is_missing() => {}
            Err(asked) => return Err(error(asked)),
        }
        Err(match self.platform.probe_repository(at.repository).await {
            Ok(()) => ForgeError::Gone { what: what.to_owned() },
            Err(_) => error(failure),
        })
    }
}
