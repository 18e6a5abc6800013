//! How often, and where to, a message goes on behind a worker's answer.

use super::Route;
use super::worker::{Proposal, WorkerOutput};

/// Confidence in percent below which a step with effects is confirmed by the user first.
const SURE: u8 = 60;

/// The limits of the work on one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub max_loops: u32,
    pub max_millis: u64,
}

/// The state of a message between its workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    limits: Limits,
    /// Number of workers that were asked.
    pub loops: u32,
    pub has_rerouted: bool,
}

/// The next step after a worker's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The answer is given.
    Answer,
    /// The same worker goes on.
    Again,
    /// Another route takes over, once.
    Reroute(Route),
    /// It ends here, for this reason.
    Stop(StopReason),
}

/// Why the work on a message stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    MaxLoops,
    MaxMillis,
    WorkerFailed,
    NeedUserConfirmation,
}

impl StopReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxLoops => "max_loops",
            Self::MaxMillis => "max_millis",
            Self::WorkerFailed => "worker_failed",
            Self::NeedUserConfirmation => "need_user_confirmation",
        }
    }
}

impl Flow {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            loops: 0,
            has_rerouted: false,
        }
    }

    /// Decides what follows a worker's answer, `None` where it gave none, `millis` after the
    /// message came.
    pub fn after(&mut self, route: Route, output: Option<&WorkerOutput>, millis: u64) -> Next {
        self.loops += 1;
        let Some(output) = output else {
            let is_late = millis >= self.limits.max_millis;
            return Next::Stop(if is_late {
                StopReason::MaxMillis
            } else {
                StopReason::WorkerFailed
            });
        };
        if output.needs_confirmation() {
            return Next::Stop(StopReason::NeedUserConfirmation);
        }
        let elsewhere = output
            .suggested_route
            .filter(|other| output.fit == Some(false) && *other != route);
        if let Some(other) = elsewhere.filter(|_| !self.has_rerouted) {
            return self.reroute(other, millis);
        }
        if !output.needs_next_loop {
            return Next::Answer;
        }
        self.bounded(millis).map_or(Next::Again, Next::Stop)
    }

    /// Decides about a proposal of the chat model. It counts if nothing was rerouted yet and, for a
    /// step with effects, if the model is sure of it.
    pub fn proposed(&mut self, proposal: &Proposal, now: Route, millis: u64) -> Next {
        if self.has_rerouted || proposal.route == now {
            return Next::Answer;
        }
        if proposal.route.has_effects() && proposal.confidence < SURE {
            return Next::Stop(StopReason::NeedUserConfirmation);
        }
        self.reroute(proposal.route, millis)
    }

    fn reroute(&mut self, route: Route, millis: u64) -> Next {
        if let Some(reason) = self.bounded(millis) {
            return Next::Stop(reason);
        }
        self.has_rerouted = true;
        Next::Reroute(route)
    }

    fn bounded(&self, millis: u64) -> Option<StopReason> {
        if millis >= self.limits.max_millis {
            return Some(StopReason::MaxMillis);
        }
        (self.loops >= self.limits.max_loops).then_some(StopReason::MaxLoops)
    }
}

impl WorkerOutput {
    /// Tells whether the user has to say something first: there is a high risk, something is
    /// missing, or it is unsure of a step with effects.
    fn needs_confirmation(&self) -> bool {
        let is_unsure = self.confidence < SURE && self.suggested_route.is_some_and(Route::has_effects);
        self.risk == super::worker::Risk::High || !self.questions_for_user.is_empty() || is_unsure
    }
}

#[cfg(test)]
mod tests {
    use super::super::worker::Risk;
    use super::*;

    fn output() -> WorkerOutput {
        WorkerOutput {
            result: "r".to_owned(),
            needs_next_loop: false,
            why: String::new(),
            next_actions: Vec::new(),
            questions_for_user: Vec::new(),
            confidence: 90,
            risk: Risk::Low,
            fit: None,
            suggested_route: None,
            evidence: Vec::new(),
        }
    }

    fn flow() -> Flow {
        Flow::new(Limits {
            max_loops: 3,
            max_millis: 1_000,
        })
    }

    #[test]
    fn a_worker_goes_on_until_a_limit() {
        let more = WorkerOutput {
            needs_next_loop: true,
            ..output()
        };
        let mut flow = flow();
        let after = |flow: &mut Flow, millis| flow.after(Route::Plan, Some(&more), millis);
        assert_eq!(after(&mut flow, 0), Next::Again);
        assert_eq!(after(&mut flow.clone(), 1_000), Next::Stop(StopReason::MaxMillis));
        assert_eq!(after(&mut flow, 0), Next::Again);
        assert_eq!(after(&mut flow, 0), Next::Stop(StopReason::MaxLoops));
        assert_eq!(flow.after(Route::Plan, None, 0), Next::Stop(StopReason::WorkerFailed));
        assert_eq!(flow.after(Route::Plan, None, 1_000), Next::Stop(StopReason::MaxMillis));
    }

    #[test]
    fn the_route_changes_once() {
        let elsewhere = WorkerOutput {
            fit: Some(false),
            suggested_route: Some(Route::Analyze),
            ..output()
        };
        let mut flow = flow();
        assert_eq!(
            flow.after(Route::Plan, Some(&elsewhere), 0),
            Next::Reroute(Route::Analyze)
        );
        assert_eq!(flow.after(Route::Research, Some(&elsewhere), 0), Next::Answer);
        let proposal = Proposal {
            route: Route::Code,
            reason: String::new(),
            confidence: 100,
        };
        assert_eq!(flow.proposed(&proposal, Route::Chat, 0), Next::Answer);
    }

    #[test]
    fn what_is_risky_unsure_or_incomplete_is_asked_first() {
        let stopped = Next::Stop(StopReason::NeedUserConfirmation);
        let risky = WorkerOutput {
            risk: Risk::High,
            ..output()
        };
        let asking = WorkerOutput {
            questions_for_user: vec!["which?".to_owned()],
            ..output()
        };
        let unsure = WorkerOutput {
            confidence: 59,
            fit: Some(false),
            suggested_route: Some(Route::Code),
            ..output()
        };
        for output in [risky, asking, unsure.clone()] {
            assert_eq!(flow().after(Route::Plan, Some(&output), 0), stopped);
        }
        let harmless = WorkerOutput {
            suggested_route: Some(Route::Analyze),
            ..unsure
        };
        assert_eq!(
            flow().after(Route::Plan, Some(&harmless), 0),
            Next::Reroute(Route::Analyze)
        );
        let proposal = |confidence| Proposal {
            route: Route::Ops,
            reason: String::new(),
            confidence,
        };
        assert_eq!(flow().proposed(&proposal(59), Route::Chat, 0), stopped);
        assert_eq!(
            flow().proposed(&proposal(60), Route::Chat, 0),
            Next::Reroute(Route::Ops)
        );
    }
}
