//! The state of all that the program needs of others: forges, engine and models, as `doctor` finds
//! them.
//!
//! Asking costs requests and seconds, so what was found counts for a while, and one asks for all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use crate::doctor::view::FindingView;
use crate::doctor::{self, ModelCheck};
use crate::web::Web;

/// Time for which findings count.
const FRESH: Duration = Duration::from_mins(2);

/// The last findings, with the time at which they were made.
#[derive(Default)]
pub(in crate::web) struct Examination {
    last: Mutex<Option<(Instant, Arc<Vec<FindingView>>)>>,
}

impl Examination {
    /// Returns what there is to say of each thing that a run needs.
    pub(in crate::web) async fn look(web: &Arc<Web>) -> Arc<Vec<FindingView>> {
        let mut last = web.examination.last.lock().await;
        if let Some((_, found)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Arc::clone(found);
        }
        // On a thread of its own: what it awaits may not move between threads.
        let (own, runtime) = (Arc::clone(web), Handle::current());
        let examined = spawn_blocking(move || {
            let service = &own.service;
            let findings = runtime.block_on(doctor::examine(service.config(), &own.host, ModelCheck::Server));
            findings
                .iter()
                .map(|finding| FindingView::of(finding, service.redactor()))
                .collect()
        });
        let found: Arc<Vec<FindingView>> = Arc::new(examined.await.unwrap_or_default());
        *last = Some((Instant::now(), Arc::clone(&found)));
        found
    }
}
