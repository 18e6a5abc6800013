//! A claimed run and its parts.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tokio::sync::Mutex;

use crate::agent::claim::Claim;
use crate::agent::claim::on_forge::{Asking, ClaimOnForge};
use crate::agent::dialogue::Dialogue;
use crate::agent::inbox::Inbox;
use crate::agent::inbox::control_watcher::ControlWatcher;
use crate::agent::inbox::mailbox::Mailbox;
use crate::agent::inbox::thread_watcher::{ThreadWatcher, meant_since};
use crate::agent::open_workspace::RunWorkspace;
use crate::agent::record::saved::Unreadable;
use crate::agent::record::sections::{RequestRecord, StartedBy};
use crate::agent::record::stop::Stop;
use crate::agent::record::{Failure, Record};
use crate::agent::reporter::Reporter;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::services::Services;
use crate::agent::tool_outputs::ToolOutputs;
use crate::gateway::ledger::Ledger;
use crate::journal::fact::Subject;
use crate::store::{Lease, Run as StoredRun};
use crate::task::state::State;
use crate::workspace::streams::tunnel;

/// A claimed run. It has no behaviour of its own: stages are functions over the parts they need, so
/// that the `use` lines of each show its dependencies.
pub struct Run {
    /// Lease, state and record.
    pub(crate) claim: Claim,
    /// Reports to people.
    pub(crate) reporter: Reporter,
    /// Messages from people.
    pub(crate) inbox: Inbox,
    /// The conversation with the model.
    pub(crate) dialogue: Dialogue,
    /// Repository, container and tools.
    pub(crate) workspace: RunWorkspace,
}

impl Run {
    /// Creates a claimed run in the state that was stored.
    pub fn new(
        services: Arc<Services>,
        lease: Arc<Lease>,
        stored: &StoredRun,
        thread: ReportTarget,
        stop: &Stop,
    ) -> Self {
        let record = Record::read(stored).unwrap_or_else(|error| unreadable(stored, &error));
        let outputs = ToolOutputs::new(services.settings.outputs_dir.join(lease.run.to_string()));
        let subject = Subject {
            task: Some(lease.task.clone()),
            run: Some(lease.run),
        };
        let (journal, about) = (services.journal.clone(), subject.clone());
        let ledger = Ledger::new(record.worked.refused.iter().cloned(), move |news| {
            journal.record(&about, tunnel::fact(news));
        });
        let on_forge = on_forge(&services, &lease, &record, &thread);
        let stop = stop.child();
        let mailbox = Arc::new(Mailbox::new(stop.clone()));
        if record.is_handed_over() {
            mailbox.note_handed_over();
        }
        let began_assigned = record.request.started_by == StartedBy::Assignment;
        let was_assigned = Arc::new(AtomicBool::new(record.thread.was_assigned || began_assigned));
        let asked_at = record.request.trigger.as_ref().map(|trigger| trigger.at);
        let mut thread_watcher = ThreadWatcher::new(
            Arc::clone(&services),
            &lease,
            meant_since(stored.created_at, asked_at),
            thread.clone(),
            Arc::clone(&mailbox),
            Arc::clone(&was_assigned),
        );
        let may_pause = matches!(thread, ReportTarget::Item { .. });
        let control_watcher = ControlWatcher::new(Arc::clone(&services), lease.run, may_pause, Arc::clone(&mailbox));
        // Planning begins with the whole thread, unless it only makes a plan better.
        let reads_thread = matches!(stored.state, State::Queued | State::Planning);
        if !reads_thread || record.reviewed.is_plan_sent_back() {
            thread_watcher.open(record.thread.heard.clone());
        }
        Self {
            claim: Claim {
                services,
                lease,
                on_forge,
                subject,
                state: stored.state,
                record,
                stop,
                outputs,
                begun: Instant::now(),
                was_taken_up: stored.state != State::Queued,
                was_assigned,
            },
            reporter: Reporter::new(thread),
            inbox: Inbox {
                mailbox,
                thread_watcher: Arc::new(Mutex::new(thread_watcher)),
                control_watcher: Arc::new(Mutex::new(control_watcher)),
            },
            dialogue: Dialogue::default(),
            workspace: RunWorkspace::new(ledger),
        }
    }

    /// Creates a run that was ended by a bug of this program. It fails at once, because another try
    /// would most likely end in the same way.
    pub fn broken(
        services: Arc<Services>,
        lease: Arc<Lease>,
        stored: &StoredRun,
        thread: ReportTarget,
        stop: &Stop,
    ) -> Self {
        let mut run = Self::new(services, lease, stored, thread, stop);
        run.claim.record.failure.get_or_insert_with(Self::fault);
        run
    }

    /// Returns the failure of a run that was ended by a bug of this program.
    pub(crate) fn fault() -> Failure {
        Failure::of_task("a fault of this program broke the run off; its log says where, please report it")
    }
}

/// Returns the claim on the item of a run that has one.
fn on_forge(
    services: &Arc<Services>,
    lease: &Lease,
    record: &Record,
    thread: &ReportTarget,
) -> Option<Arc<ClaimOnForge>> {
    let ReportTarget::Item { forge, labels } = thread else {
        return None;
    };
    let asking = Asking {
        task: lease.task.clone(),
        run: Some(lease.run),
        asked_at: record.request.trigger.as_ref().map(|trigger| trigger.at),
    };
    ClaimOnForge::new(Arc::clone(services), Arc::clone(forge), labels.clone(), asking).map(Arc::new)
}

/// Returns the record of a run whose own cannot be read: one that only fails, visibly. To begin
/// anew would comment, pay and perhaps push a second time.
fn unreadable(stored: &StoredRun, error: &Unreadable) -> Record {
    Record {
        request: RequestRecord {
            title: stored.title.clone(),
            ..RequestRecord::default()
        },
        failure: Some(Failure::of_task(error.to_string())),
        ..Record::default()
    }
}
