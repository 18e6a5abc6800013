//! One command of a recording against what the program gave for it.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::normal;
use crate::trajectory::{Recorded, Step};

/// The judgement of a replayed command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The same status and the same lines.
    Same,
    /// The same, except for the order of lines, or for lines about what a build had left.
    SameButForOrder,
    /// Another output, with a reason that has nothing to do with the program.
    Explained,
    /// Another output for which no reason was found.
    Unlike,
    /// Another exit status for which no reason was found.
    OtherStatus,
}

/// The program's intervention in a call, besides running it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meddling {
    None,
    Refused,
    Cut,
    Redacted,
    TimedOut,
}

pub struct Judgement {
    pub verdict: Verdict,
    pub has_same_status: Option<bool>,
    pub meddling: Meddling,
    /// The reason of the difference, or the program's intervention.
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

/// Words at the beginning of a command that run code of the project or of its environment.
static RUNS_CODE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let programs = "python[0-9.]*|pytest|py\\.test|pip[0-9.]*|tox|nox|make|conda|nosetests|node|npm|npx|go|mvn|java|javac|(ba)?sh [^-]\\S*|\\./\\S+";
    Regex::new(&format!(
        r"(^|[;&|(]\s*|\n\s*|\b(then|do|env|xargs|time|timeout \S+)\s+)([A-Z_]+=\S*\s+)*(\S*/)?({programs})\b"
    ))
    .ok()
});

/// Tells whether a command runs code for which the recorded image's own Python would be needed.
pub fn runs_code(command: &str) -> bool {
    RUNS_CODE.as_ref().is_some_and(|pattern| pattern.is_match(command))
}

/// Compares what the model read as the result of a call with what was recorded.
pub fn judge(step: &Step, given: &str, folder: &str) -> Judgement {
    let (status, output) = read(given);
    let recorded = &step.recorded;
    let meddling = meddling(given, status, step);
    let has_same_status = recorded.status.zip(status).map(|(theirs, ours)| theirs == ours);
    let same = likeness(recorded, &output, folder);
    let verdict = match (has_same_status, same) {
        (Some(false), _) => Verdict::OtherStatus,
        (_, Some(verdict)) => verdict,
        (_, None) => Verdict::Unlike,
    };
    if verdict <= Verdict::SameButForOrder {
        return Judgement {
            verdict,
            has_same_status,
            meddling,
            reason: String::new(),
            given: given.to_owned(),
        };
    }
    let reason = reason(step, &output, meddling);
    let verdict = match reason {
        Some(_) => Verdict::Explained,
        None => verdict,
    };
    Judgement {
        verdict,
        has_same_status,
        meddling,
        reason: reason.unwrap_or("no reason was found").to_owned(),
        given: given.to_owned(),
    }
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

fn likeness(recorded: &Recorded, output: &str, folder: &str) -> Option<Verdict> {
    let (theirs, mut ours) = (normal::lines(&recorded.output, folder), normal::lines(output, folder));
    if let Some(tail) = &recorded.tail {
        // Its middle was left out, in the middle of a line.
        let tail = normal::lines(tail, folder);
        let (head, tail) = (whole(&theirs, true), whole(&tail, false));
        if ours.starts_with(head) && ours.ends_with(tail) {
            return Some(Verdict::Same);
        }
        let ours: HashSet<String> = normal::without_order(&ours).into_iter().collect();
        let both = [head, tail].map(normal::without_order).concat();
        return both
            .iter()
            .all(|line| ours.contains(line))
            .then_some(Verdict::SameButForOrder);
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
    (normal::without_order(&theirs) == normal::without_order(&ours)).then_some(Verdict::SameButForOrder)
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

fn meddling(text: &str, status: Option<i32>, step: &Step) -> Meddling {
    if text.contains("[timed out after ") {
        Meddling::TimedOut
    } else if status.is_none() && step.action.command().is_some() {
        Meddling::Refused
    } else if text.lines().any(is_gap) && !step.recorded.output.lines().any(is_gap) {
        Meddling::Cut
    } else if text.contains("[redacted]") && !step.recorded.output.contains("[redacted]") {
        Meddling::Redacted
    } else {
        Meddling::None
    }
}

/// The reason for a program that was not run: it came with the recorded image, as what runs code
/// does.
pub const LACKING: &str = "a program that the image has not";

/// Names a reason that lies in the recorded machine, for outputs that are not alike.
fn reason(step: &Step, output: &str, meddling: Meddling) -> Option<&'static str> {
    let command = step.action.command().unwrap_or_default();
    let theirs = step.recorded.output.as_str();
    if matches!(meddling, Meddling::Refused | Meddling::TimedOut | Meddling::Redacted) {
        return None;
    }
    if step.recorded.status.is_none() && theirs.contains("timed out") {
        return Some("timed out when it was recorded");
    }
    let mentions = |words: &[&str]| words.iter().any(|word| command.contains(word) || theirs.contains(word));
    if runs_code(command) {
        return Some("runs code, in another environment than the recorded one");
    }
    if output.contains("command not found") {
        return Some(LACKING);
    }
    if mentions(&["site-packages", "miniconda", "/usr/lib/python", "dist-packages"]) {
        return Some("looks at the recorded image, outside of the repository");
    }
    if command.starts_with("git ")
        || command.contains("git log")
        || command.contains("git status")
        || command.contains(" git ")
    {
        return Some("git: the recorded repository had commits, branches and files of its image");
    }
    if mentions(&[".pyc", ".egg-info", "__pycache__"]) {
        return Some("files that a build had left in the recorded image");
    }
    step.action
        .command()
        .is_none()
        .then_some("an editor's words, which are another agent's")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::action::Action;

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

    fn verdict(step: &Step, text: &str) -> (Verdict, Meddling) {
        let judged = judge(step, text, "/testbed");
        (judged.verdict, judged.meddling)
    }

    #[test]
    fn status_and_lines_must_be_the_same() {
        let grep = step("grep -rn x .", Some(0), "./b:1:x\n./a:2:x\n");
        assert_eq!(
            verdict(&grep, "./b:1:x\n./a:2:x\n[exit code 0]"),
            (Verdict::Same, Meddling::None)
        );
        assert_eq!(
            verdict(&grep, "./a:2:x\n./b:1:x\n[exit code 0]").0,
            Verdict::SameButForOrder
        );
        assert_eq!(verdict(&grep, "./a:2:x\n[exit code 0]").0, Verdict::Unlike);
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
            (Verdict::Same, Meddling::Cut)
        );
        assert_eq!(verdict(&cat, "not allowed: a rule").1, Meddling::Refused);
        assert_eq!(
            verdict(
                &cat,
                "[timed out after 5.0 s; the command and everything it started were ended]"
            )
            .1,
            Meddling::TimedOut
        );
        assert_eq!(verdict(&cat, "1\n[redacted]\n[exit code 0]").1, Meddling::Redacted);
    }

    #[test]
    fn code_of_the_project_needs_its_own_environment() {
        for command in [
            "python reproduce.py",
            "cd x && PYTHONPATH=. python3 -m pytest",
            "rm a\npytest -q",
            "timeout 9 tox",
        ] {
            assert!(runs_code(command), "{command}");
        }
        for command in [
            "grep -n python setup.py",
            "cat make.bat",
            "ls pytest",
            "sed -i 's/go /x/' a",
        ] {
            assert!(!runs_code(command), "{command}");
        }
        let python = step("python a.py", Some(0), "3.9");
        assert_eq!(verdict(&python, "3.11\n[exit code 0]").0, Verdict::Explained);
    }

    #[test]
    fn of_a_long_recording_both_ends_count() {
        let mut long = step("cat a", Some(0), "1\n2\n3");
        long.recorded.tail = Some("8\n9\n".to_owned());
        assert_eq!(verdict(&long, "1\n2\n33\n4\n78\n9\n[exit code 0]").0, Verdict::Same);
        assert_eq!(verdict(&long, "1\n0\n33\n4\n78\n9\n[exit code 0]").0, Verdict::Unlike);
    }
}
