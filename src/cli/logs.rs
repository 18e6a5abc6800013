//! `logs TASK`: what happened, from the journal.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use super::arguments::Logs;
use super::exit;
use super::session::{complain, configuration, print};
use crate::journal::fact::{Entry, Fact};
use crate::journal::reading;
use crate::task::id::TaskId;

/// How often the journal is looked at with `--follow`.
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
    let config = match configuration(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let mut shown = 0;
    loop {
        let entries: Vec<Entry> = match reading::entries(&config.logs.directory) {
            Ok(entries) => entries
                .filter(|entry| entry.subject.task.as_ref() == Some(&task))
                .collect(),
            Err(error) => {
                complain(format_args!(
                    "the journal in {} cannot be read: {error}",
                    config.logs.directory.display()
                ));
                return exit::FAILED.into();
            }
        };
        for entry in entries.iter().skip(shown) {
            if logs.raw {
                print(serde_json::to_string(entry).unwrap_or_default());
            } else {
                print(line(entry));
            }
        }
        shown = shown.max(entries.len());
        let has_ended = matches!(
            entries.last(),
            Some(Entry {
                fact: Fact::PutDown { .. },
                ..
            })
        );
        if !logs.follow || has_ended {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    if shown == 0 {
        complain(format_args!(
            "nothing is known of {task}; `coding-agent status` lists the tasks there are"
        ));
        return exit::FAILED.into();
    }
    exit::SUCCESS.into()
}

/// Returns an entry as people read it: time, fact, and its fields.
fn line(entry: &Entry) -> String {
    let fields = serde_json::to_value(&entry.fact).unwrap_or_default();
    let mut text = entry.at.format("%Y-%m-%d %H:%M:%S").to_string();
    for (name, value) in fields.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("fact", serde_json::Value::String(fact)) => text.insert_str(19, &format!("  {}", fact.replace('_', " "))),
            (_, serde_json::Value::Null) => {}
            (name, serde_json::Value::String(value)) => text.push_str(&format!("  {name}: {value}")),
            (name, value) => text.push_str(&format!("  {name}: {value}")),
        }
    }
    text
}
