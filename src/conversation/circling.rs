//! Notices a model that is stuck: it repeats the same call with the same result, alternates between
//! two, goes through a longer round in which nothing new comes up, or looks around without end and
//! does nothing.
//!
//! The first time the model is warned, the second time the work ends; some steady work in between,
//! and the warning is forgotten. A call whose result changes is no repetition: whoever waits for a
//! build to finish asks the same thing, too.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Message, ToolCall, ToolResult};

/// Number of times that a step, or a pair of steps, comes in a row before it counts as a
/// repetition.
const REPETITIONS: usize = 3;
/// Longest cycle that is recognised by its steps, in replies.
const LONGEST: usize = 2;
/// Number of replies in a row, all seen before with the same calls and results, that count as a
/// repetition, however long the cycle is.
const STALE_REPLIES: u32 = 9;
/// Number of replies in a row that only looked at files, or only failed, that count as idle.
const IDLE_REPLIES: u32 = 40;
/// Number of replies in a row that did something new after which a warning is forgotten.
const FORGIVING: u32 = 5;

/// Tools that only read, by the part of the name behind the server's.
const LOOKING: [&str; 6] = [
    "read_file",
    "list_files",
    "search",
    "search_code",
    "outline",
    "who_uses",
];

/// Tells whether the last two replies of a conversation are the same text.
pub fn repeats_itself(messages: &[Message]) -> bool {
    let mut texts = messages.iter().rev().filter_map(|message| match message {
        Message::Assistant { text, .. } => Some(text.trim()),
        Message::System { .. } | Message::User { .. } | Message::Summary { .. } | Message::Results { .. } => None,
    });
    matches!((texts.next(), texts.next()), (Some(last), Some(before)) if last == before && !last.is_empty())
}

/// Watches the replies of one conversation.
#[derive(Debug, Default, Clone)]
pub struct Watch {
    recent: VecDeque<u64>,
    known: HashSet<u64>,
    stale: u32,
    idle: u32,
    fruitful: u32,
    has_warned: bool,
}

/// The reaction to the last reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    GoOn,
    /// The model is to be warned.
    Warn(Stuck),
    /// The model was warned and does not stop.
    Enough(Stuck),
}

/// The way in which a model is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stuck {
    /// It repeats one or two steps, or a longer cycle.
    Repeating,
    /// It has done nothing in many replies.
    Idle,
}

impl Stuck {
    /// Returns what is wrong, as the end of a sentence.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Repeating => "the same calls were repeated with the same results",
            Self::Idle => "nothing was changed for a long time",
        }
    }

    /// Returns the message for the model, if one may help.
    pub fn advice(self) -> Option<&'static str> {
        match self {
            Self::Repeating => None,
            Self::Idle => Some(
                "You have looked around for a long time, and nothing was changed. Begin with the work, or finish and say what \
                 is open.",
            ),
        }
    }
}

impl Watch {
    /// Records the results of one reply, and decides how to react.
    pub fn judge(&mut self, results: &[ToolResult]) -> Verdict {
        if results.is_empty() {
            return Verdict::GoOn;
        }
        let print = fingerprint(results);
        let is_new = self.known.insert(print);
        let does_something = results.iter().any(does_something);
        self.stale = if is_new { 0 } else { self.stale + 1 };
        self.idle = if does_something { 0 } else { self.idle + 1 };
        self.fruitful = if is_new && does_something { self.fruitful + 1 } else { 0 };
        self.has_warned &= self.fruitful < FORGIVING;
        self.recent.push_back(print);
        if self.recent.len() > LONGEST * REPETITIONS {
            self.recent.pop_front();
        }
        let stuck = if self.stale >= STALE_REPLIES || (1..=LONGEST).any(|length| self.repeats(length)) {
            Stuck::Repeating
        } else if self.idle >= IDLE_REPLIES {
            Stuck::Idle
        } else {
            return Verdict::GoOn;
        };
        self.recent.clear();
        (self.stale, self.idle) = (0, 0);
        if self.has_warned {
            return Verdict::Enough(stuck);
        }
        self.has_warned = true;
        Verdict::Warn(stuck)
    }

    /// Tells whether the last replies are one sequence of this length, over and over.
    fn repeats(&self, length: usize) -> bool {
        let needed = length * REPETITIONS;
        let Some(start) = self.recent.len().checked_sub(needed) else {
            return false;
        };
        (start + length..self.recent.len()).all(|place| self.recent[place] == self.recent[place - length])
    }
}

/// Tells whether a call may have changed something.
pub fn does_something(result: &ToolResult) -> bool {
    !result.is_error && does_more_than_look(&result.call)
}

/// Tells whether a call is of a tool that may change something.
pub fn does_more_than_look(call: &ToolCall) -> bool {
    let tool = call.tool.rsplit('/').next().unwrap_or_default();
    !LOOKING.contains(&tool)
}

fn fingerprint(results: &[ToolResult]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for result in results {
        result.call.tool.hash(&mut hasher);
        serde_json::to_string(&result.call.args)
            .unwrap_or_default()
            .hash(&mut hasher);
        without_duration(&result.output).hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns `output` without its duration: the executor ends its answer with a line such as `[exit
/// code 1, 12 ms]`, of which only the time differs.
fn without_duration(output: &str) -> &str {
    match output.rsplit_once(", ") {
        Some((before, last)) if last.ends_with("s]") => before,
        _ => output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(command: &str, output: &str) -> Vec<ToolResult> {
        let args = serde_json::Map::from_iter([("command".to_owned(), command.into())]);
        let call = ToolCall {
            id: String::new(),
            tool: "workspace/execute_command".to_owned(),
            args,
        };
        vec![ToolResult {
            call,
            output: output.to_owned(),
            is_error: false,
        }]
    }

    fn check(steps: &[(&str, &str)], expected: &[Verdict]) {
        let mut watch = Watch::default();
        let verdicts: Vec<Verdict> = steps
            .iter()
            .map(|(command, output)| watch.judge(&results(command, output)))
            .collect();
        assert_eq!(verdicts, expected, "{steps:?}");
    }

    #[test]
    fn the_same_call_with_the_same_result_is_a_circle_whatever_time_it_took() {
        use Verdict::GoOn;
        const WARN: Verdict = Verdict::Warn(Stuck::Repeating);
        const ENOUGH: Verdict = Verdict::Enough(Stuck::Repeating);
        let step = |time: &'static str| ("make", time);
        check(
            &[
                step("no\n[exit code 2, 12 ms]"),
                step("no\n[exit code 2, 13 ms]"),
                step("no\n[exit code 2, 1.4 s]"),
                step("no\n[exit code 2, 12 ms]"),
                step("no\n[exit code 2, 12 ms]"),
                step("no\n[exit code 2, 12 ms]"),
            ],
            &[GoOn, GoOn, WARN, GoOn, GoOn, ENOUGH],
        );
    }

    #[test]
    fn two_steps_in_turn_are_a_circle() {
        use Verdict::GoOn;
        const WARN: Verdict = Verdict::Warn(Stuck::Repeating);
        check(
            &[("a", "1"), ("b", "2"), ("a", "1"), ("b", "2"), ("a", "1"), ("b", "2")],
            &[GoOn, GoOn, GoOn, GoOn, GoOn, WARN],
        );
    }

    #[test]
    fn progress_is_no_circle() {
        check(
            &[
                ("make", "1 left"),
                ("make", "0 left"),
                ("make", "done"),
                ("make", "done"),
            ],
            &[Verdict::GoOn; 4],
        );
    }

    fn call(tool: &str, number: usize, is_error: bool) -> Vec<ToolResult> {
        let mut results = results(&number.to_string(), "");
        results[0].call.tool = tool.to_owned();
        results[0].is_error = is_error;
        results
    }

    #[test]
    fn a_longer_round_in_which_nothing_is_new_is_a_circle() {
        let mut watch = Watch::default();
        let verdicts: Vec<Verdict> = (0..22)
            .map(|step| watch.judge(&call("workspace/execute_command", step % 4, false)))
            .collect();
        // Four new ones, then nine that are known, and nine more.
        let expected: Vec<Verdict> = (0..22)
            .map(|step| match step {
                12 => Verdict::Warn(Stuck::Repeating),
                21 => Verdict::Enough(Stuck::Repeating),
                _ => Verdict::GoOn,
            })
            .collect();
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn looking_and_failing_for_ever_is_no_work() {
        for (tool, is_error) in [("workspace/read_file", false), ("workspace/write_file", true)] {
            let mut watch = Watch::default();
            let verdicts: Vec<Verdict> = (0..80).map(|step| watch.judge(&call(tool, step, is_error))).collect();
            let told: Vec<usize> = (0..80).filter(|step| verdicts[*step] != Verdict::GoOn).collect();
            assert_eq!(told, [39, 79]);
            assert_eq!(
                (verdicts[39], verdicts[79]),
                (Verdict::Warn(Stuck::Idle), Verdict::Enough(Stuck::Idle))
            );
        }
    }

    #[test]
    fn a_warning_is_forgotten_after_some_work() {
        let mut watch = Watch::default();
        let stuck = |watch: &mut Watch| [(); 3].map(|()| watch.judge(&results("make", "no")))[2];
        assert_eq!(stuck(&mut watch), Verdict::Warn(Stuck::Repeating));
        for number in 0..5 {
            assert_eq!(watch.judge(&call("workspace/write_file", number, false)), Verdict::GoOn);
        }
        assert_eq!(stuck(&mut watch), Verdict::Warn(Stuck::Repeating));
        assert_eq!(stuck(&mut watch), Verdict::Enough(Stuck::Repeating));
    }
}
