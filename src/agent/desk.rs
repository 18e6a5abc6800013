//! What the model works at: the workspace, the tools and the conversation of one run. Opened at the first need in each
//! process, so that a run goes on after a restart as it does after a pause.

use std::sync::Arc;

use super::confined::Confined;
use super::keeping::Keeping;
use super::marked::Marked;
use super::preparing;
use super::run::Run;
use super::setback::Setback;
use super::way_out::WayOut;
use super::wishes::WishBox;
use super::workspace::Workspace;
use crate::conversation::{ToolCall, ToolSpec};
use crate::environment::container::Container;
use crate::environment::docker::Start;
use crate::environment::{Environment, EnvironmentError};
use crate::gateway::Gateway;
use crate::journal::fact::Fact;
use crate::llm::chat::Chat;
use crate::task::state::State;
use crate::tool::mcp::McpServer;
use crate::tool::toolbox::Toolbox;
use crate::tool::{ToolOutput, ToolServer};

/// Open while a run is worked on in this process.
pub struct Desk {
    pub workspace: Arc<Workspace>,
    pub toolbox: Arc<Toolbox>,
    pub wishes: Arc<WishBox>,
    pub specs: Arc<[ToolSpec]>,
    /// `None` before the conversation is opened, and while a stage has it in hand.
    pub chat: Option<Chat>,
    pub keeping: Keeping,
}

/// What the desk is made around.
struct Opened {
    workspace: Workspace,
    /// Its container is a new one.
    is_new: bool,
    /// Why the work has nowhere to go any more.
    not_there: Option<Setback>,
}

impl Desk {
    /// Ends the tool servers and removes the container; returns which it was.
    pub async fn clear(mut self) -> String {
        self.keeping.finish().await;
        self.toolbox.close().await;
        self.workspace.remove().await;
        self.workspace.container().to_owned()
    }

    /// Ends the tool servers and leaves the container as it is.
    async fn abandon(mut self) {
        self.keeping.finish().await;
        self.toolbox.close().await;
    }
}

impl Run {
    /// Opens workspace and tools unless they are open: takes over the container an earlier process left, or starts one
    /// and hands the project in, with the unfinished work that was kept.
    pub(super) async fn open_desk(&mut self) -> Result<&mut Desk, Setback> {
        if self.desk.is_none() {
            // Boxed: opening is rare, and its large future would be carried by every stage.
            let Opened {
                workspace,
                is_new,
                not_there,
            } = Box::pin(self.open_workspace()).await?;
            let is_replacement = is_new && self.is_prepared();
            let server = workspace.server(&self.workshop.settings.environments);
            let server = Marked::new(server, Arc::clone(&self.workshop.redactor));
            let rules = &self.record.rules;
            let mut servers: Vec<Arc<dyn ToolServer>> = vec![if rules.files.leave_something_out() {
                Arc::new(Confined::new(Box::new(server), rules.files.clone()))
            } else {
                Arc::new(server)
            }];
            // Who gave a local task waits for its end, and cannot be asked.
            let wishes = Arc::new(WishBox::new(self.record.local.is_none(), self.record.plan.is_some()));
            servers.push(Arc::<WishBox>::clone(&wishes));
            for config in &self.workshop.settings.mcp_servers {
                servers.push(Arc::new(McpServer::configured(config, &self.workshop.settings.program)));
            }
            let toolbox = Arc::new(Toolbox::new(servers, rules.tools.clone()));
            // From here on the desk is cleared with the run, whatever happens next.
            let desk = self.desk.insert(Desk {
                workspace: Arc::new(workspace),
                toolbox,
                wishes,
                specs: Arc::from([]),
                chat: None,
                keeping: Keeping::default(),
            });
            let toolbox = Arc::clone(&desk.toolbox);
            if let Some(setback) = not_there {
                // Now that the desk is open, what was done so far can be shown beside it.
                return Err(setback);
            }
            let specs = self.unless_stopped(toolbox.specs()).await?;
            if let Some(desk) = &mut self.desk {
                desk.specs = specs;
            }
            if is_replacement {
                // What the commands set up went with the container that was there before. Boxed: they need the desk.
                Box::pin(preparing::set_up(self)).await?;
                self.record.is_replacement = true;
                self.note_container();
                self.save().await?;
            }
        }
        self.desk
            .as_mut()
            .ok_or_else(|| Setback::failed("the desk was not opened"))
    }

    /// Notes down which container is complete, so that a process that takes over knows it from half a one.
    pub(super) fn note_container(&mut self) {
        self.record.container = self.desk.as_ref().map(|desk| desk.workspace.container().to_owned());
    }

    /// Before Preparing was finished a container may hold half a project.
    fn is_prepared(&self) -> bool {
        matches!(self.state, State::Working | State::Verifying | State::Delivering)
    }

    async fn open_workspace(&mut self) -> Result<Opened, Setback> {
        let settings = self.workshop.settings.clone();
        let Some(base) = self.record.base.clone() else {
            return Err(Setback::failed("there is no commit to work on"));
        };
        let workshop = Arc::clone(&self.workshop);
        let docker = workshop.docker().await?;
        let (mirror, not_there) = if let Some(mirror) = &self.mirror {
            (mirror.clone(), None)
        } else {
            let item = self.item().await?;
            let mirror = self.source(item.as_ref()).await?.mirror;
            let not_there = match &item {
                Some(item) => self.why_not_there(item, &mirror).await?,
                None => None,
            };
            (mirror, not_there)
        };
        let run = self.lease.run.to_string();
        let (name, environment) = self.environment()?;
        if self.is_prepared()
            && let Some(container) = docker.find(self.lease.run).await?
            && self.record.container.as_deref() == Some(container.id())
        {
            let way_out = self.open_way_out(&container, &environment);
            let way_out = self.unless_stopped(way_out).await?;
            return Ok(Opened {
                workspace: Workspace::take_over(container, mirror, base, run).with(way_out),
                is_new: false,
                not_there,
            });
        }
        let progress = |line: String| {
            tracing::info!(task = %self.lease.task, "{line}");
            self.tell_terminal(&line);
        };
        let images = async {
            docker.ensure_image(&environment, &progress).await?;
            docker.ensure_companions(&name, &progress).await
        };
        self.unless_stopped(images).await?;
        let executor = settings.environments.executor_file().map_err(Setback::failed)?;
        let begun = std::time::Instant::now();
        let start = Start {
            task: &self.lease.task,
            run: self.lease.run,
            environment: &name,
            image: &environment.image,
            executor: &executor,
        };
        let container = docker.start(&start).await?;
        let id = container.id().to_owned();
        let handing_in = Workspace::hand_in(container.clone(), mirror, base, &settings.repository, run);
        let way_out = async { Ok(self.open_way_out(&container, &environment).await?) };
        let companions = docker.start_companions(&start, &container).await;
        let companions = async { Ok(companions?.until_ready().await?) };
        let furnishing = Box::pin(async { tokio::try_join!(handing_in, way_out, companions) });
        let workspace = match self.unless_stopped(furnishing).await {
            Ok((workspace, way_out, ())) => workspace.with(way_out),
            Err(setback) => {
                if let Err(error) = container.remove().await {
                    tracing::warn!("the container {id} could not be removed, the next start sweeps it: {error}");
                }
                return Err(setback);
            }
        };
        self.note(Fact::EnvironmentStarted {
            environment: name,
            image: environment.image,
            container: id,
            milliseconds: super::ask::milliseconds(begun),
        });
        Ok(Opened {
            workspace,
            is_new: true,
            not_there,
        })
    }

    /// Opens the way out where the configuration gives containers one.
    async fn open_way_out(
        &self,
        container: &Container,
        environment: &Environment,
    ) -> Result<Option<WayOut>, EnvironmentError> {
        let settings = &self.workshop.settings;
        let Some(policy) = settings.environments.policy(environment) else {
            return Ok(None);
        };
        let gateway = Gateway::new(policy, Arc::clone(&settings.upstream), Arc::clone(&self.ledger));
        Ok(Some(WayOut::open(container.clone(), Arc::new(gateway)).await?))
    }

    /// Closes what is open but the container: what it holds is nowhere else.
    pub(super) async fn leave_container(&mut self) {
        if let Some(desk) = self.desk.take() {
            desk.abandon().await;
        }
    }

    /// Removes the container of an earlier process that this one had no use for; the sweep of a later start would, too.
    pub(super) async fn remove_left_container(&self) {
        let removed = async { self.workshop.docker().await?.remove(self.lease.run).await };
        if let Err(error) = removed.await {
            tracing::warn!(task = %self.lease.task, "a container could not be removed, the next start sweeps it: {error}");
        }
    }

    /// Returns the name and section of the run's environment.
    pub(super) fn environment(&self) -> Result<(String, Environment), Setback> {
        let config = &self.workshop.settings.environments;
        let name = self
            .record
            .environment
            .clone()
            .unwrap_or_else(|| config.default_environment.clone());
        let environment = config.environments.get(&name).cloned().ok_or_else(|| {
            let known: Vec<&str> = config.environments.keys().map(String::as_str).collect();
            Setback::failed(format!(
                "there is no environment `{name}`; configured are: {}",
                known.join(", ")
            ))
        })?;
        Ok((name, environment))
    }

    /// Runs a shell command of the program's own in the workspace, and returns its whole output. One that the stop of the program cuts short says nothing
    /// of the work, so it is no result: it is run again by the next process.
    pub(super) async fn execute(&mut self, command: &str) -> Result<ToolOutput, Setback> {
        if self.stop.asked.is_cancelled() {
            return Err(Setback::Interrupted);
        }
        let toolbox = Arc::clone(&self.open_desk().await?.toolbox);
        let args = serde_json::Map::from_iter([("command".to_owned(), command.into())]);
        let call = ToolCall {
            id: String::new(),
            tool: format!("{}/execute_command", super::WORKSPACE),
            args,
        };
        let (output, _) = self.call_whole(toolbox.call_unbound(&call), &call).await?;
        self.note_refused();
        if self.stop.deadline.is_cancelled() {
            return Err(Setback::Interrupted);
        }
        Ok(output)
    }
}
