//! The workspace, tools and conversation of one run. Opened at the first need in each process, so
//! that a run continues in the same way after a restart as after a pause.

mod described; // which tools the model is told of

use std::sync::Arc;
use std::time::Instant;

use crate::agent::claim::Claim;
use crate::agent::code_index;
use crate::agent::dialogue::control_tools::ControlTools;
use crate::agent::open_workspace::{OpenWorkspace, SnapshotTimer};
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::execute;
use crate::agent::workspace::large_files;
use crate::agent::workspace::set_up;
use crate::agent::workspace::source;
use crate::agent::workspace::submodules;
use crate::environment::{Container, Environment, EnvironmentError, KeepResult, Purpose};
use crate::journal::fact::Fact;
use crate::journal::fact::set_up::NotKept;
use crate::repository::mirror::Mirror;
use crate::rules;
use crate::task::state::{Judged, State};
use crate::tool::mcp::McpServer;
use crate::tool::toolbox::Toolbox;
use crate::tool::{ToolOutput, ToolServer};
use crate::workspace::opening::{OpenedProject, Opening, SetUp};
use crate::workspace::prefetch::Prefetch;
use crate::workspace::tools::code_search::CodeSearchServer;
use crate::workspace::tools::edit_form::EditForm;
use crate::workspace::tools::path_filter::PathFilter;
use crate::workspace::tools::redaction_guard::RedactionGuard;
use described::described;

/// Name of the environment whose image the project's rules name.
const PROJECTS_OWN: &str = "project";

/// Workspace and container state before the tools are added.
struct Foundation {
    opened: OpenedProject,
    /// Whether the container was just started.
    is_new: bool,
    /// The reason why the result can no longer be delivered to its branch.
    not_there: Option<Interruption>,
}

/// Opens workspace and tools unless they are open: reuses the container of an earlier process, or
/// starts one and copies the project in, with saved unfinished work. A stage that works in the
/// container begins with it.
pub(crate) async fn ensure_open(run: &mut Run) -> Result<(), Interruption> {
    if run.workspace.open.is_some() {
        return Ok(());
    }
    // Boxed: opening is rare, and its large future would be carried by every stage.
    Box::pin(open(run)).await
}

async fn open(run: &mut Run) -> Result<(), Interruption> {
    let Foundation {
        opened,
        is_new,
        not_there,
    } = Box::pin(open_container(run)).await?;
    let search = match code_search(run).await {
        Ok(search) => search,
        Err(interruption) => {
            // Nothing else knows of a new container. That of an earlier process may have work that
            // is saved nowhere else.
            if is_new {
                let container = opened.project.container_id().to_owned();
                opened.discard().await;
                run.claim.note(Fact::EnvironmentRemoved { container });
            }
            return Err(interruption);
        }
    };
    let is_replacement = is_new && is_prepared(&run.claim);
    let server = RedactionGuard::new(Box::new(opened.tools), Arc::clone(&run.claim.services.redactor));
    let rules = &run.claim.record.planned.rules;
    let server: Box<dyn ToolServer> = if rules.files.leave_something_out() {
        Box::new(PathFilter::new(Box::new(server), rules.files.clone()))
    } else {
        Box::new(server)
    };
    let server = EditForm::new(server, run.claim.services.settings.edits);
    let mut servers: Vec<Arc<dyn ToolServer>> = vec![Arc::new(server)];
    // Nobody answers during a local task: the person waits for the command to end.
    let control_tools = Arc::new(ControlTools::new(
        run.claim.record.request.local.is_none(),
        run.claim.record.planned.plan.is_some(),
        &run.claim.record.planned.rules.tools,
    ));
    servers.push(Arc::<ControlTools>::clone(&control_tools));
    servers.extend(search);
    let rules = &run.claim.record.planned.rules;
    let settings = &run.claim.services.settings;
    let configured = settings
        .mcp_servers
        .iter()
        .map(|config| -> Arc<dyn ToolServer> { Arc::new(McpServer::configured(config, &settings.program)) });
    let toolbox = Toolbox::new(servers, rules.tools.clone());
    let toolbox = Arc::new(toolbox.with_others(configured.collect(), settings.mcp_schema_bytes));
    // From here on the workspace is closed with the run, whatever happens next.
    let opened = run.workspace.open.insert(OpenWorkspace {
        project: Arc::new(opened.project),
        toolbox,
        control_tools,
        specs: Arc::from([]),
        keeping: SnapshotTimer::default(),
    });
    let (workspace, toolbox) = (Arc::clone(&opened.project), Arc::clone(&opened.toolbox));
    if let Some(interruption) = not_there {
        // The error comes only now because an open workspace is needed to save the work so far.
        return Err(interruption);
    }
    let specs = described(&run.claim.unless_stopped(toolbox.specs()).await?);
    if let Some(opened) = &mut run.workspace.open {
        opened.specs = specs;
    }
    if is_replacement {
        // The installed dependencies were lost with the previous container.
        set_up::set_up(run, &workspace, &toolbox).await?;
        run.claim.record.prepared.is_replacement = true;
        note_container(run);
        run.claim.save().await?;
    }
    Ok(())
}

/// Returns the server with the search of the code index at the base, where there is one.
async fn code_search(run: &mut Run) -> Result<Option<Arc<dyn ToolServer>>, Interruption> {
    let (Some(mirror), Some(base)) = (run.workspace.mirror.clone(), run.claim.record.planned.base.clone()) else {
        return Ok(None);
    };
    let code = code_index::open(&mut run.claim, &mirror, &base.commit).await?;
    Ok(code.map(|code| -> Arc<dyn ToolServer> { Arc::new(CodeSearchServer(code)) }))
}

/// Records that the container is complete, so that a later process does not reuse a partial one.
pub(crate) fn note_container(run: &mut Run) {
    run.claim.record.prepared.container = run
        .workspace
        .open
        .as_ref()
        .map(|opened| opened.project.container_id().to_owned());
}

/// Returns true if Preparing was finished. Until then a container of the run may hold only part of
/// the project.
fn is_prepared(claim: &Claim) -> bool {
    claim.record.prepared.is_repeated
        || matches!(
            claim.state,
            State::Working | State::Verifying | State::Reviewing(Judged::Result) | State::Delivering
        )
}

async fn open_container(run: &mut Run) -> Result<Foundation, Interruption> {
    let (mirror, not_there) = if let Some(mirror) = &run.workspace.mirror {
        (mirror.clone(), None)
    } else {
        let item = run.reporter.item(&mut run.claim).await?;
        let source = source::source(run, item.as_ref()).await?;
        let not_there = match &item {
            Some(item) => source::why_not_there(&run.claim, item, &source.mirror).await?,
            None => None,
        };
        if let Some(base) = run.claim.record.planned.base.as_ref().map(|base| base.commit.clone()) {
            // What the model was told of them stands in its conversation already.
            large_files::fetch(run, &source, &base).await?;
            submodules::fetch(run, &source, &base).await?;
        }
        (source.mirror, not_there)
    };
    let (name, environment) = environment(&run.claim)?;
    let opening = opening(run, name, environment, mirror, SetUp::Known(set_up_wanted(&run.claim)))?;
    if let Some(container) = left_container(&run.claim).await? {
        return Ok(Foundation {
            opened: opening.take_over(container).await?,
            is_new: false,
            not_there,
        });
    }
    let begun = Instant::now();
    let early = match run.workspace.early.take() {
        Some(early) => early.take_for(&opening).await,
        None => None,
    };
    let opened = if let Some(opened) = early {
        opened
    } else {
        let progress = |line: String| {
            tracing::info!(task = %run.claim.lease.task, "{line}");
            run.reporter.tell_terminal(&run.claim, &line);
        };
        opening.bring_images(&progress).await?;
        opening.open().await?
    };
    run.claim.note(Fact::EnvironmentStarted {
        environment: opening.name,
        image: opening.environment.image,
        digest: opened.project.container().digest().to_owned(),
        container: opened.project.container_id().to_owned(),
        milliseconds: crate::workspace::containers::milliseconds_since(begun),
        is_set_up: opened.project.set_up().is_some(),
        services: opened.services.clone(),
        has_waited: opened.has_waited,
    });
    Ok(Foundation {
        opened,
        is_new: true,
        not_there,
    })
}

/// Returns the container of an earlier process to work in, if it holds the whole project.
async fn left_container(claim: &Claim) -> Result<Option<Container>, Interruption> {
    if claim.record.prepared.container.is_none() || !is_prepared(claim) {
        return Ok(None);
    }
    let engine = claim.services.containers.engine().await?;
    engine.remove_checks(claim.lease.run).await?;
    Ok(find_left(claim).await?)
}

/// Returns the container of an earlier process, if that has put the whole project into it.
pub(crate) async fn find_left(claim: &Claim) -> Result<Option<Container>, EnvironmentError> {
    let Some(complete) = claim.record.prepared.container.as_deref() else {
        return Ok(None);
    };
    let left = claim.services.containers.engine().await?.find(claim.lease.run).await?;
    Ok(left.filter(|left| left.id() == complete))
}

/// Starts to open the environment that the project's files suggest, while the model plans.
pub(crate) fn open_early(run: &mut Run, files: &[String], mirror: &Mirror) {
    let config = &run.claim.services.containers.config;
    let asked_for = run
        .claim
        .record
        .request
        .local
        .as_ref()
        .and_then(|local| local.environment.clone());
    let own = project_environment(&run.claim).filter(|_| asked_for.is_none());
    let expected = asked_for.or_else(|| config.expected_for(files).map(str::to_owned));
    let expected = expected.and_then(|name| Some((name.clone(), config.environments.get(&name)?.clone())));
    let Some((name, environment)) = own.or(expected).filter(|_| run.workspace.early.is_none()) else {
        return;
    };
    if let Ok(opening) = opening(run, name, environment, mirror.clone(), SetUp::Newest) {
        run.workspace.early = Some(Prefetch::begin(opening));
    }
}

/// Returns the environment with the image that the project's rules name, if the configuration
/// allows it. Its other settings come from the environment that the rules name beside it, or the
/// default one.
pub(crate) fn project_environment(claim: &Claim) -> Option<(String, Environment)> {
    let config = &claim.services.containers.config;
    let wanted = &claim.record.planned.rules.environment;
    let image = wanted.image.as_ref()?;
    if !rules::Environment::allows(&config.by_rules.images, image) {
        return None;
    }
    let model = wanted.name.as_deref().unwrap_or(&config.default_environment);
    let model = config.environments.get(model)?.clone();
    let own = Environment {
        image: image.clone(),
        build: None,
        ..model
    };
    Some((PROJECTS_OWN.to_owned(), own))
}

/// Closes an environment that was opened early and not used.
pub(crate) async fn discard_early(run: &mut Run) {
    if let Some(early) = run.workspace.early.take() {
        early.discard().await;
    }
}

/// Returns the key of the set-up that the plan asks for; `None` for a run that was already
/// prepared, since its files may no longer match the project's.
fn set_up_wanted(claim: &Claim) -> Option<String> {
    let dependencies = claim
        .record
        .planned
        .dependencies
        .as_ref()
        .filter(|_| !is_prepared(claim))?;
    dependencies.set_up_by(&set_up::set_up_commands(claim))
}

/// Saves the environment after its set-up, for later runs on the project. A failure only costs them
/// time.
pub(crate) async fn keep_set_up(run: &Run) {
    let (Some(opened), Some(done)) = (&run.workspace.open, set_up_wanted(&run.claim)) else {
        return;
    };
    let kept = async {
        let engine = run.claim.services.containers.engine().await?;
        engine.keep_set_up(opened.project.container(), &done).await
    };
    match kept.await {
        Ok(KeepResult::Kept | KeepResult::NoPlace) => {}
        Ok(KeepResult::TooLarge { bytes }) => run.claim.note(Fact::SetUpNotKept(NotKept::TooLarge {
            bytes,
            max_bytes: run.claim.services.containers.config.snapshots.max_bytes,
        })),
        Ok(KeepResult::HasVolumes { volumes }) => {
            run.claim.note(Fact::SetUpNotKept(NotKept::HasVolumes { volumes }));
        }
        Err(error) => tracing::warn!(task = %run.claim.lease.task, "the environment could not be kept: {error}"),
    }
}

/// Returns how the workspace of the run is opened, in this environment and from this mirror. Starts
/// nothing.
pub(crate) fn opening(
    run: &Run,
    name: String,
    environment: Environment,
    mirror: Mirror,
    set_up: SetUp,
) -> Result<Opening, Interruption> {
    let Some(base) = run.claim.record.planned.base.clone() else {
        return Err(Interruption::failed("there is no commit to work on"));
    };
    Ok(Opening {
        containers: Arc::clone(&run.claim.services.containers),
        author: run.claim.services.settings.repository.clone(),
        task: run.claim.lease.task.clone(),
        run: run.claim.lease.run,
        purpose: Purpose::Work,
        base,
        mirror,
        name,
        environment,
        dependencies: run.claim.record.planned.dependencies.clone(),
        set_up,
        ledger: Arc::clone(&run.workspace.ledger),
        stop: run.claim.stop.asked.clone(),
    })
}

/// Closes everything but the container, which holds work that is saved nowhere else.
pub(crate) async fn leave_container(run: &mut Run) {
    discard_early(run).await;
    if let Some(opened) = run.workspace.open.take() {
        opened.abandon().await;
    }
    run.workspace.ledger.close();
}

/// Removes an unused container of an earlier process at once, rather than at the sweep of a later
/// start.
pub(crate) async fn remove_left_container(claim: &Claim) {
    let removed = async { claim.services.containers.engine().await?.remove(claim.lease.run).await };
    if let Err(error) = removed.await {
        tracing::warn!(task = %claim.lease.task, "a container could not be removed, the next start sweeps it: {error}");
    }
}

/// Returns name and configuration of the run's environment.
pub(crate) fn environment(claim: &Claim) -> Result<(String, Environment), Interruption> {
    let config = &claim.services.containers.config;
    if claim.record.planned.environment.as_deref() == Some(PROJECTS_OWN)
        && let Some(own) = project_environment(claim)
    {
        return Ok(own);
    }
    let name = claim
        .record
        .planned
        .environment
        .clone()
        .unwrap_or_else(|| config.default_environment.clone());
    let environment = config.environments.get(&name).cloned().ok_or_else(|| {
        let known: Vec<&str> = config.environments.keys().map(String::as_str).collect();
        Interruption::failed(format!(
            "there is no environment `{name}`; configured are: {}",
            known.join(", ")
        ))
    })?;
    Ok((name, environment))
}

/// Runs a command of the program itself in the workspace, and returns its full output. If the stop
/// of the program cuts it short, that is an error and not a result: the next process runs it again.
pub(crate) async fn execute(run: &mut Run, command: &str) -> Result<ToolOutput, Interruption> {
    if run.claim.stop.asked.is_cancelled() {
        return Err(Interruption::Cancelled);
    }
    let toolbox = Arc::clone(&run.workspace.opened()?.toolbox);
    execute::execute_with(run, &toolbox, command).await
}
