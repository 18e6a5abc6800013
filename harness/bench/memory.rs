//! The program's own peak memory where much passes through it: a long output, a large repository.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use serde_json::json;

use crate::fake::model::{Answer, Model, Plan};
use crate::figure::Figure;
use crate::idle::megabytes;
use crate::scale::Scale;
use crate::site::Site;
use crate::turns::file;

/// Written by one command: 100 MB in lines.
const LONG_OUTPUT: &str = "yes 0123456789012345678901234567890123456789012345678 | head -c 100000000";

const LARGE: Size = Size {
    files: 20,
    file_bytes: 10_000_000,
    small_files: 0,
};

/// The content that is put into a repository.
pub struct Size {
    pub files: usize,
    pub file_bytes: u64,
    /// The number of files with some lines of text each, in folders of a hundred.
    pub small_files: usize,
}

pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let usual = peak("true", |_| Ok(())).await?;
    let long_output = peak(LONG_OUTPUT, |_| Ok(())).await?;
    let mut figures = vec![
        Figure::of("a small run, peak memory", "MB", &[usual])?,
        Figure::of("an output of 100 MB, peak memory", "MB", &[long_output])?.at_most(100.0),
    ];
    if scale == Scale::Full {
        let large_repository = peak("true", |site| grow(site, &LARGE)).await?;
        figures.push(Figure::of("a repository of 200 MB, peak memory", "MB", &[large_repository])?.at_most(100.0));
    }
    Ok(figures)
}

/// Returns the peak in megabytes of a run that makes one call of `command` in a repository that
/// `prepare` has changed.
async fn peak(command: &'static str, prepare: impl FnOnce(&Site) -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let replies = AtomicUsize::new(0);
    let model = Model::answering(move |_| match replies.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::plans(Plan::of(&["write a note"]).in_environment("python")),
        1 => Answer::calls("workspace/execute_command", json!({ "command": command })),
        2 => Answer::calls("workspace/write_file", file("A line.\n")),
        _ => Answer::done("The note is written."),
    })
    .await;
    let site = Site::new(&model).await?;
    prepare(&site)?;
    site.github.open_issue("Write a note").label("coding agent");
    Ok(megabytes(site.deliver().await?.peak_bytes))
}

/// Puts files that do not compress into the repository.
pub fn grow(site: &Site, by: &Size) -> anyhow::Result<()> {
    let repository = site.github.default_repository();
    let project = site.folder().join("project");
    let (bare, clone) = (
        repository.git().path().to_owned(),
        project.to_string_lossy().into_owned(),
    );
    // Noise does not compress and no piece of it is like another: trying is most of what git would
    // do here.
    git(&bare, &["config", "core.compression", "0"])?;
    git(site.folder(), &["clone", "-q", &bare.to_string_lossy(), &clone])?;
    let noise = File::open("/dev/urandom")?;
    for number in 0..by.files {
        let mut file = File::create(project.join(format!("noise-{number}.bin")))?;
        std::io::copy(&mut (&noise).take(by.file_bytes), &mut file)?;
    }
    for number in 0..by.small_files {
        let folder = project.join(format!("text-{}", number / 100));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(
            folder.join(format!("{number}.txt")),
            format!("Line of {number}.\n").repeat(50),
        )?;
    }
    git(&project, &["add", "."])?;
    let identity = ["-c", "user.name=alice", "-c", "user.email=alice@example.org"];
    git(&project, &[&identity[..], &["commit", "-qm", "Grow"]].concat())?;
    git(&project, &["push", "-q", "origin", "HEAD:main"])?;
    std::fs::remove_dir_all(project)?;
    // Makes the fake notice what was pushed past it.
    repository.commit("main", "Notice", &[("NOTICE", "It has grown.\n")]);
    Ok(())
}

pub fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("git")
        .args(["-c", "core.compression=0", "-c", "pack.window=0"])
        .args(arguments)
        .current_dir(folder)
        .status()
        .context("git cannot be started")?;
    anyhow::ensure!(status.success(), "git {} failed", arguments.join(" "));
    Ok(())
}
