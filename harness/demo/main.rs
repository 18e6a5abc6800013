//! `make demo`: an issue becomes a pull request, on this machine, before your eyes.
//!
//! Everything that the program does here is real: it is the program itself, started as a process,
//! with a real container, real tool calls, a real push over HTTP and a real pull request. Only the
//! forge is a stand-in: the tests' own GitHub, which speaks its REST API on the loopback interface
//! before a real git repository. The model is yours if one answers, else recorded replies. Nothing
//! is left behind: no file, no container, no process, however the demo ends.
//!
//! With `REVIEW=1` plan and result are judged by a reviewer, which sends the first plan back.

mod handbook; // an MCP server, as a team would bring its own
mod model; // whose model it is
mod program; // the program as a process, and its end
mod progress; // what it does, line by line
mod project; // the repository and the issue
mod recorded; // what the recorded model says
mod report; // what people see at the end
mod screen; // lines and colours
mod watch; // the program's run, from its start to its end

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};

use coding_agent_harness::{build, containers, fake};
use fake::github::GitHub;
use model::Choice;
use program::Program;
use project::Project;
use watch::Ended;

/// Recorded replies come at once: more time than this only passes when something is wrong.
const RECORDED_LIMIT: Duration = Duration::from_mins(5);
/// A model at home may be slow.
const OWN_LIMIT: Duration = Duration::from_mins(45);
/// The most turns of a model: one that goes round in circles must not run up a bill.
const MOST_TURNS: u32 = 60;
/// The exit code that shells give for a command that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    // One TLS provider for all clients; a second call finds it there already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return give_up(&error.into()),
    };
    let is_handbook = std::env::args().nth(1).is_some_and(|argument| argument == "handbook");
    let shown = if is_handbook {
        runtime.block_on(handbook::serve())
    } else {
        runtime.block_on(show())
    };
    // A thread that still waits for stdin cannot be joined.
    runtime.shutdown_timeout(Duration::from_secs(1));
    shown.unwrap_or_else(|error| give_up(&error))
}

fn give_up(error: &anyhow::Error) -> ExitCode {
    eprintln!("demo: {error:#}");
    ExitCode::FAILURE
}

async fn show() -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    program::is_installed().await?;
    screen::line(screen::bold("An issue becomes a pull request, on this machine."));
    let code = perform(begun).await?;
    screen::line(screen::dim(
        "Nothing is left of it: container, forge and temporary folder are gone.",
    ));
    Ok(code)
}

/// Plays the whole piece. What it sets up ends with it.
async fn perform(begun: Instant) -> anyhow::Result<ExitCode> {
    let is_reviewed = std::env::var("REVIEW").is_ok_and(|review| !review.is_empty());
    let choice = model::choose(is_reviewed).await;
    screen::line(format_args!("\nModel    {choice}"));
    let github = GitHub::start().await;
    let project = Project::publish(&github);
    let issue = &project.issue;
    screen::line(format_args!(
        "Forge    {} speaks GitHub's REST API, with a real git repository behind it",
        github.url()
    ));
    screen::line(format_args!(
        "Issue    {}#{} \"{}\"",
        issue.repository(),
        issue.number(),
        issue.title()
    ));
    screen::line(format_args!("         {}\n", screen::dim(project::WHOSE)));

    let folder = tempfile::Builder::new()
        .prefix("coding-agent-demo-")
        .tempdir()
        .context("no temporary folder can be made")?;
    let config = folder.path().join("config.yaml");
    // JSON is YAML.
    let text = serde_json::to_string_pretty(&configuration(&github, &project, &choice, is_reviewed)?)?;
    std::fs::write(&config, text).with_context(|| format!("{} cannot be written", config.display()))?;

    project.label();
    screen::line("alice puts the label \"coding agent\" on it, and `coding-agent run` starts:");
    let mut program = Program::start(folder.path(), &config)?;
    let limit = if choice.is_recorded() {
        RECORDED_LIMIT
    } else {
        OWN_LIMIT
    };
    let ended = watch::watch(&mut program, limit).await;
    let cleared = program.stop().await;
    let is_looked_at = std::env::var_os("DASHBOARD").is_some_and(|value| !value.is_empty());
    let code = match ended {
        Ended::ByItself => report::show(&github, &project, &program, begun.elapsed()),
        Ended::Interrupted => ExitCode::from(INTERRUPTED),
        Ended::TooLong => {
            screen::line(format_args!(
                "There was no end after {} minutes, so it was stopped.",
                limit.as_secs() / 60
            ));
            report::show(&github, &project, &program, begun.elapsed());
            ExitCode::FAILURE
        }
    };
    if is_looked_at && !matches!(ended, Ended::Interrupted) {
        program::dashboard(folder.path(), &config).await?;
    }
    cleared.map(|()| code)
}

/// Returns what a person would write into `config.yaml`.
fn configuration(github: &GitHub, project: &Project, choice: &Choice, is_reviewed: bool) -> anyhow::Result<Value> {
    let myself = std::env::current_exe().context("this program does not know where it lies")?;
    Ok(json!({
        "task_sources": ["github"],
        "github": {
            "api_url": github.api_url(),
            "token": github.token(),
            "repositories": [project.name()],
        },
        "llm": choice.section(),
        "review": {
            "plan": { "enabled": is_reviewed, "on_unready": "proceed" },
            "result": { "enabled": is_reviewed },
        },
        "max_llm_process_num": MOST_TURNS,
        "mcp_servers": [{
            "mcp_server_name": "handbook",
            "command": [myself, "handbook"],
            "system_prompt": handbook::PROMPT,
        }],
        "command_executor": {
            "environments": { "python": containers::IMAGE },
            "default_environment": "python",
            "executor_path": build::executor()?,
            "timeout_seconds": 120,
        },
        "shutdown_grace_seconds": program::GRACE.as_secs(),
    }))
}
