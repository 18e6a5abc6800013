//! Tries at a task, each from the base, of a model that cannot mend its own work.
//!
//! A small model that is told what fails writes the same again, or something worse; what it writes
//! anew is as good as its first try was. So it begins again, a few times, and the program delivers
//! the try whose checks fail least.

use serde::{Deserialize, Serialize};

use super::check::{Checked, Excuse};

/// The tries of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tries {
    /// Tries that were not good enough, oldest first.
    ended: Vec<Try>,
    /// Whether nothing is begun again any more.
    is_over: bool,
    /// Whether the work is that of an earlier try, which the model has seen the failures of.
    is_taken_back: bool,
}

/// How a try ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Try {
    /// The commit of the result; `None` if it came to none.
    pub head: Option<String>,
    /// What the model said of it.
    pub summary: Option<String>,
    /// Failures that count against it.
    open: usize,
    /// Failures of before the work that it did not mend.
    old: usize,
}

/// What follows a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// The try is the result.
    Deliver,
    /// The task begins again at the base.
    BeginAgain,
    /// An earlier try is the result.
    TakeBack(Try),
}

impl Try {
    /// Returns a try that ended with `head`, on which these checks were run.
    pub fn checked(head: &str, checks: &[Checked], summary: Option<String>) -> Self {
        let count = |counts: fn(&Checked) -> bool| -> usize {
            let failing = checks.iter().filter(|check| counts(check));
            failing.map(|check| (check.failures.len() + check.more).max(1)).sum()
        };
        Self {
            head: Some(head.to_owned()),
            summary,
            open: count(Checked::is_open),
            old: count(|check| check.excuse == Some(Excuse::FailedBefore)),
        }
    }

    /// Returns its place among other tries; the first is the best.
    fn rank(&self) -> (bool, usize, usize) {
        (self.head.is_none(), self.open, self.old)
    }

    fn is_good(&self) -> bool {
        self.rank() == (false, 0, 0)
    }
}

impl Tries {
    /// Decides what follows a try, of which there may be `most`.
    pub fn after(&mut self, ended: Try, most: u32) -> Next {
        if self.is_over || ended.is_good() {
            self.is_over = true;
            return Next::Deliver;
        }
        self.ended.push(ended.clone());
        if self.ended.len() < usize::try_from(most).unwrap_or(usize::MAX) {
            return Next::BeginAgain;
        }
        match self.best() {
            Some(best) if best.rank() < ended.rank() => Next::TakeBack(best.clone()),
            _ => {
                self.is_over = true;
                Next::Deliver
            }
        }
    }

    /// Returns the best try so far that came to a result, the first of equals.
    pub fn best(&self) -> Option<&Try> {
        let with_result = self.ended.iter().filter(|ended| ended.head.is_some());
        with_result.min_by_key(|ended| ended.rank())
    }

    /// A limit has ended the last try, before it came to anything.
    pub fn cut_off(&mut self) {
        self.ended.push(Try::default());
    }

    /// An earlier try is the work again, and nothing is tried any more.
    pub fn take_back(&mut self) {
        (self.is_over, self.is_taken_back) = (true, true);
    }

    /// People have asked for more, which no earlier try has: those are forgotten, and nothing is
    /// tried any more.
    pub fn forget(&mut self) {
        self.ended.clear();
        (self.is_over, self.is_taken_back) = (true, false);
    }

    pub fn are_over(&self) -> bool {
        self.is_over
    }

    /// Tells whether the work is that of an earlier try.
    pub fn is_taken_back(&self) -> bool {
        self.is_taken_back
    }

    /// Returns how many tries were not good enough.
    pub fn failed(&self) -> usize {
        self.ended.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u32 = 3;

    /// Returns a try with the number of its failures: those that count against it, and old ones.
    fn ended(number: u8, (open, old): (usize, usize)) -> Try {
        Try {
            head: Some(format!("{number:040x}")),
            summary: None,
            open,
            old,
        }
    }

    /// Returns what follows the last of these tries.
    fn after(tries: &[Try]) -> Next {
        let mut all = Tries::default();
        tries.iter().map(|ended| all.after(ended.clone(), MOST)).last().unwrap()
    }

    #[test]
    fn what_passes_is_delivered_and_else_there_are_so_many_tries() {
        let (bad, good) = (ended(1, (1, 0)), ended(2, (0, 0)));
        assert_eq!(after(std::slice::from_ref(&good)), Next::Deliver);
        assert_eq!(after(std::slice::from_ref(&bad)), Next::BeginAgain);
        assert_eq!(after(&[Try::default(), bad.clone()]), Next::BeginAgain);
        assert_eq!(after(&[bad, good]), Next::Deliver);
    }

    #[test]
    fn the_best_is_the_one_that_breaks_least_then_the_one_that_mends_most_then_the_first() {
        let (breaks, mends_not, mends_half) = (ended(1, (2, 0)), ended(2, (0, 3)), ended(3, (0, 1)));
        let back = |best: &Try| Next::TakeBack(best.clone());
        assert_eq!(
            after(&[mends_not.clone(), breaks.clone(), breaks.clone()]),
            back(&mends_not)
        );
        assert_eq!(
            after(&[mends_half.clone(), mends_not.clone(), breaks.clone()]),
            back(&mends_half)
        );
        assert_eq!(
            after(&[breaks.clone(), mends_not.clone(), mends_half.clone()]),
            Next::Deliver
        );
        assert_eq!(after(&[breaks.clone(), Try::default(), Try::default()]), back(&breaks));
        assert_eq!(after(&[Try::default(), Try::default(), Try::default()]), Next::Deliver);
        let (first, second) = (ended(4, (0, 1)), ended(5, (0, 1)));
        assert_eq!(after(&[first.clone(), second, breaks]), back(&first));
    }

    #[test]
    fn after_the_choice_nothing_is_tried() {
        let mut tries = Tries::default();
        assert_eq!(tries.after(ended(1, (1, 0)), MOST), Next::BeginAgain);
        tries.take_back();
        assert_eq!(tries.after(ended(2, (5, 0)), MOST), Next::Deliver);
    }
}
