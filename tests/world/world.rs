//! One faked world: forges, model, a state folder, and the real program as a process of its own
//! between them.

pub mod clusters; // a cluster as its engine
mod containers; // what the engine holds of it
pub mod cutting_proxy; // cuts streams on their way to the engine
pub mod databases; // its store, in PostgreSQL too
pub mod facts; // what stands in its journal
pub mod journal_files; // the journal as it lies on the disk
pub mod normalized; // texts without what differs from run to run
pub mod painting; // a story of many tests about people
pub mod people; // what people do in many stories
pub mod ports; // where programs are told to listen
pub mod processes; // real processes on this machine
pub mod scripts; // what the model does in many stories
mod store_edits; // what otherwise only time, or another process, does to its store

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::fake::github::{GitHub, Item};
use crate::fake::gitlab::GitLab;
use crate::fake::model::Model;
use crate::fake::tls::{Front, Tls};

/// The image that tests run in unless they say otherwise.
pub const IMAGE: &str = "coding-agent-executor-python:latest";

pub const MODEL_KEY: &str = "sk-model-key-0123456789";

/// Long enough for anything that is going to happen, on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(4);

pub struct World {
    pub github: GitHub,
    pub gitlab: GitLab,
    pub model: Model,
    folder: TempDir,
    config: Value,
    variables: Vec<(&'static str, String)>,
    /// Before the model.
    front: Option<Front>,
}

/// How a command of the program ended.
#[derive(Debug)]
pub struct Ended {
    /// `None` where a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Expects these words on the standard output; shows everything that happened otherwise.
    #[track_caller]
    pub fn prints(&self, expected: &str, world: &World) {
        assert_eq!(self.stdout, expected, "{self:?}\n{}", world.story());
    }

    /// Returns the lines about the runs in the order of their tasks: which one ends first is
    /// chance.
    pub fn outcomes(&self) -> Vec<&str> {
        let mut outcomes: Vec<&str> = self.stdout.lines().collect();
        outcomes.sort_unstable();
        outcomes
    }
}

/// The program while it runs. Killed when dropped.
pub struct Program {
    child: Child,
}

impl World {
    /// Starts the fakes; the program is configured for GitHub and the scripted model behind the
    /// OpenAI protocol.
    pub async fn start() -> Self {
        Self::with(Model::start().await).await
    }

    /// Starts the same world with another model.
    pub async fn with(model: Model) -> Self {
        Self::of(GitHub::start().await, GitLab::start().await, model)
    }

    /// Starts the same world at another address of this machine.
    pub fn at(address: &str) -> Self {
        let listener = || std::net::TcpListener::bind((address, 0)).unwrap();
        Self::of(
            GitHub::start_on(listener()),
            GitLab::start_on(listener()),
            Model::start_on(listener()),
        )
    }

    /// Starts the same world with forges and model behind TLS. The program is not told yet whom it
    /// trusts.
    pub async fn behind(tls: &Tls) -> Self {
        let model = Model::start().await;
        let front = Front::start(tls, model.socket());
        let base_url = format!("{}/v1", front.origin());
        let mut world = Self::of(GitHub::start_behind(tls).await, GitLab::start_behind(tls).await, model);
        world.configure(|config| config["llm"]["openai"]["base_url"] = json!(base_url));
        world.front = Some(front);
        world
    }

    fn of(github: GitHub, gitlab: GitLab, model: Model) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let folder = tempfile::Builder::new()
            .prefix("coding-agent-world-")
            .tempdir()
            .unwrap();
        let mut config = json!({
            "task_sources": ["github"],
            "github": {
                "api_url": github.api_url(),
                "token": github.token(),
                "repositories": ["acme/widgets"],
            },
            "gitlab": {
                "api_url": gitlab.api_url(),
                "token": gitlab.token(),
                "projects": ["acme/widgets"],
            },
            "llm": {
                "provider": "openai",
                "function_calling": false,
                "openai": { "base_url": model.openai_address(), "api_key": MODEL_KEY, "model": "scripted" },
            },
            "command_executor": {
                "environments": { "python": IMAGE },
                "default_environment": "python",
                "executor_path": executor(),
                "timeout_seconds": 60,
            },
            "producer": { "interval_seconds": 1 },
            "consumers": 2,
        });
        if let Some(store) = databases::store_of_all() {
            config["store"] = store;
        }
        if let Some(engine) = clusters::engine_of_all() {
            config["environment"] = engine;
            // What a pod may use is reserved for it, and the cluster of the tests is one small machine.
            config["command_executor"]["resources"] = json!({ "cpu_limit": 0.4, "memory_limit": "400m" });
        }
        model.forbids(MODEL_KEY);
        model.forbids(github.token());
        model.forbids(gitlab.token());
        Self {
            github,
            gitlab,
            model,
            folder,
            config,
            variables: Vec::new(),
            front: None,
        }
    }

    /// Has the program look at the thread of a run every second.
    pub fn attentive(mut self) -> Self {
        self.configure(|config| config["steering"] = json!({ "interval_seconds": 1 }));
        self
    }

    /// Starts the same world with GitLab as the source of tasks.
    pub async fn on_gitlab() -> Self {
        let mut world = Self::start().await;
        world.configure(|config| config["task_sources"] = json!(["gitlab"]));
        world
    }

    /// Starts the same world with this configuration of the network of its containers.
    pub async fn with_network(network: Value) -> Self {
        let mut world = Self::start().await;
        world.configure(|config| config["command_executor"]["network"] = network);
        world
    }

    /// Changes the configuration.
    pub fn configure(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.config);
    }

    /// Writes a file into the world's folder, and returns its path.
    pub fn keeps(&self, name: &str, content: &str) -> String {
        let file = self.folder().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, content).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// Sets an environment variable of the program.
    pub fn sets(&mut self, name: &'static str, value: &str) {
        self.variables.push((name, value.to_owned()));
    }

    /// Returns `text` with everything that differs from run to run replaced by a name.
    pub fn settled(&self, text: &str) -> String {
        let executor = executor();
        let known = [
            (self.folder().to_str().unwrap(), "FOLDER"),
            (executor.to_str().unwrap(), "EXECUTOR"),
            (&self.github.api_url(), "GITHUB/api/v3"),
            (&self.gitlab.api_url(), "GITLAB/api/v4"),
            (self.github.url(), "GITHUB"),
            (self.gitlab.url(), "GITLAB"),
            (&self.model.address(), "MODEL"),
        ];
        known
            .iter()
            .fold(text.to_owned(), |text, (own, name)| text.replace(own, name))
    }

    /// The folder with configuration, state and logs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn state_dir(&self) -> PathBuf {
        self.folder().join("state")
    }

    /// Returns the folder for temporary files of the program and of what it starts.
    pub fn temporary(&self) -> PathBuf {
        self.folder().join("tmp")
    }

    /// Runs `coding-agent run` to its end.
    pub async fn run(&self) -> Ended {
        self.command(&["run"]).await
    }

    /// Lets the program look for work and do it, and does not expect a fault.
    pub async fn runs_without_fault(&self) {
        let ended = self.run().await;
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", self.story());
    }

    /// Runs the program in the same way, and expects the item to carry these labels then.
    pub async fn runs_to(&self, issue: &Item, labels: [&str; 1]) {
        self.runs_without_fault().await;
        assert_eq!(issue.labels(), labels, "{}", self.story());
    }

    /// Runs the program with these arguments to its end.
    pub async fn command(&self, arguments: &[&str]) -> Ended {
        self.spawn(arguments).ended().await
    }

    /// Pauses or resumes all runs by the command of that name, which has to succeed.
    pub async fn all_runs(&self, command: &str) {
        let ended = self.command(&[command, "--all"]).await;
        assert_eq!(ended.code, Some(0), "{command} --all: {ended:?}\n{}", self.story());
    }

    /// Starts the program with these arguments.
    pub fn spawn(&self, arguments: &[&str]) -> Program {
        let config = self.writes_its_configuration();
        let mut command = self.program();
        command.arg("--config").arg(&config).args(arguments);
        Program::start(command)
    }

    /// Starts the program with these arguments in the folder of its configuration, which it finds
    /// by itself.
    pub fn spawn_in_its_folder(&self, arguments: &[&str]) -> Program {
        self.writes_its_configuration();
        let mut command = self.program();
        command.args(arguments);
        Program::start(command)
    }

    /// Runs the program with these arguments to its end; what it prints goes to `stdout`.
    pub async fn prints_to(&self, stdout: impl Into<Stdio>, arguments: &[&str]) -> Ended {
        let config = self.writes_its_configuration();
        let mut command = self.program();
        command.arg("--config").arg(&config).args(arguments);
        command.stdout(stdout).stderr(Stdio::piped()).kill_on_drop(true);
        let child = command.spawn().unwrap();
        Program { child }.ended().await
    }

    /// Runs the program with these arguments to its end, with a stdout that nobody reads.
    pub async fn unheard(&self, arguments: &[&str]) -> Ended {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        self.prints_to(writer, arguments).await
    }

    /// Writes the configuration into the world's folder, and returns where.
    pub fn writes_its_configuration(&self) -> PathBuf {
        let config = self.folder().join("config.yaml");
        // JSON is YAML.
        std::fs::write(&config, serde_json::to_string_pretty(&self.config).unwrap()).unwrap();
        std::fs::set_permissions(&config, Permissions::from_mode(0o600)).unwrap();
        config
    }

    /// Prepares the program in an environment of this world's, without a configuration file.
    pub fn program(&self) -> Command {
        self.prepared(Command::new(env!("CARGO_BIN_EXE_coding-agent")))
    }

    /// Gives a command line an environment of this world's.
    pub fn prepared(&self, mut command: Command) -> Command {
        command.env_clear();
        for name in ["PATH", "DOCKER_HOST", "RUST_BACKTRACE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        std::fs::create_dir_all(self.temporary()).unwrap();
        command
            .env("HOME", self.folder())
            .env("TMPDIR", self.temporary())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder())
            .stdin(Stdio::null());
        command
    }

    /// Waits until a run's unfinished work is kept in a mirror.
    pub async fn until_kept(&self) {
        let is_kept = || {
            let mirror = self.state_dir().join("mirrors");
            let found = std::process::Command::new("find")
                .arg(mirror)
                .args(["-name", "wip"])
                .output();
            !found.unwrap().stdout.is_empty()
        };
        self.until("work that is kept", is_kept).await;
    }

    /// Waits until the program's log has a line with `words`.
    pub async fn until_logged(&self, words: &str) {
        self.until(words, || self.story().contains(words)).await;
    }

    /// Waits for something on the disk, which rings no bell.
    pub async fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let waiting = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let came = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(came.is_ok(), "waited in vain for {what}\n{}", self.story());
    }

    /// Returns the files of state and logs that hold a word.
    pub fn files_with(&self, word: &str) -> String {
        let found = std::process::Command::new("grep")
            .args(["-rla", word])
            .args([self.state_dir(), self.folder().join("logs")])
            .output()
            .unwrap();
        String::from_utf8(found.stdout).unwrap()
    }

    /// Returns the lines of the journal.
    pub fn journal(&self) -> Vec<Value> {
        let lines = journal_files::lines(&self.folder().join("logs"));
        lines
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Returns everything the program wrote about itself, for the message of a failed test.
    pub fn story(&self) -> String {
        let mut story = format!(
            "{}\n{}\n{}\n",
            self.github.timeline(),
            self.gitlab.timeline(),
            self.model.dump()
        );
        for file in std::fs::read_dir(self.folder().join("logs"))
            .into_iter()
            .flatten()
            .flatten()
        {
            if file.path().is_file() {
                story.push_str(&file.path().display().to_string());
                story.push('\n');
                story.push_str(&std::fs::read_to_string(file.path()).unwrap_or_default());
            }
        }
        story
    }

    /// Ends the test: fails on whatever is left over.
    pub async fn finish(self) {
        self.model.finish();
        let containers = self.containers().await;
        assert!(
            containers.is_empty(),
            "containers are left: {containers:?}\n{}",
            self.story()
        );
        self.remove_images().await;
        let processes = self.processes();
        assert!(processes.is_empty(), "processes are left: {processes:?}");
        let unknown = [self.github.unknown_requests(), self.gitlab.unknown_requests()].concat();
        assert!(unknown.is_empty(), "requests the forge does not know: {unknown:?}");
        let temporary: Vec<_> = std::fs::read_dir(self.temporary())
            .into_iter()
            .flatten()
            .flatten()
            .collect();
        assert!(temporary.is_empty(), "temporary files are left: {temporary:?}");
        self.assert_no_secret();
    }

    /// Returns the processes that have this world's folder in their command line.
    pub fn processes(&self) -> Vec<String> {
        let folder = self.folder().to_str().unwrap().to_owned();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(line) = std::fs::read(entry.path().join("cmdline")) else {
                continue;
            };
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(&folder) {
                found.push(line);
            }
        }
        found
    }

    /// Nothing the program wrote holds a secret. A mirror holds what the repository holds, whatever
    /// that is.
    fn assert_no_secret(&self) {
        let mut search = std::process::Command::new("grep");
        search.args(["-rlF", "--binary-files=text", "--exclude-dir=mirrors"]);
        for secret in [self.github.token(), self.gitlab.token(), MODEL_KEY] {
            search.args(["-e", secret]);
        }
        let found = search
            .arg(self.folder().join("logs"))
            .arg(self.state_dir())
            .output()
            .unwrap();
        // 1 is the answer "none"; 2 comes of a folder that is not there.
        assert_ne!(
            found.status.code(),
            Some(0),
            "{} holds a secret",
            String::from_utf8_lossy(&found.stdout)
        );
    }
}

impl Program {
    /// Starts a prepared command line.
    pub fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let child = command.spawn().unwrap();
        Self { child }
    }

    /// Waits for the end.
    pub async fn ended(self) -> Ended {
        let output = tokio::time::timeout(PATIENCE, self.child.wait_with_output()).await;
        let output = output.expect("the program did not end").unwrap();
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Takes the writing end of a piped stdin.
    pub fn stdin(&mut self) -> tokio::process::ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Waits for what must happen before the program ends; an early end fails the test with the
    /// world's story.
    pub async fn until(&mut self, world: &World, event: impl Future<Output = ()>) {
        tokio::select! {
            () = event => {}
            ended = self.child.wait() => panic!("the program ended early, with {ended:?}\n{}", world.story()),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Ends the process as the kernel does it: nothing in it runs any more.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let status = std::process::Command::new("kill")
            .args([format!("-{name}"), self.pid().to_string()])
            .status();
        assert!(status.unwrap().success());
    }

    /// Waits until the program has printed a line that contains `words`.
    pub async fn until_it_prints(&mut self, words: &str) {
        self.line_with(words).await;
    }

    /// Waits until the program has printed a line that contains `words`, and returns the line.
    pub async fn line_with(&mut self, words: &str) -> String {
        let mut lines = BufReader::new(self.child.stdout.take().unwrap()).lines();
        let found = tokio::time::timeout(PATIENCE, async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if line.contains(words) {
                    return Some(line);
                }
            }
            None
        });
        let found = found.await.unwrap();
        let found = found.unwrap_or_else(|| panic!("the program ended without saying '{words}'"));
        // The rest must not block it.
        let mut rest = lines.into_inner();
        tokio::spawn(async move { rest.read_to_end(&mut Vec::new()).await });
        found
    }
}

/// Returns the static executor that the set-up builds.
pub fn executor() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_coding-agent")).with_file_name("coding-agent-executor-static");
    assert!(path.is_file(), "{} is missing: run `make setup`", path.display());
    path
}
