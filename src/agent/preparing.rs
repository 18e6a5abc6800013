//! The second stage: environment, project and tools are made ready.

use std::fmt::Write as _;

use super::run::Run;
use super::setback::Setback;
use crate::conversation::excerpt;
use crate::task::state::Signal;

/// Leaves an open desk with the project set up as the plan says.
pub(super) async fn prepare(run: &mut Run) -> Result<Signal, Setback> {
    run.listen_when_due().await;
    run.show_progress().await?;
    run.open_desk().await?;
    run.record.setup = set_up(run).await?;
    run.note_container();
    Ok(Signal::Finished)
}

/// Runs the plan's set-up commands. One that fails is no setback: the model is told, and it is the better judge.
pub(super) async fn set_up(run: &mut Run) -> Result<String, Setback> {
    let commands = run
        .record
        .plan
        .as_ref()
        .and_then(|plan| plan.selected_environment.as_ref())
        .map(|environment| environment.setup_commands.clone())
        .unwrap_or_default();
    let mut report = String::new();
    for command in commands.iter().filter(|command| !command.trim().is_empty()) {
        let output = run.execute(command).await?;
        let verdict = if output.is_error { "failed" } else { "done" };
        let _ = writeln!(report, "- `{command}`: {verdict}");
        if output.is_error {
            let _ = writeln!(report, "{}", excerpt::middle_cut(&output.text, 2_000, None));
            if let Some(refused) = run.refused_just_now() {
                let _ = writeln!(report, "{refused}");
            }
            run.warn(format!(
                "The set-up command `{command}` failed; the work went on without it."
            ));
        }
    }
    Ok(report)
}
