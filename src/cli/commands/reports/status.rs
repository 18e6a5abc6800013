//! The command `status`, which lists the runs that are queued, active and finished.

use std::path::Path;
use std::process::ExitCode;

use chrono::Utc;
use serde_json::json;

use crate::agent::record::Record;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::outcome::UNSHOWN;
use crate::agent::record::saved::Unreadable;
use crate::agent::record::usage::ModelUsage;
use crate::agent::text::reviews;
use crate::agent::text::waits::{Wait, wait_of};
use crate::approval::automatic::Started;
use crate::cli::arguments::Status;
use crate::cli::exit;
use crate::cli::session::{complain, configuration_or_defaults, print};
use crate::config::Config;
use crate::plain::{one_line, printable};
use crate::review::rounds::ReviewLoop;
use crate::review::score::Score;
use crate::store::{Run, Store, StoreError};

/// Maximum number of runs that are listed.
const MOST_RUNS: u32 = 30;

/// Least widths of the columns with the state and the task of a run.
const WIDTHS: [usize; 2] = [11, 32];
/// Most characters of a title, so that a run takes one line.
const LONGEST_TITLE: usize = 60;

/// Prints the newest runs; with `--quiet` prints nothing, and the exit code tells whether a service
/// is at work.
pub async fn show(config: Option<&Path>, status: &Status) -> ExitCode {
    let config = match configuration_or_defaults(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    match read(&config).await {
        Ok(found) if status.quiet && found.is_served => exit::SUCCESS.into(),
        Ok(_) if status.quiet => exit::FAILED.into(),
        Ok(found) => {
            if status.json {
                print(found.as_json());
            } else {
                print(found.as_text());
            }
            exit::SUCCESS.into()
        }
        Err(error) => {
            if !status.quiet {
                complain(error);
            }
            exit::FAILED.into()
        }
    }
}

/// The data of the report, from the store and the configuration.
struct Found {
    runs: Vec<Listed>,
    is_served: bool,
    is_paused: bool,
    automatic_approval: Option<Started>,
    /// Days after which a run that waits is closed.
    expire_days: u32,
}

/// A run, with what was saved of it.
struct Listed {
    run: Run,
    record: Result<Record, Unreadable>,
}

impl Listed {
    /// Returns why the run is put back until a time, on one line, where that can be read.
    fn put_back_for(&self) -> Option<String> {
        self.run.not_before?;
        let record = self.record.as_ref().ok()?;
        let parked = record.waiting.parked.as_ref();
        let parked = parked.map(|parked| printable(&one_line(&parked.reason)));
        parked.or_else(|| Interruption::of_decided_end(record).map(|_| UNSHOWN.to_owned()))
    }
}

async fn read(config: &Config) -> Result<Found, StoreError> {
    let store = Store::open(config.store()).await?;
    let runs = store.runs(None, MOST_RUNS).await?;
    let listed = runs.into_iter().map(|run| Listed {
        record: Record::read(&run),
        run,
    });
    Ok(Found {
        runs: listed.collect(),
        is_served: store.has_other_workers().await?,
        is_paused: store.is_paused().await?,
        automatic_approval: store.automatic_approval().await?,
        expire_days: config.steering.expire_days,
    })
}

impl Found {
    fn as_json(&self) -> serde_json::Value {
        let runs: Vec<_> = self
            .runs
            .iter()
            .map(|listed| {
                let (run, record) = (&listed.run, listed.record.as_ref().ok());
                json!({
                    "task": run.task,
                    "run": run.id,
                    "title": run.title,
                    "state": run.state.to_string(),
                    "created_at": run.created_at,
                    "updated_at": run.updated_at,
                    "not_before": run.not_before,
                    "postponed_because": listed.put_back_for(),
                    "unreadable": listed.record.as_ref().err().map(ToString::to_string),
                    "usage": record.map(|record| &record.worked.by_model),
                    "reviews": record.map(reviews_as_json),
                    "waits_for": self.wait(listed),
                })
            })
            .collect();
        let until = self.automatic_approval.as_ref().map(|started| started.until);
        json!({
            "worker_active": self.is_served,
            "paused": self.is_paused,
            "automatic_approval_until": until,
            "runs": runs,
        })
    }

    fn as_text(&self) -> String {
        let mut lines = vec![if self.is_served {
            "a worker is active".to_owned()
        } else {
            "no worker is active".to_owned()
        }];
        if self.is_paused {
            lines.push("all runs are paused; `coding-agent resume --all` ends it".to_owned());
        }
        if let Some(Started { by, until }) = &self.automatic_approval {
            lines.push(format!(
                "automatic approval is on until {} ({by} switched it on)",
                until.format("%Y-%m-%d %H:%M UTC")
            ));
        }
        let widths = widths(self.runs.iter().map(|listed| &listed.run));
        for listed in &self.runs {
            let run = &listed.run;
            lines.push(line_of(run, widths));
            lines.extend(self.wait(listed).map(|wait| line_of_wait(run, &wait)));
            let put_back_for = listed.put_back_for();
            lines.extend(put_back_for.map(|reason| format!("            put back: {reason}")));
            match &listed.record {
                Ok(record) => {
                    lines.extend(lines_of_reviews(record));
                    lines.extend(lines_of_usage(record));
                }
                Err(unreadable) => lines.push(format!("            {unreadable}")),
            }
        }
        if self.runs.is_empty() {
            lines.push("no runs yet".to_owned());
        }
        lines.join("\n")
    }

    /// Returns what a run waits for, where that can be read.
    fn wait(&self, listed: &Listed) -> Option<Wait> {
        let record = listed.record.as_ref().ok()?;
        wait_of(listed.run.state, record, self.expire_days)
    }
}

/// Returns the reviews of plan and result that there are.
fn reviews(record: &Record) -> Vec<(&'static str, &ReviewLoop)> {
    let reviewed = [("plan", &record.reviewed.plan), ("result", &record.reviewed.result)];
    let is_made = |(_, rounds): &(&str, &ReviewLoop)| !rounds.rounds().is_empty();
    reviewed.into_iter().filter(is_made).collect()
}

/// Returns the score of each round, `null` where no review came of it.
fn reviews_as_json(record: &Record) -> serde_json::Value {
    let scores = |rounds: &ReviewLoop| -> Vec<Option<Score>> {
        rounds.rounds().iter().map(|round| round.opinion.score()).collect()
    };
    let entries = reviews(record).into_iter();
    let entries = entries.map(|(what, rounds)| (what.to_owned(), json!(scores(rounds))));
    serde_json::Value::Object(entries.collect())
}

/// Returns the widths of the columns with state and task: the widest run decides.
fn widths<'a>(runs: impl Iterator<Item = &'a Run>) -> [usize; 2] {
    let texts = runs.map(|run| [run.state.to_string(), run.task.to_string()]);
    texts.fold(WIDTHS, |[state, task], texts| {
        let [of_state, of_task] = texts.map(|text| text.chars().count());
        [state.max(of_state), task.max(of_task)]
    })
}

/// Returns a title on one line, cut to the room that it has there.
fn short(title: &str) -> String {
    let title = printable(&one_line(title));
    match title.char_indices().nth(LONGEST_TITLE) {
        Some((end, _)) => format!("{}…", title[..end].trim_end()),
        None => title,
    }
}

fn line_of(run: &Run, [state_width, task_width]: [usize; 2]) -> String {
    let minutes = (Utc::now() - run.updated_at).num_minutes().max(0);
    let wait = run
        .not_before
        .map_or_else(String::new, |until| format!(", again at {}", until.format("%H:%M UTC")));
    format!(
        "{:<state_width$} {:<task_width$} {} ({minutes} min ago{wait})",
        run.state.to_string(),
        run.task.to_string(),
        short(&run.title)
    )
}

fn line_of_wait(run: &Run, wait: &Wait) -> String {
    let Wait {
        what,
        whom,
        until,
        digest,
    } = wait;
    let until = until.map_or_else(String::new, |until| {
        format!(" until {}", until.format("%Y-%m-%d %H:%M UTC"))
    });
    let command = digest.as_ref().map_or_else(String::new, |digest| {
        format!("; `coding-agent approve {} {digest}`", run.task)
    });
    format!("            waits for {what}, by {whom}{until}{command}")
}

/// Returns a line for each review, with the scores of its rounds.
fn lines_of_reviews(record: &Record) -> Vec<String> {
    let lines = reviews(record).into_iter().map(|(what, rounds)| {
        let scores = reviews::scores(rounds).unwrap_or_default();
        format!("            review of the {what}: {scores}")
    });
    lines.collect()
}

/// Returns a line for each model in each role, if there were several models.
fn lines_of_usage(record: &Record) -> Vec<String> {
    let usage = &record.worked.by_model;
    if usage.iter().all(|entry| entry.model == usage[0].model) {
        return Vec::new();
    }
    let lines = usage.iter().map(|ModelUsage { model, role, usage }| {
        let (role, input, output) = (role.as_str(), usage.input, usage.output);
        format!("            {role} {model}: {input} tokens in, {output} out")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::record::Parked;
    use crate::task::id::RunId;
    use crate::task::state::{Judged, Stage, State};

    fn run(state: State, task: &str, title: &str) -> Run {
        Run {
            id: RunId::new(),
            task: task.parse().unwrap(),
            title: title.to_owned(),
            state,
            record: serde_json::Value::Null,
            created_at: Utc::now(),
            updated_at: Utc::now(),
            not_before: None,
        }
    }

    #[test]
    fn the_reason_of_a_wait_stands_on_one_line_and_controls_no_terminal() {
        let mut run = run(State::Working, "github:acme/widgets#1", "Greet");
        let mut record = Record::default();
        record.waiting.parked = Some(Parked {
            until: Utc::now(),
            reason: "it answered 502:\n\u{1b}[2Jbusy".to_owned(),
        });
        let put_back_for = |run: &Run| {
            let listed = Listed {
                run: run.clone(),
                record: Ok(record.clone()),
            };
            listed.put_back_for()
        };
        assert_eq!(put_back_for(&run), None);
        run.not_before = Some(Utc::now());
        assert_eq!(put_back_for(&run).as_deref(), Some("it answered 502: \u{fffd}[2Jbusy"));
    }

    #[test]
    fn the_columns_are_as_wide_as_the_widest_run_and_titles_fit_one_line() {
        let runs = [
            run(State::Paused(Stage::Working), "github:acme/widgets#1", "Greet"),
            run(
                State::AwaitingApproval(Judged::Plan),
                "github:acme/a-repository-with-a-long-name#12",
                &"word ".repeat(50),
            ),
            run(State::Done, "github:acme/widgets#2", "Two\nlines"),
        ];
        let widths = widths(runs.iter());
        let lines: Vec<String> = runs.iter().map(|run| line_of(run, widths)).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        paused:working              github:acme/widgets#1                        Greet (0 min ago)
        awaiting_approval:preparing github:acme/a-repository-with-a-long-name#12 word word word word word word word word word word word word… (0 min ago)
        done                        github:acme/widgets#2                        Two lines (0 min ago)
        ");
        assert_eq!(super::widths(std::iter::empty()), WIDTHS);
    }
}
