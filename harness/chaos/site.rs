//! The program, configured for the fakes in a folder of its own.

use std::collections::HashMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coding_agent_harness::installation::{self, Installation, scripted};
use serde_json::{Value, json};
use tokio::process::Child;

use crate::clock::Clock;
use crate::disk::Disk;
use crate::fake::github::GitHub;
use crate::fake::gitlab::GitLab;
use crate::fake::model::Model;
use crate::model::{CLOCK, answer, is_work};
use crate::proxy::Proxy;

pub struct Site {
    pub github: GitHub,
    pub gitlab: GitLab,
    pub model: Model,
    pub proxy: Option<Proxy>,
    pub disk: Option<Disk>,
    pub clock: Option<Clock>,
    /// How long the model takes for a reply, in milliseconds.
    pub pace: Arc<AtomicU64>,
    /// How often people have allowed something.
    pub allowed: Arc<AtomicUsize>,
    /// How often the model was asked to work before anybody had allowed its plan.
    pub unallowed: Arc<AtomicUsize>,
    losses: Mutex<HashMap<String, u32>>,
    installation: Installation,
    needs: Needs,
}

/// The things that a site has besides the fakes.
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
    /// Plan and result are reviewed, and wait for people.
    pub gate: Option<Gate>,
}

/// Who lets a result through that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// Automatic approval, which is switched on before the task begins; otherwise people.
    pub is_automatic: bool,
}

/// The faults strike, and the judge looks at, the folder, the processes and the containers of the
/// program itself.
impl Deref for Site {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        &self.installation
    }
}

impl Site {
    pub async fn new(needs: Needs) -> anyhow::Result<Self> {
        let pace = Arc::new(AtomicU64::new(0));
        let (allowed, unallowed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let model = Model::answering({
            let (pace, allowed, unallowed) = (Arc::clone(&pace), Arc::clone(&allowed), Arc::clone(&unallowed));
            move |request| {
                if needs.gate.is_some() && is_work(request) && allowed.load(Ordering::SeqCst) == 0 {
                    unallowed.fetch_add(1, Ordering::SeqCst);
                }
                // The fake has threads of its own for this.
                std::thread::sleep(Duration::from_millis(pace.load(Ordering::Relaxed)));
                answer(request)
            }
        })
        .await;
        model.allows_restarts();
        let (github, gitlab) = (GitHub::start().await, GitLab::start().await);
        let mut installation = Installation::new("chaos")?;
        let path = installation.folder().to_owned();
        let disk = needs.disk.then(|| Disk::mount(path.join("disk"))).transpose()?;
        if let Some(disk) = &disk {
            installation.keep_state_in(disk.path());
        }
        std::fs::create_dir(installation.state_dir())?;
        let site = Self {
            github,
            gitlab,
            model,
            proxy: needs
                .proxy
                .then(|| Proxy::start(path.join("docker.sock")))
                .transpose()?,
            disk,
            clock: needs.clock.then(|| Clock::start(&path)).transpose()?,
            pace,
            allowed,
            unallowed,
            losses: Mutex::default(),
            installation,
            needs,
        };
        site.installation.configure(site.config()?)?;
        Ok(site)
    }

    /// Returns the configuration, but for the places of state and logs.
    pub fn config(&self) -> anyhow::Result<Value> {
        let needs = self.needs;
        let mut config = json!({
            "task_sources": ["github", "gitlab"],
            "github": { "api_url": self.github.api_url(), "token": self.github.token(), "repositories": ["acme/widgets"] },
            "gitlab": { "api_url": self.gitlab.api_url(), "token": self.gitlab.token(), "projects": ["acme/widgets"] },
            "git": { "timeout_seconds": if needs.impatient { 8 } else { 600 } },
            "llm": installation::with(scripted(&self.model, "sk-chaos-0123456789"), &json!({
                "timeout_seconds": if needs.impatient { 5 } else { 600 },
                "function_calling": needs.native,
            })),
            "command_executor": installation::with(installation::executor()?, &json!({
                "timeout_seconds": 60,
                "warm": { "python": needs.warm },
            })),
            "mcp_servers": [{
                "mcp_server_name": "clock",
                "command": ["python3", "-c", CLOCK, self.folder().display().to_string()],
            }],
            "steering": { "interval_seconds": 1 },
            "producer": { "interval_seconds": 1 },
            "consumers": needs.consumers.max(1),
        });
        if needs.gate.is_some() {
            let scored = json!({ "enabled": true, "target_score": 8.0, "max_rounds": 3, "on_unready": "fail" });
            config["review"] = json!({ "plan": scored, "result": scored });
            config["approval"] = json!({
                "required_by_default": true,
                "auto_approve": {
                    "enabled": true,
                    "tools": ["clock/now"],
                    "allowed_paths_prefix": ["kitchen-"],
                },
            });
        }
        Ok(config)
    }

    /// Starts `coding-agent` with this command, before the engine's door and by the clock of this
    /// site.
    pub fn start(&self, arguments: &[&str]) -> anyhow::Result<Child> {
        let mut command = self.command(arguments)?;
        if let Some(proxy) = &self.proxy {
            command.env("DOCKER_HOST", proxy.address());
        }
        if let Some(clock) = &self.clock {
            command.envs(clock.variables());
        }
        self.installation.start(command)
    }

    /// Returns how often the container of each name was killed; the one that takes its place has the
    /// same name.
    pub fn losses(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many facts the journal holds.
    pub fn facts(&self) -> usize {
        self.journal_lines().len()
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
        let folder = self.installation.keep(&(story + &requests.join("\n")));
        if let Some(disk) = &self.disk {
            disk.free();
            let _ = std::process::Command::new("cp")
                .arg("-a")
                .arg(disk.path())
                .arg(folder.join("kept"))
                .status();
        }
        self.disk = None;
        folder
    }
}
