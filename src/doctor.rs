//! Is everything there that a run needs? One finding for each thing, with the mend. Changes nothing.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use crate::config::Config;
use crate::environment::Environment;
use crate::environment::docker::Docker;
use crate::forge::{Finding, Verdict};
use crate::llm::chat::Model;
use crate::service::forges::Forges;
use crate::service::instance;
use crate::tool::ToolServer;
use crate::tool::mcp::McpServer;

/// Examines everything the configuration names, in the order in which a run needs it.
pub async fn examine(config: &Config, docker_host: Option<&str>, program: &Path) -> Vec<Finding> {
    let mut findings = vec![state_dir(&config.state_dir)];
    findings.extend(forges(config).await);
    findings.extend(environments(config, docker_host).await);
    findings.extend(tool_servers(config, program).await);
    findings.push(model(config).await);
    findings
}

fn state_dir(path: &Path) -> Finding {
    let probe = path.join(".doctor");
    let written = std::fs::create_dir_all(path)
        .and_then(|()| std::fs::write(&probe, b""))
        .and_then(|()| std::fs::remove_file(&probe));
    match written {
        Ok(()) => good("state directory", path.display()),
        Err(error) => bad(
            "state directory",
            format!("{} cannot be written to: {error}", path.display()),
            "let state_dir name a folder this user may write to",
        ),
    }
}

async fn forges(config: &Config) -> Vec<Finding> {
    match Forges::connect(config).await {
        Ok(forges) => {
            let mut findings = Vec::new();
            for connected in forges.all() {
                findings.extend(connected.forge.examine().await);
            }
            findings
        }
        Err(error) => vec![bad(
            "forges",
            error,
            "mend the section github or gitlab of the configuration",
        )],
    }
}

async fn environments(config: &Config, docker_host: Option<&str>) -> Vec<Finding> {
    let section = &config.command_executor;
    let mut findings = vec![match section.executor_file() {
        Ok(path) => good("executor", path.display()),
        Err(reason) => bad(
            "executor",
            reason,
            "build it, or name it in command_executor.executor_path",
        ),
    }];
    let docker = match Docker::connect(section, docker_host, &instance(&config.state_dir)).await {
        Ok(docker) => docker,
        Err(error) => {
            findings.push(bad(
                "Docker",
                error,
                "start the Docker engine, let this user into its group, or set DOCKER_HOST",
            ));
            return findings;
        }
    };
    findings.push(good("Docker", docker.describe()));
    for (name, environment) in &section.environments {
        findings.push(image(&docker, name, environment).await);
    }
    findings
}

async fn image(docker: &Docker, name: &str, environment: &Environment) -> Finding {
    let subject = format!("environment {name}");
    match docker.has_image(&environment.image).await {
        Ok(true) => good(subject, &environment.image),
        Ok(false) if environment.build.is_some() => doubtful(
            subject,
            format!("{} is not there yet", environment.image),
            "nothing to do: it is built at the first need",
        ),
        Ok(false) => doubtful(
            subject,
            format!(
                "{} is not there; it will be pulled at the first need if a registry has it",
                environment.image
            ),
            format!("build it: docker compose --profile executor-build build executor-{name}"),
        ),
        Err(error) => bad(subject, error, "look at the Docker engine's log"),
    }
}

async fn tool_servers(config: &Config, program: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for entry in &config.mcp_servers {
        let server: Arc<dyn ToolServer> = Arc::new(McpServer::configured(entry, program));
        let subject = format!("MCP server {}", entry.mcp_server_name);
        findings.push(match server.list().await {
            Ok(tools) if tools.is_empty() => doubtful(
                subject,
                "it has no tools",
                "look at its documentation, or take it out of mcp_servers",
            ),
            Ok(tools) => {
                let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
                good(subject, names.join(", "))
            }
            Err(error) => bad(subject, error, "run its command by hand; its stderr is in the log"),
        });
        server.close().await;
    }
    findings
}

async fn model(config: &Config) -> Finding {
    let model = match Model::new(&config.llm) {
        Ok(model) => model,
        Err(error) => return bad("model", error, "mend the section llm of the configuration"),
    };
    match model.examine().await {
        Ok(said) => good(
            "model",
            format!("{}: {said}; window {} tokens", model.describe(), model.window()),
        ),
        Err(error) => bad(
            "model",
            error,
            "start the model's server, or mend the section llm of the configuration",
        ),
    }
}

fn good(subject: impl Into<String>, detail: impl Display) -> Finding {
    Finding {
        subject: subject.into(),
        verdict: Verdict::Good {
            detail: detail.to_string(),
        },
    }
}

fn doubtful(subject: impl Into<String>, detail: impl Display, mend: impl Display) -> Finding {
    Finding {
        subject: subject.into(),
        verdict: Verdict::Doubtful {
            detail: detail.to_string(),
            mend: mend.to_string(),
        },
    }
}

fn bad(subject: impl Into<String>, detail: impl Display, mend: impl Display) -> Finding {
    Finding {
        subject: subject.into(),
        verdict: Verdict::Bad {
            detail: detail.to_string(),
            mend: mend.to_string(),
        },
    }
}
