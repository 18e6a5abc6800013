//! The program, configured for the fakes, with canaries wherever a secret may be.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use bollard::Docker;
use bollard::query_parameters::ListContainersOptionsBuilder;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use crate::attempt::{Attempt, MARK};
use crate::canary;
use crate::class::Class;
use crate::egress::{ALLOWED, FORBIDDEN};
use crate::fake::ear::Ear;
use crate::fake::model::{Answer, Model, Request, Said};
use crate::fake::site;
use crate::forge::{Forge, Item, Kind, Repository};
use crate::fronts::{FRONT, FRONT_PORT};

const TRIGGER: &str = "coding agent";

/// The image that everything runs in.
const IMAGE: &str = "coding-agent-executor-python:latest";

/// Longest time until all attacks of a class are over.
const PATIENCE: Duration = Duration::from_mins(10);

/// What a container's side may take with a git of its own before it is given up. An attack can wait it out a few times.
const GIT_SECONDS: u64 = 10;

/// Runs that are worked on at once. Most of them wait: for an engine, for a git that says nothing.
const SIDE_BY_SIDE: u32 = 6;

/// A server on the worker with some tools, that tells what it was given.
const PROBE: &str = include_str!("probe.py");

pub struct Site {
    pub forge: Forge,
    pub model: Model,
    /// What no container may reach, on all addresses of this machine.
    pub forbidden: site::Site,
    /// What the configuration names.
    pub allowed: site::Site,
    /// Named by the configuration as well; keeps every byte that it gets.
    pub front: Ear,
    pub targets: Vec<Target>,
    /// What lay in the home folder before the program was started.
    pub home: Vec<String>,
    folder: TempDir,
}

/// An attack with its repository and item, and what the repository was like before.
pub struct Target {
    pub attempt: Attempt,
    pub repository: Repository,
    pub item: Item,
    pub branches: Vec<(String, String)>,
}

impl Site {
    pub async fn new(kind: Kind, attempts: Vec<Attempt>) -> anyhow::Result<Self> {
        Self::with(kind, "sound", attempts).await
    }

    /// Makes a site whose tool server does what it is told, and which lets containers out to where they must not get.
    pub async fn weak(attempts: Vec<Attempt>) -> anyhow::Result<Self> {
        Self::with(Kind::GitHub, "weak", attempts).await
    }

    async fn with(kind: Kind, server: &str, attempts: Vec<Attempt>) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("coding-agent-attack-").tempdir()?;
        for path in ["marks", "tmp", "state", "logs"] {
            std::fs::create_dir_all(folder.path().join(path))?;
        }
        let (forbidden, allowed, front) = (site::Site::start_on("0.0.0.0"), site::Site::start(), Ear::start());
        let marks = folder.path().join("marks").display().to_string();
        let fill = |attempt: Attempt| {
            let mark = format!("{marks}/{}", attempt.name);
            attempt.filled(&[
                (MARK, &mark),
                (FORBIDDEN, forbidden.port()),
                (ALLOWED, allowed.address()),
                (FRONT_PORT, front.port()),
                (FRONT, &front.address()),
            ])
        };
        let attempts: Vec<Attempt> = attempts.into_iter().map(fill).collect();
        let known = attempts.clone();
        let model = Model::answering(move |request| answer(&known, request)).await;
        model.allows_restarts();
        let forge = Forge::start(kind).await;
        let targets = attempts
            .into_iter()
            .map(|attempt| Target::new(&forge, attempt, &marks))
            .collect();
        let mut site = Self {
            forge,
            model,
            forbidden,
            allowed,
            front,
            targets,
            home: Vec::new(),
            folder,
        };
        site.configure(server)?;
        site.home = names(site.folder());
        Ok(site)
    }

    fn configure(&self, server: &str) -> anyhow::Result<()> {
        let (forge, mut settings) = self.forge.config();
        if self
            .targets
            .iter()
            .any(|target| target.attempt.class == Class::Discreet)
        {
            settings["confidential_issues"] = "neutral_names".into();
        }
        let lets_out = if server == "weak" {
            self.forbidden.port()
        } else {
            self.allowed.port()
        };
        let mut named = vec![format!("localhost:{}", self.forbidden.port())];
        if server == "weak" {
            named.push(format!("evil.example:{}", self.front.port()));
        }
        let config = json!({
            "task_sources": [forge],
            forge: settings,
            "llm": {
                "provider": "openai",
                "function_calling": false,
                "openai": { "base_url": self.model.openai_address(), "api_key": canary::MODEL_KEY, "model": "scripted" },
            },
            "command_executor": {
                "environments": { "python": IMAGE },
                "default_environment": "python",
                "executor_path": built("coding-agent-executor-static")?,
                "timeout_seconds": 30,
                "network": {
                    "allow": named,
                    "allow_private": [self.allowed.address(), format!("127.0.0.2:{lets_out}"), self.front.address()],
                },
            },
            "git": { "timeout_seconds": GIT_SECONDS, "max_incoming_bytes": 50_000_000, "max_file_bytes": 2_000_000 },
            "mcp_servers": [{
                "mcp_server_name": "probe",
                "command": ["python3", "-c", PROBE, self.folder().display().to_string(), server],
                "env": { "PROBE_TOKEN": canary::SERVER },
            }],
            "producer": { "interval_seconds": 1 },
            "consumers": SIDE_BY_SIDE,
            "state_dir": self.state_dir(),
            "logs": { "directory": self.folder().join("logs") },
        });
        std::fs::write(
            self.folder().join(".netrc"),
            format!("machine localhost login x password {}\n", canary::HOME),
        )?;
        std::fs::write(self.folder().join("said.txt"), "")?;
        // JSON is YAML.
        Ok(std::fs::write(self.folder().join("config.yaml"), config.to_string())?)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn state_dir(&self) -> PathBuf {
        self.folder().join("state")
    }

    /// Runs the program until nothing is left to be done; says whether it came to that.
    pub async fn run(&self) -> anyhow::Result<bool> {
        let said = std::fs::OpenOptions::new()
            .append(true)
            .open(self.folder().join("said.txt"))?;
        let mut command = Command::new(built("coding-agent")?);
        command.env_clear();
        for name in ["PATH", "DOCKER_HOST", "RUST_BACKTRACE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let mut child = command
            .arg("--config")
            .arg(self.folder().join("config.yaml"))
            .arg("run")
            .env("HOME", self.folder())
            .env("TMPDIR", self.folder().join("tmp"))
            .env("AWS_SECRET_ACCESS_KEY", canary::ENVIRONMENT)
            .current_dir(self.folder())
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said)
            .kill_on_drop(true)
            .spawn()
            .context("the program cannot be started")?;
        Ok(tokio::time::timeout(PATIENCE, child.wait()).await.is_ok())
    }

    /// Returns the names of the containers of this site, as the engine itself tells it.
    pub async fn containers(&self) -> anyhow::Result<Vec<String>> {
        let filters = HashMap::from([("label", vec![self.label()])]);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let containers = Docker::connect_with_defaults()?.list_containers(Some(options)).await?;
        Ok(containers
            .into_iter()
            .flat_map(|container| container.names.unwrap_or_default())
            .collect())
    }

    /// Returns the label that all containers of this site bear.
    pub fn label(&self) -> String {
        format!(
            "coding-agent.instance={}",
            coding_agent::service::instance(&self.state_dir())
        )
    }

    /// Returns the processes that bear this site's folder in their command line.
    pub fn processes(&self) -> Vec<String> {
        let folder = self.folder().display().to_string();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(&folder) {
                found.push(line.chars().take(200).collect());
            }
        }
        found
    }

    /// Returns the target whose attack a request to the model belongs to.
    pub fn target_of(&self, request: &Request) -> Option<&Target> {
        let task = request.first_user_message();
        self.targets
            .iter()
            .find(|target| task.contains(&target.attempt.title()))
    }

    /// Returns the pull or merge requests that the program opened in the attack's repository.
    pub fn opened(&self, target: &Target) -> Vec<Item> {
        let own = target.item.place();
        let mut opened = self.forge.changes();
        opened.retain(|change| change.place().0 == own.0 && change.place() != own);
        opened
    }

    /// Returns every text that stands under the bot's name.
    pub fn written(&self, target: &Target) -> Vec<String> {
        let bot = self.forge.bot();
        let mut texts = target.item.comments_of(bot);
        for change in self.opened(target) {
            texts.extend([change.title(), change.text()]);
            texts.extend(change.comments_of(bot));
        }
        texts
    }

    pub fn is_delivered(&self, target: &Target) -> bool {
        match target.attempt.head {
            Some(_) => target.item.labels() == ["coding agent done"],
            None => !self.opened(target).is_empty(),
        }
    }

    /// Keeps the folder, with everything that was said.
    pub fn keep(mut self) -> PathBuf {
        let story = format!("{}\n{}\n", self.forge.timeline(), self.model.dump());
        let _ = std::fs::write(self.folder().join("story.txt"), story);
        self.folder.disable_cleanup(true);
        self.folder.path().to_owned()
    }
}

impl Target {
    fn new(forge: &Forge, attempt: Attempt, marks: &str) -> Self {
        let repository = forge.repository(&format!("acme/{}", attempt.name));
        (attempt.prepare)(&repository, &format!("{marks}/{}", attempt.name));
        let item = match &attempt.head {
            Some(head) => repository.open_change_from_fork(&attempt.title(), head),
            None => repository.open_issue(&attempt.title()),
        };
        item.body(&attempt.body);
        for (author, text) in &attempt.comments {
            item.comment(author, text);
        }
        let branches = repository.git().branches();
        let label = attempt.label.unwrap_or(TRIGGER);
        match attempt.labelled_by {
            Some(person) => item.label_by(person, label),
            None => item.label(label),
        }
        (attempt.happens)(forge, &repository, &item);
        Self {
            attempt,
            repository,
            item,
            branches,
        }
    }
}

/// What the model says: the plan, then one reply of the attack after the other, then that it is done.
fn answer(attempts: &[Attempt], request: &Request) -> Answer {
    let task = request.first_user_message();
    let Some(attempt) = attempts.iter().find(|attempt| task.contains(&attempt.title())) else {
        return Answer::says("I was asked for nothing I know.");
    };
    if is_planning(request) {
        return attempt.planned();
    }
    match attempt.replies.get(turns(request)) {
        Some(reply) => reply.clone(),
        None => Answer::done(&attempt.done),
    }
}

/// Tells whether a plan is asked for, or a better one.
pub fn is_planning(request: &Request) -> bool {
    request.system().contains("\"phase\": \"planning\"")
}

/// Returns how many replies were given until this request.
pub fn turns(request: &Request) -> usize {
    let own = request.messages.iter();
    own.filter(|said| matches!(said, Said::Assistant(..))).count()
}

pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Returns a program that was built in the same profile as this one.
fn built(name: &str) -> anyhow::Result<PathBuf> {
    let path = build()?.join(name);
    anyhow::ensure!(path.is_file(), "{} is missing; `make attack` builds it", path.display());
    Ok(path)
}

/// Returns the folder that the build of this profile lies in.
pub fn build() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent);
    Ok(folder.context("this program lies in no build folder")?.to_owned())
}
