//! Facts for the journal about a message: its route, the answers of its workers, and its end.

use super::Handling;
use crate::journal::fact::Fact;
use crate::journal::fact::chat::{DecidedRoute, EndedRoute, NoWorkerAnswer, WorkerAnswer};
use crate::routing::Route;
use crate::routing::decision::Decision;
use crate::routing::flow::StopReason;
use crate::routing::worker::WorkerOutput;

/// The details that are recorded at the end of a message.
#[derive(Default)]
pub(super) struct Told {
    pub(super) initial: Option<Route>,
    pub(super) last: Option<Route>,
    pub(super) classifier: Option<(Route, u8)>,
    pub(super) output: Option<WorkerOutput>,
    pub(super) stopped: Option<StopReason>,
    pub(super) error: String,
}

impl Handling<'_> {
    pub(super) fn worker_succeeded(&self, route: Route, output: &WorkerOutput, milliseconds: u64) {
        self.services.note(Fact::WorkerSucceeded(WorkerAnswer {
            session: self.name(),
            route: route.to_string(),
            confidence: output.confidence,
            risk: output.risk.as_str().to_owned(),
            needs_next_loop: output.needs_next_loop,
            fit: output.fit,
            milliseconds,
        }));
    }

    pub(super) fn worker_failed(&mut self, route: Route, reason: &str) {
        reason.clone_into(&mut self.told.error);
        self.services.note(Fact::WorkerFailed(NoWorkerAnswer {
            session: self.name(),
            route: route.to_string(),
            reason: reason.to_owned(),
        }));
    }

    pub(super) fn note_decision(&self, decision: &Decision) {
        self.services.note(Fact::RouterDecision(DecidedRoute {
            session: self.name(),
            messenger: self.incoming.place.messenger.as_str().to_owned(),
            route: decision.route.to_string(),
            source: decision.source.as_str().to_owned(),
            confidence: decision.confidence,
            reason: decision.reason.clone(),
            evidence: decision.evidence.clone(),
            local_only: decision.local_only,
            is_refused: decision.is_refused,
            classifier_route: self
                .told
                .classifier
                .map(|(route, _)| route.to_string())
                .unwrap_or_default(),
            classifier_confidence: self.told.classifier.map(|(_, confidence)| confidence),
        }));
    }

    pub(super) fn note_end(&self) {
        let told = &self.told;
        let route = |route: Option<Route>| route.map(|route| route.to_string()).unwrap_or_default();
        self.services.note(Fact::FinalRoute(EndedRoute {
            session: self.name(),
            initial_route: route(told.initial),
            final_route: route(told.last),
            classifier_route: route(told.classifier.map(|(route, _)| route)),
            classifier_confidence: told.classifier.map(|(_, confidence)| confidence),
            worker_calls: self.flow.loops,
            needs_next_loop: told.output.as_ref().is_some_and(|output| output.needs_next_loop),
            risk: told
                .output
                .as_ref()
                .map_or("", |output| output.risk.as_str())
                .to_owned(),
            fit: told.output.as_ref().and_then(|output| output.fit),
            reroute_used: self.flow.has_rerouted,
            stop_reason: told.stopped.map_or("", StopReason::as_str).to_owned(),
            error_reason: told.error.clone(),
            milliseconds: self.millis(),
        }));
    }
}
