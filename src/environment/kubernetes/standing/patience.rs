//! For how long a pod that starts may have a trouble that may pass by itself.

use std::time::Duration;

use tokio::time::Instant;

use super::{PodEnd, Wait};

/// Time for which an image may fail to be pulled: a registry may be away for a moment.
const IMAGE_PATIENCE: Duration = Duration::from_secs(45);

/// Time for which a node may fail to start a container, which it tries again.
const START_PATIENCE: Duration = Duration::from_secs(45);

/// Time for which the API server may be away while a pod starts.
const SERVER_PATIENCE: Duration = Duration::from_secs(30);

/// The troubles of a pod that starts.
#[derive(Default)]
pub(in crate::environment::kubernetes) struct Troubles {
    server: Trouble,
    image: Trouble,
    container: Trouble,
}

/// A trouble that may pass.
#[derive(Default)]
struct Trouble {
    /// When it was seen first, while it lasts.
    since: Option<Instant>,
}

impl Troubles {
    /// Notes that the API server could not answer; returns whether that has lasted too long.
    pub(in crate::environment::kubernetes) fn is_server_away_too_long(&mut self) -> bool {
        self.server.outlasts(SERVER_PATIENCE)
    }

    /// Notes that the API server has answered.
    pub(in crate::environment::kubernetes) fn server_answers(&mut self) {
        self.server.passes();
    }

    /// Notes what the pod waits for; returns how it ends if it has waited too long for that, or for
    /// longer than `limit`.
    pub(in crate::environment::kubernetes) fn end(&mut self, wait: &Wait, limit: Duration) -> Option<PodEnd> {
        match wait {
            Wait::Image { image, reason } => {
                let is_over = self.image.outlasts(IMAGE_PATIENCE.min(limit));
                is_over.then(|| PodEnd::Image {
                    image: image.clone(),
                    reason: reason.clone(),
                })
            }
            Wait::Container(words) => {
                let is_over = self.container.outlasts(START_PATIENCE.min(limit));
                is_over.then(|| PodEnd::Other(words.clone()))
            }
            Wait::Usual(_) | Wait::Place(_) => {
                self.image.passes();
                self.container.passes();
                None
            }
        }
    }
}

impl Trouble {
    /// Notes that it is seen; returns whether it has lasted for longer than `patience`.
    fn outlasts(&mut self, patience: Duration) -> bool {
        self.since.get_or_insert_with(Instant::now).elapsed() > patience
    }

    fn passes(&mut self) {
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_that_has_passed_may_come_again() {
        let (image, reason) = ("python:3".to_owned(), "it is away".to_owned());
        let wait = Wait::Image {
            image: image.clone(),
            reason: reason.clone(),
        };
        let limit = Duration::from_hours(1);
        let long_ago = || Instant::now().checked_sub(2 * IMAGE_PATIENCE);
        let mut troubles = Troubles::default();
        assert_eq!(troubles.end(&wait, limit), None);
        troubles.image.since = long_ago();
        assert_eq!(troubles.end(&wait, limit), Some(PodEnd::Image { image, reason }));
        troubles.image.since = long_ago();
        assert_eq!(troubles.end(&Wait::Usual("it starts".to_owned()), limit), None);
        assert_eq!(troubles.end(&wait, limit), None);
    }
}
