//! Examines the programs that review in the place of a model, without asking them anything: an
//! answer may cost money.

use std::path::Path;

use super::told_apart;
use crate::config::Config;
use crate::finding::Finding;
use crate::llm::models::Models;
use crate::reviewer::{self, ProgramPaths};

/// Tells whether each program is there, and whether it may see all work.
pub(super) fn examine(config: &Config, guard: &Path) -> Vec<Finding> {
    let Ok(models) = Models::new(&config.llm) else {
        // That was reported with the models.
        return Vec::new();
    };
    let paths = ProgramPaths {
        guard: guard.to_owned(),
        folder: config.state_dir.join(reviewer::FOLDER),
    };
    let is_used = config.review.plan.enabled || config.review.result.enabled;
    let mut findings = Vec::new();
    for named in models.programs() {
        let subject = format!("program {} (reviewer)", named.name);
        findings.push(match reviewer::program(named, &config.review, &paths).find() {
            Ok(path) => Finding::good(
                subject,
                format!("{} is there; it was not asked anything", path.display()),
            ),
            Err(error) => told_apart(subject, error, "install it, or name it with its whole path"),
        });
    }
    let part = models.confidential_part().filter(|_| is_used);
    let refused = part.and_then(|part| models.critic(Some(&format!("{part} must stay local"))).err());
    if let Some(error) = refused {
        let error = error.to_string();
        let (what, remedy) = error.split_once("; ").unwrap_or((&error, ""));
        findings.push(Finding::doubtful("review of confidential work", what, remedy));
    }
    findings
}
