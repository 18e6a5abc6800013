//! `doctor`: one line for each thing a run needs, with the fix below it.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Style};
use serde_json::json;

use crate::cli::arguments::Doctor;
use crate::cli::exit;
use crate::cli::session::{configuration_or_defaults, environment, host, print};
use crate::doctor::view::FindingView;
use crate::doctor::{self, ModelCheck};
use crate::finding::{Finding, Verdict};
use crate::plain::one_line;
use crate::secret::Redactor;

/// Longest subject that widens the column; a longer one does not push all others to the right.
const WIDEST_SUBJECT: usize = 40;

/// Prints the findings; a bad one makes the exit code 1.
pub async fn examine(config: Option<&Path>, asked: &Doctor) -> ExitCode {
    let config = match configuration_or_defaults(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let check = if asked.model {
        ModelCheck::Reply
    } else {
        ModelCheck::Server
    };
    let findings = doctor::examine(&config, &host(), check).await;
    let redactor = Redactor::new(&config.secrets());
    if asked.json {
        let views: Vec<FindingView> = findings
            .iter()
            .map(|finding| FindingView::of(finding, &redactor))
            .collect();
        print(json!(views));
    } else {
        let is_coloured =
            std::io::stdout().is_terminal() && environment("NO_COLOR").is_none_or(|value| value.is_empty());
        print(redactor.clean(&report(&findings, is_coloured)));
    }
    if findings.iter().any(Finding::is_bad) {
        exit::FAILED.into()
    } else {
        exit::SUCCESS.into()
    }
}

fn report(findings: &[Finding], is_coloured: bool) -> String {
    let widths = findings.iter().map(|finding| finding.subject.chars().count());
    let width = widths.filter(|width| *width <= WIDEST_SUBJECT).max().unwrap_or(0);
    let mut lines = Vec::new();
    let (mut looks, mut bads) = (0, 0);
    for finding in findings {
        let (word, colour, detail, remedy) = match &finding.verdict {
            Verdict::Good { detail } => ("ok", AnsiColor::Green, detail, None),
            Verdict::Doubtful { detail, remedy } => {
                looks += 1;
                ("look", AnsiColor::Yellow, detail, Some(remedy))
            }
            Verdict::Bad { detail, remedy } => {
                bads += 1;
                ("BAD", AnsiColor::Red, detail, Some(remedy))
            }
        };
        let style = if is_coloured {
            Style::new().bold().fg_color(Some(colour.into()))
        } else {
            Style::new()
        };
        lines.push(format!(
            "{style}{word:<4}{style:#}  {:<width$}  {}",
            finding.subject,
            one_line(detail)
        ));
        if let Some(remedy) = remedy {
            lines.push(format!("      {:<width$}  -> {}", "", one_line(remedy)));
        }
    }
    lines.push(String::new());
    lines.push(match (bads, looks) {
        (0, 0) => "Everything is there.".to_owned(),
        (0, looks) => format!("Everything is there; {looks} to look at."),
        (bads, 0) => format!("{bads} to fix."),
        (bads, looks) => format!("{bads} to fix, {looks} to look at."),
    });
    lines.join("\n")
}
