//! What the model works at: the workspace, the tools and the conversation of one run. Opened at the
//! first need in each process, so that a run goes on after a restart as it does after a pause.

use std::sync::Arc;
use std::time::Instant;

use super::confined::Confined;
use super::early::Early;
use super::keeping::Keeping;
use super::marked::Marked;
use super::opening::{Opened, Opening, SetUp};
use super::preparing;
use super::run::Run;
use super::setback::Setback;
use super::wishes::WishBox;
use super::workspace::Workspace;
use crate::conversation::{ToolCall, ToolSpec};
use crate::environment::Environment;
use crate::environment::container::Container;
use crate::environment::set_up::Keeping as Kept;
use crate::environment::specification::Purpose;
use crate::journal::fact::Fact;
use crate::llm::chat::Chat;
use crate::repository::mirror::Mirror;
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
struct Foundation {
    opened: Opened,
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
    /// Opens workspace and tools unless they are open: takes over the container an earlier process
    /// left, or starts one and hands the project in, with the unfinished work that was kept.
    pub(super) async fn open_desk(&mut self) -> Result<&mut Desk, Setback> {
        if self.desk.is_none() {
            // Boxed: opening is rare, and its large future would be carried by every stage.
            let Foundation {
                opened,
                is_new,
                not_there,
            } = Box::pin(self.open_workspace()).await?;
            let is_replacement = is_new && self.is_prepared();
            let server = Marked::new(opened.tools, Arc::clone(&self.workshop.redactor));
            let rules = &self.record.rules;
            let mut servers: Vec<Arc<dyn ToolServer>> = vec![if rules.files.leave_something_out() {
                Arc::new(Confined::new(Box::new(server), rules.files.clone()))
            } else {
                Arc::new(server)
            }];
            // Who gave a local task waits for its end, and cannot be asked.
            let wishes = Arc::new(WishBox::new(self.record.local.is_none(), self.record.plan.is_some()));
            servers.push(Arc::<WishBox>::clone(&wishes));
            let settings = &self.workshop.settings;
            let configured = settings
                .mcp_servers
                .iter()
                .map(|config| -> Arc<dyn ToolServer> { Arc::new(McpServer::configured(config, &settings.program)) });
            let toolbox = Toolbox::new(servers, rules.tools.clone());
            let toolbox = Arc::new(toolbox.with_others(configured.collect(), settings.mcp_schema_bytes));
            // From here on the desk is cleared with the run, whatever happens next.
            let desk = self.desk.insert(Desk {
                workspace: Arc::new(opened.workspace),
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
                // What the commands set up went with the container that was there before. Boxed:
                // they need the desk.
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

    /// Notes down which container is complete, so that a process that takes over knows it from half
    /// a one.
    pub(super) fn note_container(&mut self) {
        self.record.container = self.desk.as_ref().map(|desk| desk.workspace.container().to_owned());
    }

    /// Before Preparing was finished a container may hold half a project.
    fn is_prepared(&self) -> bool {
        matches!(self.state, State::Working | State::Verifying | State::Delivering)
    }

    async fn open_workspace(&mut self) -> Result<Foundation, Setback> {
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
        let (name, environment) = self.environment()?;
        let opening = self.opening(name, environment, mirror, SetUp::Known(self.set_up_wanted()))?;
        if let Some(container) = self.left_container().await? {
            return Ok(Foundation {
                opened: Box::pin(opening.take_over(container)).await?,
                is_new: false,
                not_there,
            });
        }
        let begun = Instant::now();
        let early = match self.early.take() {
            Some(early) => early.take_for(&opening).await,
            None => None,
        };
        let opened = if let Some(opened) = early {
            opened
        } else {
            let progress = |line: String| {
                tracing::info!(task = %self.lease.task, "{line}");
                self.tell_terminal(&line);
            };
            opening.bring_images(&progress).await?;
            Box::pin(opening.open()).await?
        };
        self.note(Fact::EnvironmentStarted {
            environment: opening.name,
            image: opening.environment.image,
            digest: opened.workspace.inside().digest().to_owned(),
            container: opened.workspace.container().to_owned(),
            milliseconds: super::ask::milliseconds(begun),
            is_set_up: opened.workspace.set_up().is_some(),
            has_waited: opened.has_waited,
        });
        Ok(Foundation {
            opened,
            is_new: true,
            not_there,
        })
    }

    /// Returns the container that an earlier process left, if it holds the whole project.
    async fn left_container(&self) -> Result<Option<Container>, Setback> {
        let Some(complete) = self.record.container.as_deref().filter(|_| self.is_prepared()) else {
            return Ok(None);
        };
        let docker = self.workshop.docker().await?;
        docker.remove_checks(self.lease.run).await?;
        let left = docker.find(self.lease.run).await?;
        Ok(left.filter(|left| left.id() == complete))
    }

    /// Begins to open the environment that the project's files want, while the model plans.
    pub(super) fn open_early(&mut self, files: &[String], mirror: &Mirror) {
        let config = &self.workshop.settings.environments;
        let asked_for = self.record.local.as_ref().and_then(|local| local.environment.clone());
        let expected = asked_for.or_else(|| config.expected_for(files).map(str::to_owned));
        let Some(name) = expected.filter(|_| self.early.is_none()) else {
            return;
        };
        let Some(environment) = config.environments.get(&name).cloned() else {
            return;
        };
        if let Ok(opening) = self.opening(name, environment, mirror.clone(), SetUp::Newest) {
            self.early = Some(Early::begin(opening));
        }
    }

    /// Closes what was opened early, where there was no use for it.
    pub(super) async fn discard_early(&mut self) {
        if let Some(early) = self.early.take() {
            early.discard().await;
        }
    }

    /// Returns the name of the set-up that the plan asks for. What was worked on already may want
    /// another one than the project did.
    fn set_up_wanted(&self) -> Option<String> {
        let dependencies = self.record.dependencies.as_ref().filter(|_| !self.is_prepared())?;
        dependencies.set_up_by(&self.set_up_commands())
    }

    /// Keeps the environment after its set-up, for the next run with the same project. A failure
    /// costs only the next run's time.
    pub(super) async fn keep_set_up(&self) {
        let (Some(desk), Some(done)) = (&self.desk, self.set_up_wanted()) else {
            return;
        };
        let kept = async {
            let docker = self.workshop.docker().await?;
            docker.keep_set_up(desk.workspace.inside(), &done).await
        };
        match kept.await {
            Ok(Kept::Kept | Kept::NoPlace) => {}
            Ok(Kept::TooLarge { bytes }) => self.note(Fact::SetUpNotKept {
                bytes,
                max_bytes: self.workshop.settings.environments.snapshots.max_bytes,
            }),
            Err(error) => tracing::warn!(task = %self.lease.task, "the environment could not be kept: {error}"),
        }
    }

    pub(super) fn opening(
        &self,
        name: String,
        environment: Environment,
        mirror: Mirror,
        set_up: SetUp,
    ) -> Result<Opening, Setback> {
        let Some(base) = self.record.base.clone() else {
            return Err(Setback::failed("there is no commit to work on"));
        };
        Ok(Opening {
            workshop: Arc::clone(&self.workshop),
            task: self.lease.task.clone(),
            run: self.lease.run,
            purpose: Purpose::Work,
            base,
            mirror,
            name,
            environment,
            dependencies: self.record.dependencies.clone(),
            set_up,
            ledger: Arc::clone(&self.ledger),
            stop: self.stop.asked.clone(),
        })
    }

    /// Closes what is open but the container: what it holds is nowhere else.
    pub(super) async fn leave_container(&mut self) {
        self.discard_early().await;
        if let Some(desk) = self.desk.take() {
            desk.abandon().await;
        }
        self.ledger.close();
    }

    /// Removes the container of an earlier process that this one had no use for; the sweep of a
    /// later start would, too.
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

    /// Runs a shell command of the program's own in the workspace, and returns its whole output.
    /// One that the stop of the program cuts short says nothing of the work, so it is no result: it
    /// is run again by the next process.
    pub(super) async fn execute(&mut self, command: &str) -> Result<ToolOutput, Setback> {
        if self.stop.asked.is_cancelled() {
            return Err(Setback::Interrupted);
        }
        let toolbox = Arc::clone(&self.open_desk().await?.toolbox);
        self.execute_with(&toolbox, command).await
    }

    /// Like [`Self::execute`], in the container that `toolbox` leads to.
    pub(super) async fn execute_with(&mut self, toolbox: &Toolbox, command: &str) -> Result<ToolOutput, Setback> {
        if self.stop.asked.is_cancelled() {
            return Err(Setback::Interrupted);
        }
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
