//! The review of a plan: first by the program, which costs nothing, then by the reviewer.

use crate::agent::approval::plan_question;
use crate::agent::claim::Claim;
use crate::agent::prompt;
use crate::agent::prompt::reviews::{self, PlanToReview};
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::stages::planning::shown_files;
use crate::agent::stages::project_rules::MOST_FILES;
use crate::agent::stages::reviewing::asking::{self, Matter};
use crate::agent::workspace::open;
use crate::agent::workspace::source;
use crate::approval::proposal::Reason;
use crate::conversation::excerpt;
use crate::journal::fact::Fact;
use crate::plan::Plan;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::review::document::Document;
use crate::review::program::{self, Surroundings};
use crate::review::rounds::Next;
use crate::reviewer::config::OnUnreadyPlan;
use crate::task::state::{Judged, Signal};

/// Maximum number of faults that a planner is told at once.
const MOST_FAULTS: usize = 20;
/// The part of a document that the lines which the plan cites may have.
const EVIDENCE_PART: usize = 4;

/// Has the plan judged, and decides whether it is carried out, made better or given up.
pub(super) async fn review(run: &mut Run) -> Result<Signal, Interruption> {
    run.inbox.listen_when_due().await;
    run.reporter.post_progress(&mut run.claim).await?;
    let (Some(plan), Some(base)) = (
        run.claim.record.planned.plan.clone(),
        run.claim.record.planned.base.clone(),
    ) else {
        return Ok(Signal::Finished);
    };
    let mirror = source::mirror_at_hand(run).await?;
    let place = (&mirror, &base.commit);
    let faults = faults(&run.claim, &plan, place).await?;
    if !faults.is_empty() {
        return send_back(run, faults).await;
    }
    let reviewer = asking::reviewer(&run.claim)?;
    let matter = Matter {
        judged: Judged::Plan,
        document: document(&run.claim, &plan, place, reviewer.room()).await?,
        place,
        commands: commands(&plan),
        criteria: plan.goal_understanding.success_criteria.clone(),
    };
    match asking::decide(&mut run.claim, &reviewer, &matter).await? {
        Next::Pass => {
            run.claim.record.reviewed.plan_unready = None;
            used(run).await
        }
        // Saved with the step back to planning.
        Next::Revise => {
            run.claim.record.reviewed.plan.send_back();
            Ok(Signal::RevisionNeeded)
        }
        Next::GiveUp(why) => {
            let reason = asking::why_unready(&mut run.claim, Judged::Plan, &why);
            give_up(run, reason).await
        }
        Next::Ask => Err(Interruption::failed("the review of the plan was not recorded")),
    }
}

/// Returns the faults that the program finds by itself, in words for the planner.
async fn faults(claim: &Claim, plan: &Plan, place: (&Mirror, &CommitId)) -> Result<Vec<String>, Interruption> {
    let settings = &claim.services.settings;
    let config = &claim.services.containers.config;
    let own = open::project_environment(claim).map(|(name, _)| name);
    let environments: Vec<&str> = config
        .environments
        .keys()
        .map(String::as_str)
        .chain(own.as_deref())
        .collect();
    let (spent, turns) = (claim.record.worked.usage, claim.record.worked.turns);
    // An allowance of people's counts from the moment it was given, and turns begin anew with it.
    let allowance = claim.record.waiting.allowance.as_ref();
    let budget = settings.budget.tokens.filter(|_| allowance.is_none());
    let turns = turns.saturating_sub(allowance.map_or(0, |allowance| allowance.spent.turns));
    let surroundings = Surroundings {
        environments: &environments,
        lines: asking::lines(place, program::cited_paths(plan)).await?,
        max_subtasks: settings.planning.max_subtasks,
        turns_left: Some(settings.max_turns.saturating_sub(turns).into()),
        tokens_left: budget.map(|tokens| tokens.saturating_sub(spent.input + spent.output)),
        // Each turn reads the task again.
        tokens_per_turn: excerpt::estimated_tokens(&claim.record.planned.task_text),
    };
    let found = program::faults(plan, &surroundings).into_iter().take(MOST_FAULTS);
    let clean = |text: &str| claim.services.redactor.clean(text).into_string();
    Ok(found.map(|fault| clean(&fault.what)).collect())
}

/// Sends a plan with faults back, or gives it up.
async fn send_back(run: &mut Run, faults: Vec<String>) -> Result<Signal, Interruption> {
    let claim = &mut run.claim;
    let reviewed = &mut claim.record.reviewed;
    // Nothing is saved before the step back, so a plan is here twice only if it came back.
    reviewed.faults.push(faults.clone());
    let round = reviewed.faults.len();
    claim.note(Fact::PlanFaulty {
        round,
        faults: faults.clone(),
    });
    if round < claim.services.settings.review.config.plan.max_rounds {
        claim.record.reviewed.is_plan_faulty = true;
        return Ok(Signal::RevisionNeeded);
    }
    let reason = format!(
        "the program itself finds faults in it, after {round} rounds: {}",
        faults.join("; ")
    );
    give_up(run, reason).await
}

/// Does what the configuration says of a plan that did not pass.
async fn give_up(run: &mut Run, reason: String) -> Result<Signal, Interruption> {
    let claim = &mut run.claim;
    let failed = |rest: &str| {
        Err(Interruption::failed(format!(
            "the plan did not pass its review: {reason}{rest}"
        )))
    };
    let on_unready = claim.services.settings.review.config.plan.on_unready;
    let follows = match on_unready {
        OnUnreadyPlan::Ask => "ask",
        OnUnreadyPlan::Fail => "fail",
        OnUnreadyPlan::Proceed => "proceed",
    };
    asking::note_unready(claim, Judged::Plan, &reason, follows);
    match on_unready {
        OnUnreadyPlan::Fail => failed(" (review.plan.on_unready)"),
        OnUnreadyPlan::Ask if claim.record.request.local.is_some() => {
            failed("; nobody can be asked while a local task runs (review.plan.on_unready)")
        }
        OnUnreadyPlan::Ask => {
            claim.record.reviewed.plan_unready = Some(reason.clone());
            plan_question::put(run, Reason::Review { outcome: reason }).await
        }
        OnUnreadyPlan::Proceed => {
            claim.warn(format!(
                "The plan is carried out although it did not pass its review: {reason}."
            ));
            claim.record.reviewed.plan_unready = Some(reason);
            used(run).await
        }
    }
}

/// Has the plan carried out, once people allow it where the configuration has them asked.
async fn used(run: &mut Run) -> Result<Signal, Interruption> {
    if plan_question::needs_approval(run).await? {
        return Ok(Signal::ApprovalNeeded);
    }
    Ok(Signal::Finished)
}

/// Returns the plan with the task and the files that it names. Without secrets, as it is saved: in
/// the next process it must be the same document.
async fn document(
    claim: &Claim,
    plan: &Plan,
    (mirror, commit): (&Mirror, &CommitId),
    room: usize,
) -> Result<Document, Interruption> {
    let clean = |text: &str| claim.services.redactor.clean(text).into_string();
    let plan = serde_json::to_string_pretty(plan).map_err(|error| Interruption::failed(error.to_string()))?;
    let plan = clean(&plan);
    let (files, _) = mirror.files(commit, MOST_FILES).await?;
    let filter = claim.record.planned.rules.files.filter();
    let files = files.into_iter().map(|file| file.path);
    let files: Vec<String> = files.filter(|path| filter.takes(path)).collect();
    let mut excerpts = shown_files::cited(claim, mirror, commit, room / EVIDENCE_PART).await?;
    excerpts.push_str(&shown_files::named_files(claim, &plan, &files, mirror, commit).await?);
    Ok(reviews::plan(&PlanToReview {
        fence: &prompt::fence(claim.lease.run),
        task: &clean(&claim.record.planned.task_text),
        plan: &plan,
        excerpts: &clean(&excerpts),
        room,
    }))
}

fn commands(plan: &Plan) -> Vec<String> {
    let checks = plan.verification.iter().map(|check| check.command.clone());
    let set_up = plan
        .selected_environment
        .iter()
        .flat_map(|chosen| chosen.setup_commands.clone());
    checks.chain(set_up).chain([plan.test_command.clone()]).collect()
}
