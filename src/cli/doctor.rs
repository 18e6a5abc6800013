//! `doctor`: one line for each thing a run needs, with the mend.

use std::path::Path;
use std::process::ExitCode;

use super::exit;
use super::session::{forge_configuration, host, print};
use crate::doctor;
use crate::forge::Verdict;
use crate::secret::Redactor;

/// Prints the findings; a bad one makes the exit code 1.
pub async fn examine(config: Option<&Path>) -> ExitCode {
    let config = match forge_configuration(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let redactor = Redactor::new(&config.secrets());
    let host = host();
    let mut is_healthy = true;
    for finding in doctor::examine(&config, host.docker_host.as_deref(), &host.program).await {
        let line = match &finding.verdict {
            Verdict::Good { detail } => format!("ok    {}: {detail}", finding.subject),
            Verdict::Doubtful { detail, mend } => format!("look  {}: {detail} -> {mend}", finding.subject),
            Verdict::Bad { detail, mend } => {
                is_healthy = false;
                format!("BAD   {}: {detail} -> {mend}", finding.subject)
            }
        };
        print(redactor.clean(&line));
    }
    if is_healthy {
        exit::SUCCESS.into()
    } else {
        exit::FAILED.into()
    }
}
