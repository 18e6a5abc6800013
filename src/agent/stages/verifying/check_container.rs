//! A container only for checks. It has the commit that would be delivered and its dependencies, and
//! nothing else from the model's container: a planted program, a background process or a forgotten
//! file cannot change a result.

use std::sync::Arc;
use std::time::Instant;

use crate::agent::claim::Claim;
use crate::agent::dialogue::ask;
use crate::agent::record::CheckedIn;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::settings::VerificationEnvironment;
use crate::agent::workspace::execute;
use crate::agent::workspace::open;
use crate::agent::workspace::set_up;
use crate::environment::Purpose;
use crate::journal::fact::Fact;
use crate::repository::CommitId;
use crate::tool::ToolServer;
use crate::tool::toolbox::Toolbox;
use crate::workspace::opening::{Opening, SetUp};
use crate::workspace::project::Project;

/// Maximum number of project files that are examined to tell whether the set-up was saved.
const MOST_FILES: usize = 20_000;

/// A container with one commit in it.
pub(crate) struct CheckContainer {
    commit: CommitId,
    project: Project,
    toolbox: Toolbox,
}

impl CheckContainer {
    async fn close(self) -> String {
        self.toolbox.close().await;
        self.project.remove().await;
        self.project.container_id().to_owned()
    }
}

/// Decides where the checks of `head` run, and records it.
pub(crate) async fn decide_where_to_check(run: &mut Run, head: &CommitId) -> Result<CheckedIn, Interruption> {
    let settings = &run.claim.services.settings.planning.verification;
    let took = run.claim.record.prepared.set_up_milliseconds;
    let is_slow = took > settings.fresh_set_up_seconds.saturating_mul(1_000);
    let place = match settings.environment {
        VerificationEnvironment::Same => CheckedIn::Work,
        VerificationEnvironment::Fresh if !is_slow => CheckedIn::Fresh,
        VerificationEnvironment::Fresh => {
            let opening = check_container_opening(run, head).await?;
            if opening.is_set_up_kept().await? {
                CheckedIn::Fresh
            } else {
                CheckedIn::WorkBecauseOfSetUp {
                    seconds: took.div_ceil(1_000),
                }
            }
        }
    };
    run.claim.record.verified.checked_in = Some(place);
    Ok(place)
}

/// Opens a container with `commit`, unless `check_container` already is one. Another one is closed
/// first, so that a run has at most two containers.
pub(crate) async fn with_check_container<'check_container>(
    run: &mut Run,
    check_container: &'check_container mut Option<CheckContainer>,
    commit: &CommitId,
) -> Result<&'check_container CheckContainer, Interruption> {
    if check_container
        .as_ref()
        .is_some_and(|check_container| check_container.commit != *commit)
    {
        close_check_container(&mut run.claim, check_container).await;
    }
    if check_container.is_none() {
        *check_container = Some(Box::pin(open_check_container(run, commit)).await?);
    }
    check_container
        .as_ref()
        .ok_or_else(|| Interruption::failed("the container for the checks was not opened"))
}

/// Removes the container, if there is one.
pub(crate) async fn close_check_container(claim: &mut Claim, check_container: &mut Option<CheckContainer>) {
    if let Some(check_container) = check_container.take() {
        let container = check_container.close().await;
        claim.note(Fact::EnvironmentRemoved { container });
    }
}

/// Runs a check in the container, and returns its exit code and output.
pub(crate) async fn execute_at(
    run: &mut Run,
    check_container: &CheckContainer,
    command: &str,
) -> Result<crate::tool::ToolOutput, Interruption> {
    execute::execute_with(run, &check_container.toolbox, command).await
}

async fn open_check_container(run: &mut Run, commit: &CommitId) -> Result<CheckContainer, Interruption> {
    let begun = Instant::now();
    let opening = check_container_opening(run, commit).await?;
    let progress = |line: String| tracing::info!(task = %run.claim.lease.task, "{line}");
    opening.bring_images(&progress).await?;
    let opened = Box::pin(opening.open()).await?;
    let is_set_up = opened.project.set_up().is_some();
    let server: Arc<dyn ToolServer> = Arc::new(opened.tools);
    let check_container = CheckContainer {
        commit: commit.clone(),
        project: opened.project,
        toolbox: Toolbox::new(vec![server], run.claim.record.planned.rules.tools.clone()),
    };
    if let Err(interruption) = set_up_check_container(run, &check_container, is_set_up).await {
        check_container.close().await;
        return Err(interruption);
    }
    run.claim.note(Fact::CheckEnvironmentStarted {
        environment: opening.name,
        container: check_container.project.container_id().to_owned(),
        milliseconds: crate::workspace::containers::milliseconds_since(begun),
        is_set_up,
        has_waited: opened.has_waited,
    });
    Ok(check_container)
}

/// Installs the dependencies of the result: by the plan's set-up, the model's pure install
/// commands, and the set-up that it added. If one fails, the checks show it.
async fn set_up_check_container(
    run: &mut Run,
    check_container: &CheckContainer,
    is_set_up: bool,
) -> Result<(), Interruption> {
    let planned = if is_set_up {
        Vec::new()
    } else {
        set_up::set_up_commands(&run.claim)
    };
    let commands = [
        planned,
        run.claim.record.worked.installed.clone(),
        run.claim.record.worked.added_set_up.clone(),
    ]
    .concat();
    let _let_out = check_container.project.let_out();
    for command in &commands {
        // The commands may be many, and each may take as long as the time limit for commands.
        ask::check_limits(&run.claim).await?;
        let output = execute::execute_with(run, &check_container.toolbox, command).await?;
        if output.is_error {
            tracing::info!(task = %run.claim.lease.task, "in the container for the checks `{command}` failed");
        }
    }
    if is_set_up || !commands.is_empty() {
        check_container.project.end_set_up().await?;
    }
    Ok(())
}

async fn check_container_opening(run: &mut Run, commit: &CommitId) -> Result<Opening, Interruption> {
    let (name, environment) = open::environment(&run.claim)?;
    let mirror = run.workspace.opened()?.project.mirror().clone();
    let mut opening = open::opening(run, name, environment, mirror.clone(), SetUp::Known(None))?;
    opening.purpose = Purpose::Checks;
    opening.base.commit = commit.clone();
    let planned = set_up::set_up_commands(&run.claim);
    opening.dependencies = match opening.dependencies.take() {
        // The dependencies of the result may differ from those of the base.
        Some(before) => {
            let (files, are_more) = mirror.files(commit, MOST_FILES).await?;
            let tree = mirror.tree(commit).await?;
            (!are_more).then(|| before.with(&files, tree))
        }
        None => None,
    };
    let done = opening.dependencies.as_ref().and_then(|now| now.set_up_by(&planned));
    opening.set_up = SetUp::Known(done);
    Ok(opening)
}
