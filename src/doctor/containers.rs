//! Examines the executor, the engine and its images, and starts a container.

use std::time::Instant;

use super::told_apart;
use crate::config::Config;
use crate::environment::{
    self, EXECUTOR, Engine, EngineAccess, Environment, EnvironmentError, Purpose, StartRequest, find_executor,
    how_to_build,
};
use crate::finding::Finding;
use crate::http::remedy::without_semicolons;
use crate::service::instance;
use crate::task::id::{RunId, TaskId};

/// Maximum bytes that the executor in a container may answer.
const LONGEST_VERSION: usize = 1024;

/// Examines the executor, the engine and its images, and starts a container.
pub(super) async fn examine(config: &Config, access: &EngineAccess) -> Vec<Finding> {
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
        let need = if *name == section.default_environment {
            Need::EachRun
        } else {
            Need::IfChosen
        };
        images.push(image(&engine, name, environment, need).await);
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

/// Starts a container as a run does, calls the executor in it, starts another beside it if services
/// are configured, and removes both. Only reports the engine if the image of the default
/// environment is missing, or if something that is reported elsewhere keeps a container from
/// starting.
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
    let service = match Box::pin(try_containers(section, engine, environment)).await {
        Ok(service) => service,
        Err(error) => return vec![named, told_apart("container", error, "look at the Docker engine's log")],
    };
    let started = Finding::good(
        SUBJECT,
        format!(
            "{}; a container was started and removed, {:.1} s",
            engine.describe(),
            begun.elapsed().as_secs_f64()
        ),
    );
    let faulty = service
        .err()
        .map(|error| Finding::bad("services", &error, remedy_of_services(&error)));
    [Some(started), faulty].into_iter().flatten().collect()
}

/// Returns the remedy for an engine that starts the containers of runs, but not those of services.
fn remedy_of_services(error: &EnvironmentError) -> &'static str {
    let said = error.to_string();
    if said.contains("catatonit") {
        "install catatonit, which podman takes as the first process of such containers"
    } else if said.contains("docker-init") {
        "install docker-init, which is part of Docker's own packages (Debian: tini)"
    } else {
        "look at the Docker engine's log"
    }
}

/// Tries a container of a run. The inner result is that of a service's container beside it,
/// which is not tried without services.
pub(super) async fn try_containers(
    section: &environment::Config,
    engine: &Engine,
    environment: &Environment,
) -> Result<Result<(), EnvironmentError>, EnvironmentError> {
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
    let service = if section.services.is_empty() {
        Ok(())
    } else {
        engine.try_service(&start, &container).await
    };
    container.remove().await?;
    let (_, ending) = called?;
    if ending.exit_code == 0 {
        return Ok(service);
    }
    let what = format!("starting the executor in a container of {}", environment.image);
    Err(EnvironmentError::Unexpected {
        what,
        reason: format!(
            "it ended with {}: {}",
            ending.exit_code,
            without_semicolons(ending.stderr.trim())
        ),
    })
}

/// The runs that an environment is needed by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Those whose plan chooses it.
    IfChosen,
    /// All that choose no other: without the default environment no run works.
    EachRun,
}

async fn image(engine: &Engine, name: &str, environment: &Environment, need: Need) -> Finding {
    let subject = format!("environment {name}");
    let image = &environment.image;
    match engine.has_image(image).await {
        Ok(true) => Finding::good(subject, image),
        Ok(false) if environment.build.is_some() => Finding::doubtful(
            subject,
            format!("{image} is not there yet"),
            "nothing to do: it is built at the first need",
        ),
        Ok(false) => {
            let is_own = image.starts_with("coding-agent-executor-");
            let remedy = if is_own {
                how_to_build(image, name)
            } else {
                format!(
                    "pull it (docker pull {image}), or say in command_executor.environments.{name}.build how it is built"
                )
            };
            let lack = match need {
                // Each machine makes these itself.
                Need::EachRun if is_own => Some("no registry has it".to_owned()),
                Need::EachRun => {
                    let reason = engine.why_not_pullable(image).await;
                    reason.map(|reason| format!("it cannot be pulled ({reason})"))
                }
                Need::IfChosen => None,
            };
            match lack {
                Some(lack) => Finding::bad(
                    subject,
                    format!("{image}, the default environment's image, is not there, and {lack}"),
                    remedy,
                ),
                None => Finding::doubtful(
                    subject,
                    format!("{image} is not there; it will be pulled at the first need if a registry has it"),
                    remedy,
                ),
            }
        }
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
