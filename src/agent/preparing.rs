//! The second stage: environment, project and tools are made ready.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::time::Instant;

use super::run::Run;
use super::setback::Setback;
use crate::conversation::excerpt;
use crate::task::state::Signal;

/// Leaves an open desk with the project set up as the plan says.
pub(super) async fn prepare(run: &mut Run) -> Result<Signal, Setback> {
    run.listen_when_due().await;
    run.show_progress().await?;
    let is_set_up = run.open_desk().await?.workspace.set_up().is_some();
    run.record.setup = if is_set_up {
        run.open_desk().await?.workspace.end_set_up().await?;
        done_before(run)
    } else {
        let set_up = set_up(run).await?;
        let took = Duration::from_millis(run.record.set_up_milliseconds);
        let worth_keeping = Duration::from_secs(run.workshop.settings.environments.snapshots.after_seconds);
        if set_up.is_whole && took >= worth_keeping {
            run.keep_set_up().await;
        }
        set_up.report
    };
    run.note_container();
    Ok(Signal::Finished)
}

/// What became of the set-up commands.
pub(super) struct Done {
    /// For the model.
    report: String,
    /// None of them failed.
    is_whole: bool,
}

/// Runs the set-up commands and has what they leave in the project count as nobody's work. One that
/// fails is no setback: the model is told, and it is the better judge.
pub(super) async fn set_up(run: &mut Run) -> Result<Done, Setback> {
    let mut done = Done {
        report: String::new(),
        is_whole: true,
    };
    let commands = [run.set_up_commands(), run.record.added_set_up.clone()].concat();
    if commands.is_empty() {
        return Ok(done);
    }
    let _let_out = run.open_desk().await?.workspace.let_out();
    let begun = Instant::now();
    for command in &commands {
        run.check_limits().await?;
        let output = run.execute(command).await?;
        let verdict = if output.is_error { "failed" } else { "done" };
        let _ = writeln!(done.report, "- `{command}`: {verdict}");
        if output.is_error {
            done.is_whole = false;
            let _ = writeln!(done.report, "{}", excerpt::middle_cut(&output.text, 2_000, None));
            if let Some(refused) = run.refused_just_now() {
                let _ = writeln!(done.report, "{refused}");
            }
            run.warn(format!(
                "The set-up command `{command}` failed; the work went on without it."
            ));
        }
    }
    run.record.set_up_milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let undone = run.open_desk().await?.workspace.end_set_up().await?;
    if !undone.trim().is_empty() {
        let names: Vec<_> = undone
            .lines()
            .map(|name| format!("`{}`", name.escape_debug()))
            .collect();
        let _ = writeln!(
            done.report,
            "They also changed files of the project, and that was undone, because set-up is no part of the work: {}. Where the task \
             needs such a change, make it yourself.",
            names.join(", ")
        );
    }
    Ok(done)
}

/// The container began where the same commands had ended.
fn done_before(run: &Run) -> String {
    let mut report = String::new();
    for command in run.set_up_commands() {
        let _ = writeln!(report, "- `{command}`: done");
    }
    report
}

impl Run {
    /// Returns the commands of the plan that set the project up.
    pub(super) fn set_up_commands(&self) -> Vec<String> {
        let plan = self.record.plan.as_ref();
        let environment = plan.and_then(|plan| plan.selected_environment.as_ref());
        let commands = environment.map(|environment| environment.setup_commands.clone());
        let mut commands = commands.unwrap_or_default();
        commands.retain(|command| !command.trim().is_empty());
        commands
    }
}
