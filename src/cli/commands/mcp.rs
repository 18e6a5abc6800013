//! `mcp`: evaluates documents for other programs.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use rmcp::transport::stdio_pipes;

use crate::cli::commands::code;
use crate::cli::exit;
use crate::cli::session::{self, complain, configuration_or_defaults};
use crate::config::Config;
use crate::evaluation::{self, Folders, Records};
use crate::llm::error::LlmError;
use crate::llm::models::Models;
use crate::review::score::Score;
use crate::reviewer::{self, Place, Reviewer};
use crate::secret::Redactor;

/// Serves reviews over MCP until stdin ends.
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
    let (reader, writer) = stdio_pipes();
    let served = evaluation::serve(reviewer, target_score, records, folders, reader, writer);
    match Box::pin(served).await {
        Ok(()) => exit::SUCCESS.into(),
        Err(error) => {
            complain(redactor.clean(&format!("{error:#}")));
            exit::FAILED.into()
        }
    }
}

fn reviewer(config: &Config, redactor: Arc<Redactor>) -> Result<Reviewer, LlmError> {
    let (prompt, doubt) = reviewer::prompt(config.review.prompt_file.as_deref());
    if let Some(doubt) = doubt {
        complain(format_args!("review.prompt_file: {doubt}"));
    }
    let place = Place {
        guard: session::host().program,
        folder: config.state_dir.join(reviewer::FOLDER),
    };
    let critic = Models::new(&config.llm)?.critic(None)?;
    Ok(Reviewer::new(critic, &config.review, prompt.into(), &place, redactor))
}
