//! The cost of a run under cron: `coding-agent run` when there is nothing to do.

use crate::fake::model::{Answer, Model};
use crate::figure::Figure;
use crate::process::used;
use crate::scale::Scale;
use crate::site::Site;
use crate::turns::milliseconds;

pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let runs = scale.of(20, 3);
    let model = Model::answering(|_| Answer::done("Nobody asks.")).await;
    let site = Site::new(&model).await?;
    let command = site.command(&["run"])?;
    // The first run makes the store; cron's next ten thousand find it.
    used(&command)?;
    let before = site.github.requests().len();
    let (mut processor, mut wall, mut peak) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        let used = used(&command)?;
        processor.push(milliseconds(used.processor));
        wall.push(milliseconds(used.wall));
        peak.push(megabytes(used.peak_bytes));
    }
    let requests = site.github.requests().len() - before;
    anyhow::ensure!(
        requests >= runs,
        "the program did not look for work: {requests} requests in {runs} runs"
    );
    Ok(vec![
        Figure::of("an idle run, processor", "ms", &processor)?.at_most(30.0),
        Figure::of("an idle run, wall clock", "ms", &wall)?,
        Figure::of("an idle run, peak memory", "MB", &peak)?.at_most(25.0),
    ])
}

#[expect(clippy::cast_precision_loss, reason = "no process has petabytes")]
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
