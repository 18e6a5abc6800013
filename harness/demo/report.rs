//! The report at the end of the demo: the issue's history, the pull request, its diff, and how it
//! was verified.

use std::process::ExitCode;
use std::time::Duration;

use coding_agent::journal::fact::{Entry, Fact};
use coding_agent::plain::counted;

use crate::fake::github::{GitHub, Item};
use crate::program::Program;
use crate::progress::time;
use crate::project::Project;
use crate::screen;

/// The most lines of the program's own words that are shown after a failure.
const LAST_LINES: usize = 20;

/// Prints everything, and returns success when there is a pull request for the issue.
pub(crate) fn show(github: &GitHub, project: &Project, program: &Program, took: Duration) -> ExitCode {
    let journal = program.journal();
    heading("The issue, as people see it");
    print_timeline(&project.issue.timeline());
    let Some(pull) = project.pull(github) else {
        return no_pull(program, &journal);
    };
    heading("The pull request");
    screen::line(screen::bold(&format!("#{} {}", pull.number(), pull.title())));
    screen::line(format_args!(
        "{} -> {}{}",
        pull.head(),
        pull.base(),
        if pull.is_draft() { " (draft)" } else { "" }
    ));
    screen::line(format_args!("\n{}", as_seen(&pull.text()).trim_end()));
    heading("Its diff");
    print_diff(&pull.diff());
    heading("How it was verified");
    print_checks(&journal);
    screen::line("");
    print_sum(&pull, &journal, took);
    ExitCode::SUCCESS
}

fn no_pull(program: &Program, journal: &[Entry]) -> ExitCode {
    heading("No pull request came of it");
    for entry in journal {
        match &entry.fact {
            Fact::Failed { reason } | Fact::Postponed { reason, .. } => {
                screen::line(screen::red(&screen::harmless(reason)));
            }
            _ => {}
        }
    }
    let said = program.said();
    let lines: Vec<&str> = said.lines().collect();
    for line in lines.iter().skip(lines.len().saturating_sub(LAST_LINES)) {
        screen::line(screen::dim(&format!("coding-agent | {line}")));
    }
    ExitCode::FAILURE
}

fn heading(text: &str) {
    let rule = "─".repeat(76_usize.saturating_sub(text.chars().count()));
    screen::line(format_args!(
        "\n{} {}\n",
        screen::bold(&format!("── {text}")),
        screen::dim(&rule)
    ));
}

fn print_timeline(timeline: &str) {
    for line in as_seen(timeline).lines() {
        let is_deed = line.starts_with("  ") && !line.starts_with("    ");
        match line.trim_start().strip_prefix('|') {
            Some(text) => screen::line(format_args!("    {}{text}", screen::dim("|"))),
            None if is_deed => screen::line(screen::cyan(line)),
            None => screen::line(screen::bold(line)),
        }
    }
}

fn print_diff(diff: &str) {
    for line in screen::harmless(diff).lines() {
        let is_head = ["diff ", "index ", "--- ", "+++ ", "new file"]
            .iter()
            .any(|head| line.starts_with(head));
        let painted = match line.chars().next() {
            _ if is_head => screen::bold(line),
            Some('+') => screen::green(line),
            Some('-') => screen::red(line),
            Some('@') => screen::cyan(line),
            _ => line.to_owned(),
        };
        screen::line(format_args!("{painted}"));
    }
}

/// Prints the checks. The last round is what was delivered; the rounds before it were sent back to
/// the model.
fn print_checks(journal: &[Entry]) {
    screen::line(format_args!(
        "The program ran these in the container itself, after the model had said that it was done:\n"
    ));
    for entry in journal {
        if let Fact::Verified {
            command,
            exit_code,
            passed,
        } = &entry.fact
        {
            let ending = exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
            let mark = if *passed {
                screen::green("✓")
            } else {
                screen::red("✗")
            };
            screen::line(format_args!(
                "  {mark} {}  {}",
                screen::harmless(command),
                screen::dim(&format!("({ending})"))
            ));
        }
    }
}

fn print_sum(pull: &Item, journal: &[Entry], took: Duration) {
    let (mut replies, mut tokens, mut thought, mut calls) = (0, 0, 0, 0);
    for entry in journal {
        match &entry.fact {
            Fact::ModelCalled {
                input,
                output,
                milliseconds,
                ..
            } => {
                replies += 1;
                tokens += input + output;
                thought += milliseconds;
            }
            Fact::ToolCalled { .. } => calls += 1,
            _ => {}
        }
    }
    let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let sum = format!(
        "Issue to pull request #{} in {}: {} ({} of it the model's), {tokens} tokens, {}.",
        pull.number(),
        time(took),
        counted(replies, "reply"),
        time(thought),
        counted(calls, "tool call"),
    );
    screen::line(screen::bold(&sum));
}

/// Takes out what a forge does not show: comments of HTML and the tags for small print.
fn as_seen(text: &str) -> String {
    let mut seen = screen::harmless(text).replace("<sub>", "").replace("</sub>", "");
    while let Some(begin) = seen.find("<!--") {
        let end = seen[begin..]
            .find("-->")
            .map_or(seen.len(), |length| begin + length + "-->".len());
        seen.replace_range(begin..end, "");
    }
    // A line that held nothing else goes with it.
    let mut lines: Vec<&str> = seen.lines().collect();
    lines.dedup_by(|next, line| next.trim_matches([' ', '|']).is_empty() && line.trim_matches([' ', '|']).is_empty());
    lines.join("\n")
}
