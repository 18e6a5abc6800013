//! Examines everything that a run needs: one finding for each thing, with the fix. Repairs nothing;
//! only the folders of state and logs are made if they are missing, a store is brought up to date
//! as each command does it, and a claim is set in each repository and taken away again.

mod cluster; // the cluster, if one runs the containers
mod containers; // the engine, its images, and a container
mod edits; // in which form a model can change a file
mod embeddings; // the model that reorders places of the code index
mod folders; // what the program writes: state, store, logs
mod messengers; // Slack and LINE
mod paid; // what models were asked, counted
mod repositories; // what git can do with each repository
mod reviewers; // programs that review in the place of a model
pub mod view; // a finding, for scripts and pages

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::conversation::excerpt;
use crate::finding::{Finding, Verdict};
use crate::http::remedy::Reason;
use crate::llm::chat::PaidReply;
use crate::llm::config::Edits;
use crate::llm::config::model_config::OWN;
use crate::llm::config::role::Role;
use crate::llm::error::{LlmError, lacks_reply};
use crate::llm::model::Model;
use crate::llm::models::Models;
use crate::llm::window_measurement::WindowMeasurement;
use crate::repository;
use crate::repository::commit::signing::SigningKey;
use crate::secret::Redactor;
use crate::service::Host;
use crate::service::forges::Forges;
use crate::tool::connect::INSTALL;
use crate::tool::mcp::McpServer;
use crate::tool::{ToolError, ToolServer};

/// Most bytes of the model's reply that are shown.
const LONGEST_REPLY: usize = 60;

/// The extent to which the model is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelCheck {
    /// The server is only asked about itself, which costs nothing.
    Server,
    /// The model is also asked for a short reply and for an edit, and it is measured how much of a
    /// long prompt arrives.
    Reply,
}

/// Examines everything the configuration names, in the order in which a run needs it.
pub async fn examine(config: &Config, host: &Host, check: ModelCheck) -> Vec<Finding> {
    let mut findings = doubts(config);
    findings.extend(folders::examine(config).await);
    findings.extend(signing_key(config).await);
    findings.extend(forges(config).await);
    let access = host.engine.clone().to(&config.environment);
    findings.extend(match config.environment.cluster() {
        Some(cluster) => cluster::examine(config, cluster, &access).await,
        None => containers::examine(config, &access).await,
    });
    findings.extend(tool_servers(config, &host.program).await);
    findings.extend(models(config, check).await);
    findings.extend(reviewers::examine(config, &host.program));
    findings.extend(messengers::examine(config).await);
    findings
}

fn doubts(config: &Config) -> Vec<Finding> {
    let as_finding = |doubt: String| {
        let (what, remedy) = doubt.split_once("; ").unwrap_or((&doubt, "look at it"));
        Finding::doubtful("configuration", what, remedy)
    };
    config.doubts().into_iter().map(as_finding).collect()
}

/// Signs a test commit with the key that the configuration names.
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
                    let remotes = connected.forge.git_remotes().await;
                    findings.extend(repositories::examine(config, remotes).await);
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
            ) => match reason.strip_suffix(INSTALL) {
                Some(what) => Finding::bad(
                    subject,
                    what.trim_end_matches("; "),
                    format!("{INSTALL} in mcp_servers[].command"),
                ),
                None => Finding::bad(
                    subject,
                    &reason,
                    "run its command by hand: it should wait for input and print nothing",
                ),
            },
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
    let (mut findings, mut all_paid) = (Vec::new(), Vec::new());
    for (roles, model) in used {
        let subject = subject(&roles, &model, is_alone);
        // Only who works on the files has to be able to change them.
        let edits = roles.contains(&Role::Worker).then_some(config.llm.edits);
        let mut paid = Vec::new();
        findings.extend(one_model(&subject, &model, (check, edits), &mut paid).await);
        all_paid.extend(paid.into_iter().map(|reply| (model.role(), reply)));
    }
    findings.extend(paid::count(config, &all_paid).await);
    findings.extend(embeddings::examine(&models).await);
    findings.extend(confidential(&models).await);
    findings
}

/// Returns the name of a model in findings: its name and roles, if there are several.
fn subject(roles: &[Role], model: &Model, is_alone: bool) -> String {
    let roles: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    match (is_alone, model.name(), roles.as_slice()) {
        (true, OWN, _) => "model".to_owned(),
        (_, name, []) => format!("model {name} (fallback)"),
        (_, name, roles) => format!("model {name} ({})", roles.join(", ")),
    }
}

/// Examines a model. The replies that it takes are added to `paid`.
async fn one_model(
    subject: &str,
    model: &Model,
    (check, edits): (ModelCheck, Option<Edits>),
    paid: &mut Vec<PaidReply>,
) -> Vec<Finding> {
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
        let reply = reply(&format!("{subject}'s reply"), model, paid).await;
        let has_replied = matches!(reply.verdict, Verdict::Good { .. });
        findings.push(reply);
        if let (true, Some(edits)) = (has_replied, edits) {
            let subject = format!("{subject}'s edits");
            let tried = edits::examine(&subject, model, edits, paid).await;
            findings.push(tried.unwrap_or_else(|error| no_model(&subject, &error)));
        }
        if has_replied {
            findings.push(window(&format!("{subject}'s window"), model, paid).await);
        }
    }
    findings
}

/// Examines whether confidential work is possible, if only part of the work is confidential.
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
async fn reply(subject: &str, model: &Model, paid: &mut Vec<PaidReply>) -> Finding {
    let nothing_to_hide = Redactor::default();
    let mut chat = model.chat(Arc::from([]), false, CancellationToken::new());
    chat.send_system_prompt(&nothing_to_hide.clean("You are asked whether you are there. Answer in one word."));
    chat.send_user_message(&nothing_to_hide.clean("Reply with the word: ready"));
    let begun = Instant::now();
    match chat.get_counted_response(paid).await {
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
async fn window(subject: &str, model: &Model, paid: &mut Vec<PaidReply>) -> Finding {
    let configured = model.whole_window();
    match model.measure_window(paid).await {
        Ok(WindowMeasurement::Whole { tokens }) => Finding::good(
            subject,
            format!("a prompt of {tokens} tokens was read from its first word on; {configured} are configured"),
        ),
        Ok(WindowMeasurement::Counted { tokens, window }) => Finding::good(
            subject,
            format!(
                "the server counted a whole prompt of {tokens} tokens, and tells a window of {window}; {configured} are configured"
            ),
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
        LlmError::Unreachable {
            address,
            reason,
            is_away,
        } => Finding::bad(
            subject,
            format!("the model at {address} {}: {}", lacks_reply(*is_away), reason.what),
            reason.remedy.as_deref().unwrap_or(usual),
        ),
        // The words of a server, whatever stands in them.
        LlmError::ToolsUnsupported(_) => Finding::bad(subject, error, usual),
        LlmError::NotLocal { .. }
        | LlmError::TooLong { .. }
        | LlmError::SmallWindow { .. }
        | LlmError::TimedOut { .. }
        | LlmError::Cancelled => told_apart(subject, error, usual),
    }
}

/// Splits an error of the program, which says what is wrong and, after a semicolon, how to fix it.
/// The `usual` fix is for errors without one.
fn told_apart(subject: impl Into<String>, error: impl Display, usual: &str) -> Finding {
    let Reason { what, remedy } = Reason::of_own_words(&error.to_string());
    Finding::bad(subject, what, remedy.as_deref().unwrap_or(usual))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_taken_for_no_remedy() {
        let unreachable = |reason| LlmError::Unreachable {
            address: "http://model.test".to_owned(),
            reason,
            is_away: false,
        };
        let told = |error: &LlmError| match no_model("model", error).verdict {
            Verdict::Bad { detail, remedy } => (detail, remedy),
            verdict => panic!("{verdict:?}"),
        };
        let usual = "start the model's server, or fix the section llm of the configuration";
        let said = "it answered 500: it is down; blame it (tried four times)";
        let (detail, remedy) = told(&unreachable(said.to_owned().into()));
        let of_server = format!("the model at http://model.test does not answer as it should: {said}");
        assert_eq!((detail, remedy.as_str()), (of_server, usual));
        let (detail, remedy) = told(&LlmError::ToolsUnsupported("no; never".to_owned()));
        assert!(detail.ends_with("no; never"), "{detail}");
        assert_eq!(remedy, usual);
        let (detail, remedy) = told(&unreachable(Reason::with("refused; twice", "start its server")));
        assert!(detail.ends_with(": refused; twice"), "{detail}");
        assert_eq!(remedy, "start its server");
    }
}
