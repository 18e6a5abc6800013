//! The fourth stage: the program, not the model, decides whether the work is done.

use std::fmt::Write as _;

use super::record::Checked;
use super::run::Run;
use super::setback::Setback;
use crate::conversation::excerpt;
use crate::journal::fact::Fact;
use crate::plan::Check;
use crate::task::state::Signal;

const TAIL_BYTES: usize = 4_000;

/// Leaves the outcome of every check in the record; sends the model back to work while it may still repair.
pub(super) async fn verify(run: &mut Run) -> Result<Signal, Setback> {
    let settings = run.workshop.settings.planning.verification.clone();
    let checks = run
        .record
        .plan
        .as_ref()
        .map(|plan| plan.verification.clone())
        .unwrap_or_default();
    run.record.checks.clear();
    if !settings.enabled || checks.is_empty() {
        return Ok(Signal::Finished);
    }
    run.show_progress().await?;
    // The checks are the program's heaviest commands; a container that they take down must not take the work along.
    run.keep_before_checks(&checks).await?;
    for check in &checks {
        let checked = check_one(run, check).await?;
        run.note(Fact::Verified {
            command: checked.command.clone(),
            exit_code: checked.exit_code,
            passed: checked.passed(),
        });
        run.record.checks.push(checked);
    }
    if run.record.is_verified() || run.record.repairs >= settings.max_rounds {
        return Ok(Signal::Finished);
    }
    run.record.repairs += 1;
    let digest = digest(&run.record.checks);
    let mut chat = run.open_chat().await?;
    chat.send_user_message(&run.workshop.redactor.clean(&digest));
    run.save_conversation(&mut chat).await?;
    if let Some(desk) = &mut run.desk {
        desk.chat = Some(chat);
    }
    Ok(Signal::RepairNeeded)
}

async fn check_one(run: &mut Run, check: &Check) -> Result<Checked, Setback> {
    let output = run.execute(&check.command).await?;
    // Without an exit code the command did not end by itself, and that is never a pass.
    let exit_code = output
        .structured
        .as_ref()
        .and_then(|fields| fields["exit_code"].as_i64());
    let tail = excerpt::middle_cut(&output.text, TAIL_BYTES, None);
    Ok(Checked {
        command: check.command.clone(),
        expected: check.expect_exit.into(),
        exit_code,
        tail,
    })
}

/// Returns what the model is told of the checks that did not pass.
fn digest(checks: &[Checked]) -> String {
    let mut text = "The program checked the result, and it does not pass yet:\n".to_owned();
    for check in checks.iter().filter(|check| !check.passed()) {
        let ending = check
            .exit_code
            .map_or_else(|| "did not end".to_owned(), |code| format!("exit code {code}"));
        let _ = write!(
            text,
            "\n$ {}\n[{ending}, expected {}]\n{}\n",
            check.command, check.expected, check.tail
        );
    }
    text.push_str("\nMend it, then finish again. Do not weaken the checks.");
    text
}
