//! `logs TASK`: prints what happened in a task, from the journal; where several machines share a
//! store, from there, which has the facts of all.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use crate::cli::arguments::Logs;
use crate::cli::exit;
use crate::cli::session::{complain, configuration_or_defaults, is_unheard, print};
use crate::config::Config;
use crate::journal::fact::{Entry, Fact};
use crate::journal::reading::{self, Reader};
use crate::store::{Address, FactFilter, Store, StoreError};
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
    let mut source = match Source::of(&config).await {
        Ok(source) => source,
        Err(error) => {
            complain(error);
            return exit::FAILED.into();
        }
    };
    let (mut is_known, mut has_ended) = (false, false);
    loop {
        let tell = |entry: Entry| {
            is_known = true;
            has_ended = matches!(entry.fact, Fact::PutDown { .. });
            if logs.raw {
                print(serde_json::to_string(&entry).unwrap_or_default());
            } else {
                print(line(&entry));
            }
        };
        if let Err(error) = source.look(&task, tell).await {
            complain(error);
            return exit::FAILED.into();
        }
        if !is_known {
            complain(format_args!(
                "nothing is known about {task}; `coding-agent status` lists the tasks there are"
            ));
            return exit::FAILED.into();
        }
        if !logs.follow || has_ended || is_unheard() {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    exit::SUCCESS.into()
}

/// Where the facts are read, from the last one that was read on.
enum Source {
    Files { journal: Reader, folder: PathBuf },
    Store { store: Store, last: u64 },
}

impl Source {
    async fn of(config: &Config) -> Result<Self, StoreError> {
        Ok(match config.store() {
            Address::Folder(_) => Self::Files {
                journal: Reader::new(&config.logs.directory),
                folder: config.logs.directory.clone(),
            },
            server @ Address::Server(_) => Self::Store {
                store: Store::open(server).await?,
                last: 0,
            },
        })
    }

    /// Tells of the task's facts that are new.
    async fn look(&mut self, task: &TaskId, mut tell: impl FnMut(Entry)) -> Result<(), String> {
        match self {
            Self::Files { journal, folder } => journal
                .look(|entry| {
                    if entry.subject.task.as_ref() == Some(task) {
                        tell(entry);
                    }
                })
                .map_err(|error| format!("the journal in {} cannot be read: {error}", folder.display())),
            Self::Store { store, last } => {
                let filter = FactFilter::OfTask(task.clone());
                let looked = reading::each_in_store(store, &filter, last, tell).await;
                looked.map_err(|error| error.to_string())
            }
        }
    }
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
