//! A machine of the cluster: namespaces of processes, mounts and network, and in them a Docker
//! engine and the program with a state folder of its own.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use coding_agent_harness::containers::{IMAGE, label};
use coding_agent_harness::installation::Installation;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::links::{Links, Target, Written};

/// The port of the database on a machine's own loopback interface.
pub const DATABASE_PORT: u16 = 5432;

const LONGEST_START: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The first process of a machine. It takes in the orphans of the others; when it ends, the kernel
/// ends all of them.
const FIRST_PROCESS: &str = "
set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
ip link set lo up
hostname \"$2\"
touch \"$1\"
while :; do sleep 3600; done
";

pub struct Machine {
    pub name: String,
    pub installation: Installation,
    /// The engine's files. They lie elsewhere than the program's, so that no process but the
    /// program's own names its folder.
    platform: TempDir,
    /// The requests by which the machine asked forges and model to write, also before it was
    /// switched off.
    pub written: Written,
    ports: Vec<(u16, Target)>,
    /// The processes and connections that run now; `None` while the machine is off.
    running: Option<Running>,
}

struct Running {
    /// The process that made the namespaces.
    unshare: Child,
    /// The process id of the first process in the namespaces, as seen from outside of them.
    first: u32,
    engine: Child,
    worker: Option<Child>,
    links: Links,
}

impl Machine {
    /// Makes a machine with this configuration, and starts its engine with the image in it.
    pub async fn new(
        name: &str,
        mut config: Value,
        ports: Vec<(u16, Target)>,
        image: &PathBuf,
    ) -> anyhow::Result<Self> {
        let installation = Installation::new("chaos")?;
        std::fs::create_dir(installation.state_dir())?;
        config["store"] =
            json!({ "url": format!("postgres://agent@127.0.0.1:{DATABASE_PORT}/postgres?sslmode=disable") });
        installation.configure(config)?;
        let mut machine = Self {
            name: name.to_owned(),
            installation,
            platform: tempfile::Builder::new().prefix("coding-agent-machine-").tempdir()?,
            written: Written::default(),
            ports,
            running: None,
        };
        machine.switch_on().await?;
        let loaded = machine
            .docker(&["load", "--quiet", "--input"])
            .arg(image)
            .output()
            .await?;
        anyhow::ensure!(
            loaded.status.success(),
            "{IMAGE} cannot be loaded: {}",
            String::from_utf8_lossy(&loaded.stderr)
        );
        Ok(machine)
    }

    fn socket(&self) -> PathBuf {
        self.platform.path().join("docker.sock")
    }

    /// Starts the machine with its engine, without the program.
    pub async fn switch_on(&mut self) -> anyhow::Result<()> {
        let is_up = self.platform.path().join("is-up");
        let _ = std::fs::remove_file(&is_up);
        // As a real machine's /run, it is empty after a start: the numbers of processes in it name
        // others now.
        let _ = std::fs::remove_dir_all(self.platform.path().join("exec"));
        let unshare = Command::new("unshare")
            .args(["--net", "--mount", "--pid", "--uts", "--fork", "--kill-child"])
            .args(["sh", "-c", FIRST_PROCESS, "sh"])
            .arg(&is_up)
            .arg(&self.name)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("unshare cannot be started")?;
        let waiting = async {
            while !is_up.exists() {
                sleep(LOOK_AGAIN).await;
            }
        };
        timeout(LONGEST_START, waiting)
            .await
            .context("a machine does not start")?;
        let first = child_of(unshare.id().context("a machine has a first process")?)?;
        let namespace = File::open(format!("/proc/{first}/ns/net"))?;
        let links = Links::listen(namespace, self.ports.clone(), &self.written).await?;
        let engine = self.engine(first).await?;
        self.running = Some(Running {
            unshare,
            first,
            engine,
            worker: None,
            links,
        });
        Ok(())
    }

    /// Ends everything on the machine at once, as a loss of power does. While what is returned is
    /// kept, and was cut before, nobody else is told.
    pub async fn switch_off(&mut self) -> anyhow::Result<Links> {
        let mut running = self.running.take().context("the machine is off")?;
        kill(running.first)?;
        running.unshare.wait().await?;
        let _ = running.engine.wait().await;
        if let Some(mut worker) = running.worker {
            let _ = worker.wait().await;
        }
        Ok(running.links)
    }

    pub fn links(&self) -> anyhow::Result<&Links> {
        Ok(&self.running.as_ref().context("the machine is off")?.links)
    }

    /// Starts `coding-agent serve`.
    pub fn start_worker(&mut self) -> anyhow::Result<()> {
        let worker = self.start(&["serve"])?;
        self.running.as_mut().context("the machine is off")?.worker = Some(worker);
        Ok(())
    }

    /// Starts a command of the program on this machine.
    pub fn start(&self, arguments: &[&str]) -> anyhow::Result<Child> {
        let running = self.running.as_ref().context("the machine is off")?;
        let program = self.installation.command(arguments)?;
        let mut command = entering(running.first);
        // Killed with the process that entered the namespaces.
        command.args(["setpriv", "--pdeathsig", "KILL"]);
        command.arg(program.get_program()).args(program.get_args()).env_clear();
        for (name, value) in program.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command
            .env("DOCKER_HOST", format!("unix://{}", self.socket().display()))
            .current_dir(self.installation.folder())
            .stdin(Stdio::null());
        self.installation.start(command.into_std())
    }

    /// Ends the program with KILL.
    pub async fn kill_worker(&mut self) -> anyhow::Result<()> {
        let running = self.running.as_mut().context("the machine is off")?;
        if let Some(mut worker) = running.worker.take() {
            if let Some(inner) = worker.id().and_then(|id| child_of(id).ok()) {
                kill(inner)?;
            }
            let _ = worker.kill().await;
        }
        Ok(())
    }

    /// Ends the program as its service manager does.
    pub async fn stop_worker(&mut self) -> anyhow::Result<()> {
        let running = self.running.as_mut().context("the machine is off")?;
        let Some(mut worker) = running.worker.take() else {
            return Ok(());
        };
        let inner = child_of(worker.id().context("the program has ended")?)?;
        signal(inner, rustix::process::Signal::TERM)?;
        let ended = timeout(Duration::from_mins(2), worker.wait()).await;
        let ended = ended.context("the program did not end when it was asked to")??;
        anyhow::ensure!(ended.success(), "the program ended with {ended}");
        Ok(())
    }

    /// Returns how the program ended, if it has ended by itself.
    pub fn ended(&mut self) -> anyhow::Result<Option<std::process::ExitStatus>> {
        let worker = self.running.as_mut().and_then(|running| running.worker.as_mut());
        worker.map_or(Ok(None), |worker| Ok(worker.try_wait()?))
    }

    /// Ends the engine with KILL. Its containers run on until it is started again.
    pub async fn kill_engine(&mut self) -> anyhow::Result<()> {
        let running = self.running.as_mut().context("the machine is off")?;
        if let Ok(inner) = child_of(running.engine.id().context("the engine has ended")?) {
            kill(inner)?;
        }
        let _ = running.engine.wait().await;
        Ok(())
    }

    pub async fn restart_engine(&mut self) -> anyhow::Result<()> {
        let first = self.running.as_ref().context("the machine is off")?.first;
        let engine = self.engine(first).await?;
        self.running.as_mut().context("the machine is off")?.engine = engine;
        Ok(())
    }

    /// Starts the engine, and returns when it answers.
    async fn engine(&self, first: u32) -> anyhow::Result<Child> {
        let (folder, socket) = (self.platform.path(), self.socket());
        let _ = std::fs::remove_file(&socket);
        let _ = std::fs::remove_file(folder.join("pid"));
        let log = File::options().create(true).append(true).open(folder.join("log"))?;
        let mut engine = entering(first)
            .args([
                "setpriv",
                "--pdeathsig",
                "KILL",
                "dockerd",
                "--bridge=none",
                "--iptables=false",
            ])
            .arg("--host")
            .arg(format!("unix://{}", socket.display()))
            .arg("--data-root")
            .arg(folder.join("data"))
            .arg("--exec-root")
            .arg(folder.join("exec"))
            .arg("--pidfile")
            .arg(folder.join("pid"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("nsenter cannot be started")?;
        let waiting = async {
            loop {
                if let Some(ended) = engine.try_wait()? {
                    anyhow::bail!(
                        "the engine ended with {ended}; its log is {}",
                        folder.join("log").display()
                    );
                }
                let asked = self.docker(&["version"]).output().await?;
                if asked.status.success() {
                    return Ok(());
                }
                sleep(LOOK_AGAIN).await;
            }
        };
        let started = timeout(LONGEST_START, waiting).await;
        started.context("the engine of a machine does not start")??;
        Ok(engine)
    }

    /// Returns `docker` for the engine of this machine.
    fn docker(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("docker");
        command
            .env("DOCKER_HOST", format!("unix://{}", self.socket().display()))
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Returns the containers of the program on this machine.
    pub async fn containers(&self) -> anyhow::Result<Vec<String>> {
        let filter = format!("label={}", label(&self.installation.state_dir()));
        let told = self
            .docker(&["ps", "--all", "--format", "{{.Names}}", "--filter", &filter])
            .output()
            .await?;
        anyhow::ensure!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        Ok(String::from_utf8_lossy(&told.stdout)
            .lines()
            .map(str::to_owned)
            .collect())
    }

    /// Kills one of the containers; says whether there was one.
    pub async fn kill_container(&self) -> anyhow::Result<bool> {
        for name in self.containers().await? {
            if self.docker(&["kill", &name]).output().await?.status.success() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            let _ = kill(running.first);
        }
    }
}

/// Returns the command that enters the namespaces of a machine; what it is to start there follows.
fn entering(first: u32) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["--target", &first.to_string(), "--net", "--mount", "--pid", "--uts"]);
    command
}

/// Returns the only child of a process.
fn child_of(process: u32) -> anyhow::Result<u32> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
    let child = children.split_whitespace().next();
    Ok(child.context("the process has no child")?.parse()?)
}

fn kill(process: u32) -> anyhow::Result<()> {
    signal(process, rustix::process::Signal::KILL)
}

fn signal(process: u32, signal: rustix::process::Signal) -> anyhow::Result<()> {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    Ok(rustix::process::kill_process(
        process.context("a process has a number")?,
        signal,
    )?)
}
