//! Tries at a task, each from the base, of a model that cannot mend its own work.
//!
//! A small model that is told what fails writes the same again, or something worse; what it writes
//! anew is as good as its first try was. So it begins again, a few times, and the program delivers
//! the try whose checks fail least.

use serde::{Deserialize, Serialize};

use super::check::{Checked, Excuse};

/// Words of outputs of which no test was run: the code could not be read or built.
const NOT_RUN: [&str; 7] = [
    "SyntaxError",
    "IndentationError",
    "TabError",
    "_FailedTest",
    "error collecting",
    "[build failed]",
    ": error: ",
];

/// The tries of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tries {
    /// Tries that were not good enough, oldest first.
    ended: Vec<Try>,
    /// The try that is under way, as its last checks found it.
    current: Option<Try>,
    /// The decision that is not carried out yet.
    pending: Option<Next>,
    /// The number of the try that was good.
    good: Option<usize>,
    /// The number of the earlier try whose result was taken back.
    taken_back: Option<usize>,
    /// Number of the model's turns when that was.
    taken_back_at: Option<u32>,
    /// Whether nothing is begun again any more.
    is_over: bool,
}

/// How a try ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Try {
    /// The commit of the result; `None` if it came to none.
    pub head: Option<String>,
    /// The words of the model about it.
    pub summary: Option<String>,
    /// Checks that tested nothing, because the code could not be read or the command did not end.
    unread: usize,
    /// Failures that count against it.
    open: usize,
    /// Failures of before the work that it did not mend.
    old: usize,
}

/// The step that follows a try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// The try is the result.
    Deliver,
    /// The task begins again at the base, for this reason.
    BeginAgain(String),
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
            unread: checks.iter().filter(|check| tested_nothing(check)).count(),
            open: count(Checked::is_open),
            old: count(|check| check.excuse == Some(Excuse::FailedBefore))
                + checks.iter().map(|check| check.old).sum::<usize>(),
        }
    }

    /// Returns its place among other tries; the first is the best.
    fn rank(&self) -> (bool, usize, usize, usize) {
        (self.head.is_none(), self.unread, self.open, self.old)
    }

    fn is_good(&self) -> bool {
        self.rank() == (false, 0, 0, 0)
    }
}

/// Tells whether a check that counts against the work has run no test.
fn tested_nothing(check: &Checked) -> bool {
    let says = |text: &str| NOT_RUN.iter().any(|word| text.contains(word));
    let mut failures = check.failures.iter();
    check.is_open()
        && (check.exit_code.is_none()
            || says(&check.tail)
            || failures.any(|failure| says(&failure.subject()) || says(&failure.message)))
}

impl Tries {
    /// Notes what the checks say of the try that is under way.
    pub fn note(&mut self, current: Try) {
        self.current = Some(current);
    }

    /// Decides what follows the try that is under way, of which there may be `most`, and remembers
    /// it as pending. `reason` says why it is not good enough.
    pub fn decide(&mut self, most: u32, reason: &str) -> Next {
        let ended = self.current.take().unwrap_or_default();
        if self.is_over {
            return Next::Deliver;
        }
        if ended.is_good() {
            self.is_over = true;
            self.good = Some(self.ended.len() + 1);
            return Next::Deliver;
        }
        let is_another_left = self.is_another_left(most);
        self.ended.push(ended);
        if is_another_left {
            return self.is_pending(Next::BeginAgain(reason.to_owned()));
        }
        self.is_over = true;
        let last = self.ended.last().map(Try::rank);
        match self.best() {
            Some(best) if Some(best.rank()) < last => {
                let next = Next::TakeBack(best.clone());
                self.is_pending(next)
            }
            _ => Next::Deliver,
        }
    }

    /// Decides what follows a try that has failed, be its last checked result as it may: another
    /// try, or else the best result that was checked. `most` and `reason` are as in
    /// [`Tries::decide`].
    pub fn decide_after_failure(&mut self, most: u32, reason: &str) -> Next {
        let is_good = self.current.as_ref().is_some_and(Try::is_good);
        if is_good || !self.is_another_left(most) {
            return self.cut_off();
        }
        self.decide(most, reason)
    }

    /// Tells whether another try may follow the one that is under way, where there may be `most`.
    pub fn is_another_left(&self, most: u32) -> bool {
        !self.is_over && self.ended.len() + 1 < usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// Tells whether there is a result besides that of the try that is under way.
    pub fn may_be_cut_off(&self) -> bool {
        !self.is_over && self.best().is_some()
    }

    /// Decides what is delivered after the try that is under way was ended: the best result that
    /// was checked, be it this one's.
    pub fn cut_off(&mut self) -> Next {
        let ended = self.current.take().unwrap_or_default();
        if self.is_over {
            return Next::Deliver;
        }
        self.ended.push(ended);
        self.is_over = true;
        match self.best().cloned() {
            Some(best) => self.is_pending(Next::TakeBack(best)),
            None => Next::Deliver,
        }
    }

    fn is_pending(&mut self, next: Next) -> Next {
        self.pending = Some(next.clone());
        next
    }

    /// Returns the best try that has ended with a result, the first of equals.
    pub fn best(&self) -> Option<&Try> {
        let with_result = self.ended.iter().filter(|ended| ended.head.is_some());
        with_result.min_by_key(|ended| ended.rank())
    }

    /// Returns what was decided and is not carried out yet.
    pub fn pending(&self) -> Option<&Next> {
        self.pending.as_ref()
    }

    /// Records that the task has begun again, as decided.
    pub fn has_begun_again(&mut self) {
        (self.pending, self.current) = (None, None);
    }

    /// Records that the result of an earlier try is the work again, after so many turns of the
    /// model.
    pub fn has_taken_back(&mut self, turns: u32) {
        if let Some(Next::TakeBack(best)) = self.pending.take() {
            self.taken_back = self
                .ended
                .iter()
                .position(|ended| *ended == best)
                .map(|place| place + 1);
            self.taken_back_at = Some(turns);
        }
    }

    /// Records that an earlier try could not be taken back: the last one is the result.
    pub fn cannot_take_back(&mut self) {
        self.pending = None;
    }

    /// Records that people have asked for more, which no earlier try has: those are forgotten, and
    /// nothing is begun again any more.
    pub fn forget(&mut self) {
        *self = Self {
            is_over: true,
            ..Self::default()
        };
    }

    /// Tells whether the work is that of an earlier try, and the model has had no turn since.
    pub fn is_taken_back(&self, turns: u32) -> bool {
        self.taken_back_at == Some(turns)
    }

    /// Returns how many tries were not good enough.
    pub fn failed(&self) -> usize {
        self.ended.len()
    }

    /// Returns what people are told of it: how often the task was begun, the number of the try
    /// whose result this is, and whether it was good. `None` if there was one try alone.
    pub fn told(&self) -> Option<(usize, usize, bool)> {
        let begun = self.ended.len().max(self.good.unwrap_or_default());
        let delivered = self.taken_back.or(self.good).unwrap_or(begun);
        (begun > 1).then_some((begun, delivered, self.good.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::check::Ended;

    const MOST: u32 = 3;

    /// Returns a try with the number of its failures: those that count against it, and old ones.
    fn ended(number: u8, (open, old): (usize, usize)) -> Try {
        Try {
            head: Some(format!("{number:040x}")),
            open,
            old,
            ..Try::default()
        }
    }

    /// Returns what follows the last of these tries, and what people are told.
    fn after(tries: &[Try]) -> (Next, Option<(usize, usize, bool)>) {
        let mut all = Tries::default();
        let mut last = Next::Deliver;
        for ended in tries {
            all.note(ended.clone());
            last = all.decide(MOST, "it fails");
            match &last {
                Next::BeginAgain(_) => all.has_begun_again(),
                Next::TakeBack(_) => all.has_taken_back(7),
                Next::Deliver => {}
            }
        }
        (last, all.told())
    }

    fn again() -> Next {
        Next::BeginAgain("it fails".to_owned())
    }

    #[test]
    fn what_passes_is_delivered_and_else_there_are_so_many_tries() {
        let (bad, good) = (ended(1, (1, 0)), ended(2, (0, 0)));
        assert_eq!(after(std::slice::from_ref(&good)), (Next::Deliver, None));
        assert_eq!(after(std::slice::from_ref(&bad)), (again(), None));
        assert_eq!(after(&[Try::default(), bad.clone()]).0, again());
        assert_eq!(after(&[bad, good]), (Next::Deliver, Some((2, 2, true))));
    }

    #[test]
    fn the_best_breaks_least_then_mends_most_and_is_the_first_of_equals() {
        let (breaks, mends_not, mends_half) = (ended(1, (2, 0)), ended(2, (0, 3)), ended(3, (0, 1)));
        let back = |best: &Try, number: usize| (Next::TakeBack(best.clone()), Some((3, number, false)));
        assert_eq!(
            after(&[mends_not.clone(), breaks.clone(), breaks.clone()]),
            back(&mends_not, 1)
        );
        assert_eq!(
            after(&[mends_not.clone(), mends_half.clone(), breaks.clone()]),
            back(&mends_half, 2)
        );
        assert_eq!(
            after(&[breaks.clone(), mends_not, mends_half]),
            (Next::Deliver, Some((3, 3, false)))
        );
        let nothing = Try::default();
        assert_eq!(
            after(&[breaks.clone(), nothing.clone(), nothing.clone()]),
            back(&breaks, 1)
        );
        assert_eq!(after(&[nothing.clone(), nothing.clone(), nothing]).0, Next::Deliver);
        let (first, second) = (ended(4, (0, 1)), ended(5, (0, 1)));
        assert_eq!(after(&[first.clone(), second, breaks]), back(&first, 1));
    }

    #[test]
    fn code_that_cannot_be_read_is_worse_than_any_failing_test() {
        let check = |output: &str| {
            let ended = Ended::new(Some(1), output.to_owned(), "/workspace/project");
            Checked::new("python3 -m unittest", 0, &ended)
        };
        let broken = "ERROR: test_a (unittest.loader._FailedTest.test_a)\nIndentationError: unexpected indent\n";
        let failing = "FAIL: test_a (tests.A.test_a)\nAssertionError\nFAIL: test_b (tests.A.test_b)\nAssertionError\n";
        let [broken, failing] = [broken, failing].map(|output| Try::checked("1", &[check(output)], None));
        assert!(failing.rank() < broken.rank(), "{failing:?} {broken:?}");
    }

    #[test]
    fn after_the_choice_and_after_peoples_words_nothing_begins_again() {
        let mut tries = Tries::default();
        tries.note(ended(1, (1, 0)));
        assert_eq!(tries.decide(MOST, "it fails"), again());
        tries.has_begun_again();
        tries.note(ended(2, (2, 0)));
        assert_eq!(tries.cut_off(), Next::TakeBack(ended(1, (1, 0))));
        assert_eq!(tries.pending(), Some(&Next::TakeBack(ended(1, (1, 0)))));
        tries.has_taken_back(5);
        assert!(tries.is_taken_back(5) && !tries.is_taken_back(6) && tries.pending().is_none());
        tries.note(ended(3, (5, 0)));
        assert_eq!(tries.decide(MOST, "it fails"), Next::Deliver);
        assert_eq!(tries.decide_after_failure(MOST, "it fails"), Next::Deliver);
        tries.forget();
        tries.note(ended(4, (5, 0)));
        assert_eq!((tries.decide(MOST, "it fails"), tries.told()), (Next::Deliver, None));
    }

    #[test]
    fn after_a_failure_a_checked_result_counts_even_if_it_is_no_better_than_others() {
        let (first, equal) = (ended(1, (0, 1)), ended(2, (0, 1)));
        let mut tries = Tries::default();
        tries.note(first.clone());
        assert_eq!(tries.decide_after_failure(2, "it fails"), again());
        tries.has_begun_again();
        tries.note(equal);
        assert_eq!(tries.decide_after_failure(2, "it fails"), Next::TakeBack(first));
        tries.has_taken_back(7);
        assert_eq!(tries.told(), Some((2, 1, false)));

        let mut tries = Tries::default();
        tries.note(ended(1, (0, 0)));
        assert_eq!(
            tries.decide_after_failure(2, "it fails"),
            Next::TakeBack(ended(1, (0, 0)))
        );

        let mut tries = Tries::default();
        assert_eq!(tries.decide_after_failure(2, "it fails"), again());
        tries.has_begun_again();
        assert_eq!(tries.decide_after_failure(2, "it fails"), Next::Deliver);
    }
}
