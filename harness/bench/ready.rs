//! How long people wait for an environment: from the moment the plan's reply has left to the start
//! of the first command in the container. The floor is what the engine's own command line needs for
//! a bare container with the same limits.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use coding_agent_harness::containers::IMAGE;
use serde_json::json;

use crate::fake::model::{Answer, Exchange, Model, Plan, Request};
use crate::figure::Figure;
use crate::scale::Scale;
use crate::site::{Site, until};
use crate::turns::{file, milliseconds};

/// The number of the model's replies in one run.
const REPLIES: usize = 4;
/// The nanoseconds since 1970, by the clock that the container shares with this machine.
pub const CLOCK: &str = "date +%s%N";
/// The limits of the program's containers, as options of `docker run`.
pub const LIMITS: [&str; 9] = [
    "--network=none",
    "--memory=4g",
    "--cpus=2",
    "--pids-limit=512",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--init",
    "--rm",
    "--entrypoint=sleep",
];

pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let runs = scale.of(20, 2);
    Ok(vec![cold(runs).await?, warm(runs).await?])
}

/// Returns a model that has each run look at the clock.
async fn model() -> Model {
    let replies = AtomicUsize::new(0);
    Model::answering(move |_| match replies.fetch_add(1, Ordering::Relaxed) % REPLIES {
        0 => Answer::plans(Plan::of(&["look at the clock"]).in_environment("python")),
        1 => Answer::calls("workspace/execute_command", json!({ "command": CLOCK })),
        2 => Answer::calls("workspace/write_file", file("A line.\n")),
        _ => Answer::done("The clock was looked at."),
    })
    .await
}

async fn cold(runs: usize) -> anyhow::Result<Figure> {
    let model = model().await;
    let site = Site::new(&model).await?;
    let (mut took, mut floor) = (Vec::new(), Vec::new());
    for run in 0..=runs {
        site.github
            .open_issue(&format!("Look at the clock, {run}"))
            .label("coding agent");
        site.deliver().await?;
        let least = bare_container()?;
        // The first one finds neither a mirror nor a file of the image in memory.
        if run > 0 {
            took.push(milliseconds(waited(&model.exchanges(), &model.requests())?));
            floor.push(milliseconds(least));
        }
    }
    Ok(Figure::of("environment ready", "ms", &took)?
        .over(&floor)
        .at_most_times(1.2))
}

/// The same where a service keeps a container waiting.
async fn warm(runs: usize) -> anyhow::Result<Figure> {
    let model = model().await;
    let site = Site::new(&model).await?.configured(|config| {
        config["command_executor"]["warm"] = json!({ "python": 1 });
        config["producer"] = json!({ "interval_seconds": 1 });
    })?;
    let service = site.serve()?;
    let mut took = Vec::new();
    for run in 0..=runs {
        until("a container waits", || site.count("environment_warmed") > run).await?;
        site.github
            .open_issue(&format!("Look at the clock, {run}"))
            .label("coding agent");
        until("the run has ended", || site.count("put_down") > run).await?;
        if run > 0 {
            took.push(milliseconds(waited(&model.exchanges(), &model.requests())?));
        }
    }
    service.stop().await?;
    Ok(Figure::of("environment ready, one waited", "ms", &took)?.at_most(100.0))
}

/// Returns the time from the last run's plan to its first command, which told the time.
pub fn waited(exchanges: &[Exchange], requests: &[Request]) -> anyhow::Result<Duration> {
    let last = exchanges.len().checked_sub(REPLIES).context("a run is missing")?;
    let said = format!(
        "{:?}",
        requests.get(last + 2).and_then(|request| request.messages.last())
    );
    let digits = said.split(|character: char| !character.is_ascii_digit());
    let nanoseconds: u64 = digits
        .filter(|digits| digits.len() == 19)
        .find_map(|digits| digits.parse().ok())
        .with_context(|| format!("the container did not tell the time: {said}"))?;
    let ago = SystemTime::now().duration_since(UNIX_EPOCH + Duration::from_nanos(nanoseconds))?;
    let begun = Instant::now()
        .checked_sub(ago)
        .context("the container's clock is another one")?;
    Ok(begun.duration_since(exchanges[last].answered))
}

/// Starts a container as people do by hand, and removes it.
fn bare_container() -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let started = Command::new("docker")
        .args(["run", "--detach"])
        .args(LIMITS)
        .args([IMAGE, "infinity"])
        .output()
        .context("docker cannot be started")?;
    let took = begun.elapsed();
    let complaint = String::from_utf8_lossy(&started.stderr);
    anyhow::ensure!(started.status.success(), "docker run failed: {complaint}");
    let container = String::from_utf8(started.stdout)?;
    let removed = Command::new("docker")
        .args(["rm", "--force", container.trim()])
        .output()?;
    anyhow::ensure!(removed.status.success(), "the container {container} was left behind");
    Ok(took)
}
