//! A result is judged by tests alone, in the same way whoever made it.

use crate::bench::Bench;
use crate::task::{Files, Task};

/// How both kinds of tests went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Judged {
    pub passes_visible: bool,
    pub passes_hidden: bool,
    pub changes_files: bool,
}

/// Runs both kinds of tests on a result, which began with the files `before`. The tests that
/// everybody sees are those of the task: a result that changed them is judged by them as they were.
pub async fn judged(bench: &mut Bench, task: &Task, (before, files): (&Files, Files)) -> anyhow::Result<Judged> {
    let changes_files = sorted(&files) != sorted(before);
    let is_test =
        |path: &str| task.files.iter().any(|(own, _)| own == path) && task.sources().all(|(own, _)| own != path);
    let tests: Files = task.files.iter().filter(|(path, _)| is_test(path)).cloned().collect();
    let result = Task { files, ..task.clone() };
    let visible = bench
        .test(&result.with(&[&tests]), task.language.visible_command())
        .await?;
    let hidden = bench
        .test(&result.with(&[&tests, &task.hidden]), task.language.hidden_command())
        .await?;
    Ok(Judged {
        passes_visible: visible.passed,
        passes_hidden: hidden.passed,
        changes_files,
    })
}

fn sorted(files: &Files) -> Files {
    let mut files = files.clone();
    files.sort();
    files
}
