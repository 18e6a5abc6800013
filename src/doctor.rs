//! Examines everything that a run needs: one finding for each thing, with the fix. Repairs nothing;
//! only the state folder is made if it is missing.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::agent::workspace::source;
use crate::config::Config;
use crate::conversation::excerpt;
use crate::environment::{
    self, EXECUTOR, Engine, EngineAccess, Environment, EnvironmentError, Purpose, StartRequest, find_executor,
};
use crate::finding::{Finding, Verdict};
use crate::forge::GitRemote;
use crate::llm::config::model_config::OWN;
use crate::llm::config::role::Role;
use crate::llm::error::LlmError;
use crate::llm::model::Model;
use crate::llm::models::Models;
use crate::llm::window_measurement::WindowMeasurement;
use crate::repository;
use crate::repository::commit::signing::SigningKey;
use crate::repository::git::address::Remote;
use crate::secret::Redactor;
use crate::service::forges::Forges;
use crate::service::{Host, instance};
use crate::store::file_system;
use crate::task::id::{RunId, TaskId};
use crate::tool::mcp::McpServer;
use crate::tool::{ToolError, ToolServer};

/// Most bytes of the model's reply that are shown.
const LONGEST_REPLY: usize = 60;

/// Maximum bytes that the executor in a container may answer.
const LONGEST_VERSION: usize = 1024;

/// How much of the model is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelCheck {
    /// Only the server is asked about itself, which costs nothing.
    Server,
    /// The model is also asked for a short reply, and how much of a long prompt it gets to read.
    Reply,
}

/// Examines everything the configuration names, in the order in which a run needs it.
pub async fn examine(config: &Config, host: &Host, check: ModelCheck) -> Vec<Finding> {
    let mut findings = doubts(config);
    findings.push(state_dir(&config.state_dir));
    findings.extend(signing_key(config).await);
    findings.extend(forges(config).await);
    findings.extend(environments(config, &host.engine).await);
    findings.extend(tool_servers(config, &host.program).await);
    findings.extend(models(config, check).await);
    findings
}

fn doubts(config: &Config) -> Vec<Finding> {
    let as_finding = |doubt: String| {
        let (what, remedy) = doubt.split_once("; ").unwrap_or((&doubt, "look at it"));
        Finding::doubtful("configuration", what, remedy)
    };
    config.doubts().into_iter().map(as_finding).collect()
}

fn state_dir(path: &Path) -> Finding {
    // The parts leave out the `.` of a configured `./state`.
    let shown: PathBuf = path.components().collect();
    let probe = path.join(".doctor");
    let written = std::fs::create_dir_all(path)
        .and_then(|()| std::fs::write(&probe, b""))
        .and_then(|()| std::fs::remove_file(&probe));
    match written {
        Ok(()) => match file_system::doubt(path) {
            None => Finding::good("state directory", shown.display()),
            Some(doubt) => {
                let (what, remedy) = doubt.split_once("; ").unwrap_or((&doubt, "look at it"));
                Finding::doubtful("state directory", format!("{}: {what}", shown.display()), remedy)
            }
        },
        Err(error) => Finding::bad(
            "state directory",
            format!("{} cannot be written to: {error}", shown.display()),
            "let state_dir name a folder this user may write to",
        ),
    }
}

/// Signs a commit with the key that the configuration names.
async fn signing_key(config: &Config) -> Option<Finding> {
    const SUBJECT: &str = "signing key";
    let file = config.git.signing_key_file.as_ref()?;
    let key = match SigningKey::read(file) {
        Ok(key) => key,
        Err(reason) => {
            let text = format!("the file {} {reason}", file.display());
            return Some(told_apart(SUBJECT, text, "fix git.signing_key_file"));
        }
    };
    if let Err(error) = key.try_out(&config.git, &config.state_dir).await {
        return Some(Finding::bad(
            SUBJECT,
            error,
            "install OpenSSH's ssh-keygen (Debian: openssh-client), and give the program's user an entry in /etc/passwd",
        ));
    }
    if config.git.author_email == repository::Config::default().author_email {
        return Some(Finding::doubtful(
            SUBJECT,
            format!(
                "signs, but no account has the address {}, so a forge calls the commits unverified",
                config.git.author_email
            ),
            format!(
                "set git.author_email to a verified address of the bot's account, and give that account this signing key: {}",
                key.public()
            ),
        ));
    }
    Some(Finding::good(
        SUBJECT,
        format!(
            "signs; the account of {} needs it as signing key: {}",
            config.git.author_email,
            key.public()
        ),
    ))
}

async fn forges(config: &Config) -> Vec<Finding> {
    if config.task_sources.is_empty() {
        return vec![Finding::doubtful(
            "forges",
            "none is named, so only `run --task` works",
            "to work on issues, write `task_sources: [github]` or `[gitlab]` and fill in that section",
        )];
    }
    match Forges::connect(config).await {
        Ok(forges) => {
            let mut findings = Vec::new();
            for connected in forges.all() {
                let found = connected.forge.examine().await;
                // Without a good token every other answer would only repeat that.
                let is_known = found.first().is_some_and(|proof| !proof.is_bad());
                findings.extend(found);
                if is_known {
                    findings.extend(git(config, connected.forge.git_remotes().await).await);
                }
            }
            findings
        }
        Err(error) => vec![told_apart(
            "forges",
            error,
            "fix the section github or gitlab of the configuration",
        )],
    }
}

/// Has git reach each repository as a run does: the API may answer where git does not, for instance
/// behind a proxy of its own or with a certificate that git alone does not know.
async fn git(config: &Config, remotes: Vec<GitRemote>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for GitRemote {
        subject,
        url,
        credentials,
    } in remotes
    {
        let remote = Remote {
            url,
            login: Some(source::login(credentials)),
        };
        findings.push(match repository::remote::fetching::look(&config.git, &remote).await {
            Ok(()) => Finding::good(subject, "can be fetched"),
            Err(error) => told_apart(
                subject,
                error,
                "see that git on this machine reaches the address, as `git ls-remote` does",
            ),
        });
    }
    findings
}

async fn environments(config: &Config, access: &EngineAccess) -> Vec<Finding> {
    let section = &config.command_executor;
    let connected = Engine::connect(section, access, &instance(&config.state_dir)).await;
    let architecture = connected.as_ref().ok().and_then(Engine::architecture);
    let mut findings = vec![match find_executor(section, architecture) {
        Ok(path) => Finding::good("executor", path.display()),
        Err(reason) => told_apart("executor", reason, "name it in command_executor.executor_path"),
    }];
    let engine = match connected {
        Ok(engine) => engine,
        Err(error) => {
            findings.push(match error {
                EnvironmentError::EngineUnavailable { address, reason } => Finding::bad(
                    "Docker",
                    format!("the engine at {address} cannot be used: {reason}"),
                    "start it, let this user into the group docker (counts from the next login), or set DOCKER_HOST",
                ),
                other => told_apart("Docker", other, "look at the Docker engine's log"),
            });
            return findings;
        }
    };
    let mut images = Vec::new();
    for (name, environment) in &section.environments {
        images.push(image(&engine, name, environment).await);
    }
    for (name, service) in &section.services {
        images.push(service_image(&engine, name, &service.image).await);
    }
    let can_start = find_executor(section, architecture).is_ok() && engine.missing_runtime().is_none();
    findings.extend(container(section, &engine, can_start).await);
    let unkept = engine.unkept_limits();
    if !unkept.is_empty() {
        findings.push(Finding::doubtful(
            "limits",
            format!("the engine cannot keep {} of command_executor.resources", unkept.join(", ")),
            "let the engine have these cgroup controllers (rootless: systemd's `Delegate=cpu memory pids` for user@.service)",
        ));
    }
    match engine.missing_runtime() {
        Some(error) => findings.push(told_apart("runtime", error, "change command_executor.runtime")),
        None if section.runtime.is_empty() => {}
        None => findings.push(Finding::good("runtime", &section.runtime)),
    }
    findings.extend(images);
    findings
}

/// Starts a container as a run does, calls the executor in it, and removes it. Only names the engine
/// without the image of the default environment, or where something else that is reported keeps a
/// container from starting.
async fn container(section: &environment::Config, engine: &Engine, can_start: bool) -> Vec<Finding> {
    const SUBJECT: &str = "Docker";
    let named = Finding::good(SUBJECT, engine.describe());
    let Some(environment) = section.environments.get(&section.default_environment) else {
        return vec![named];
    };
    if !can_start || !matches!(engine.has_image(&environment.image).await, Ok(true)) {
        return vec![named];
    }
    let begun = Instant::now();
    match try_container(section, engine, environment).await {
        Ok(()) => vec![Finding::good(
            SUBJECT,
            format!(
                "{}; a container was started and removed, {:.1} s",
                engine.describe(),
                begun.elapsed().as_secs_f64()
            ),
        )],
        Err(error) => vec![named, told_apart("container", error, "look at the Docker engine's log")],
    }
}

async fn try_container(
    section: &environment::Config,
    engine: &Engine,
    environment: &Environment,
) -> Result<(), EnvironmentError> {
    let (run, executor) = (RunId::new(), engine.find_executor(&environment.image).await?);
    let start = StartRequest {
        task: &TaskId::Local {
            id: uuid::Uuid::now_v7(),
        },
        run,
        purpose: Purpose::Work,
        environment: &section.default_environment,
        image: &environment.image,
        executor: &executor,
        set_up: None,
    };
    let container = engine.start(&start).await?;
    let called = container.run(&[EXECUTOR, "--version"], tokio::io::empty(), LONGEST_VERSION);
    let called = called.await;
    container.remove().await?;
    let (_, ending) = called?;
    if ending.exit_code == 0 {
        return Ok(());
    }
    let what = format!("starting the executor in a container of {}", environment.image);
    Err(EnvironmentError::Unexpected {
        what,
        reason: format!("it ended with {}: {}", ending.exit_code, ending.stderr.trim()),
    })
}

async fn image(engine: &Engine, name: &str, environment: &Environment) -> Finding {
    let subject = format!("environment {name}");
    match engine.has_image(&environment.image).await {
        Ok(true) => Finding::good(subject, &environment.image),
        Ok(false) if environment.build.is_some() => Finding::doubtful(
            subject,
            format!("{} is not there yet", environment.image),
            "nothing to do: it is built at the first need",
        ),
        Ok(false) => Finding::doubtful(
            subject,
            format!(
                "{} is not there; it will be pulled at the first need if a registry has it",
                environment.image
            ),
            if environment.image.starts_with("coding-agent-executor-") {
                format!("build it in the folder of coding-agent's source: scripts/setup images {name}")
            } else {
                format!("pull it, or say in command_executor.environments.{name}.build how it is built")
            },
        ),
        Err(error) => told_apart(subject, error, "look at the Docker engine's log"),
    }
}

async fn service_image(engine: &Engine, name: &str, image: &str) -> Finding {
    let subject = format!("service {name}");
    match engine.has_image(image).await {
        Ok(true) => Finding::good(subject, image),
        Ok(false) => Finding::doubtful(
            subject,
            format!("{image} is not there; it will be pulled at the first need if a registry has it"),
            format!("pull it: docker pull {image}"),
        ),
        Err(error) => told_apart(subject, error, "look at the Docker engine's log"),
    }
}

async fn tool_servers(config: &Config, program: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for entry in &config.mcp_servers {
        let server: Arc<dyn ToolServer> = Arc::new(McpServer::configured(entry, program));
        let subject = format!("MCP server {}", entry.mcp_server_name);
        findings.push(match server.list().await {
            Ok(tools) if tools.is_empty() => Finding::doubtful(
                subject,
                "it has no tools",
                "look at its documentation, or take it out of mcp_servers",
            ),
            Ok(tools) => {
                let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
                Finding::good(subject, names.join(", "))
            }
            Err(
                ToolError::Away { reason, .. }
                | ToolError::Lost { reason, .. }
                | ToolError::Forbidden { reason, .. }
                | ToolError::TellModel(reason),
            ) => Finding::bad(
                subject,
                reason,
                "run its command by hand: it should wait for input and print nothing",
            ),
        });
        server.close().await;
    }
    findings
}

async fn models(config: &Config, check: ModelCheck) -> Vec<Finding> {
    let models = match Models::new(&config.llm) {
        Ok(models) => models,
        Err(error) => return vec![no_model("model", &error)],
    };
    let used = models.used();
    let is_alone = used.len() == 1;
    let mut findings = Vec::new();
    for (roles, model) in used {
        let subject = subject(&roles, &model, is_alone);
        findings.extend(one_model(&subject, &model, check).await);
    }
    findings.extend(confidential(&models).await);
    findings
}

/// Returns how findings name a model: by its name and roles, if there are several.
fn subject(roles: &[Role], model: &Model, is_alone: bool) -> String {
    let roles: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    match (is_alone, model.name(), roles.as_slice()) {
        (true, OWN, _) => "model".to_owned(),
        (_, name, []) => format!("model {name} (fallback)"),
        (_, name, roles) => format!("model {name} ({})", roles.join(", ")),
    }
}

async fn one_model(subject: &str, model: &Model, check: ModelCheck) -> Vec<Finding> {
    let (finding, answers) = match model.examine().await {
        Ok(said) => (Finding::good(subject, said), true),
        // A reply may show what the server cannot tell about itself, unless there is nobody to
        // reply.
        Err(error) => (
            no_model(subject, &error),
            !matches!(error, LlmError::Unreachable { .. } | LlmError::NotLocal { .. }),
        ),
    };
    let mut findings = vec![finding];
    if check == ModelCheck::Reply && answers {
        let reply = reply(&format!("{subject}'s reply"), model).await;
        let has_replied = matches!(reply.verdict, Verdict::Good { .. });
        findings.push(reply);
        if has_replied {
            findings.push(window(&format!("{subject}'s window"), model).await);
        }
    }
    findings
}

/// Examines whether confidential work is possible, where only a part of the work is confidential.
async fn confidential(models: &Models) -> Option<Finding> {
    const SUBJECT: &str = "confidential work";
    let part = models.confidential_part()?;
    for role in [Role::Planner, Role::Worker, Role::Summarizer] {
        let near = models.of(role, Some(&format!("{part} must stay local")));
        match near.examine().await {
            Ok(_) => {}
            // All other work is still possible.
            Err(error @ LlmError::NotLocal { .. }) => {
                let error = error.to_string();
                let (what, remedy) = error.split_once("; ").unwrap_or((&error, ""));
                return Some(Finding::doubtful(SUBJECT, what, remedy));
            }
            // Other faults of the server were reported already.
            Err(_) => return None,
        }
    }
    Some(Finding::good(
        SUBJECT,
        format!("the model is local, as it has to be for {part}"),
    ))
}

/// Asks the model for one word, in the protocol that runs use.
async fn reply(subject: &str, model: &Model) -> Finding {
    let nothing_to_hide = Redactor::default();
    let mut chat = model.chat(Arc::from([]), false, CancellationToken::new());
    chat.send_system_prompt(&nothing_to_hide.clean("You are asked whether you are there. Answer in one word."));
    chat.send_user_message(&nothing_to_hide.clean("Reply with the word: ready"));
    let begun = Instant::now();
    match chat.get_response().await {
        Ok(reply) => Finding::good(
            subject,
            format!(
                "\"{}\" after {:.1} s; {} tokens in, {} out",
                excerpt::middle_cut(reply.text.trim(), LONGEST_REPLY, None).replace('\n', " "),
                begun.elapsed().as_secs_f64(),
                reply.usage.input,
                reply.usage.output
            ),
        ),
        Err(error) => no_model(subject, &error),
    }
}

/// Measures how much of a long prompt arrives.
async fn window(subject: &str, model: &Model) -> Finding {
    let configured = model.window();
    match model.measure_window().await {
        Ok(WindowMeasurement::Whole { tokens }) => Finding::good(
            subject,
            format!("a prompt of {tokens} tokens was read from its first word on; {configured} are configured"),
        ),
        Ok(WindowMeasurement::Cut { arrived, is_silent }) => Finding::bad(
            subject,
            format!(
                "of a long prompt about {arrived} tokens arrive, and {configured} are configured; the server {}",
                if is_silent {
                    "silently drops what comes before them"
                } else {
                    "refuses longer ones"
                }
            ),
            model.window_hint(),
        ),
        Ok(WindowMeasurement::Unsure { tokens }) => Finding::doubtful(
            subject,
            format!(
                "the model does not repeat a word from the beginning of a text, so it cannot be said whether {tokens} tokens arrive"
            ),
            "nothing to do if runs go well; a model that cannot do this may be too small for the work",
        ),
        Err(error) => no_model(subject, &error),
    }
}

fn no_model(subject: &str, error: &LlmError) -> Finding {
    let usual = "start the model's server, or fix the section llm of the configuration";
    match error {
        LlmError::Refused { what, hint } => Finding::bad(subject, what, hint),
        LlmError::Truncated { sent, counted, hint } => Finding::bad(
            subject,
            format!("the prompt was cut: about {sent} tokens were sent, the server counted {counted}"),
            hint,
        ),
        LlmError::RateLimited { .. } => Finding::doubtful(subject, error, "nothing to do: runs wait until then"),
        LlmError::NotLocal { .. }
        | LlmError::Unreachable { .. }
        | LlmError::TooLong { .. }
        | LlmError::SmallWindow { .. }
        | LlmError::ToolsUnsupported(_)
        | LlmError::Cancelled => told_apart(subject, error, usual),
    }
}

/// Splits an error of ours, which says what is wrong and, after a semicolon, how to fix it. The
/// `usual` fix is for errors without one.
fn told_apart(subject: impl Into<String>, error: impl Display, usual: &str) -> Finding {
    let error = error.to_string();
    match error.split_once("; ") {
        Some((what, remedy)) => Finding::bad(subject, what, remedy),
        None => Finding::bad(subject, error, usual),
    }
}
