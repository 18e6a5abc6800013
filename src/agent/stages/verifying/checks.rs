//! Runs the checks of a result: the plan's commands and the project's own tests, each once for each
//! state of the work.
//!
//! A check of the plan must pass. The project's own tests may fail if they failed before: a failing
//! test command is also run on the commit before all work of the program, earlier runs' included.
//! What fails in a new container is run again in the model's own, so that the report can say where
//! it passes.

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::{CheckedIn, Work};
use crate::agent::run::Run;
use crate::agent::stages::verifying::check_container;
use crate::agent::stages::verifying::check_container::CheckContainer;
use crate::agent::workspace::open;
use crate::agent::workspace::project_tests;
use crate::evidence::check::{Before, Checked, Ended, Excuse};
use crate::journal::fact::Fact;
use crate::plan::Check;
use crate::repository::CommitId;
use crate::tool::ToolOutput;
use crate::workspace::scripts::PROJECT;

/// A command to run, and the condition for it to pass.
struct Wanted {
    check: Check,
    whose: Whose,
}

/// Origin of a check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Plan,
    /// Named as the project's tests by the operator or the plan.
    Project,
    /// Guessed from the project's files, so its runner may be missing.
    Guess,
}

/// The result to check, and the container that is open for it.
struct Site<'head> {
    head: &'head CommitId,
    place: Option<CheckedIn>,
    check_container: Option<CheckContainer>,
}

/// Runs all checks on `head`, which the workspace has checked out; each result is saved in the
/// record before the next check starts.
pub(crate) async fn check(run: &mut Run, head: &CommitId) -> Result<(), Interruption> {
    let mut site = Site {
        head,
        place: None,
        check_container: None,
    };
    let checked = check_at(run, &mut site).await;
    check_container::close_check_container(&mut run.claim, &mut site.check_container).await;
    checked
}

/// Runs the project's own tests on the base, in a container of their own. Returns their result if
/// they fail; `None` as well where they cannot be run so, or do not end. It is noted as that before
/// the work if no earlier run has worked on the base.
pub(super) async fn fails_on_base(run: &mut Run) -> Result<Option<Checked>, Interruption> {
    let base = run.workspace.opened()?.project.base().clone();
    if check_container::decide_where_to_check(run, &base).await? != CheckedIn::Fresh {
        return Ok(None);
    }
    let mut check_container = None;
    let checked = first_that_starts(run, &base, &mut check_container).await;
    check_container::close_check_container(&mut run.claim, &mut check_container).await;
    Ok(checked?.filter(|checked| !checked.passed()))
}

async fn first_that_starts(
    run: &mut Run,
    base: &CommitId,
    check_container: &mut Option<CheckContainer>,
) -> Result<Option<Checked>, Interruption> {
    for (command, _) in commands(run, base).await? {
        let ended = run_in_check_container(run, check_container, base, &command).await?;
        if ended.did_not_start() {
            continue;
        }
        if ended.exit_code.is_none() {
            break;
        }
        if run.workspace.opened()?.project.before_work() == base {
            note_before(run, &command, &ended).await?;
        }
        return Ok(Some(Checked::new(&command, 0, &ended)));
    }
    Ok(None)
}

async fn check_at(run: &mut Run, site: &mut Site<'_>) -> Result<(), Interruption> {
    let work = work(run, site.head).await?;
    let earlier = still_true(&mut run.claim, &work);
    run.claim.record.verified.checks.clear();
    run.claim.record.verified.checked = Some(work);
    let wanted = wanted(run, site.head).await?;
    let mut has_guessed = false;
    for wanted in wanted {
        if has_guessed && wanted.whose == Whose::Guess {
            continue;
        }
        let known = earlier.iter().find(|checked| checked.command == wanted.check.command);
        let checked = match known {
            Some(checked) => checked.clone(),
            None => check_one(run, &wanted, site).await?,
        };
        // If the runner of the first guess is missing, the next guess is tried.
        has_guessed |= wanted.whose == Whose::Guess && checked.excuse != Some(Excuse::DidNotStart);
        run.claim.record.verified.checks.push(checked);
        run.claim.save().await?;
    }
    Ok(())
}

/// Returns earlier results that are still valid for the same files: all of them if the model had no
/// turn since, otherwise only passes, since a failure may depend on what is installed.
fn still_true(claim: &mut Claim, work: &Work) -> Vec<Checked> {
    let Some(before) = claim
        .record
        .verified
        .checked
        .clone()
        .filter(|before| before.tree.is_some() && before.tree == work.tree)
    else {
        return Vec::new();
    };
    let is_same_turn = before.turns == work.turns;
    let checks = std::mem::take(&mut claim.record.verified.checks);
    checks
        .into_iter()
        .filter(|checked| is_same_turn || checked.passed())
        .collect()
}

async fn work(run: &mut Run, head: &CommitId) -> Result<Work, Interruption> {
    let turns = run.claim.record.worked.turns;
    let tree = Some(run.workspace.opened()?.project.mirror().tree(head).await?);
    Ok(Work { tree, turns })
}

async fn wanted(run: &mut Run, head: &CommitId) -> Result<Vec<Wanted>, Interruption> {
    let plan = run.claim.record.planned.plan.as_ref();
    let of_plan = plan.map(|plan| plan.verification.clone()).unwrap_or_default();
    let mut wanted: Vec<Wanted> = Vec::new();
    for check in of_plan {
        if !wanted.iter().any(|known| known.check == check) {
            wanted.push(Wanted {
                check,
                whose: Whose::Plan,
            });
        }
    }
    let tests = tests(run, head).await?;
    for (command, whose) in tests {
        // A check of the plan must pass, even if the same command failed before.
        if !wanted.iter().any(|known| known.check.command.trim() == command) {
            let check = Check {
                command,
                expect_exit: 0,
            };
            wanted.push(Wanted { check, whose });
        }
    }
    Ok(wanted)
}

/// Returns the commands that run the project's own tests: the configured or planned one, or
/// guesses, best first. Empty if there is a plan, and nothing was changed by this run or an earlier
/// one: tests would say nothing about the work.
async fn tests(run: &mut Run, head: &CommitId) -> Result<Vec<(String, Whose)>, Interruption> {
    let workspace = run.workspace.opened()?.project.clone();
    let (mirror, before) = (workspace.mirror(), workspace.before_work());
    // Where a plan was made, somebody has looked before nothing was changed.
    if run.claim.services.settings.planning.enabled && mirror.tree(head).await? == mirror.tree(before).await? {
        return Ok(Vec::new());
    }
    commands(run, head).await
}

/// Returns the commands that run the project's own tests, wherever there are some.
async fn commands(run: &mut Run, head: &CommitId) -> Result<Vec<(String, Whose)>, Interruption> {
    let workspace = run.workspace.opened()?.project.clone();
    let commits = [workspace.before_work(), head];
    let detected = project_tests::commands(workspace.mirror(), &run.claim, &commits).await?;
    if let Some(remark) = detected.remark() {
        run.claim.warn(remark);
    }
    let whose = if detected.is_named {
        Whose::Project
    } else {
        Whose::Guess
    };
    let commands = detected.commands.into_iter();
    Ok(commands.map(|command| (command, whose)).collect())
}

async fn check_one(run: &mut Run, wanted: &Wanted, site: &mut Site<'_>) -> Result<Checked, Interruption> {
    let (command, expected) = (&wanted.check.command, wanted.check.expect_exit.into());
    let mut ended = run_check(run, command, site).await?;
    let mut checked = Checked::new(command, expected, &ended);
    // A check of the plan has no excuse, and a command that cannot start now cannot have failed
    // before.
    let may_have_failed_before = !checked.passed() && wanted.whose != Whose::Plan && !ended.did_not_start();
    if may_have_failed_before && let Some(before) = before(run, &checked, site).await? {
        checked.weigh(&ended, &before);
    }
    // A check that took its container down, here or on the base, must not run in the one with the
    // work.
    let is_harmful = site.check_container.is_none();
    if checked.is_open() && site.place == Some(CheckedIn::Fresh) && !is_harmful {
        let at_work = run_at_work(run, command).await?;
        checked.passes_only_at_work = at_work.exit_code == Some(expected);
        if !checked.passes_only_at_work && ended.did_not_start() && !at_work.did_not_start() {
            // It can only run where the model installed its dependencies, and there its result
            // counts.
            checked = Checked::new(command, expected, &at_work);
            ended = at_work;
        }
    }
    if checked.is_open() && wanted.whose == Whose::Guess && ended.did_not_start() && !checked.passes_only_at_work {
        checked.excuse = Some(Excuse::DidNotStart);
    }
    run.claim.note(Fact::Verified {
        command: command.clone(),
        exit_code: checked.exit_code,
        passed: checked.passed(),
    });
    Ok(checked)
}

/// Returns the result of the project's tests before the work; they run there only once, when first
/// needed. `None` if the command did not end by itself, since that cannot be compared.
async fn before(run: &mut Run, checked: &Checked, site: &mut Site<'_>) -> Result<Option<Before>, Interruption> {
    if let Some(before) = run
        .claim
        .record
        .verified
        .before
        .as_ref()
        .filter(|before| before.command == checked.command)
    {
        return Ok(Some(before.clone()));
    }
    // Set-up that the model added could break the tests there, which would excuse the result.
    let is_set_up_by_model = site.place == Some(CheckedIn::Fresh) && !run.claim.record.worked.added_set_up.is_empty();
    if checked.exit_code.is_none() || is_set_up_by_model {
        return Ok(None);
    }
    let project = run.workspace.opened()?.project.clone();
    let (before, base) = (project.before_work(), project.base());
    let Some(mut ended) = run_on_earlier(run, site, before, &checked.command).await? else {
        return Ok(None);
    };
    let has_failed = ended.exit_code.is_some_and(|code| code != checked.expected);
    if has_failed && before != base {
        // What an earlier run mended, and this one has broken again, is no old failure.
        let at_base = run_on_earlier(run, site, base, &checked.command).await?;
        ended = at_base
            .filter(|at_base| at_base.exit_code == Some(checked.expected))
            .unwrap_or(ended);
    }
    note_before(run, &checked.command, &ended).await.map(Some)
}

/// Runs a command on a commit from before the result; `None` if its files could not be put in the
/// place of the work.
async fn run_on_earlier(
    run: &mut Run,
    site: &mut Site<'_>,
    commit: &CommitId,
    command: &str,
) -> Result<Option<Ended>, Interruption> {
    if site.place == Some(CheckedIn::Fresh) {
        // In a container of its own: the tests of the result have run in the other one, and may
        // have left something there.
        let ended = run_in_check_container(run, &mut site.check_container, commit, command).await?;
        return Ok(Some(ended));
    }
    let project = run.workspace.opened()?.project.clone();
    match project.exchange_for(commit).await.map_err(Interruption::from) {
        Ok(()) => {}
        Err(lost @ Interruption::WorkspaceLost(_)) => return Err(lost),
        Err(interruption) => {
            tracing::warn!(task = %run.claim.lease.task, "the tests were not run on what was there before: {interruption:?}");
            return Ok(None);
        }
    }
    Ok(Some(ended(open::execute(run, command).await?)))
}

/// Saves how the project's tests ended before the work.
async fn note_before(run: &mut Run, command: &str, ended: &Ended) -> Result<Before, Interruption> {
    let before = Before::new(command, ended);
    run.claim.note(Fact::VerifiedBefore {
        command: before.command.clone(),
        exit_code: before.exit_code,
    });
    run.claim.record.verified.before = Some(before.clone());
    run.claim.save().await?;
    Ok(before)
}

async fn run_check(run: &mut Run, command: &str, site: &mut Site<'_>) -> Result<Ended, Interruption> {
    let place = match site.place {
        Some(place) => place,
        None => check_container::decide_where_to_check(run, site.head).await?,
    };
    site.place = Some(place);
    if place == CheckedIn::Fresh {
        return run_in_check_container(run, &mut site.check_container, site.head, command).await;
    }
    run_at_work(run, command).await
}

/// Runs a command in the container for checks, with `commit` in it. A command that takes this
/// container down has no exit code: the container with the work is another, and the model is told.
async fn run_in_check_container(
    run: &mut Run,
    check_container: &mut Option<CheckContainer>,
    commit: &CommitId,
    command: &str,
) -> Result<Ended, Interruption> {
    let opened = check_container::with_check_container(run, check_container, commit).await?;
    match check_container::execute_at(run, opened, command).await {
        Ok(output) => Ok(ended(output)),
        Err(Interruption::WorkspaceLost(reason)) => {
            check_container::close_check_container(&mut run.claim, check_container).await;
            // A check cannot reach the container with the work. Where that is gone as well, it was
            // not the check that took them down, and the stage begins again.
            let container = run.workspace.opened()?.project.container();
            container.require_surviving().await?;
            Ok(Ended::new(None, reason, PROJECT))
        }
        Err(interruption) => Err(interruption),
    }
}

/// Runs a command in the container where the model worked, on exactly what was committed.
async fn run_at_work(run: &mut Run, command: &str) -> Result<Ended, Interruption> {
    run.workspace.opened()?.project.undo_checks().await?;
    Ok(ended(open::execute(run, command).await?))
}

fn ended(output: ToolOutput) -> Ended {
    let fields = output.structured.as_ref();
    // Without an exit code the command did not end by itself, which is never a pass.
    let exit_code = fields.and_then(|fields| fields["exit_code"].as_i64());
    let reached_limit = fields.and_then(|fields| fields["reached_limit_s"].as_u64());
    Ended {
        reached_limit,
        ..Ended::new(exit_code, output.text, PROJECT)
    }
}
