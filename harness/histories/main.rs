//! Takes real repositories with their whole histories from the label to the pull request.
//! `make histories REPOS=folder` runs it; each bare repository in the folder is one case.
//!
//! Repositories that a test makes have the faults that somebody thought of. Those that people kept
//! for years have zero-padded modes, time zones of seven digits, names in three encodings, symbolic
//! links, files of LFS and gigabytes of packs. So the real program, with a real container and the
//! fake forge of the tests, fetches each one, hands it to a container, has one file written there
//! and delivers it; the judge looks at the result with the real git.

mod case; // one repository, from the label to the pull request

use std::process::ExitCode;

use coding_agent::plain::{agreeing, counted};
use coding_agent_harness::history::{self, History};
use coding_agent_harness::{fake, run};

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    run(
        "histories",
        try_all(&wanted),
        "repositories did not come to a pull request",
    )
}

/// Plays each repository, prints the table, and returns how many went wrong.
async fn try_all(wanted: &[String]) -> anyhow::Result<usize> {
    let folder = std::env::var_os("REPOS").unwrap_or_default();
    anyhow::ensure!(
        !folder.is_empty(),
        "REPOS is not set: it names a folder of bare repositories, such as `git clone --mirror` makes; \
         `make histories REPOS=folder ONLY=\"one two\"` plays two of them"
    );
    let mut histories = history::in_folder(folder.as_ref())?;
    histories.retain(|history| wanted.is_empty() || wanted.contains(&history.name));
    anyhow::ensure!(!histories.is_empty(), "there is no such bare repository in REPOS");
    println!(
        "| repository | commits | files | packs, MB | planned after, s | at work after, s | delivered after, s | end |"
    );
    println!("|---|{}---|", "---:|".repeat(6));
    let mut failed = 0;
    for history in &histories {
        if history.missing > 0 {
            let end = format!(
                "not tried: {} {} missing in the folder",
                counted(history.missing, "object"),
                agreeing(history.missing, "is", "are")
            );
            println!("{}", row(history, "| | ", &end));
            continue;
        }
        match case::play(history).await {
            Ok(told) => println!("{}", row(history, &told.seconds(), "pull request")),
            Err(error) => {
                failed += 1;
                println!("{}", row(history, "| | ", "FAILED"));
                eprintln!("{}: {error:#}", history.name);
            }
        }
    }
    Ok(failed)
}

fn row(history: &History, seconds: &str, end: &str) -> String {
    let History {
        name,
        commits,
        files,
        megabytes,
        ..
    } = history;
    format!("| {name} | {commits} | {files} | {megabytes} | {seconds} | {end} |")
}
