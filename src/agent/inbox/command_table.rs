//! The meaning of each command, for runs at work and for runs that wait: one table, so that a new
//! command is one arm here. A new [`Effect`] is applied in `agent::commands` (at work),
//! `agent::waiting` (a run that waits) and, if it ends a wait at once, `mailbox`.

use crate::agent::record::{PausedBy, Record};
use crate::agent::text::replies;
use crate::agent::text::waits::is_decided;
use crate::approval::digest::Beginning;
use crate::markdown::compose::Page;
use crate::task::command::Command;
use crate::task::state::State;

/// The situation of a run when a command reaches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A worker works on it.
    AtWork,
    /// It waits; with `all_paused` the operator has paused all runs besides.
    Waits { on: WaitsOn, all_paused: bool },
}

/// The event that a waiting run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitsOn {
    /// A larger budget.
    Budget,
    /// A decision on its result or plan.
    Approval,
    /// A person's word, or the end of a pause of all runs, where its result or plan is decided.
    Decided,
    /// Anything else: an answer, a person's word, a time.
    Other,
}

impl WaitsOn {
    /// Returns what a run in `state` with this record waits for.
    pub(crate) fn of(state: State, record: &Record) -> Self {
        let is_limited = matches!(&record.waiting.paused, Some(paused) if matches!(paused.by, PausedBy::Limit(_)));
        match state {
            State::AwaitingApproval(_) if is_decided(state, record) => Self::Decided,
            State::AwaitingApproval(_) => Self::Approval,
            _ if is_limited => Self::Budget,
            _ => Self::Other,
        }
    }

    /// Returns true if people were asked to decide, also where somebody has: until the run goes on,
    /// an approval can be taken back.
    fn has_question(self) -> bool {
        matches!(self, Self::Approval | Self::Decided)
    }
}

/// The effect of a command on a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect<'command> {
    /// Only this answer.
    Answer(Page),
    /// A waiting run resumes, at once or with the end of the pause of all runs.
    Resume(Page),
    /// The budget counts anew; a run that waited for it resumes in the same way.
    Allow { tokens: u64, resumes: bool },
    /// A decision for the open question, which says whether it counts.
    Approve(Option<&'command Beginning>),
    /// A decision against it, which says likewise whether it counts.
    Deny {
        digest: Option<&'command Beginning>,
        reason: Option<&'command str>,
    },
    /// Nothing passes without a person any more, in any run.
    EndAutomaticApproval,
    /// The run ends for good, in the middle of whatever it does.
    Stop,
    /// A run at work is set aside as soon as a running tool call has finished. One that waits goes
    /// on no more because of what people said before, nor with the end of a pause of all runs.
    Pause,
}

/// Returns the effect of `command` on a run in the situation `standing`.
pub(crate) fn effect(command: &Command, standing: Standing) -> Effect<'_> {
    use Standing::{AtWork, Waits};
    match (command, standing) {
        (Command::Stop, _) => Effect::Stop,
        (Command::Pause, _) => Effect::Pause,
        (Command::Resume, AtWork) => Effect::Answer(replies::NOT_PAUSED.into()),
        (Command::Resume, Waits { on, all_paused }) => match on {
            // The budget that stopped it would stop it again at once.
            WaitsOn::Budget => Effect::Answer(replies::NEEDS_BUDGET.into()),
            WaitsOn::Approval => Effect::Answer(replies::NEEDS_APPROVAL.into()),
            WaitsOn::Decided | WaitsOn::Other if all_paused => Effect::Resume(replies::ALL_PAUSED.into()),
            WaitsOn::Decided | WaitsOn::Other => Effect::Resume(replies::RESUMED.into()),
        },
        (Command::Budget(tokens), standing) => Effect::Allow {
            tokens: *tokens,
            resumes: matches!(
                standing,
                Waits {
                    on: WaitsOn::Budget,
                    ..
                }
            ),
        },
        // Also while all runs are paused: who answered then would have to answer again, and does
        // not know it. The run goes on with the others.
        (Command::Approve(given), Waits { on, .. }) if on.has_question() => Effect::Approve(given.as_ref()),
        (Command::Deny { digest, reason }, Waits { on, .. }) if on.has_question() => Effect::Deny {
            digest: digest.as_ref(),
            reason: reason.as_deref(),
        },
        (Command::Approve(_) | Command::Deny { .. }, AtWork | Waits { .. }) => {
            Effect::Answer(replies::NOTHING_TO_APPROVE.into())
        }
        (Command::AutoApproveOff, _) => Effect::EndAutomaticApproval,
        (Command::Help | Command::Unknown(_), _) => Effect::Answer(replies::help(command)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(on: WaitsOn) -> Standing {
        Standing::Waits { on, all_paused: false }
    }

    #[test]
    fn resume_says_what_is_missing() {
        let answer = |text: &'static str| Effect::Answer(text.into());
        for (standing, expected) in [
            (Standing::AtWork, answer(replies::NOT_PAUSED)),
            (waits(WaitsOn::Budget), answer(replies::NEEDS_BUDGET)),
            (waits(WaitsOn::Approval), answer(replies::NEEDS_APPROVAL)),
            (waits(WaitsOn::Decided), Effect::Resume(replies::RESUMED.into())),
            (waits(WaitsOn::Other), Effect::Resume(replies::RESUMED.into())),
        ] {
            assert_eq!(effect(&Command::Resume, standing), expected, "{standing:?}");
        }
    }

    #[test]
    fn whoever_resumes_a_run_while_all_are_paused_has_it_go_on_with_the_others() {
        for (on, expected) in [
            (WaitsOn::Other, Effect::Resume(replies::ALL_PAUSED.into())),
            (WaitsOn::Decided, Effect::Resume(replies::ALL_PAUSED.into())),
            // The end of the pause would not be enough.
            (WaitsOn::Budget, Effect::Answer(replies::NEEDS_BUDGET.into())),
            (WaitsOn::Approval, Effect::Answer(replies::NEEDS_APPROVAL.into())),
        ] {
            let standing = Standing::Waits { on, all_paused: true };
            assert_eq!(effect(&Command::Resume, standing), expected, "{standing:?}");
        }
    }

    #[test]
    fn only_an_open_question_is_decided_also_while_all_runs_are_paused() {
        let approve = Command::Approve(None);
        let digest: Beginning = "0123abcd".parse().unwrap();
        let deny = Command::Deny {
            digest: Some(digest.clone()),
            reason: Some("no".to_owned()),
        };
        for on in [WaitsOn::Approval, WaitsOn::Decided] {
            for all_paused in [false, true] {
                let standing = Standing::Waits { on, all_paused };
                assert_eq!(effect(&approve, standing), Effect::Approve(None), "{standing:?}");
                let denied = Effect::Deny {
                    digest: Some(&digest),
                    reason: Some("no"),
                };
                assert_eq!(effect(&deny, standing), denied, "{standing:?}");
            }
        }
        for standing in [Standing::AtWork, waits(WaitsOn::Other), waits(WaitsOn::Budget)] {
            for command in [&approve, &deny] {
                let nothing = Effect::Answer(replies::NOTHING_TO_APPROVE.into());
                assert_eq!(effect(command, standing), nothing, "{standing:?}");
            }
        }
    }

    #[test]
    fn a_budget_resumes_only_what_waited_for_it_and_stop_always_stops() {
        for standing in [Standing::AtWork, waits(WaitsOn::Budget), waits(WaitsOn::Other)] {
            let resumes = standing == waits(WaitsOn::Budget);
            let allowed = Effect::Allow { tokens: 5, resumes };
            assert_eq!(effect(&Command::Budget(5), standing), allowed);
            assert_eq!(effect(&Command::Stop, standing), Effect::Stop);
            assert_eq!(effect(&Command::AutoApproveOff, standing), Effect::EndAutomaticApproval);
        }
    }
}
