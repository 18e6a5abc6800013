//! Notices a model whose tool calls cannot be carried out, one after the other: unknown tools,
//! arguments that do not fit, files that do not exist.
//!
//! The [circling](super::circling) check does not see such a model, since each call is a new one:
//! one that tried other arguments each time made 83 vain calls before anything ended it.

/// Number of calls in a row that were carried out after which earlier failures are forgotten.
const FORGIVING: u32 = 5;

/// Counts the calls of one conversation that could not be carried out.
#[derive(Debug, Clone)]
pub struct Breaker {
    /// Number of consecutive failures that trip it; 0 for never.
    limit: u32,
    failures: u32,
    successes: u32,
    trips: u32,
}

/// The reaction to the last reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trip {
    None,
    /// The model is told what is wrong.
    Tell,
    /// The plan is made anew.
    PlanAnew,
    /// The run fails, because neither has helped.
    Fail,
}

impl Breaker {
    pub fn new(limit: u32) -> Self {
        Self {
            limit,
            failures: 0,
            successes: 0,
            trips: 0,
        }
    }

    /// Records for each call of one reply whether it could be carried out, and decides how to
    /// react. A command that ran was carried out, whatever its exit code.
    pub fn judge(&mut self, carried_out: &[bool]) -> Trip {
        for is_carried_out in carried_out {
            if *is_carried_out {
                self.failures = 0;
                self.successes += 1;
            } else {
                self.failures += 1;
                self.successes = 0;
            }
        }
        if self.successes >= FORGIVING {
            self.trips = 0;
        }
        if self.limit == 0 || self.failures < self.limit {
            return Trip::None;
        }
        self.failures = 0;
        self.trips += 1;
        match self.trips {
            1 => Trip::Tell,
            2 => Trip::PlanAnew,
            _ => Trip::Fail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trips(breaker: &mut Breaker, replies: &[&[bool]]) -> Vec<Trip> {
        replies.iter().map(|calls| breaker.judge(calls)).collect()
    }

    #[test]
    fn each_row_of_failures_is_a_step_further() {
        let mut breaker = Breaker::new(2);
        let failed: &[bool] = &[false];
        assert_eq!(
            trips(&mut breaker, &[failed; 6]),
            [
                Trip::None,
                Trip::Tell,
                Trip::None,
                Trip::PlanAnew,
                Trip::None,
                Trip::Fail
            ]
        );
    }

    #[test]
    fn the_calls_of_one_reply_are_one_step_at_most() {
        assert_eq!(Breaker::new(2).judge(&[false; 100]), Trip::Tell);
    }

    #[test]
    fn a_call_that_is_carried_out_breaks_the_row_and_five_clear_the_past() {
        let mut breaker = Breaker::new(2);
        let (failed, worked): (&[bool], &[bool]) = (&[false], &[true]);
        let mixed = trips(&mut breaker, &[failed, worked, failed, &[true, false], failed]);
        assert_eq!(mixed[..4], [Trip::None; 4]);
        assert_eq!(mixed[4], Trip::Tell);
        assert_eq!(breaker.judge(&[true; 4]), Trip::None);
        assert_eq!(trips(&mut breaker, &[failed, failed])[1], Trip::PlanAnew);
        assert_eq!(breaker.judge(&[true; 5]), Trip::None);
        assert_eq!(trips(&mut breaker, &[failed, failed])[1], Trip::Tell);
    }

    #[test]
    fn without_a_limit_it_never_trips() {
        assert_eq!(Breaker::new(0).judge(&[false; 100]), Trip::None);
    }
}
