//! Servers of local models: asked before they are needed, and restarted once in a while.
//!
//! A server that was restarted by one run, or for one message, is not restarted for the next, nor
//! by another process or machine, before the cool-down is over: restarting it again and again would
//! end the replies that others wait for. A server at a loopback address is its machine's own.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::{Instant, sleep};

use crate::agent::services::Services;
use crate::llm::config::health::Health;
use crate::llm::error::LlmError;
use crate::llm::model::Model;
use crate::store::{Store, StoreError};
use crate::tool::program::Program;

/// Pause between two looks at a server that is coming back.
const PAUSE: Duration = Duration::from_secs(1);
/// Time for a process to note that it restarts a server; longer than it waits for the store.
const NOTING: Duration = Duration::from_mins(3);

/// The outcome of making a model ready.
#[derive(Debug, Default)]
pub struct Readiness {
    /// The action that was taken, for the journal.
    pub done: Option<String>,
    /// Why the model is not ready.
    pub missing: Option<NotReady>,
}

/// Why a model is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotReady {
    /// Nobody but the operator can help.
    Lasts(String),
    /// It may be ready later.
    Passes(String),
}

/// A fault of a model's server.
struct Unfit {
    what: String,
    /// The remedy for the operator; `None` if the server does not answer.
    hint: Option<String>,
    /// Whether the server has loaded the model with another window than is wanted, and would do so
    /// again.
    is_window: bool,
}

impl Unfit {
    /// Tells whether nobody but the operator can help.
    fn lasts(&self, health: &Health) -> bool {
        self.is_window || (self.hint.is_some() && health.restart_command.is_empty())
    }

    fn told(self) -> String {
        match self.hint {
            Some(hint) => format!("{}; {hint}", self.what),
            None => self.what,
        }
    }
}

/// Has the server of a model load it, where the configuration says so and the server is one that is
/// looked after; restarts it where that may help.
pub async fn ensure(services: &Services, model: &Model) -> Result<Readiness, StoreError> {
    let Some(health) = services
        .settings
        .health
        .as_ref()
        .filter(|health| health.before_each_run)
    else {
        return Ok(Readiness::default());
    };
    if !model.is_kept_ready() {
        return Ok(Readiness::default());
    }
    let Err(unfit) = load(health, model).await else {
        return Ok(Readiness::default());
    };
    let restarted = restart(services, health, model).await?;
    let done = restarted.as_ref().map(|told| format!("{}: {told}", unfit.what));
    let unfit = match restarted {
        // What is out of order comes back within some seconds.
        Some(_) => match returned(health, model).await {
            Ok(()) => return Ok(Readiness { done, missing: None }),
            Err(unfit) => unfit,
        },
        None => unfit,
    };
    if model.has_fallback() {
        // Another takes its place, and says so itself.
        return Ok(Readiness { done, missing: None });
    }
    let missing = if unfit.lasts(health) {
        NotReady::Lasts(unfit.told())
    } else {
        NotReady::Passes(match restarted {
            Some(told) => format!("{}; {told}", unfit.told()),
            None => not_again(services, health, model, unfit.told()).await,
        })
    };
    Ok(Readiness {
        done,
        missing: Some(missing),
    })
}

/// Asks the server to load the model, and looks at what it loaded.
async fn load(health: &Health, model: &Model) -> Result<(), Unfit> {
    let window = match model.load().await {
        Ok(window) => window,
        // The server is there, and restarting it may bring the model back.
        Err(LlmError::Refused { what, hint }) => {
            return Err(Unfit {
                what,
                hint: Some(hint),
                is_window: false,
            });
        }
        // The work itself says so.
        Err(LlmError::NotLocal { .. }) => return Ok(()),
        Err(error) => {
            return Err(Unfit {
                what: error.to_string(),
                hint: None,
                is_window: false,
            });
        }
    };
    let Some((window, fault)) = window.and_then(|window| Some((window, health.fault_of(window)?))) else {
        return Ok(());
    };
    Err(Unfit {
        what: format!(
            "{} is loaded with a window of {window} tokens, and {fault}",
            model.describe()
        ),
        hint: Some(model.window_hint().to_owned()),
        is_window: true,
    })
}

/// Waits until the server has the model again, for as long as a restart may take.
async fn returned(health: &Health, model: &Model) -> Result<(), Unfit> {
    let end = Instant::now() + Duration::from_secs(health.restart_seconds);
    loop {
        let Err(unfit) = load(health, model).await else {
            return Ok(());
        };
        if Instant::now() + PAUSE > end {
            return Err(unfit);
        }
        sleep(PAUSE).await;
    }
}

/// Runs the command, unless there is none or the server was restarted a moment ago; returns what
/// came of it, for people.
pub(crate) async fn restart(services: &Services, health: &Health, model: &Model) -> Result<Option<String>, StoreError> {
    if health.restart_command.is_empty() {
        return Ok(None);
    }
    // Two runs that find the server down restart it once.
    let _turn = services.restarting.lock().await;
    if !begins(&services.store, &key(services, model), health).await? {
        return Ok(None);
    }
    let program = Program::new(
        health.restart_command.clone(),
        BTreeMap::new(),
        Duration::from_secs(health.restart_seconds),
        &services.settings.program,
        &services.settings.state_dir.join("restarts"),
    );
    let told = match program.answer(&services.redactor.clean("")).await {
        Ok(_) => "its server was restarted".to_owned(),
        Err(error) => format!("its server could not be restarted (llm.health.restart_command): {error}"),
    };
    Ok(Some(services.redactor.clean(&told).into_string()))
}

/// Notes under `key` that a server is restarted now, unless that was done a moment ago or another
/// process is about to; returns whether it was noted.
async fn begins(store: &Store, key: &str, health: &Health) -> Result<bool, StoreError> {
    // Of two processes that both find no restart, one at a time gets this far.
    let Some(turn) = store.take_turn(key, 1, NOTING).await? else {
        return Ok(false);
    };
    let now = Utc::now();
    let last = last_restart(store, key).await?;
    let is_due = last.is_none_or(|last| now >= end_of_cool_down(last, health));
    if is_due {
        store.remember(key, &now.to_rfc3339()).await?;
    }
    if let Err(error) = store.end_turn(&turn).await {
        tracing::debug!("the turn to restart a server runs out by itself: {error}");
    }
    Ok(is_due)
}

/// Says why the server was not restarted, behind what is wrong with it.
async fn not_again(services: &Services, health: &Health, model: &Model, what: String) -> String {
    match last_restart(&services.store, &key(services, model)).await {
        Ok(Some(last)) if !health.restart_command.is_empty() => format!(
            "{what}; its server was restarted at {} and is not again before {} (llm.health.cool_down_seconds)",
            last.format("%H:%M:%S UTC"),
            end_of_cool_down(last, health).format("%H:%M:%S UTC")
        ),
        _ => what,
    }
}

async fn last_restart(store: &Store, key: &str) -> Result<Option<DateTime<Utc>>, StoreError> {
    let text = store.remembered(key).await?;
    Ok(text.and_then(|text| text.parse().ok()))
}

fn end_of_cool_down(last: DateTime<Utc>, health: &Health) -> DateTime<Utc> {
    let seconds = i64::try_from(health.cool_down_seconds).unwrap_or(i64::MAX);
    let pause = TimeDelta::try_seconds(seconds).unwrap_or(TimeDelta::MAX);
    last.checked_add_signed(pause).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// Returns the name under which the store has the last restart of a model's server.
fn key(services: &Services, model: &Model) -> String {
    let address = model.address();
    if model.is_at_loopback() {
        format!("restart of {address} on {}", services.machine)
    } else {
        format!("restart of {address}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn of_two_workers_that_find_a_server_down_one_restarts_it_and_again_after_the_cool_down() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (
            Store::open(folder.path()).await.unwrap(),
            Store::open(folder.path()).await.unwrap(),
        );
        let health = |cool_down_seconds| Health {
            cool_down_seconds,
            ..Health::default()
        };
        let long = health(3_600);
        let (first, second) = tokio::join!(begins(&one, "a", &long), begins(&other, "a", &long));
        assert_ne!(first.unwrap(), second.unwrap());
        assert!(!begins(&other, "a", &long).await.unwrap());
        assert!(begins(&other, "b", &long).await.unwrap(), "of another server");
        assert!(begins(&other, "a", &health(0)).await.unwrap());
    }
}
