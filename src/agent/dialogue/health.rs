//! Servers of local models: asked before the work, restarted once in a while, and waited for.
//!
//! A server that was restarted by one run is not restarted by the next, nor by another process,
//! before the cool-down is over: restarting it again and again would end the replies that others
//! wait for.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::{Instant, sleep};

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::journal::fact::Fact;
use crate::llm::config::health::Health;
use crate::llm::config::role::Role;
use crate::llm::error::LlmError;
use crate::llm::model::Model;
use crate::tool::program::Program;

/// Pause between two looks at a server that is coming back.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a run waits for a server that is out of order, at first.
const WAIT_MINUTES: i64 = 2;

/// Why a model is not ready.
struct Unfit {
    what: String,
    /// What the operator is to do, where the server answers.
    hint: Option<String>,
    /// It has loaded the model with another window than is wanted, and does so again.
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

/// Has the servers of the run's models load them, where the configuration says so.
///
/// # Errors
/// The run is postponed where a server is out of order, and fails where only the operator can help.
pub(crate) async fn ensure_ready(claim: &Claim) -> Result<(), Interruption> {
    let Some(health) = &claim.services.settings.health else {
        return Ok(());
    };
    if !health.before_each_run {
        return Ok(());
    }
    for model in local_models(claim) {
        claim.unless_stopped(ready(claim, health, &model)).await?;
    }
    Ok(())
}

/// Restarts the server of a model that could not be reached in the middle of the work, if the
/// configuration says how, so that it is there when the run goes on.
pub(crate) async fn restart_after_failure(claim: &Claim, name: &str) {
    let Some(health) = &claim.services.settings.health else {
        return;
    };
    let model = local_models(claim).into_iter().find(|model| model.name() == name);
    let Some(model) = model else { return };
    let restarted = claim.unless_stopped(restart(claim, health, &model)).await;
    if let Ok(Some(told)) = restarted {
        claim.note(Fact::Warned { text: told });
    }
}

/// Returns the models of the run that are on servers of one's own, each once.
fn local_models(claim: &Claim) -> Vec<Model> {
    let models = [Role::Planner, Role::Worker, Role::Summarizer].map(|role| claim.model(role));
    let local = models.into_iter().filter(Model::is_kept_ready);
    let by_name: BTreeMap<String, Model> = local.map(|model| (model.name().to_owned(), model)).collect();
    by_name.into_values().collect()
}

async fn ready(claim: &Claim, health: &Health, model: &Model) -> Result<(), Interruption> {
    let Err(unfit) = load(health, model).await else {
        return Ok(());
    };
    let restarted = restart(claim, health, model).await?;
    if let Some(told) = &restarted {
        claim.note(Fact::Warned {
            text: format!("{}: {told}", unfit.what),
        });
    }
    let unfit = match restarted {
        // What is out of order comes back within some seconds.
        Some(_) => match returned(health, model).await {
            Ok(()) => return Ok(()),
            Err(unfit) => unfit,
        },
        None => unfit,
    };
    if model.has_fallback() {
        // Another takes its place, and says so itself.
        return Ok(());
    }
    if unfit.lasts(health) {
        return Err(Interruption::failed(unfit.told()));
    }
    let reason = match restarted {
        Some(told) => format!("{}; {told}", unfit.told()),
        None => not_again(claim, health, model, unfit.told()).await,
    };
    Err(Interruption::postponed(WAIT_MINUTES, reason))
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
async fn restart(claim: &Claim, health: &Health, model: &Model) -> Result<Option<String>, Interruption> {
    let services = &claim.services;
    if health.restart_command.is_empty() {
        return Ok(None);
    }
    // Two runs that find the server down restart it once.
    let _turn = services.restarting.lock().await;
    let last = last_restart(claim, model).await?;
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
async fn not_again(claim: &Claim, health: &Health, model: &Model, what: String) -> String {
    match last_restart(claim, model).await {
        Ok(Some(last)) if !health.restart_command.is_empty() => format!(
            "{what}; its server was restarted at {} and is not again before {} (llm.health.cool_down_seconds)",
            last.format("%H:%M:%S UTC"),
            end_of_cool_down(last, health).format("%H:%M:%S UTC")
        ),
        _ => what,
    }
}

async fn last_restart(claim: &Claim, model: &Model) -> Result<Option<DateTime<Utc>>, Interruption> {
    let text = claim.services.store.remembered(&key(model)).await?;
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
