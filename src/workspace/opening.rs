//! Opens a container with the project and its tools. Needs nothing of the run's own state, so that
//! it can be done while the run still plans.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::environment::{Container, Engine, Environment, EnvironmentError, Purpose, StartRequest, WantedSetUp};
use crate::gateway::Gateway;
use crate::gateway::ledger::Ledger;
use crate::repository::Config as Author;
use crate::repository::mirror::Mirror;
use crate::task::id::{RunId, TaskId};
use crate::tool::mcp::McpServer;
use crate::workspace::base::Base;
use crate::workspace::containers::Containers;
use crate::workspace::error::WorkspaceError;
use crate::workspace::pool::NameGuard;
use crate::workspace::project::{Project, Upload, UploadTarget};
use crate::workspace::set_up::dependencies::Dependencies;
use crate::workspace::streams::link::end_earlier;
use crate::workspace::streams::multiplexer::{Channels, Unopened};
use crate::workspace::streams::tunnel::{self, ContainerTunnel, TunnelEnd};

/// Everything that determines a workspace to open.
#[derive(Clone)]
pub(crate) struct Opening {
    pub(crate) containers: Arc<Containers>,
    /// Author of the commits made in the container.
    pub(crate) author: Author,
    pub(crate) task: TaskId,
    pub(crate) run: RunId,
    /// A container for checks gets the commit of `base`, without unfinished work.
    pub(crate) purpose: Purpose,
    pub(crate) base: Base,
    pub(crate) mirror: Mirror,
    /// The environment's name.
    pub(crate) name: String,
    pub(crate) environment: Environment,
    /// Inputs of the set-up; `None` if its result is neither saved nor reused.
    pub(crate) dependencies: Option<Dependencies>,
    pub(crate) set_up: SetUp,
    /// Records the connections that the container is refused.
    pub(crate) ledger: Arc<Ledger>,
    /// Aborts the opening, which then leaves no container behind.
    pub(crate) stop: CancellationToken,
}

/// Selects the saved set-up to start from.
#[derive(Clone)]
pub(crate) enum SetUp {
    /// The latest one, since the plan is not known yet.
    Newest,
    /// The one with this name, or none.
    Known(Option<String>),
}

/// An opened workspace and its tool server.
pub(crate) struct OpenedProject {
    pub(crate) project: Project,
    /// The built-in tools.
    pub(crate) tools: McpServer,
    /// The services that were started with it.
    pub(crate) services: BTreeMap<String, String>,
    /// The container was started before and waited for the run.
    pub(crate) has_waited: bool,
}

/// A container without the project. Parts that are `None` are still to be opened; a container from
/// the pool has all of them.
struct StartedContainer {
    container: Container,
    inner_end: Option<TunnelEnd>,
    receiver: Option<UploadTarget>,
    tools: Option<McpServer>,
    /// Held until the project is in the container, so that its replacement in the pool starts
    /// after.
    mark: Option<NameGuard>,
}

impl StartedContainer {
    fn new(container: Container) -> Self {
        Self {
            container,
            inner_end: None,
            receiver: None,
            tools: None,
            mark: None,
        }
    }
}

/// The reason why a container could not be made ready.
enum Flaw {
    /// The fault of this container: of its streams, or of something in it.
    OfContainer(WorkspaceError),
    /// A fault that would be the same in another container.
    Elsewhere(WorkspaceError),
}

impl Opening {
    /// Returns true if the images are local, so that opening takes no longer than to start a
    /// container.
    pub(crate) async fn is_at_hand(&self) -> Result<bool, EnvironmentError> {
        let engine = self.containers.engine().await?;
        Ok(engine.has_image(&self.environment.image).await? && engine.has_services(&self.name).await?)
    }

    /// Pulls or builds missing images; `progress` receives short lines for people.
    pub(crate) async fn bring_images(&self, progress: &(dyn Fn(String) + Send + Sync)) -> Result<(), WorkspaceError> {
        let images = async {
            let engine = self.containers.engine().await?;
            engine.ensure_image(&self.environment, progress).await?;
            Ok(engine.ensure_services(&self.name, progress).await?)
        };
        self.unless_stopped(images).await
    }

    /// Takes over a container of an earlier process, which has the project in it.
    pub(crate) async fn take_over(&self, container: Container) -> Result<OpenedProject, WorkspaceError> {
        let opening = async {
            end_earlier(&container).await?;
            let channels = Channels::anew(&container).await;
            let way_out = self.way_out(&container, None, channels.tunnel).await?;
            Ok((way_out, channels.tools))
        };
        // Boxed, because it has calls to the engine in it, which are large.
        let (way_out, channel) = Box::pin(self.unless_stopped(opening)).await?;
        let (mirror, base) = (self.mirror.clone(), self.base.clone());
        let tools = self.tools(&container, channel);
        let project = Project::take_over(container, mirror, base, self.run.to_string());
        Ok(OpenedProject {
            project: project.with(way_out),
            tools,
            services: BTreeMap::new(),
            has_waited: false,
        })
    }

    /// Takes a container from the pool or starts one, and copies the project in, with saved
    /// unfinished work. The images must be local.
    pub(crate) async fn open(&self) -> Result<OpenedProject, WorkspaceError> {
        let engine = self.containers.engine().await?;
        let executor = engine.find_executor(&self.environment.image).await?;
        let place = self.dependencies.as_ref().map(Dependencies::place);
        let start = self.start(&executor, place.as_deref());
        let author = &self.author;
        let packing = || async {
            let (mirror, base, run) = (self.mirror.clone(), self.base.clone(), self.run.to_string());
            match self.purpose {
                Purpose::Work => Upload::pack(mirror, base, author, run).await,
                Purpose::Checks => Upload::pack_commit(mirror, base, author, run).await,
            }
        };
        // Concurrently, here and below: each future mostly waits for other programs.
        let (parcel, begun) = tokio::join!(packing(), self.begin(engine, &start));
        let begun = begun?;
        let has_waited = begun.mark.is_some();
        match self.complete(engine, &start, begun, parcel).await {
            Ok(opened) => Ok(opened),
            Err(Flaw::OfContainer(error)) if has_waited && !self.stop.is_cancelled() => {
                // For example, the engine was restarted. A fault that a new container has as well
                // is reported for that one.
                tracing::info!(task = %self.task, "a container that waited cannot be used: {error}");
                self.containers.pool.distrust(&self.name);
                let begun = StartedContainer::new(engine.start(&start).await?);
                let completed = self.complete(engine, &start, begun, packing().await).await;
                completed.map_err(Flaw::into_error)
            }
            Err(flaw) => Err(flaw.into_error()),
        }
    }

    /// Takes a container from the pool, or starts one.
    async fn begin(&self, engine: &Engine, start: &StartRequest<'_>) -> Result<StartedContainer, EnvironmentError> {
        let images = engine.start_images(start).await?;
        let Some(waiting) = self.containers.pool.take(&self.name, &images) else {
            return engine.start_on(start, images).await.map(StartedContainer::new);
        };
        let container = waiting.warm.container;
        match engine.adopt(start, &images, container.clone()).await {
            Ok(container) => Ok(StartedContainer {
                container,
                inner_end: waiting.inner_end,
                receiver: Some(waiting.receiver),
                tools: Some(waiting.tools),
                mark: Some(waiting.mark),
            }),
            Err(error) => {
                tracing::info!(task = %self.task, "a container that waited cannot be taken: {error}");
                self.containers.pool.distrust(&self.name);
                if let Err(error) = container.remove().await {
                    tracing::warn!("it could not be removed, it is swept later: {error}");
                }
                engine.start_on(start, images).await.map(StartedContainer::new)
            }
        }
    }

    /// Completes a container; removes it on failure.
    async fn complete(
        &self,
        engine: &Engine,
        start: &StartRequest<'_>,
        begun: StartedContainer,
        parcel: Result<Upload, WorkspaceError>,
    ) -> Result<OpenedProject, Flaw> {
        let container = begun.container;
        let completing = Box::pin(async {
            let parcel = parcel.map_err(Flaw::Elsewhere)?;
            let channels = Channels::of(&container).await;
            let handing_in = async {
                let receiver = match begun.receiver {
                    Some(receiver) => receiver,
                    None => Project::receiver(&container, channels.script)
                        .await
                        .map_err(Flaw::of_container)?,
                };
                let handed_in = Project::hand_in(container.clone(), receiver, parcel).await;
                handed_in.map_err(Flaw::OfContainer)
            };
            let way_out = async {
                let way_out = self.way_out(&container, begun.inner_end, channels.tunnel).await;
                way_out.map_err(Flaw::of_container)
            };
            let starting_services = async {
                let started = engine.start_services(start, &container).await;
                let started = started.map_err(Flaw::elsewhere)?;
                started.until_ready().await.map_err(Flaw::elsewhere)?;
                Ok(started.digests())
            };
            let connecting = async {
                let tools = match begun.tools {
                    // A connection that was lost in the pool must not use up a reconnect of the
                    // run.
                    Some(tools) if tools.is_connected().await => tools,
                    Some(_) | None => self.tools(&container, channels.tools),
                };
                tools.connect().await.map_err(Flaw::of_container)?;
                Ok(tools)
            };
            tokio::try_join!(handing_in, way_out, starting_services, connecting)
        });
        let completed = tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Flaw::Elsewhere(WorkspaceError::Cancelled)),
            completed = completing => completed,
        };
        match completed {
            Ok((project, way_out, services, tools)) => Ok(OpenedProject {
                project: project.with(way_out),
                tools,
                services,
                has_waited: begun.mark.is_some(),
            }),
            Err(flaw) => {
                // Removes its services too, but no other container of the run.
                if let Err(error) = container.remove().await {
                    let id = container.id();
                    tracing::warn!("the container {id} could not be removed, the next start sweeps it: {error}");
                }
                Err(flaw)
            }
        }
    }

    fn tools(&self, container: &Container, channel: Option<Unopened>) -> McpServer {
        Project::server(container, &self.containers.config, channel)
    }

    /// Returns true if the wanted set-up was saved, so that none of it has to be run.
    pub(crate) async fn is_set_up_kept(&self) -> Result<bool, WorkspaceError> {
        let engine = self.containers.engine().await?;
        let executor = engine.find_executor(&self.environment.image).await?;
        let place = self.dependencies.as_ref().map(Dependencies::place);
        let images = engine.start_images(&self.start(&executor, place.as_deref())).await?;
        Ok(images.has_set_up())
    }

    fn start<'a>(&'a self, executor: &'a Path, place: Option<&'a str>) -> StartRequest<'a> {
        let wanted = match &self.set_up {
            SetUp::Newest => Some(WantedSetUp::Newest),
            SetUp::Known(name) => name.as_deref().map(WantedSetUp::Only),
        };
        StartRequest {
            task: &self.task,
            run: self.run,
            purpose: self.purpose,
            environment: &self.name,
            image: &self.environment.image,
            executor,
            set_up: place.zip(wanted),
        }
    }

    /// Opens the tunnel to the network if the configuration has one: at the inner end from the
    /// pool, over the channel, or over an attached process.
    async fn way_out(
        &self,
        container: &Container,
        inner_end: Option<TunnelEnd>,
        channel: Option<Unopened>,
    ) -> Result<Option<ContainerTunnel>, EnvironmentError> {
        let containers = &self.containers;
        let Some(policy) = containers.config.policy(&self.environment) else {
            return Ok(None);
        };
        let gate = tunnel::gate(&containers.config.network);
        let (upstream, ledger) = (Arc::clone(&containers.upstream), Arc::clone(&self.ledger));
        let gateway = Arc::new(Gateway::new(policy, upstream, gate.clone(), ledger));
        let inner_end = match inner_end {
            Some(inner_end) => inner_end,
            None => TunnelEnd::over(channel, container).await?,
        };
        Ok(Some(ContainerTunnel::serve(
            container.clone(),
            gateway,
            gate,
            inner_end,
        )))
    }

    async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, WorkspaceError>>,
    ) -> Result<T, WorkspaceError> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(WorkspaceError::Cancelled),
            result = work => result,
        }
    }
}

impl Flaw {
    fn of_container(reason: impl Into<WorkspaceError>) -> Self {
        Self::OfContainer(reason.into())
    }

    fn elsewhere(reason: impl Into<WorkspaceError>) -> Self {
        Self::Elsewhere(reason.into())
    }

    fn into_error(self) -> WorkspaceError {
        match self {
            Self::OfContainer(error) | Self::Elsewhere(error) => error,
        }
    }
}

impl OpenedProject {
    /// Returns true if the container can be used for `set_up`: it started from that one, or from
    /// none, so that the whole set-up is still to be run.
    pub(crate) fn serves(&self, set_up: &SetUp) -> bool {
        let begun_with = self.project.set_up();
        begun_with.is_none() || matches!(set_up, SetUp::Known(wanted) if wanted.as_deref() == begun_with)
    }

    /// Closes the tools and removes the container.
    pub(crate) async fn discard(self) {
        crate::tool::ToolServer::close(&self.tools).await;
        self.project.remove().await;
    }
}
