//! `mcp`: evaluates documents for other programs.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::stdio_pipes;

use crate::agent::record::stop::Stop;
use crate::cli::commands::code;
use crate::cli::exit;
use crate::cli::session::{self, complain, configuration_or_defaults};
use crate::config::Config;
use crate::evaluation::{Evaluations, Folders, Records};
use crate::llm::error::LlmError;
use crate::llm::models::Models;
use crate::review::score::Score;
use crate::reviewer::{self, ProgramPaths, Reviewer};
use crate::secret::Redactor;
use crate::service::shutdown::{Grace, Shutdown};

/// Serves reviews over MCP until stdin ends, or until a signal to end.
pub async fn serve(config: Option<&Path>) -> ExitCode {
    let config = match configuration_or_defaults(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let redactor = Arc::new(Redactor::new(&config.secrets()));
    let reviewer = match reviewer(&config, Arc::clone(&redactor)) {
        Ok(reviewer) => reviewer,
        Err(error) => {
            complain(redactor.clean(&error.to_string()));
            return exit::CONFIGURATION.into();
        }
    };
    let target_score = Score::try_from(config.review.plan.target_score).unwrap_or(Score::EIGHT);
    let reranker = match code::reranker(&config) {
        Ok(reranker) => reranker,
        Err(reason) => {
            complain(redactor.clean(&reason));
            return exit::CONFIGURATION.into();
        }
    };
    let folders = Folders {
        index: config.index.clone(),
        reranker,
        repository: config.git.clone(),
        state_dir: config.state_dir.clone(),
    };
    let records = Records {
        store: config.store(),
        logs: config.logs.clone(),
        per_day: config.budget.per_day.clone(),
    };
    let shutdown = match Shutdown::listen() {
        Ok(shutdown) => shutdown,
        Err(error) => {
            complain(format_args!("signals cannot be listened to: {error}"));
            return exit::FAILED.into();
        }
    };
    let stop = Stop::default();
    let grace = Grace::for_clearing_up(Duration::from_secs(config.shutdown_grace_seconds));
    let (reader, writer) = stdio_pipes();
    let asked = stop.asked.clone();
    let evaluations = Evaluations::new(reviewer, target_score, records, folders);
    let served = evaluations.serve(reader, writer, asked);
    tokio::select! {
        served = Box::pin(served) => match served {
            Ok(()) => exit::SUCCESS.into(),
            Err(error) => {
                complain(redactor.clean(&format!("{error:#}")));
                exit::FAILED.into()
            }
        },
        () = shutdown.watch(stop, grace) => exit::KILLED.into(),
    }
}

fn reviewer(config: &Config, redactor: Arc<Redactor>) -> Result<Reviewer, LlmError> {
    let (prompt, doubt) = reviewer::prompt(config.review.prompt_file.as_deref());
    if let Some(doubt) = doubt {
        complain(format_args!("review.prompt_file: {doubt}"));
    }
    let paths = ProgramPaths {
        guard: session::host().program,
        folder: config.state_dir.join(reviewer::FOLDER),
    };
    let critic = Models::new(&config.llm)?.critic(None)?;
    Ok(Reviewer::new(critic, &config.review, prompt.into(), &paths, redactor))
}
