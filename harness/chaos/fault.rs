//! The faults that the program has to survive, and the moments at which they strike.

use std::time::Duration;

use anyhow::Context;
use bollard::Docker;
use tokio::process::Child;

use crate::fake::model::Trouble as ModelTrouble;
use crate::fake::traffic::Fault as Trouble;
use crate::job::Job;
use crate::site::Site;

/// The losses of its container that a run survives; one more ends it, as documented, and is no
/// fault of the program.
const SURVIVED_LOSSES: u32 = 3;

/// The interval at which requests and facts are counted.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The moment at which a fault strikes, counted from the one before or from the start of the
/// program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The forge has heard that many requests, those of git too, and has not answered the last one.
    ForgeAsked(usize),
    /// The forge has answered that many requests.
    ForgeAnswered(usize),
    ModelAsked(usize),
    ModelAnswered(usize),
    /// The journal has that many facts.
    Fact(usize),
    /// The journal has that many facts since the very first start.
    FactInAll(usize),
    After(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The program is ended with KILL.
    Kill,
    /// The forge's next so many requests of any kind go wrong.
    Forge(Trouble, usize),
    /// The forge refuses everything for so long, and says until when.
    ForgeLimited(Duration),
    /// The model's next so many replies go wrong.
    Model(ModelTrouble, usize),
    /// All connections to the Docker engine are cut, and none are taken for so long.
    DockerGone(Duration),
    /// The engine itself is restarted by the command in `ENGINE_RESTART`, and its containers end
    /// with it.
    EngineRestarted,
    /// The run's container is killed.
    ContainerKilled,
    /// The disk is full for so long.
    DiskFull(Duration),
    /// The program's clock is so many seconds off from now on.
    ClockSet(i64),
    /// Somebody writes `/agent pause`.
    PauseComment,
    /// Somebody makes the pause file.
    PauseFile,
}

/// The counts of requests and facts when the waiting began.
#[derive(Debug, Clone, Copy)]
struct Counted {
    forge: (usize, usize),
    model: (usize, usize),
    facts: usize,
}

impl Counted {
    fn now(site: &Site, job: &Job) -> Self {
        Self {
            forge: if job.kind.is_on_github() {
                site.github.counts()
            } else {
                site.gitlab.counts()
            },
            model: site.model.counts(),
            facts: site.facts(),
        }
    }
}

impl Moment {
    /// Waits until the moment has come.
    pub async fn comes(self, site: &Site, job: &Job) {
        let begun = Counted::now(site, job);
        let is_there = |now: Counted| match self {
            Self::ForgeAsked(count) => now.forge.0 >= begun.forge.0 + count,
            Self::ForgeAnswered(count) => now.forge.1 >= begun.forge.1 + count,
            Self::ModelAsked(count) => now.model.0 >= begun.model.0 + count,
            Self::ModelAnswered(count) => now.model.1 >= begun.model.1 + count,
            Self::Fact(count) => now.facts >= begun.facts + count,
            Self::FactInAll(count) => now.facts >= count,
            Self::After(_) => true,
        };
        if let Self::After(duration) = self {
            tokio::time::sleep(duration).await;
        }
        while !is_there(Counted::now(site, job)) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

impl Fault {
    /// Makes the fault happen; a fault that passes by itself has passed on return.
    pub async fn strike(self, site: &Site, job: &Job, program: &mut Child) -> anyhow::Result<()> {
        match self {
            Self::Kill => program.kill().await?,
            Self::Forge(trouble, times) if job.kind.is_on_github() => site.github.misbehaves("/**", 0, trouble, times),
            Self::Forge(trouble, times) => site.gitlab.misbehaves("/**", 0, trouble, times),
            Self::ForgeLimited(duration) if job.kind.is_on_github() => site.github.secondary_limited(duration),
            Self::ForgeLimited(duration) => site.gitlab.rate_limited(duration),
            Self::Model(trouble, times) => site.model.misbehaves(trouble, times),
            Self::EngineRestarted => restart_engine().await?,
            Self::DockerGone(duration) => {
                let proxy = site.proxy.as_ref().context("the site has no proxy")?;
                proxy.goes_away();
                tokio::time::sleep(duration).await;
                proxy.comes_back();
            }
            Self::ContainerKilled => kill_container(site, program).await?,
            Self::DiskFull(duration) => {
                let disk = site.disk.as_ref().context("the site has no disk")?;
                disk.fill()?;
                tokio::time::sleep(duration).await;
                disk.free();
            }
            Self::ClockSet(seconds) => site.clock.as_ref().context("the site has no clock")?.set(seconds)?,
            Self::PauseComment => job.comment("/agent pause"),
            Self::PauseFile => _ = site.start(&["pause", "--all"])?.wait().await?,
        }
        Ok(())
    }
}

/// Restarts the engine. Everybody's containers end with it, so nobody but the owner of the machine
/// can say how, and that it may be done.
async fn restart_engine() -> anyhow::Result<()> {
    let command = std::env::var("ENGINE_RESTART").context("ENGINE_RESTART holds no command")?;
    let ended = tokio::process::Command::new("sh")
        .args(["-c", &command])
        .status()
        .await?;
    anyhow::ensure!(ended.success(), "`{command}` ended with {ended}");
    Ok(())
}

/// Kills a container whose run survives it; waits for one, unless the program ends before.
async fn kill_container(site: &Site, program: &mut Child) -> anyhow::Result<()> {
    let docker = Docker::connect_with_defaults()?;
    while program.try_wait()?.is_none() {
        for name in site.containers().await? {
            let losses = site.losses().get(&name).copied().unwrap_or(0);
            // One that is being made or removed cannot be killed.
            if losses < SURVIVED_LOSSES && docker.kill_container(&name, None).await.is_ok() {
                site.losses().insert(name, losses + 1);
                return Ok(());
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
