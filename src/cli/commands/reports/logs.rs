//! `logs TASK`: prints what happened in a task, from the journal.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use crate::cli::arguments::Logs;
use crate::cli::exit;
use crate::cli::session::{complain, configuration_or_defaults, print};
use crate::journal::fact::{Entry, Fact};
use crate::journal::reading::Reader;
use crate::task::id::TaskId;

/// Interval between reads of the journal with `--follow`.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Prints the task's entries, oldest first.
pub async fn show(config: Option<&Path>, logs: &Logs) -> ExitCode {
    let task: TaskId = match logs.task.parse() {
        Ok(task) => task,
        Err(error) => {
            complain(error);
            return exit::USAGE.into();
        }
    };
    let config = match configuration_or_defaults(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let mut journal = Reader::new(&config.logs.directory);
    let (mut is_known, mut has_ended) = (false, false);
    loop {
        let looked = journal.look(|entry| {
            if entry.subject.task.as_ref() != Some(&task) {
                return;
            }
            is_known = true;
            has_ended = matches!(entry.fact, Fact::PutDown { .. });
            if logs.raw {
                print(serde_json::to_string(&entry).unwrap_or_default());
            } else {
                print(line(&entry));
            }
        });
        if let Err(error) = looked {
            complain(format_args!(
                "the journal in {} cannot be read: {error}",
                config.logs.directory.display()
            ));
            return exit::FAILED.into();
        }
        if !is_known {
            complain(format_args!(
                "nothing is known about {task}; `coding-agent status` lists the tasks there are"
            ));
            return exit::FAILED.into();
        }
        if !logs.follow || has_ended {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    exit::SUCCESS.into()
}

/// Formats an entry for people: time, fact and its fields.
fn line(entry: &Entry) -> String {
    let value = serde_json::to_value(&entry.fact).unwrap_or_default();
    let mut parts = vec![entry.at.format("%Y-%m-%d %H:%M:%S").to_string()];
    parts.extend(value["fact"].as_str().map(|fact| fact.replace('_', " ")));
    for (name, field) in value
        .as_object()
        .into_iter()
        .flatten()
        // The whole of a plan or a difference is for programs: `--raw` has it.
        .filter(|(name, _)| !["fact", "plan", "difference"].contains(&name.as_str()))
    {
        match field {
            Value::Null => {}
            Value::String(text) => parts.push(format!("{name}: {text}")),
            other => parts.push(format!("{name}: {other}")),
        }
    }
    parts.join("  ")
}
