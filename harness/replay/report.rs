//! The report on all recordings: a table, the list of differences, and a file for scripts.

use std::collections::BTreeMap;

use coding_agent::plain::{agreeing, counted, one_line};
use coding_agent_harness::machine;
use serde_json::{Value, json};

use crate::case::Played;
use crate::judge::{Intervention, Judgement, Verdict};
use crate::reason::{LACKING, runs_code};
use crate::trajectory::{Step, Trajectory};

/// The longest command in a list, in characters.
const LONGEST: usize = 110;

/// The reason for which an output is cut.
const TOO_LONG: &str = "longer than the program shows a model";

/// The most characters of an output that differs from the recorded one, in the file for scripts.
const MOST_SHOWN: usize = 4_000;

#[derive(Default)]
pub struct Report {
    rows: Vec<Value>,
    /// Each reason with its kind, how often it came up, and the first command that it was about.
    reasons: BTreeMap<(&'static str, String), (usize, String)>,
    milliseconds: Vec<f64>,
    sums: Sums,
    not_played: Vec<(String, String)>,
}

#[derive(Default, Clone, Copy)]
pub struct Sums {
    played: usize,
    steps: usize,
    never_came: usize,
    without_tool: usize,
    of_the_image: usize,
    shell: usize,
    shell_with_status: usize,
    shell_same_status: usize,
    shell_same_output: usize,
    edits: usize,
    edits_alike: usize,
    code: usize,
    code_same: usize,
    refused: usize,
    unexplained: usize,
    differences: usize,
    same_differences: usize,
}

impl Report {
    /// Takes a recording in that cannot be played, and prints its row.
    pub fn not_played(&mut self, name: &str, error: &anyhow::Error) {
        let reason = one_line(&format!("{error:#}"));
        println!("| {name} | not played: {} | | | | |", reason.replace('|', "\\|"));
        self.not_played.push((name.to_owned(), reason));
    }

    pub fn head() {
        println!("| recording | steps | same exit status | same output | runs project code | final difference |");
        println!("|---|---:|---:|---:|---:|---|");
    }

    /// Takes one recording in, and prints its row.
    pub fn add(&mut self, trajectory: &Trajectory, played: &Played) {
        let mut own = Sums {
            played: 1,
            steps: trajectory.steps.len(),
            never_came: trajectory.steps.len() - played.judged.len() - played.without_tool,
            without_tool: played.without_tool,
            of_the_image: played.of_the_image.len(),
            ..Sums::default()
        };
        for (step, judgement) in &played.judged {
            own.count(step, judgement);
            self.note(step, judgement);
        }
        own.differences = 1;
        let is_same = played.unlike_files.is_empty() && played.without_pull.is_none();
        own.same_differences = usize::from(is_same);
        self.milliseconds.extend(&played.milliseconds);
        let end = match &played.without_pull {
            _ if is_same => "the same".to_owned(),
            Some(reason) => format!("no pull request: {}", reason.lines().next_back().unwrap_or_default()),
            None => listed(&played.unlike_files),
        };
        println!("{}", own.row(&trajectory.name, &end));
        self.rows.push(json!({
            "name": trajectory.name, "steps": own.steps, "final_difference": end,
            "seconds": played.took.as_secs_f64(), "files_of_the_image": played.of_the_image,
            "commands": played.judged.iter().map(in_json).collect::<Vec<_>>(),
        }));
        self.sums.add(&own);
    }

    fn note(&mut self, step: &Step, judgement: &Judgement) {
        let differs = match judgement.verdict {
            Verdict::Same | Verdict::SameButForOrder => None,
            Verdict::Explained => Some("other output"),
            Verdict::Unlike => Some("other output, unexplained"),
            Verdict::OtherStatus => Some("other exit status, unexplained"),
        };
        if judgement.interventions.is_empty()
            && let Some(kind) = differs
        {
            self.list(step, kind, judgement.reason.clone());
        }
        for intervention in &judgement.interventions {
            // In the program's own words, as the model read them.
            let said = || own_words(&judgement.given);
            let (kind, reason) = match (intervention, judgement.verdict) {
                (Intervention::Refused, _) => ("refused", said()),
                (Intervention::TimedOut, _) => ("timed out", said()),
                (Intervention::Redacted, _) => ("redacted", said()),
                (Intervention::Cut, Verdict::Unlike | Verdict::OtherStatus) => {
                    ("cut, and what is left differs", TOO_LONG.to_owned())
                }
                (Intervention::Cut, _) => ("cut", TOO_LONG.to_owned()),
            };
            self.list(step, kind, reason);
        }
    }

    fn list(&mut self, step: &Step, kind: &'static str, reason: String) {
        let entry = self.reasons.entry((kind, reason)).or_default();
        entry.0 += 1;
        if entry.1.is_empty() {
            entry.1 = shortened(&step.action.in_words());
        }
    }

    /// Prints sums and reasons; returns them for scripts, and the number of faults: what was
    /// refused, differs for no reason, never came or was not played.
    pub fn show(mut self) -> (Value, usize) {
        let sums = self.sums;
        println!(
            "{}",
            sums.row(
                "**all**",
                &format!("{} of {} the same", sums.same_differences, sums.differences)
            )
        );
        println!();
        for line in sums.sentences() {
            println!("- {line}");
        }
        self.milliseconds.sort_by(f64::total_cmp);
        let median = self
            .milliseconds
            .get(self.milliseconds.len() / 2)
            .copied()
            .unwrap_or_default();
        println!("- a command takes {median:.0} ms (median), as the program counts it");
        if !self.reasons.is_empty() {
            println!("\n| what | times | reason | for example |\n|---|---:|---|---|");
            for ((kind, reason), (times, example)) in &self.reasons {
                println!("| {kind} | {times} | {reason} | `{}` |", example.replace('|', "\\|"));
            }
        }
        let described = machine::described();
        println!("\n{}", machine::sentence(&described));
        let report = json!({
            "machine": described,
            "recordings": self.rows, "median_milliseconds": median,
            "not_played": self.not_played,
            "same_differences": sums.same_differences, "differences": sums.differences,
            "shell_commands": sums.shell, "shell_same_output": sums.shell_same_output,
            "shell_with_status": sums.shell_with_status, "shell_same_status": sums.shell_same_status,
            "refused": sums.refused, "unexplained": sums.unexplained, "never_came": sums.never_came,
        });
        (report, sums.faults() + self.not_played.len())
    }
}

impl Sums {
    /// Returns the number of things for which nothing but the program, or this judge, is to blame.
    fn faults(&self) -> usize {
        self.unexplained + self.refused + self.never_came + (self.differences - self.same_differences)
    }

    fn count(&mut self, step: &Step, judgement: &Judgement) {
        let is_same = matches!(judgement.verdict, Verdict::Same | Verdict::SameButForOrder);
        let is_refused = judgement.interventions.contains(&Intervention::Refused);
        self.refused += usize::from(is_refused);
        let is_unlike = matches!(judgement.verdict, Verdict::Unlike | Verdict::OtherStatus);
        self.unexplained += usize::from(is_unlike && !is_refused);
        if step.action.command().is_some_and(runs_code) || judgement.reason == LACKING {
            self.code += 1;
            self.code_same += usize::from(is_same);
            return;
        }
        if step.action.command().is_none() {
            self.edits += 1;
            self.edits_alike += usize::from(is_same);
            return;
        }
        self.shell += 1;
        self.shell_same_output += usize::from(is_same);
        if let Some(same) = judgement.has_same_status {
            self.shell_with_status += 1;
            self.shell_same_status += usize::from(same);
        }
    }

    fn add(&mut self, other: &Self) {
        self.played += other.played;
        self.steps += other.steps;
        self.never_came += other.never_came;
        self.without_tool += other.without_tool;
        self.of_the_image += other.of_the_image;
        self.shell += other.shell;
        self.shell_with_status += other.shell_with_status;
        self.shell_same_status += other.shell_same_status;
        self.shell_same_output += other.shell_same_output;
        self.edits += other.edits;
        self.edits_alike += other.edits_alike;
        self.code += other.code;
        self.code_same += other.code_same;
        self.refused += other.refused;
        self.unexplained += other.unexplained;
        self.differences += other.differences;
        self.same_differences += other.same_differences;
    }

    fn row(&self, name: &str, end: &str) -> String {
        format!(
            "| {name} | {} | {}/{} | {}/{} | {} | {end} |",
            self.steps, self.shell_same_status, self.shell_with_status, self.shell_same_output, self.shell, self.code
        )
    }

    fn sentences(&self) -> Vec<String> {
        let share = |part: usize, all: usize| {
            let percent = 100.0 * crate::count(part) / crate::count(all.max(1));
            format!("{part} of {all} ({percent:.1} %)")
        };
        vec![
            format!(
                "{} with {} {} played; {} never came, and for {} there is no tool",
                counted(self.played, "recording"),
                counted(self.steps, "step"),
                agreeing(self.played, "was", "were"),
                counted(self.never_came, "step"),
                self.without_tool
            ),
            format!(
                "of the shell commands that run no code of the project, {} had the same exit status and {} the same output",
                share(self.shell_same_status, self.shell_with_status),
                share(self.shell_same_output, self.shell)
            ),
            format!(
                "{} ran code in another environment than the recorded; {} gave the same all the same",
                counted(self.code, "command"),
                self.code_same
            ),
            format!(
                "of the calls of an editor, {} did the same as the recorded one",
                share(self.edits_alike, self.edits)
            ),
            format!(
                "final differences that are the same, through the pull request: {}; {} {} changed when the recorded image was made",
                share(self.same_differences, self.differences),
                counted(self.of_the_image, "file"),
                agreeing(self.of_the_image, "was", "were")
            ),
            format!(
                "commands that the program refused: {}; differences without a reason: {}",
                self.refused, self.unexplained
            ),
        ]
    }
}

fn in_json((step, judgement): &(Step, Judgement)) -> Value {
    let is_same = judgement.verdict <= Verdict::SameButForOrder;
    let shown = |text: &str| (!is_same).then(|| text.chars().take(MOST_SHOWN).collect::<String>());
    json!({
        "given": shown(&judgement.given),
        "recorded": shown(&step.recorded.output),
        "recorded_status": step.recorded.status,
        "command": step.action.in_words(),
        "verdict": format!("{:?}", judgement.verdict),
        "program": judgement.interventions.iter().map(|own| format!("{own:?}")).collect::<Vec<_>>(),
        "reason": judgement.reason,
    })
}

/// Returns the line in which the program says what it did with a call: the last one that is not
/// empty, behind the output.
fn own_words(given: &str) -> String {
    let said = given.lines().rev().find(|line| !line.trim().is_empty());
    shortened(said.unwrap_or_default()).replace('|', "\\|")
}

fn listed(unlike: &BTreeMap<String, &'static str>) -> String {
    let shown = unlike.iter().take(3).map(|(path, how)| format!("`{path}`: {how}"));
    let shown = shown.collect::<Vec<_>>().join("; ");
    let more = unlike.len().saturating_sub(3);
    if more > 0 {
        format!("{shown}; and {more} more")
    } else {
        shown
    }
}

fn shortened(command: &str) -> String {
    let line = one_line(command);
    let mut short: String = line.chars().take(LONGEST).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}
