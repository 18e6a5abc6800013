//! How often, and where to, a message goes on behind a worker's answer.

use super::Route;
use super::decision::AskedEffects;
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
    asked: AskedEffects,
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
    /// Another route would take over, whose effects the person did not ask for: they are told how
    /// to.
    Confirm(Route),
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
    /// Begins with a message that asks for these effects itself.
    pub fn new(limits: Limits, asked: AskedEffects) -> Self {
        Self {
            limits,
            asked,
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

    /// Decides about a request that the chat model hands over. A model that does so again would go
    /// round in circles.
    pub fn delegated(&mut self, route: Route) -> Next {
        if route == Route::Chat {
            return Next::Answer;
        }
        if self.has_rerouted {
            return Next::Stop(StopReason::NeedUserConfirmation);
        }
        if !self.asked.allow(route) {
            return Next::Confirm(route);
        }
        self.has_rerouted = true;
        Next::Reroute(route)
    }

    fn reroute(&mut self, route: Route, millis: u64) -> Next {
        if !self.asked.allow(route) {
            return Next::Confirm(route);
        }
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
    use super::super::decision::{Incoming, Step, decide};
    use super::super::rules::Rules;
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
        flow_of("hm")
    }

    /// Returns the flow of a message in a channel whose messages enter as chat.
    fn flow_of(text: &str) -> Flow {
        let message = Incoming {
            text,
            local_only: false,
            far: &[],
            models: &[],
            enters_as_chat: true,
        };
        let Step::Decided(decision) = decide(&message, Rules::shipped()) else {
            panic!("{text}");
        };
        let limits = Limits {
            max_loops: 3,
            max_millis: 1_000,
        };
        Flow::new(limits, decision.asked_effects(Rules::shipped()))
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
        let commanded = || flow_of("/ops status");
        assert_eq!(commanded().proposed(&proposal(59), Route::Chat, 0), stopped);
        assert_eq!(
            commanded().proposed(&proposal(60), Route::Chat, 0),
            Next::Reroute(Route::Ops)
        );
    }

    #[test]
    fn no_model_leads_to_effects_that_the_person_did_not_ask_for() {
        let suggested = |route| WorkerOutput {
            confidence: 95,
            fit: Some(false),
            suggested_route: Some(route),
            ..output()
        };
        let proposal = |route| Proposal {
            route,
            reason: String::new(),
            confidence: 100,
        };
        for (text, route, is_asked) in [
            ("what does parse.py do", Route::Code, false),
            ("please fix that", Route::Code, true),
            ("/code it", Route::Code, true),
            ("please fix that", Route::Ops, false),
            ("/analyze how to fix that", Route::Code, false),
            ("/chat fix that", Route::Code, false),
            ("/ops status", Route::Code, false),
            ("/ops status", Route::Ops, true),
            ("deploy to production please", Route::Ops, true),
        ] {
            let expected = if is_asked {
                Next::Reroute(route)
            } else {
                Next::Confirm(route)
            };
            assert_eq!(flow_of(text).delegated(route), expected, "{text}");
            assert_eq!(
                flow_of(text).proposed(&proposal(route), Route::Chat, 0),
                expected,
                "{text}"
            );
            let output = suggested(route);
            assert_eq!(flow_of(text).after(Route::Plan, Some(&output), 0), expected, "{text}");
        }
        let mut harmless = flow();
        assert_eq!(harmless.delegated(Route::Chat), Next::Answer);
        assert_eq!(harmless.delegated(Route::Plan), Next::Reroute(Route::Plan));
        let stopped = Next::Stop(StopReason::NeedUserConfirmation);
        assert_eq!(harmless.delegated(Route::Analyze), stopped, "once");
    }
}
