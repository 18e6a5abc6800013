//! The program, configured for the fakes in a folder of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use bollard::Docker;
use bollard::query_parameters::ListContainersOptionsBuilder;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::clock::Clock;
use crate::disk::Disk;
use crate::fake::github::GitHub;
use crate::fake::gitlab::GitLab;
use crate::fake::model::Model;
use crate::model::{CLOCK, answer};
use crate::proxy::Proxy;

/// The image that everything runs in.
const IMAGE: &str = "coding-agent-executor-python:latest";

pub struct Site {
    pub github: GitHub,
    pub gitlab: GitLab,
    pub model: Model,
    pub proxy: Option<Proxy>,
    pub disk: Option<Disk>,
    pub clock: Option<Clock>,
    /// How long the model takes for a reply, in milliseconds.
    pub pace: Arc<AtomicU64>,
    folder: TempDir,
}

/// What a site has besides the fakes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is there or not, in any combination")]
pub struct Needs {
    pub proxy: bool,
    pub disk: bool,
    pub clock: bool,
    /// The program waits a few seconds for an answer, not minutes.
    pub impatient: bool,
    /// The model's tool calls come natively instead of as JSON in the text.
    pub native: bool,
    pub consumers: usize,
    /// Containers that wait for runs, where the program is a service.
    pub warm: usize,
}

impl Site {
    pub async fn new(needs: Needs) -> anyhow::Result<Self> {
        let pace = Arc::new(AtomicU64::new(0));
        let model = Model::answering({
            let pace = Arc::clone(&pace);
            move |request| {
                // The fake has threads of its own for this.
                std::thread::sleep(Duration::from_millis(pace.load(Ordering::Relaxed)));
                answer(request)
            }
        })
        .await;
        model.allows_restarts();
        let (github, gitlab) = (GitHub::start().await, GitLab::start().await);
        let folder = tempfile::Builder::new().prefix("coding-agent-chaos-").tempdir()?;
        let path = folder.path().to_owned();
        let site = Self {
            github,
            gitlab,
            model,
            proxy: needs
                .proxy
                .then(|| Proxy::start(path.join("docker.sock")))
                .transpose()?,
            disk: needs.disk.then(|| Disk::mount(path.join("disk"))).transpose()?,
            clock: needs.clock.then(|| Clock::start(&path)).transpose()?,
            pace,
            folder,
        };
        std::fs::create_dir_all(site.temporary())?;
        std::fs::create_dir_all(site.state_dir())?;
        site.configure(needs)?;
        Ok(site)
    }

    fn configure(&self, needs: Needs) -> anyhow::Result<()> {
        let config = json!({
            "task_sources": ["github", "gitlab"],
            "github": { "api_url": self.github.api_url(), "token": self.github.token(), "repositories": ["acme/widgets"] },
            "gitlab": { "api_url": self.gitlab.api_url(), "token": self.gitlab.token(), "projects": ["acme/widgets"] },
            "git": { "timeout_seconds": if needs.impatient { 8 } else { 600 } },
            "llm": {
                "timeout_seconds": if needs.impatient { 5 } else { 600 },
                "provider": "openai",
                "function_calling": needs.native,
                "openai": { "base_url": self.model.openai_address(), "api_key": "sk-chaos-0123456789", "model": "scripted" },
            },
            "command_executor": {
                "environments": { "python": IMAGE },
                "default_environment": "python",
                "executor_path": built("coding-agent-executor-static")?,
                "timeout_seconds": 60,
                "warm": { "python": needs.warm },
            },
            "mcp_servers": [{
                "mcp_server_name": "clock",
                "command": ["python3", "-c", CLOCK, self.folder().display().to_string()],
            }],
            "steering": { "interval_seconds": 1 },
            "producer": { "interval_seconds": 1 },
            "consumers": needs.consumers.max(1),
            "state_dir": self.state_dir(),
            "logs": { "directory": self.logs() },
        });
        // JSON is YAML.
        Ok(std::fs::write(self.folder().join("config.yaml"), config.to_string())?)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn state_dir(&self) -> PathBuf {
        self.home().join("state")
    }

    pub fn logs(&self) -> PathBuf {
        self.home().join("logs")
    }

    pub fn temporary(&self) -> PathBuf {
        self.folder().join("tmp")
    }

    fn home(&self) -> &Path {
        self.disk.as_ref().map_or(self.folder(), Disk::path)
    }

    /// Starts `coding-agent` with this command. What it says goes to a file; it is killed when
    /// dropped.
    pub fn start(&self, arguments: &[&str]) -> anyhow::Result<Child> {
        let said = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder().join("said.txt"))?;
        let mut command = Command::new(built("coding-agent")?);
        command.env_clear();
        for name in ["PATH", "DOCKER_HOST", "RUST_BACKTRACE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if let Some(proxy) = &self.proxy {
            command.env("DOCKER_HOST", proxy.address());
        }
        if let Some(clock) = &self.clock {
            command.envs(clock.variables());
        }
        let child = command
            .arg("--config")
            .arg(self.folder().join("config.yaml"))
            .args(arguments)
            .env("HOME", self.folder())
            .env("TMPDIR", self.temporary())
            .current_dir(self.folder())
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said)
            .kill_on_drop(true)
            .spawn();
        child.context("the program cannot be started")
    }

    /// Returns what the program has printed until now.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.folder().join("said.txt")).unwrap_or_default()
    }

    /// Returns how many facts the journal holds.
    pub fn facts(&self) -> usize {
        let files = std::fs::read_dir(self.logs()).into_iter().flatten().flatten();
        let journals = files
            .map(|file| file.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        let lines = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default().matches('\n').count();
        journals.map(lines).sum()
    }

    /// Returns the names of the containers of this site that exist, as the engine itself tells it.
    pub async fn containers(&self) -> anyhow::Result<Vec<String>> {
        let instance = coding_agent::service::instance(&self.state_dir());
        let filters = HashMap::from([("label", vec![format!("coding-agent.instance={instance}")])]);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let containers = Docker::connect_with_defaults()?.list_containers(Some(options)).await?;
        let names = containers
            .into_iter()
            .flat_map(|container| container.names.unwrap_or_default());
        Ok(names.map(|name| name.trim_start_matches('/').to_owned()).collect())
    }

    /// Returns the processes, besides the program given, that bear this site's folder in their
    /// command line.
    pub fn processes(&self) -> Vec<String> {
        let folder = self.folder().display().to_string();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(&folder) {
                found.push(line);
            }
        }
        found
    }

    /// Writes down everything that can be known about the site, and keeps its folder.
    pub fn keep(mut self, words: &str) -> PathBuf {
        let story = format!(
            "{words}\n\n{}\n{}\n{}\n",
            self.github.timeline(),
            self.gitlab.timeline(),
            self.model.dump()
        );
        let requests = [
            self.github.requests(),
            self.github.git_requests(),
            self.gitlab.requests(),
            self.gitlab.git_requests(),
        ];
        let requests: Vec<String> = requests.concat().iter().map(ToString::to_string).collect();
        let folder = self.folder().to_owned();
        let _ = std::fs::write(folder.join("story.txt"), story + &requests.join("\n"));
        if let Some(disk) = &self.disk {
            disk.free();
            let _ = std::process::Command::new("cp")
                .arg("-a")
                .arg(disk.path())
                .arg(folder.join("kept"))
                .status();
        }
        self.disk = None;
        self.folder.disable_cleanup(true);
        folder
    }
}

/// Returns a program that was built in the same profile as this one.
fn built(name: &str) -> anyhow::Result<PathBuf> {
    let path = folder_of_the_build()?.join(name);
    anyhow::ensure!(path.is_file(), "{} is missing; `make chaos` builds it", path.display());
    Ok(path)
}

/// Returns the folder that the build of this profile lies in.
pub fn folder_of_the_build() -> anyhow::Result<PathBuf> {
    let chaos = std::env::current_exe()?;
    let folder = chaos.parent().and_then(Path::parent);
    Ok(folder.context("this program lies in no build folder")?.to_owned())
}
