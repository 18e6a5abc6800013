//! Servers of local models: asked before they are needed, and restarted once in a while.
//!
//! A server that was restarted by one run, or for one message, is not restarted for the next, nor
//! by another process, before the cool-down is over: restarting it again and again would end the
//! replies that others wait for.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::{Instant, sleep};

use crate::agent::services::Services;
use crate::llm::config::health::Health;
use crate::llm::error::LlmError;
use crate::llm::model::Model;
use crate::store::StoreError;
use crate::tool::program::Program;

/// Pause between two looks at a server that is coming back.
const PAUSE: Duration = Duration::from_secs(1);

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
    let last = last_restart(services, model).await?;
    let now = Utc::now();
    if last.is_some_and(|last| now < end_of_cool_down(last, health)) {
        return Ok(None);
    }
    services.store.remember(&key(model), &now.to_rfc3339()).await?;
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

/// Says why the server was not restarted, behind what is wrong with it.
async fn not_again(services: &Services, health: &Health, model: &Model, what: String) -> String {
    match last_restart(services, model).await {
        Ok(Some(last)) if !health.restart_command.is_empty() => format!(
            "{what}; its server was restarted at {} and is not again before {} (llm.health.cool_down_seconds)",
            last.format("%H:%M:%S UTC"),
            end_of_cool_down(last, health).format("%H:%M:%S UTC")
        ),
        _ => what,
    }
}

async fn last_restart(services: &Services, model: &Model) -> Result<Option<DateTime<Utc>>, StoreError> {
    let text = services.store.remembered(&key(model)).await?;
    Ok(text.and_then(|text| text.parse().ok()))
}

fn end_of_cool_down(last: DateTime<Utc>, health: &Health) -> DateTime<Utc> {
    let seconds = i64::try_from(health.cool_down_seconds).unwrap_or(i64::MAX);
    let pause = TimeDelta::try_seconds(seconds).unwrap_or(TimeDelta::MAX);
    last.checked_add_signed(pause).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

fn key(model: &Model) -> String {
    format!("restart of {}", model.address())
}
