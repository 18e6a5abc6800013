//! Connects container and repository: history goes in as a pack, commits come out as a pack. Only
//! streams connect the two; the worker's disk has the bare mirror and no work tree.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Mutex;

use crate::environment::{self, Attached, Container, EXECUTOR, EnvironmentError, ProcessExit};
use crate::gateway::gate::HeldOpen;
use crate::repository::incoming::accepting::{Acceptance, Accepted};
use crate::repository::incoming::receiving::Incoming;
use crate::repository::mirror::Mirror;
use crate::repository::reading::large_files::LargeFiles;
use crate::repository::{CommitId, Config as Author, NotACommitId, RepositoryError};
use crate::rules::Files;
use crate::tool::mcp::McpServer;
use crate::workspace::WORKSPACE;
use crate::workspace::base::Base;
use crate::workspace::error::WorkspaceError;
use crate::workspace::outside_rules;
use crate::workspace::scripts;
use crate::workspace::streams;
use crate::workspace::streams::executor::ExecutorStream;
use crate::workspace::streams::link::{self, LATE};
use crate::workspace::streams::multiplexer::Unopened;
use crate::workspace::streams::tunnel::ContainerTunnel;

/// The project in a running container.
pub struct Project {
    container: Container,
    mirror: Mirror,
    base: Base,
    run: String,
    /// The latest snapshot that this process saved.
    kept: Mutex<Option<CommitId>>,
    /// The tunnel to the network, open as long as the workspace.
    way_out: Option<ContainerTunnel>,
}

/// A process in a container that waits to receive the project.
pub struct UploadTarget {
    process: Attached,
}

/// The project, packed for a container. It can be prepared while the container starts.
pub struct Upload {
    mirror: Mirror,
    base: Base,
    run: String,
    /// Commit of the base branch.
    target: CommitId,
    /// The saved unfinished work of the run, if there is any.
    unfinished: Option<CommitId>,
    /// The project's files in Git LFS, if it has any.
    large: Option<LargeFiles>,
    /// Up to an empty line each: git configuration, the commits at which the history was cut, and
    /// submodules.
    settings: String,
    pack: Box<dyn AsyncRead + Send + Unpin>,
}

impl Upload {
    /// Starts to pack the history, the branch, and the saved unfinished work of the run.
    pub async fn pack(mirror: Mirror, base: Base, author: &Author, run: String) -> Result<Self, WorkspaceError> {
        let unfinished = mirror.kept_wip(&run).await?;
        Self::pack_with(mirror, base, author, run, unfinished).await
    }

    /// Starts to pack the history and the branch, without unfinished work.
    pub async fn pack_commit(mirror: Mirror, base: Base, author: &Author, run: String) -> Result<Self, WorkspaceError> {
        Self::pack_with(mirror, base, author, run, None).await
    }

    async fn pack_with(
        mirror: Mirror,
        base: Base,
        author: &Author,
        run: String,
        unfinished: Option<CommitId>,
    ) -> Result<Self, WorkspaceError> {
        let target = mirror.branch(&base.branch).await?;
        let target = target.unwrap_or_else(|| base.commit.clone());
        let mut tips = vec![base.commit.clone(), target.clone()];
        tips.extend(unfinished.clone());
        let large = streams::large_files::of(&mirror, &base.commit, unfinished.as_ref()).await?;
        let filter = streams::large_files::settings(&mirror);
        let submodules = mirror.submodule_contents(&base.commit).await?;
        Ok(Self {
            pack: mirror.pack_with(&tips, &submodules).await?,
            settings: scripts::settings(author, &filter, &mirror.cut_at().await, &submodules),
            large,
            mirror,
            base,
            run,
            target,
            unfinished,
        })
    }
}

impl Project {
    /// Takes over a container that already has the project.
    pub fn take_over(container: Container, mirror: Mirror, base: Base, run: String) -> Self {
        Self {
            container,
            mirror,
            base,
            run,
            kept: Mutex::default(),
            way_out: None,
        }
    }

    /// Ends what an earlier process started in the container: it may still change the work.
    pub async fn end_earlier(&self) -> Result<(), WorkspaceError> {
        Ok(link::end_earlier(&self.container).await?)
    }

    /// Starts the process that receives the project in a new container. It waits for
    /// [`Self::hand_in`].
    pub(crate) async fn receiver(
        container: &Container,
        channel: Option<Unopened>,
    ) -> Result<UploadTarget, EnvironmentError> {
        let command = script(scripts::HAND_IN, &[]);
        let process = match channel {
            Some(channel) => channel.run(container, &command, &scripts::ENVIRONMENT).await?,
            None => container.attach(&command, &scripts::ENVIRONMENT).await?,
        };
        Ok(UploadTarget { process })
    }

    /// Sends the project to the waiting process in `container`.
    pub async fn hand_in(container: Container, receiver: UploadTarget, parcel: Upload) -> Result<Self, WorkspaceError> {
        let Upload {
            mirror,
            base,
            run,
            target,
            unfinished,
            large,
            settings,
            pack,
        } = parcel;
        let lines = [
            base.head_branch.as_str(),
            base.commit.as_str(),
            &base.branch,
            target.as_str(),
            unfinished.as_ref().map_or("", CommitId::as_str),
            large.as_ref().map_or("", |_| EXECUTOR),
        ];
        // Git has no such names; a line break in one would let its author inject further lines.
        if let Some(name) = lines.iter().find(|line| line.contains(char::is_control)) {
            let reason = format!("{name:?} is no name of a branch");
            return Err(RepositoryError::Unacceptable(reason).into());
        }
        let head = format!("{}\n{settings}\n", lines.join("\n"));
        let contents: Box<dyn AsyncRead + Send + Unpin> = match large {
            Some(large) => Box::new(streams::large_files::handed_in(mirror.clone(), large)),
            None => Box::new(tokio::io::empty()),
        };
        let project = std::io::Cursor::new(head).chain(contents).chain(pack);
        let what = "the hand-in of the project";
        let (_, ending) = container.talk(what, receiver.process, project, 64 * 1024).await?;
        succeeded("the repository could not be handed into the container", &ending)?;
        Ok(Self {
            container,
            mirror,
            base,
            run,
            kept: Mutex::default(),
            way_out: None,
        })
    }

    /// Keeps the container's tunnel open as long as the workspace.
    #[must_use]
    pub fn with(mut self, way_out: Option<ContainerTunnel>) -> Self {
        self.way_out = way_out;
        self
    }

    /// Opens the network for set-up commands until the returned guard is dropped; `None` if the
    /// container has no tunnel.
    pub fn let_out(&self) -> Option<HeldOpen> {
        self.way_out.as_ref().map(ContainerTunnel::during_set_up)
    }

    /// Returns the built-in tool server in `container`; the project need not be there yet.
    pub(crate) fn server(container: &Container, config: &environment::Config, channel: Option<Unopened>) -> McpServer {
        let connect = ExecutorStream::new(container.clone(), config.clone(), channel);
        // The executor enforces the time limit of a command; this one is for a stream that is dead,
        // and longer than one may be away and come back.
        let patience = Duration::from_secs(config.timeout_seconds + 30) + LATE;
        McpServer::new(WORKSPACE, None, None, patience, Box::new(connect))
    }

    /// Commits uncommitted changes, fetches all new commits and validates them. If a change reaches
    /// files that the project's rules exclude, the result is refused. Changes in the container from
    /// then on are not part of the work, until [`Self::bring_back`], also after a refusal.
    pub async fn take_back(&self, message: &str, files: &Files) -> Result<Accepted, WorkspaceError> {
        let head = last_commit(&self.print(scripts::COMMIT, &[message]).await?)?;
        let incoming = self.receive(&head).await?;
        let acceptance = self.acceptance(head);
        self.take_large_files(&incoming, &acceptance).await?;
        let accepted = incoming.accept(&acceptance).await?;
        outside_rules::refuse_changes(&self.mirror, &self.base, &accepted.head, files).await?;
        Ok(accepted)
    }

    /// Returns the files changed so far that the rules exclude, for the model; `None` if there are
    /// none. The list comes from the container, and may be cut, which is good enough for a
    /// reminder; the delivered result is checked outside.
    pub async fn outside_the_rules(&self, files: &Files) -> Result<Option<String>, WorkspaceError> {
        if !files.leave_something_out() {
            return Ok(None);
        }
        let (printed, _) = self
            .run_script(scripts::TOUCHED, &[self.base.pushed_up_to().as_str()], 1024 * 1024)
            .await?;
        let printed = String::from_utf8_lossy(&printed);
        // What has no NUL behind it is a path that was cut.
        let whole = printed.rsplit_once('\0').map_or("", |(whole, _)| whole);
        Ok(outside_rules::named(files, whole.split('\0').map(str::to_owned)))
    }

    fn acceptance(&self, head: CommitId) -> Acceptance {
        Acceptance {
            base: Some(self.base.commit.clone()),
            head,
            run: self.run.clone(),
        }
    }

    /// Saves the work to the mirror with all uncommitted changes, so that another container can
    /// continue it. Repositories within the project are left out, and files that may not be read:
    /// returns false if there are any, so that the container has what the mirror has not.
    pub async fn keep(&self) -> Result<bool, WorkspaceError> {
        let mut kept = self.kept.lock().await;
        let before = kept.as_ref().map_or("", CommitId::as_str);
        let printed = self.print(scripts::SNAPSHOT, &[before]).await?;
        let (commit, is_whole) = match printed.trim_end().strip_suffix("without") {
            Some(commit) => (commit, false),
            None => (&*printed, true),
        };
        let head = last_commit(commit)?;
        if kept.as_ref() != Some(&head) {
            let incoming = self.receive(&head).await?;
            let acceptance = self.acceptance(head.clone());
            self.take_large_files(&incoming, &acceptance).await?;
            *kept = Some(incoming.keep_as_is(&acceptance).await?);
        }
        Ok(is_whole)
    }

    /// Excludes files created by the set-up commands from the work, and reverts their changes to
    /// the project's files. Returns the first reverted paths, one per line.
    pub async fn end_set_up(&self) -> Result<String, WorkspaceError> {
        let (printed, ending) = self.run_script(scripts::END_SET_UP, &[], 64 * 1024).await?;
        succeeded("the set-up could not be ended in the container", &ending)?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }

    /// Checks out the base, or a commit before it, until [`Self::undo_checks`]. The work must have
    /// been taken back before.
    pub async fn exchange_for(&self, commit: &CommitId) -> Result<(), WorkspaceError> {
        self.arrange(scripts::EXCHANGE, &[commit.as_str()]).await
    }

    /// Restores the work as it was taken back, whatever was changed since.
    pub async fn undo_checks(&self) -> Result<(), WorkspaceError> {
        self.arrange(scripts::UNDO_CHECKS, &[]).await
    }

    /// Restores the work for the model, as it was before it was committed for the checks.
    pub async fn bring_back(&self) -> Result<(), WorkspaceError> {
        self.arrange(scripts::BRING_BACK, &[]).await
    }

    async fn arrange(&self, text: &str, arguments: &[&str]) -> Result<(), WorkspaceError> {
        let (_, ending) = self.run_script(text, arguments, 64 * 1024).await?;
        succeeded("the project's files could not be exchanged in the container", &ending)
    }

    async fn run_script(
        &self,
        text: &str,
        arguments: &[&str],
        max_output: usize,
    ) -> Result<(Vec<u8>, ProcessExit), EnvironmentError> {
        let process = self
            .container
            .attach(&script(text, arguments), &scripts::ENVIRONMENT)
            .await?;
        let what = "a script of the program's own";
        self.container.talk(what, process, tokio::io::empty(), max_output).await
    }

    async fn receive(&self, head: &CommitId) -> Result<Incoming, WorkspaceError> {
        let command = script(scripts::PACK, &[head.as_str(), self.base.commit.as_str()]);
        let attached = self.container.attach(&command, &scripts::ENVIRONMENT).await?;
        drop(attached.stdin);
        let incoming = match self.mirror.receive(attached.stdout).await {
            Err(slow @ RepositoryError::TooSlow(_)) => {
                return Err(WorkspaceError::of_delay(slow, &self.container).await);
            }
            received => received?,
        };
        succeeded(
            "the commits could not be packed in the container",
            &attached.ending.await?,
        )?;
        Ok(incoming)
    }

    /// Takes the contents to which new pointers lead, before anything refers to the commits.
    async fn take_large_files(&self, incoming: &Incoming, acceptance: &Acceptance) -> Result<(), WorkspaceError> {
        let files = incoming.large_files(acceptance).await?;
        streams::large_files::take_out(&self.container, &self.mirror, &self.run, &files).await
    }

    async fn print(&self, text: &str, arguments: &[&str]) -> Result<String, WorkspaceError> {
        let (printed, ending) = self.run_script(text, arguments, 64 * 1024).await?;
        let what = "the work could not be committed in the container";
        succeeded(what, &ending).map_err(|error| match (error, ending.exit_code) {
            // Git's own words on what it was given; not a signal, nor a program that is missing.
            (WorkspaceError::Failed(text), ..126 | 128) => WorkspaceError::Uncommittable(text),
            (error, _) => error,
        })?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }

    /// Returns the base commit of the work.
    pub fn base(&self) -> &CommitId {
        &self.base.commit
    }

    /// Returns the commit before all work of the program, earlier runs' included; see
    /// [`Base::before_work`].
    pub fn before_work(&self) -> &CommitId {
        self.base.before_work()
    }

    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// Returns the container of the project.
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// Returns the name of the saved set-up that the container started from.
    pub fn set_up(&self) -> Option<&str> {
        self.container.set_up()
    }

    /// Returns the container's id.
    pub fn container_id(&self) -> &str {
        self.container.id()
    }

    /// Removes the container; on failure a later sweep removes it.
    pub async fn remove(&self) {
        if let Err(error) = self.container.remove().await {
            tracing::warn!("a container could not be removed, it is swept later: {error}");
        }
    }
}

fn script<'a>(text: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    ["/bin/sh", "-c", text, "sh"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect()
}

/// Returns the commit in the last line that a script printed.
fn last_commit(printed: &str) -> Result<CommitId, WorkspaceError> {
    let id = printed.lines().last().unwrap_or_default();
    id.parse()
        .map_err(|error: NotACommitId| RepositoryError::Unacceptable(error.to_string()).into())
}

fn succeeded(what: &str, ending: &ProcessExit) -> Result<(), WorkspaceError> {
    if ending.exit_code == 0 {
        return Ok(());
    }
    Err(WorkspaceError::Failed(format!(
        "{what}: git ended with {}: {}",
        ending.exit_code,
        ending.stderr.trim()
    )))
}
