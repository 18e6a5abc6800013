//! The cost of an idle service: `coding-agent serve`, with the default intervals.

use std::time::{Duration, Instant};

use anyhow::Context;

use crate::fake::model::{Answer, Model};
use crate::figure::Figure;
use crate::idle::megabytes;
use crate::process::{processor_now, resident_now};
use crate::scale::Scale;
use crate::site::Site;

/// The time of the measurement: longer than the interval between two searches, so that one is
/// always in it.
const WATCHED: Duration = Duration::from_secs(65);
/// The time of the measurement in the short form: too short for a search, it shows only that the
/// measurement works.
const GLANCED_AT: Duration = Duration::from_secs(2);
/// The time after which the start is over.
const STARTED: Duration = Duration::from_secs(5);

pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let model = Model::answering(|_| Answer::done("Nobody asks.")).await;
    let site = Site::new(&model).await?;
    let service = site.serve()?;
    let process = service.process();
    tokio::time::sleep(STARTED).await;
    let before = site.github.requests().len();
    let (begun, used) = (Instant::now(), processor_now(process)?);
    tokio::time::sleep(scale.of(WATCHED, GLANCED_AT)).await;
    let used = processor_now(process)?
        .checked_sub(used)
        .context("time went backwards")?;
    let share = used.as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0;
    // A glance may miss the search; that there was one at the start is all it can ask for.
    anyhow::ensure!(
        site.github.requests().len() > scale.of(before, 0),
        "the service did not look for work"
    );
    Ok(vec![
        Figure::of("a service at rest, share of a processor", "%", &[share])?.at_most(0.1),
        Figure::of("a service at rest, memory", "MB", &[megabytes(resident_now(process)?)])?.at_most(30.0),
    ])
}
