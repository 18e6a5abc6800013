//! One command of a recording against what the program gave for it.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::action::Action;
use crate::known::Known;
use crate::normal;
use crate::reason::{has_no_order, reason};
use crate::trajectory::Step;

/// The judgement of a replayed command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The same status and the same lines.
    Same,
    /// The same, except for the order of lines that have none of their own.
    SameButForOrder,
    /// Another output, with a reason that has nothing to do with the program.
    Explained,
    /// Another output for which no reason was found.
    Unlike,
    /// Another exit status for which no reason was found.
    OtherStatus,
}

/// An action of the program on a call, besides running it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intervention {
    Refused,
    Cut,
    Redacted,
    TimedOut,
}

pub struct Judgement {
    pub verdict: Verdict,
    pub has_same_status: Option<bool>,
    pub interventions: Vec<Intervention>,
    /// The reason of the difference; empty if there is none.
    pub reason: String,
    /// The result as the model read it.
    pub given: String,
}

static STATUS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r"{NOTE}?\n?\[(?:exit code (\d+)|killed by signal (\d+))[^\]\n]*\](?:\n\[[^\n]*\])*\s*$"
    ))
    .ok()
});

/// The note that the program adds to an output: the changes of a command in the project, or the
/// lines of a file that a tool showed.
const NOTE: &str = r"(?:\n?\[(?:changed: [^\n]*|no file changed|lines \d+ to \d+ of \d+)\])";
static ENDS_WITH_NOTE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!(r"{NOTE}\s*$")).ok());

/// The result of a call, as the program gave it.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// As the model read it.
    pub text: &'a str,
    /// Whether a file tool refused the call, as its status in the journal tells.
    pub is_refused: bool,
}

/// Compares the result of a call with what was recorded.
pub fn judge(step: &Step, given: Given<'_>, folder: &str, known: &Known) -> Judgement {
    let Some(command) = step.action.command() else {
        return of_editor(step, given, folder);
    };
    let (status, output) = read(given.text);
    let recorded = &step.recorded;
    let interventions = interventions(given.text, status.is_none(), step);
    let has_same_status = recorded.status.zip(status).map(|(theirs, ours)| theirs == ours);
    let theirs = normal::lines(&recorded.output, folder);
    let ours = normal::lines(&output, folder);
    let tail = recorded.tail.as_ref().map(|tail| normal::lines(tail, folder));
    let likeness = likeness((&theirs, tail.as_deref()), ours.clone(), has_no_order(command));
    let verdict = match (has_same_status, likeness) {
        (Some(false), _) => Verdict::OtherStatus,
        (_, Some(verdict)) => verdict,
        (_, None) => Verdict::Unlike,
    };
    let is_own_doing = interventions.iter().any(|own| *own != Intervention::Cut);
    let judged = |verdict: Verdict, reason: &str| Judgement {
        verdict,
        has_same_status,
        interventions,
        reason: reason.to_owned(),
        given: given.text.to_owned(),
    };
    if verdict <= Verdict::SameButForOrder {
        return judged(verdict, "");
    }
    let theirs = [theirs, tail.unwrap_or_default()].concat();
    match reason(step, (&theirs, &ours), known).filter(|_| !is_own_doing) {
        Some(reason) => judged(Verdict::Explained, reason),
        None => judged(verdict, "no reason was found"),
    }
}

/// Words with which another agent's editor refuses an edit.
const REFUSALS: [&str; 5] = [
    "No replacement was performed",
    "Invalid `",
    "does not exist",
    "File already exists",
    "ERROR:",
];

/// Judges a call of an editor. Its words are another agent's, but whether it did what it was asked
/// for can be compared, and so can a file that it shows.
fn of_editor(step: &Step, given: Given<'_>, folder: &str) -> Judgement {
    let theirs = &step.recorded.output;
    let was_refused = REFUSALS.iter().any(|words| theirs.contains(words));
    let shows = matches!(&step.action, Action::Call("workspace/read_file", _));
    let is_unlike = || shows && !was_refused && shown(theirs, folder) != shown(&read(given.text).1, folder);
    let (verdict, reason) = match (was_refused, given.is_refused) {
        (false, true) => (Verdict::Unlike, "the recorded editor did it"),
        (true, false) => (
            Verdict::Explained,
            "the recorded editor refused it, and ours takes it as it was meant",
        ),
        _ if is_unlike() => (Verdict::Unlike, "no reason was found"),
        (true, true) | (false, false) => (Verdict::Same, ""),
    };
    Judgement {
        verdict,
        has_same_status: None,
        interventions: interventions(given.text, given.is_refused && !was_refused, step),
        reason: reason.to_owned(),
        given: given.text.to_owned(),
    }
}

/// Returns the lines of a file as an editor shows them, without its numbers and its heading.
fn shown(text: &str, folder: &str) -> Vec<String> {
    let without_number = |line: &str| match line.split_once('\t') {
        Some((number, rest)) if number.trim().parse::<u32>().is_ok() => rest.to_owned(),
        _ => line.to_owned(),
    };
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("Here's the result of running `cat -n`"));
    let lines: Vec<String> = lines.map(without_number).collect();
    normal::lines(&lines.join("\n"), folder)
}

/// Returns the exit status in a result, and the output before it.
fn read(text: &str) -> (Option<i32>, String) {
    let found = STATUS.as_ref().and_then(|pattern| pattern.captures(text));
    let Some(found) = found else {
        let note = ENDS_WITH_NOTE.as_ref().and_then(|pattern| pattern.find(text));
        let end = note.map_or(text.len(), |note| note.start());
        return (None, text[..end].to_owned());
    };
    let number = |place: usize| found.get(place)?.as_str().parse::<i32>().ok();
    let status = number(1).or_else(|| number(2).map(|signal| 128 + signal));
    let end = found.get(0).map_or(text.len(), |all| all.start());
    (status, text[..end].to_owned())
}

/// Tells how alike two outputs are. `theirs` ends with a gap where there is a tail.
fn likeness(
    (theirs, tail): (&[String], Option<&[String]>),
    mut ours: Vec<String>,
    has_no_order: bool,
) -> Option<Verdict> {
    if let Some(tail) = tail {
        // Its middle was left out, in the middle of a line.
        let (head, tail) = (whole(theirs, true), whole(tail, false));
        if ours.starts_with(head) && ours.ends_with(tail) {
            return Some(Verdict::Same);
        }
        let ours: HashSet<String> = ours.into_iter().collect();
        let are_there = has_no_order && head.iter().chain(tail).all(|line| ours.contains(line));
        return are_there.then_some(Verdict::SameButForOrder);
    }
    if let Some(gap) = ours.iter().position(|line| is_gap(line)) {
        let tail = ours.split_off(gap + 1);
        ours.pop();
        let (head, tail) = (whole(&ours, true), whole(&tail, false));
        return (theirs.starts_with(head) && theirs.ends_with(tail)).then_some(Verdict::Same);
    }
    if theirs == ours {
        return Some(Verdict::Same);
    }
    let is_same = has_no_order && normal::sorted(theirs) == normal::sorted(&ours);
    is_same.then_some(Verdict::SameButForOrder)
}

/// Tells whether the line stands where the program left something out.
fn is_gap(line: &str) -> bool {
    line.starts_with("[... ") && (line.contains(" bytes cut") || line.contains(" bytes left out"))
}

/// Returns the lines of one end of an output but for the one at the gap, which may be a part.
fn whole(lines: &[String], is_head: bool) -> &[String] {
    let Some(last) = lines.len().checked_sub(1) else {
        return lines;
    };
    if is_head { &lines[..last] } else { &lines[1..] }
}

fn interventions(text: &str, is_refused: bool, step: &Step) -> Vec<Intervention> {
    let recorded = &step.recorded.output;
    let is_timed_out = text.contains("[timed out after ");
    let is_cut = text.lines().any(is_gap) && !recorded.lines().any(is_gap);
    let is_redacted = text.contains("[redacted]") && !recorded.contains("[redacted]");
    let all = [
        (is_timed_out, Intervention::TimedOut),
        (is_refused && !is_timed_out, Intervention::Refused),
        (is_cut, Intervention::Cut),
        (is_redacted, Intervention::Redacted),
    ];
    let found = all.into_iter().filter(|(is_found, _)| *is_found);
    found.map(|(_, intervention)| intervention).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::action::of_swe_agent;
    use crate::known::tests::known;
    use crate::trajectory::Recorded;

    fn step(command: &str, status: Option<i32>, output: &str) -> Step {
        Step {
            action: Action::Call("workspace/execute_command", json!({ "command": command })),
            recorded: Recorded {
                status,
                output: output.to_owned(),
                tail: None,
            },
        }
    }

    fn verdict(step: &Step, text: &str) -> (Verdict, Vec<Intervention>) {
        let given = Given {
            text,
            is_refused: false,
        };
        let judged = judge(step, given, "/testbed", &known(&["a", "b"]));
        (judged.verdict, judged.interventions)
    }

    #[test]
    fn status_and_lines_must_be_the_same() {
        let grep = step("grep -rn x .", Some(0), "./b:1:x\n./a:2:x\n");
        assert_eq!(
            verdict(&grep, "./b:1:x\n./a:2:x\n[exit code 0]"),
            (Verdict::Same, vec![])
        );
        assert_eq!(
            verdict(&grep, "./a:2:x\n./b:1:x\n[exit code 0]").0,
            Verdict::SameButForOrder
        );
        assert_eq!(verdict(&grep, "./a:2:x\n[exit code 0]").0, Verdict::Unlike);
        let cat = step("cat a", Some(0), "1\n2\n");
        assert_eq!(verdict(&cat, "2\n1\n[exit code 0]").0, Verdict::Unlike);
        let build = step("cat a", Some(0), "build = 1\n");
        assert_eq!(verdict(&build, "build = 2\n[exit code 0]").0, Verdict::Unlike);
        assert_eq!(
            verdict(&grep, "./b:1:x\n./a:2:x\n[exit code 1, 12.0 s]").0,
            Verdict::OtherStatus
        );
        let silent = step("true", Some(0), "");
        assert_eq!(verdict(&silent, "[exit code 0]").0, Verdict::Same);
        assert_eq!(
            verdict(&silent, "[changed: new a.txt +1]\n[exit code 0]").0,
            Verdict::Same
        );
        assert_eq!(
            verdict(&grep, "./b:1:x\n./a:2:x\n[no file changed]\n[exit code 0, 11.0 s]").0,
            Verdict::Same
        );
    }

    #[test]
    fn what_the_program_did_is_told() {
        let cat = step("cat a", Some(0), "1\n2\n3\n4\n5\n6\n7\n");
        assert_eq!(
            verdict(&cat, "1\n2\n3\n[... 4 bytes cut ...]\n5\n6\n7\n[exit code 0]"),
            (Verdict::Same, vec![Intervention::Cut])
        );
        assert_eq!(verdict(&cat, "not allowed: a rule").1, [Intervention::Refused]);
        assert_eq!(
            verdict(
                &cat,
                "[timed out after 5.0 s; the command and everything it started were ended]"
            )
            .1,
            [Intervention::TimedOut]
        );
        assert_eq!(
            verdict(&cat, "1\n[redacted]\n[exit code 0]").1,
            [Intervention::Redacted]
        );
        assert_eq!(
            verdict(&cat, "1\n[redacted]\n[... 4 bytes cut ...]\n7\n[exit code 0]").1,
            [Intervention::Cut, Intervention::Redacted]
        );
    }

    #[test]
    fn of_a_long_recording_both_ends_count() {
        let mut long = step("cat a", Some(0), "1\n2\n3");
        long.recorded.tail = Some("8\n9\n".to_owned());
        assert_eq!(verdict(&long, "1\n2\n33\n4\n78\n9\n[exit code 0]").0, Verdict::Same);
        assert_eq!(verdict(&long, "1\n0\n33\n4\n78\n9\n[exit code 0]").0, Verdict::Unlike);
    }

    #[test]
    fn what_a_file_tool_refuses_is_counted() {
        let judged = |action: &str, recorded: &str, text: &str, is_refused: bool| {
            let step = Step {
                action: of_swe_agent(action),
                recorded: Recorded {
                    status: None,
                    output: recorded.to_owned(),
                    tail: None,
                },
            };
            let judged = judge(&step, Given { text, is_refused }, "/testbed", &known(&["a"]));
            (judged.verdict, judged.interventions)
        };
        let edit = "str_replace_editor str_replace /testbed/a --old_str x --new_str y";
        assert_eq!(
            judged(edit, "The file has been edited.", "ok", false),
            (Verdict::Same, vec![])
        );
        assert_eq!(
            judged(edit, "The file has been edited.", "not_found 404: x", true),
            (Verdict::Unlike, vec![Intervention::Refused])
        );
        assert_eq!(
            judged(edit, "No replacement was performed, old_str", "not_found 404: x", true),
            (Verdict::Same, vec![])
        );
        let view = "str_replace_editor view /testbed/a";
        let recorded = "Here's the result of running `cat -n` on /testbed/a:\n     1\tx\n     2\t\ty\n";
        assert_eq!(
            judged(view, recorded, "x\n\ty\n[lines 1 to 2 of 2]", false).0,
            Verdict::Same
        );
        assert_eq!(
            judged(view, recorded, "x\nz\n[lines 1 to 2 of 2]", false).0,
            Verdict::Unlike
        );
    }
}
