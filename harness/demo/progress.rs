//! The progress of the program, read from its journal: a spinner with the stage and the time, and
//! above it a line for each fact. Without a terminal the lines alone are shown.

use std::time::Duration;

use coding_agent::journal::fact::{Entry, Fact};
use coding_agent::plain::counted;
use coding_agent::task::state::{Judged, State};
use indicatif::{ProgressBar, ProgressStyle};

use crate::screen;

/// The facts shown so far, and the stage they are in.
pub(crate) struct Progress {
    spinner: ProgressBar,
    shown: usize,
    stage: State,
}

impl Progress {
    pub(crate) fn begin() -> Self {
        let spinner = if screen::is_terminal() {
            ProgressBar::new_spinner()
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {msg} {elapsed:.dim}") {
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(Duration::from_millis(80));
        spinner.set_message("starting");
        Self {
            spinner,
            shown: 0,
            stage: State::Queued,
        }
    }

    /// Shows what is new in the journal.
    pub(crate) fn show(&mut self, journal: &[Entry]) {
        for entry in journal.iter().skip(self.shown) {
            if let Fact::StageChanged { to, .. } = entry.fact {
                self.stage = to;
                if !to.is_final() {
                    self.say(&screen::bold(&name(to)));
                }
            } else if let Some(line) = line(&entry.fact, self.stage) {
                self.say(&format!("  {line}"));
            }
            if let Some(doing) = doing(&entry.fact, self.stage) {
                let stage = name(self.stage);
                self.spinner.set_message(format!("{stage} · {doing}"));
            }
        }
        self.shown = self.shown.max(journal.len());
    }

    pub(crate) fn say(&self, line: &str) {
        // What is hidden would swallow the line.
        self.spinner.suspend(|| screen::line(format_args!("{line}")));
    }

    pub(crate) fn end(self) {
        self.spinner.finish_and_clear();
    }
}

/// Returns what a fact makes the program do next.
fn doing(fact: &Fact, stage: State) -> Option<&'static str> {
    match fact {
        // The program's own calls: no model is asked in this stage.
        Fact::ToolCalled { .. } if stage == State::Verifying => None,
        Fact::StageChanged {
            to: State::Planning | State::Working,
            ..
        }
        | Fact::ToolCalled { .. } => Some("waiting for the model"),
        Fact::StageChanged {
            to: State::Preparing, ..
        } => Some("starting the container"),
        Fact::StageChanged {
            to: State::Verifying, ..
        } => Some("running the plan's checks"),
        Fact::StageChanged {
            to: State::Delivering, ..
        } => Some("pushing, and opening the pull request"),
        Fact::ReviewRequested { .. } => Some("waiting for the reviewer"),
        Fact::ModelCalled { .. } => Some("doing what the model asks"),
        Fact::EnvironmentStarted { .. } => Some("starting the tools"),
        _ => None,
    }
}

/// Returns a fact as a line, if people want to know it.
fn line(fact: &Fact, stage: State) -> Option<String> {
    Some(match fact {
        Fact::ModelCalled {
            turn,
            input,
            output,
            milliseconds,
            ..
        } => {
            let numbers = format!("{input} tokens in, {output} out, {}", time(*milliseconds));
            row("model", &format!("reply {turn}"), &numbers)
        }
        // The checks are told of with their outcome.
        Fact::ToolCalled { .. } if stage == State::Verifying => return None,
        Fact::ToolCalled {
            tool,
            about,
            is_error,
            milliseconds,
            ..
        } => {
            let failed = if *is_error {
                screen::red(" failed")
            } else {
                String::new()
            };
            let what = format!("{} {}", screen::cyan(tool), short(about));
            row("tool", what.trim_end(), &format!("{}{failed}", time(*milliseconds)))
        }
        Fact::Planned {
            environment, subtasks, ..
        } => row(
            "plan",
            &format!("{}, environment {environment}", counted(*subtasks, "step")),
            "",
        ),
        Fact::EnvironmentStarted {
            image,
            container,
            milliseconds,
            ..
        } => {
            let id: String = container.chars().take(12).collect();
            row(
                "docker",
                &format!("container {id} of {image}, project handed in"),
                &time(*milliseconds),
            )
        }
        Fact::ReviewGiven { .. } | Fact::ReviewMissing { .. } | Fact::PlanFaulty { .. } => return judgement(fact),
        Fact::EnvironmentRemoved { .. } => row("docker", "container removed", ""),
        Fact::Verified {
            command,
            exit_code,
            passed,
        } => {
            let ending = exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
            let verdict = if *passed {
                screen::green("passed")
            } else {
                screen::red(&format!("did not pass, {ending}"))
            };
            row("check", &screen::cyan(&short(command)), &verdict)
        }
        Fact::Pushed { branch, commit } => {
            let id: String = commit.chars().take(10).collect();
            row("git", &format!("pushed {id} to {branch}"), "")
        }
        Fact::ChangeOpened { number, .. } => row("forge", &format!("opened pull request #{number}"), ""),
        Fact::LabelChanged { added: Some(label), .. } => row("forge", &format!("added the label \"{label}\""), ""),
        Fact::LabelChanged {
            removed: Some(label), ..
        } => row("forge", &format!("removed the label \"{label}\""), ""),
        Fact::Commented { .. } => row("forge", "wrote a comment", ""),
        Fact::ReplyUnreadable { attempt, reason } => row(
            "model",
            &screen::red(&format!(
                "reply {attempt} could not be read and is asked again: {}",
                short(reason)
            )),
            "",
        ),
        Fact::Warned { text } => row("note", &screen::red(&screen::harmless(text)), ""),
        Fact::Postponed { reason, .. } => row("later", &screen::red(&screen::harmless(reason)), ""),
        Fact::Failed { reason } => row("failed", &screen::red(&screen::harmless(reason)), ""),
        _ => return None,
    })
}

/// Returns what came of a review as a line.
fn judgement(fact: &Fact) -> Option<String> {
    Some(match fact {
        Fact::ReviewGiven {
            what,
            round,
            score,
            passed,
            blockers,
            ..
        } => {
            let verdict = if *passed {
                screen::green("passed")
            } else {
                screen::red("did not pass")
            };
            let numbers = match blockers {
                0 => format!("{score} of 10"),
                count => format!("{score} of 10, blockers: {count}"),
            };
            row("review", &format!("{what}, round {round}: {verdict}"), &numbers)
        }
        Fact::ReviewMissing { what, reason, .. } => {
            let reason = screen::red(&screen::harmless(reason));
            row("review", &format!("{what}: none, {reason}"), "")
        }
        Fact::PlanFaulty { faults, .. } => {
            let first = faults.first().map_or("", String::as_str);
            row("review", &format!("plan, by the program itself: {}", short(first)), "")
        }
        _ => return None,
    })
}

fn row(who: &str, what: &str, numbers: &str) -> String {
    let dot = if numbers.is_empty() { "" } else { " · " };
    format!(
        "{} {what}{}",
        screen::dim(&format!("{who:<7}")),
        screen::dim(&format!("{dot}{numbers}"))
    )
}

fn short(text: &str) -> String {
    const MOST: usize = 90;
    let line = screen::harmless(text.lines().next().unwrap_or_default());
    if line.chars().count() <= MOST {
        return line;
    }
    format!("{}…", line.chars().take(MOST).collect::<String>())
}

pub(crate) fn time(milliseconds: u64) -> String {
    if milliseconds < 1000 {
        return format!("{milliseconds} ms");
    }
    format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100)
}

/// Returns a state in words.
fn name(state: State) -> String {
    match state {
        State::Reviewing(Judged::Plan) => "Reviewing the plan".to_owned(),
        State::Reviewing(Judged::Result) => "Reviewing the result".to_owned(),
        state => capital(&state.to_string()),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().to_string())
        .unwrap_or_default()
        + letters.as_str()
}
