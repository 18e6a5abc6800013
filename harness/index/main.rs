//! Measures the code index: whether it finds the files that mended real issues, and how fast and
//! how large it is. `make bench-index ISSUES=file REPOS=folder` runs it.
//!
//! The judge is a table: for each issue the files that its resolution changed. An answer counts by
//! the place of the first of them. Nothing of it needs a model, so that two runs give the same
//! figures. Beside them, and where they are not there, functions of installed packages are looked
//! for by their own documentation.

mod cases; // issues, and the repositories they are of
mod opened; // the index of a repository that lies elsewhere
mod judge; // how good a list of files is
mod issues; // files by the texts of issues
mod grep; // the same by ripgrep
mod documented; // functions by their documentation
mod speed; // time and size
mod renames; // files that moved

use std::process::ExitCode;

fn main() -> ExitCode {
    let measured = tokio::runtime::Runtime::new()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(measure()));
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-index: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn measure() -> anyhow::Result<()> {
    let repositories = cases::repositories()?;
    let issues = cases::issues(&repositories)?;
    if issues.is_empty() {
        println!(
            "No issues are measured: ISSUES names a file of issues, and REPOS a folder with bare copies of their repositories."
        );
    } else {
        issues::measure(&issues).await?;
        grep::measure(&issues)?;
    }
    if issues.is_empty() || cases::variable("DOCUMENTED").is_some() {
        documented::measure().await?;
    }
    println!("\nripvec is not measured beside it: it fetches a model from a hub when it starts.");
    speed::measure(&repositories).await?;
    renames::measure(&repositories).await
}
