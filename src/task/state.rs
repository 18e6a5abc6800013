//! The life of a run, as one pure function.

use std::fmt;
use std::str::FromStr;

/// A product of the run that is judged before the stage that uses it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Judged {
    /// The plan, before it is carried out.
    Plan,
    /// The result, before it is delivered.
    Result,
}

impl Judged {
    /// Returns the stage that follows after a pass.
    fn next(self) -> Stage {
        match self {
            Self::Plan => Stage::Preparing,
            Self::Result => Stage::Delivering,
        }
    }

    /// Returns the stage that made the document, and revises it.
    fn made_in(self) -> Stage {
        match self {
            Self::Plan => Stage::Planning,
            Self::Result => Stage::Working,
        }
    }
}

/// A stage in which the program works on the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    Planning,
    /// A second model judges the plan or the result.
    Reviewing(Judged),
    Preparing,
    Working,
    Verifying,
    Delivering,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    Queued,
    Planning,
    /// A second model judges the plan or the result; the stage that follows is the one that uses
    /// it.
    Reviewing(Judged),
    /// A person must allow the plan, or the delivery of what the program does not deliver by
    /// itself.
    AwaitingApproval(Judged),
    Preparing,
    Working,
    /// A person must answer a question of the model.
    AwaitingAnswer,
    Verifying,
    Delivering,
    /// Set aside; goes on at the stage it left.
    Paused(Stage),
    Done,
    Stopped,
    Failed,
}

/// An event in the life of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// A consumer holds the lease.
    Claimed,
    /// The stage's work is finished and its result saved.
    Finished,
    /// A second model is to judge the plan, or the result.
    ReviewNeeded,
    /// The judged document is not good enough and goes back to the stage that made it.
    RevisionNeeded,
    /// A person is to judge the plan, or the result.
    ApprovalNeeded,
    /// A person allowed it.
    Approved,
    /// Verification failed and the model may repair, or people said something before the result was
    /// delivered.
    RepairNeeded,
    /// The model asked people something.
    AnswerNeeded,
    /// A person answered.
    Answered,
    /// A person, a remote service's limit or the stop of the program sets the run aside.
    PauseAsked,
    /// The reason for the pause is gone.
    Resumed,
    /// A person does not want the run any more.
    StopAsked,
    /// The run cannot go on.
    Broke,
}

/// A signal that the state does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run that is {state} takes no signal {signal:?}")]
pub struct NotAllowed {
    pub state: State,
    pub signal: Signal,
}

impl State {
    /// Returns the state that `signal` leads to.
    ///
    /// # Errors
    /// `NotAllowed` where the diagram has no such arrow; the state is then unchanged.
    pub fn on(self, signal: Signal) -> Result<Self, NotAllowed> {
        let refused = Err(NotAllowed { state: self, signal });
        if self.is_final() {
            return refused;
        }
        match signal {
            Signal::StopAsked => Ok(Self::Stopped),
            Signal::Broke => Ok(Self::Failed),
            Signal::Claimed => match self {
                Self::Queued => Ok(Self::Planning),
                _ => refused,
            },
            Signal::Finished => match self {
                Self::Planning => Ok(Self::Preparing),
                Self::Reviewing(judged) => Ok(judged.next().into()),
                Self::Preparing => Ok(Self::Working),
                Self::Working => Ok(Self::Verifying),
                Self::Verifying => Ok(Self::Delivering),
                Self::Delivering => Ok(Self::Done),
                _ => refused,
            },
            Signal::ReviewNeeded => match self {
                Self::Planning => Ok(Self::Reviewing(Judged::Plan)),
                Self::Verifying => Ok(Self::Reviewing(Judged::Result)),
                _ => refused,
            },
            Signal::RevisionNeeded => match self {
                Self::Reviewing(judged) | Self::AwaitingApproval(judged) => Ok(judged.made_in().into()),
                _ => refused,
            },
            Signal::ApprovalNeeded => match self {
                Self::Planning | Self::Preparing | Self::Working => Ok(Self::AwaitingApproval(Judged::Plan)),
                Self::Reviewing(judged) => Ok(Self::AwaitingApproval(judged)),
                Self::Delivering => Ok(Self::AwaitingApproval(Judged::Result)),
                _ => refused,
            },
            Signal::Approved => match self {
                Self::AwaitingApproval(judged) => Ok(judged.next().into()),
                _ => refused,
            },
            Signal::RepairNeeded => match self {
                Self::Verifying => Ok(Self::Working),
                _ => refused,
            },
            Signal::AnswerNeeded => match self {
                Self::Working => Ok(Self::AwaitingAnswer),
                _ => refused,
            },
            Signal::Answered => match self {
                Self::AwaitingAnswer => Ok(Self::Working),
                _ => refused,
            },
            Signal::PauseAsked => self.stage().map_or(refused, |stage| Ok(Self::Paused(stage))),
            Signal::Resumed => match self {
                Self::Paused(stage) => Ok(stage.into()),
                _ => refused,
            },
        }
    }

    /// Tells whether nothing can happen to the run any more.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Stopped | Self::Failed)
    }

    /// Tells whether the run waits for a person and no worker takes it up by itself.
    pub fn is_set_aside(self) -> bool {
        matches!(self, Self::Paused(_) | Self::AwaitingApproval(_) | Self::AwaitingAnswer)
    }

    /// Returns the stage the program works in, if it does.
    pub fn stage(self) -> Option<Stage> {
        match self {
            Self::Planning => Some(Stage::Planning),
            Self::Reviewing(judged) => Some(Stage::Reviewing(judged)),
            Self::Preparing => Some(Stage::Preparing),
            Self::Working => Some(Stage::Working),
            Self::Verifying => Some(Stage::Verifying),
            Self::Delivering => Some(Stage::Delivering),
            Self::Queued
            | Self::AwaitingApproval(_)
            | Self::AwaitingAnswer
            | Self::Paused(_)
            | Self::Done
            | Self::Stopped
            | Self::Failed => None,
        }
    }
}

impl From<Stage> for State {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Planning => Self::Planning,
            Stage::Reviewing(judged) => Self::Reviewing(judged),
            Stage::Preparing => Self::Preparing,
            Stage::Working => Self::Working,
            Stage::Verifying => Self::Verifying,
            Stage::Delivering => Self::Delivering,
        }
    }
}

/// The words of all states. A state that carries what is judged is named after the stage that
/// follows.
const NAMES: [(State, &str); 21] = [
    (State::Queued, "queued"),
    (State::Planning, "planning"),
    (State::Reviewing(Judged::Plan), "reviewing:preparing"),
    (State::Reviewing(Judged::Result), "reviewing:delivering"),
    (State::AwaitingApproval(Judged::Plan), "awaiting_approval:preparing"),
    (State::AwaitingApproval(Judged::Result), "awaiting_approval:delivering"),
    (State::Preparing, "preparing"),
    (State::Working, "working"),
    (State::AwaitingAnswer, "awaiting_answer"),
    (State::Verifying, "verifying"),
    (State::Delivering, "delivering"),
    (State::Paused(Stage::Planning), "paused:planning"),
    (
        State::Paused(Stage::Reviewing(Judged::Plan)),
        "paused:reviewing:preparing",
    ),
    (
        State::Paused(Stage::Reviewing(Judged::Result)),
        "paused:reviewing:delivering",
    ),
    (State::Paused(Stage::Preparing), "paused:preparing"),
    (State::Paused(Stage::Working), "paused:working"),
    (State::Paused(Stage::Verifying), "paused:verifying"),
    (State::Paused(Stage::Delivering), "paused:delivering"),
    (State::Done, "done"),
    (State::Stopped, "stopped"),
    (State::Failed, "failed"),
];

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES
            .iter()
            .find(|(state, _)| state == self)
            .map_or("unknown", |(_, name)| *name);
        formatter.write_str(name)
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        NAMES
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(state, _)| *state)
            .ok_or_else(|| format!("'{text}' is not a state of a run"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIGNALS: [Signal; 13] = [
        Signal::Claimed,
        Signal::Finished,
        Signal::ReviewNeeded,
        Signal::RevisionNeeded,
        Signal::ApprovalNeeded,
        Signal::Approved,
        Signal::RepairNeeded,
        Signal::AnswerNeeded,
        Signal::Answered,
        Signal::PauseAsked,
        Signal::Resumed,
        Signal::StopAsked,
        Signal::Broke,
    ];

    #[test]
    fn the_straight_way_leads_from_queued_to_done() {
        let mut state = State::Queued;
        for signal in [Signal::Claimed].into_iter().chain([Signal::Finished; 5]) {
            state = state.on(signal).unwrap();
        }
        assert_eq!(state, State::Done);
    }

    #[test]
    fn the_ways_around_lead_back_to_where_they_left() {
        let mut state = State::Planning;
        for signal in [Signal::ReviewNeeded, Signal::ApprovalNeeded, Signal::Approved] {
            state = state.on(signal).unwrap();
        }
        assert_eq!(state, State::Preparing);
        let held = State::Delivering.on(Signal::ApprovalNeeded).unwrap();
        assert_eq!(held.on(Signal::Approved), Ok(State::Delivering));
        assert!(held.is_set_aside() && State::Verifying.on(Signal::ApprovalNeeded).is_err());
        // A plan that changed since it was approved is asked for again.
        for state in [State::Preparing, State::Working] {
            let asked = state.on(Signal::ApprovalNeeded).unwrap();
            assert_eq!(asked.on(Signal::Approved), Ok(State::Preparing));
        }
        let asked = State::Working.on(Signal::AnswerNeeded).unwrap();
        assert_eq!(asked.on(Signal::Answered), Ok(State::Working));
        assert!(asked.on(Signal::AnswerNeeded).is_err());
        assert_eq!(State::Verifying.on(Signal::RepairNeeded), Ok(State::Working));
        assert!(State::Delivering.on(Signal::RepairNeeded).is_err());
    }

    #[test]
    fn what_is_judged_passes_or_goes_back_to_where_it_was_made() {
        for (made, judged, used, better) in [
            (State::Planning, Judged::Plan, State::Preparing, State::Planning),
            (State::Verifying, Judged::Result, State::Delivering, State::Working),
        ] {
            let reviewed = made.on(Signal::ReviewNeeded).unwrap();
            assert_eq!(reviewed, State::Reviewing(judged));
            assert_eq!(reviewed.on(Signal::Finished), Ok(used));
            let asked = reviewed.on(Signal::ApprovalNeeded).unwrap();
            assert_eq!(asked, State::AwaitingApproval(judged));
            assert_eq!(asked.on(Signal::Approved), Ok(used));
            for state in [reviewed, asked] {
                assert_eq!(state.on(Signal::RevisionNeeded), Ok(better));
            }
        }
    }

    #[test]
    fn every_state_has_a_name_that_is_read_back() {
        for (state, name) in NAMES {
            assert_eq!(state.to_string(), name);
            assert_eq!(name.parse(), Ok(state));
        }
    }

    proptest! {
        #[test]
        fn no_sequence_of_signals_leaves_the_diagram(choices in proptest::collection::vec(0..SIGNALS.len(), 0..60)) {
            let mut state = State::Queued;
            for choice in choices {
                let signal = SIGNALS[choice];
                let next = state.on(signal);
                if state.is_final() {
                    prop_assert!(next.is_err());
                }
                if !state.is_final() {
                    prop_assert_eq!(state.on(Signal::StopAsked), Ok(State::Stopped));
                    prop_assert_eq!(state.on(Signal::Broke), Ok(State::Failed));
                }
                if let Some(stage) = state.stage() {
                    let paused = state.on(Signal::PauseAsked);
                    prop_assert_eq!(paused, Ok(State::Paused(stage)));
                    prop_assert_eq!(paused.and_then(|paused| paused.on(Signal::Resumed)), Ok(state));
                }
                if let (State::Paused(stage), Signal::Resumed) = (state, signal) {
                    prop_assert_eq!(next, Ok(State::from(stage)));
                }
                if signal == Signal::RevisionNeeded {
                    let is_judged = matches!(state, State::Reviewing(_) | State::AwaitingApproval(_));
                    prop_assert_eq!(next.is_ok(), is_judged);
                }
                if let Ok(next) = next {
                    // Whoever knows the name of a state only goes on exactly there.
                    prop_assert_eq!(next.to_string().parse(), Ok(next));
                    prop_assert!(NAMES.iter().any(|(known, _)| *known == next));
                    state = next;
                }
            }
        }
    }
}
