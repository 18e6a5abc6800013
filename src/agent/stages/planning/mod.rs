//! The first stage: read the item, explore the repository, and have the model plan.

mod best_places; // what the code index shows the planner at once
mod better_plan; // what the planner is told of a plan that was sent back
mod comment_filter; // comments that the model may read
mod earlier_runs; // earlier runs on the same item
mod evidence; // the places that a plan rests on
mod environment_choice; // the environment of the run
pub(crate) mod kept_plans; // plans that are made once for the same input
mod set_up_inputs; // the files of the base that decide what a set-up installs
pub(crate) mod shown_files; // the project's files, as the model first sees them
mod reading; // the task, and what the model is shown of the project
mod making; // the conversation with the planner

use chrono::Utc;

use crate::agent::approval::plan_question;
use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::large_files;
use crate::agent::workspace::source;
use crate::agent::workspace::submodules;
use crate::journal::fact::Fact;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::task::state::Signal;
use crate::workspace::base::Base;

/// Plans the run: saves base, plan, environment and the task's text in the record.
pub(crate) async fn plan(run: &mut Run) -> Result<Signal, Interruption> {
    run.claim.record.planned.started_at.get_or_insert_with(Utc::now);
    let source = if run.claim.record.reviewed.is_plan_sent_back() {
        // What was read of the item is in the record, with all that people said since.
        let item = run.reporter.item(&mut run.claim).await?;
        source::source(run, item.as_ref()).await?
    } else {
        run.claim.record.reviewed.plan.begin_anew();
        run.claim.record.reviewed.faults.clear();
        match run.reporter.item(&mut run.claim).await? {
            Some(item) => reading::read_item(run, &item).await?,
            None => reading::read_folder(run).await?,
        }
    };
    if run.claim.services.settings.planning.enabled {
        run.claim.record.planned.plan = Some(making::make_plan(run, source.mirror.clone()).await?);
        run.claim.record.reviewed.is_plan_faulty = false;
        if let Some(base) = choose_base(&mut run.claim, &source.mirror).await? {
            large_files::fetch(run, &source, &base).await?;
            submodules::fetch(run, &source, &base).await?;
        }
    }
    environment_choice::choose_environment(&mut run.claim);
    let planned = &run.claim.record.planned;
    let plan = planned.plan.as_ref();
    run.claim.note(Fact::Planned {
        environment: planned.environment.clone().unwrap_or_default(),
        subtasks: plan.map_or(0, |plan| plan.task_decomposition.subtasks.len()),
        input: planned.input.clone().unwrap_or_default(),
        digest: plan.map(kept_plans::digest).unwrap_or_default(),
    });
    run.claim.note_plan();
    // A review comes first: people see what it says.
    if !run.claim.services.settings.review.config.plan.enabled && plan_question::needs_approval(run).await? {
        return Ok(Signal::ApprovalNeeded);
    }
    Ok(Signal::Finished)
}

/// Changes the base to the branch that the plan names. If the result branch already exists, for a
/// pull/merge request or from an earlier run, it is continued whatever the plan says. Returns the
/// commit if it changed.
async fn choose_base(claim: &mut Claim, mirror: &Mirror) -> Result<Option<CommitId>, Interruption> {
    let named = claim
        .record
        .planned
        .plan
        .as_ref()
        .and_then(|plan| plan.base_branch.clone());
    let (Some(named), Some(base), None) = (named, &claim.record.planned.base, &claim.record.request.local) else {
        return Ok(None);
    };
    if named == base.branch || mirror.branch(&base.head_branch).await?.is_some() {
        return Ok(None);
    }
    let Some(commit) = mirror.branch(&named).await? else {
        let branch = base.branch.clone();
        claim.warn(format!(
            "The plan starts from the branch `{named}`, which does not exist; `{branch}` is used."
        ));
        return Ok(None);
    };
    let base = Base {
        commit: commit.clone(),
        branch: named,
        ..base.clone()
    };
    mirror.keep_base(&claim.lease.run.to_string(), &base.commit).await?;
    claim.record.planned.base = Some(base);
    // The recorded inputs were those of the default branch.
    claim.record.planned.dependencies = None;
    Ok(Some(commit))
}
