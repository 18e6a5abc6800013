//! Plays what other agents were recorded doing: the model server *is* the recording, the forge has
//! its issue, the repository is the real one at the commit that the recording began at. `make
//! replay TRAJECTORIES=folder REPOS=folder` runs it; without them, the small set in `replay/set`.
//!
//! Scripted tasks ask of the tools what their author thought of. A recorded agent asks what it
//! needed: heredocs, pipes, `sed -i`, outputs of a megabyte. The judge compares exit statuses,
//! outputs and the final difference with the recorded ones, and tells what the program refused, cut
//! or changed. It fails for a refusal, for a difference that it can give no reason for, for a step
//! that never came and for a recording that could not be played. With `EDITS_AS_TOOLS=1`, edits
//! that were made by the shell are made with the file tools.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test stops where something is wrong"))]

mod action; // a recorded command as a call of ours
mod trajectory; // what was recorded
mod difference; // a difference, file by file
mod base; // the commit that a recording began at
mod known; // what reasons are checked against
mod normal; // outputs without what is fleeting
mod reason; // why an output may differ
mod judge; // one command against its recording
mod edits; // edits by the shell, as calls of the file tools
mod case; // one recording, played
mod report; // what all of them show

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use coding_agent_harness::archive::Archive;
use coding_agent_harness::history::{self, History};
use coding_agent_harness::{build, fake, run};

use case::Source;
use report::Report;
use trajectory::Trajectory;

/// The set that ships, and the repository of all its recordings.
const SET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/replay/set");
const REPOSITORY: &str = include_str!("set/repository.txtar");

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    run(
        "replay",
        play_all(&wanted),
        "faults: commands that were refused, differ for no reason that was found or never came, other final differences, and \
         recordings that were not played",
    )
}

/// Returns the folder that a variable names.
fn folder(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|said| !said.is_empty())
        .map(PathBuf::from)
}

/// Plays each recording, prints the report, and returns the number of faults.
async fn play_all(wanted: &[String]) -> anyhow::Result<usize> {
    let (recordings, repositories) = (folder("TRAJECTORIES"), folder("REPOS"));
    anyhow::ensure!(
        recordings.is_some() == repositories.is_some(),
        "TRAJECTORIES (a folder with .traj or .traj.json files) and REPOS (a folder of bare repositories) belong together; \
         without both, the small set that ships is played"
    );
    let histories = match &repositories {
        Some(folder) => history::in_folder(folder)?,
        None => Vec::new(),
    };
    let mut paths = Vec::new();
    found_in(&recordings.unwrap_or_else(|| PathBuf::from(SET)), &mut paths)?;
    paths.sort();
    paths.retain(|path| wanted.is_empty() || wanted.iter().any(|word| path.to_string_lossy().contains(word)));
    anyhow::ensure!(
        !paths.is_empty(),
        "there is no .traj or .traj.json file with such a name"
    );
    let shipped = Archive::read(REPOSITORY);
    let edits_as_tools = folder("EDITS_AS_TOOLS").is_some();
    let mut report = Report::default();
    Report::head();
    // One that cannot be played says nothing about the others.
    for path in &paths {
        let trajectory = match Trajectory::read(path) {
            Ok(trajectory) => trajectory,
            Err(error) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                report.not_played(&name, &error);
                continue;
            }
        };
        let source = match &repositories {
            Some(_) => commit_of(&trajectory, &histories),
            None => Ok(Source::Files(shipped.folder("repository"))),
        };
        let played = match source {
            Ok(source) => case::play(&trajectory, &source, edits_as_tools).await,
            Err(error) => Err(error),
        };
        match played {
            Ok(played) => report.add(&trajectory, &played),
            Err(error) => report.not_played(&trajectory.name, &error),
        }
    }
    let (report, faults) = report.show();
    let written = build::results("replay")?.join("report.json");
    build::write_report(&written, &report)?;
    println!("\n{} has every command", written.display());
    Ok(faults)
}

/// Finds the recordings in a folder and those below it.
fn found_in(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let has = |extension: &str| path.extension().is_some_and(|end| end == extension);
        let is_trajectory =
            has("traj") || has("json") && path.with_extension("").extension().is_some_and(|end| end == "traj");
        if path.is_dir() {
            found_in(&path, found)?;
        } else if is_trajectory {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns the repository at the commit that a recording began at.
fn commit_of<'a>(trajectory: &Trajectory, histories: &'a [History]) -> anyhow::Result<Source<'a>> {
    let name = trajectory.repository();
    let history = histories.iter().find(|history| history.name == name);
    let history = history.with_context(|| format!("REPOS has no repository `{name}`"))?;
    let changed = difference::read(&trajectory.submission);
    let commit = base::of(history, &changed, trajectory.number())?;
    let commit = commit.context("no commit of its repository has the contents that its difference begins with")?;
    Ok(Source::Commit(history, commit))
}

/// Returns a number of things for a share.
fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
