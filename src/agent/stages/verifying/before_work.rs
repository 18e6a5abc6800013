//! The project's tests before the work, for a model that writes whole files as text and runs
//! nothing.
//!
//! Often a failing test is what the task is about. A small model that learns of it only when its
//! first result fails writes much the same again.

use std::sync::Arc;

use crate::agent::dialogue::ReplyForm;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::stages::verifying::{checks, test_lines};
use crate::agent::stages::working;
use crate::agent::workspace::open;
use crate::evidence::digest;

/// Runs the project's tests on the base, and writes down what the model is told of those that fail.
/// Does so once, and only for a model that cannot run them itself.
pub(crate) async fn before_work(run: &mut Run) -> Result<(), Interruption> {
    let worked = &run.claim.record.worked;
    let is_begun = worked.turns > 0 || run.claim.record.request.round.is_some();
    let is_known = worked.failing_tests.is_some();
    if is_begun || is_known || !run.claim.services.settings.planning.verification.enabled {
        return Ok(());
    }
    working::settle_native_calls(&mut run.claim).await;
    if ReplyForm::of(&run.claim) != ReplyForm::Files {
        return Ok(());
    }
    open::ensure_open(run).await?;
    let project = Arc::clone(&run.workspace.opened()?.project);
    let is_continued = project.before_work() != project.base();
    let text = match checks::fails_on_base(run).await? {
        Some(failing) => {
            let failing = [failing];
            let lines = test_lines::of(run, project.base(), &failing).await?;
            if is_continued {
                digest::with_earlier_work(&failing[0], &lines)
            } else {
                digest::before_work(&failing[0], &lines)
            }
        }
        None => String::new(),
    };
    let text = run.claim.services.redactor.clean(&text).into_string();
    run.claim.record.worked.failing_tests = Some(text);
    run.claim.save().await
}
