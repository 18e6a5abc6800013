//! One repository, from the label to the pull request, and what must be so at its end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use coding_agent_harness::history::{History, git};
use coding_agent_harness::installation::{self, Installation, scripted};
use serde_json::json;

use crate::fake::github::GitHub;
use crate::fake::model::{Answer, Model, Plan};

/// The longest time that one repository may take.
const PATIENCE: Duration = Duration::from_mins(20);
/// The only file that is written.
const NOTE: &str = "coding-agent-note.txt";
/// Prints what the container has of the history, and whether the checkout is clean.
const LOOK: &str = "echo \"tip $(git rev-parse HEAD)\"; echo \"unclean $(git status --porcelain | wc -l)\"; \
                    git status --porcelain | head -5";

/// When the steps were reached, from the start of the program.
pub struct Times {
    planned: Duration,
    at_work: Duration,
    delivered: Duration,
}

impl Times {
    /// Returns the cells of the table.
    pub fn seconds(&self) -> String {
        let cell = |time: Duration| format!("{:.1}", time.as_secs_f64());
        [self.planned, self.at_work, self.delivered].map(cell).join(" | ")
    }
}

/// Has the program work on an issue of this repository.
///
/// # Errors
/// If it did not come to a pull request with exactly the file that was written, upon the tip of the
/// history as it is, or if the container's checkout was not clean.
pub async fn play(history: &History) -> anyhow::Result<Times> {
    let replies = AtomicUsize::new(0);
    let model = Model::answering(move |_| match replies.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::plans(Plan::of(&["write a note"]).in_environment("python")),
        1 => Answer::calls("workspace/execute_command", json!({ "command": LOOK })),
        2 => Answer::calls("workspace/write_file", json!({ "path": NOTE, "content": "A note.\n" })),
        _ => Answer::done("The note is written."),
    })
    .await;
    let github = GitHub::start().await;
    let name = format!("histories/{}", history.name);
    let repository = github.repository(&name);
    history.publish(&repository)?;
    let installation = Installation::new("histories")?;
    installation.configure(json!({
        "task_sources": ["github"],
        "github": { "api_url": github.api_url(), "token": github.token(), "repositories": [name] },
        "llm": scripted(&model, "sk-histories-0123456789"),
        "command_executor": installation::executor()?,
    }))?;
    repository.open_issue("Write a note").label("coding agent");

    let begun = Instant::now();
    let program = installation.start_run()?;
    let output = tokio::time::timeout(PATIENCE, program.wait_with_output()).await;
    let output = output.with_context(|| format!("it did not end within {} min", PATIENCE.as_secs() / 60))??;
    let delivered = begun.elapsed();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(
        output.status.success(),
        "{}: {said}\n{}",
        output.status,
        github.timeline()
    );

    let pulls = github.pulls();
    let [pull] = pulls.as_slice() else {
        anyhow::bail!("{} pull requests were opened: {said}", pulls.len());
    };
    let bare = repository.git().path().to_owned();
    let head = pull.head_commit();
    let upon = git(&bare, &["rev-parse", &format!("{head}^")])?;
    ensure!(upon == history.tip, "it stands upon {upon}, not upon {}", history.tip);
    let changed = git(&bare, &["diff", "--name-status", &history.tip, &head])?;
    ensure!(changed == format!("A\t{NOTE}"), "it changes: {changed}");
    let requests = model.requests();
    let looked = requests.get(2).and_then(|request| request.messages.last());
    let looked = format!("{looked:?}");
    ensure!(
        looked.contains(&format!("tip {}", history.tip)) && looked.contains("unclean 0"),
        "the container's checkout is another one, or not clean: {looked}"
    );
    let exchanges = model.exchanges();
    let (Some(plan), Some(work)) = (exchanges.first(), exchanges.get(1)) else {
        anyhow::bail!("the model was not asked");
    };
    Ok(Times {
        planned: plan.arrived - begun,
        at_work: work.arrived - begun,
        delivered,
    })
}
