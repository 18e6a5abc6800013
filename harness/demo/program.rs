//! The real program as a process of its own, and that nothing of it is left at the end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use bollard::Docker;
use bollard::query_parameters::RemoveContainerOptionsBuilder;
use coding_agent::journal::fact::Entry;
use coding_agent::journal::reading::Reader;
use coding_agent::plain::{agreeing, counted};
use coding_agent_harness::build;
use coding_agent_harness::containers::{self, IMAGE};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::screen;

/// How long the program may take to save and leave when it is asked to stop.
pub(crate) const GRACE: Duration = Duration::from_secs(30);

/// How long the engine may take to answer.
const ENGINE_PATIENCE: Duration = Duration::from_secs(20);

/// Looks whether everything is there, before anything is begun.
pub(crate) async fn is_installed() -> anyhow::Result<()> {
    build::program()?;
    build::executor()?;
    let docker =
        Docker::connect_with_defaults().context("the Docker engine cannot be reached; `make setup` starts it")?;
    tokio::time::timeout(ENGINE_PATIENCE, docker.inspect_image(IMAGE))
        .await
        .context("the Docker engine does not answer; `make setup` starts it")?
        .with_context(|| {
            format!("the image {IMAGE} is not there or the Docker engine does not run; `make setup` sees to both")
        })?;
    Ok(())
}

/// Shows the dashboard with the run in it, until Ctrl-C.
pub(crate) async fn dashboard(folder: &Path, config: &Path) -> anyhow::Result<()> {
    let program = build::program()?;
    screen::line("\nThe run in the dashboard, until Ctrl-C:");
    let token = folder.join("state/http-token");
    let mut child = Command::new(&program)
        .arg("--config")
        .arg(config)
        .args(["dashboard", "--listen", "127.0.0.1:0"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    let says = async {
        // It is made at the first start, before the address is said.
        while !token.exists() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let token = std::fs::read_to_string(&token).unwrap_or_default();
        screen::line(format_args!("Log in with this token: {}", screen::bold(token.trim())));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = child.wait() => return Ok(()),
        () = says => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    if let Some(id) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
        // It may have ended in this moment.
        let _ = kill_process(id, Signal::TERM);
    }
    let _ = tokio::time::timeout(GRACE, child.wait()).await;
    Ok(())
}

/// The program while it runs and after. Killed when dropped.
pub(crate) struct Program {
    child: Child,
    folder: PathBuf,
}

impl Program {
    /// Starts `coding-agent run`, with everything it keeps in `folder`.
    pub(crate) fn start(folder: &Path, config: &Path) -> anyhow::Result<Self> {
        let said = File::create(folder.join("said.txt")).context("the temporary folder cannot be written to")?;
        // The forge and the recorded model are on this machine: no proxy is to be asked for them.
        let mut direct = std::env::var("no_proxy")
            .or_else(|_| std::env::var("NO_PROXY"))
            .unwrap_or_default();
        direct.push_str(",127.0.0.1,localhost");
        let program = build::program()?;
        let child = Command::new(&program)
            .arg("--config")
            .arg(config)
            .arg("run")
            .env("no_proxy", &direct)
            .env("NO_PROXY", &direct)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said)
            // Ctrl-C reaches this program alone, which then asks that one to stop: it would take
            // two requests for haste.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        Ok(Self {
            child,
            folder: folder.to_owned(),
        })
    }

    /// Waits for the end.
    pub(crate) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Returns what the journal holds by now, oldest first.
    pub(crate) fn journal(&self) -> Vec<Entry> {
        let mut all = Vec::new();
        // Before the first fact there is no folder.
        let _ = Reader::new(&self.folder.join("logs")).look(|entry| all.push(entry));
        all
    }

    /// Returns what the program said on its terminal.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.folder.join("said.txt")).unwrap_or_default()
    }

    /// Sees to it that neither the process nor a container is left.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        // The first request is for the safe point, the second for haste; then nothing is asked any
        // more.
        for patience in [GRACE + Duration::from_secs(2), Duration::from_secs(3)] {
            self.ask_to_end();
            if tokio::time::timeout(patience, self.child.wait()).await.is_ok() {
                break;
            }
        }
        // It has ended in nearly every case: an error says no more than that.
        let _ = self.child.kill().await;
        let removed = tokio::time::timeout(ENGINE_PATIENCE, self.remove_containers()).await;
        let removed = removed.context("the Docker engine does not answer");
        let count = removed
            .flatten()
            .context("the container of this run could not be removed")?;
        if count > 0 {
            screen::line(format_args!(
                "{} {} left over and {} been removed.",
                counted(count, "container"),
                agreeing(count, "was", "were"),
                agreeing(count, "has", "have")
            ));
        }
        Ok(())
    }

    fn ask_to_end(&self) {
        let id = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        if let Some(id) = id {
            // It may have ended in this moment.
            let _ = kill_process(id, Signal::TERM);
        }
    }

    async fn remove_containers(&self) -> anyhow::Result<usize> {
        let docker = Docker::connect_with_defaults()?;
        let containers = containers::of(&self.folder.join("state")).await?;
        for id in containers.iter().filter_map(|container| container.id.as_deref()) {
            let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            docker.remove_container(id, Some(options)).await?;
        }
        Ok(containers.len())
    }
}
