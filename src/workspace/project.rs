//! Container and repository together: history goes in as a pack, commits come out as a pack.
//! Between the two only streams; the worker's disk sees the bare mirror and nothing else.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Mutex;

use crate::environment::container::{Attached, Container, Ending};
use crate::environment::{self, EnvironmentError};
use crate::gateway::gate::HeldOpen;
use crate::repository::incoming::{Acceptance, Accepted};
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, Config as Author, NotACommitId, RepositoryError};
use crate::rules::Files;
use crate::tool::mcp::McpServer;
use crate::workspace::WORKSPACE;
use crate::workspace::base::Base;
use crate::workspace::error::WorkspaceError;
use crate::workspace::scripts::{self, BRING_BACK, END_SET_UP, EXCHANGE, HAND_IN, PACK, TOUCHED, UNDO_CHECKS};
use crate::workspace::streams::executor::ExecutorStream;
use crate::workspace::streams::tunnel::ContainerTunnel;

/// The project in a running container.
pub struct Workspace {
    container: Container,
    mirror: Mirror,
    base: Base,
    run: String,
    /// The snapshot that was kept last, by this process.
    kept: Mutex<Option<CommitId>>,
    /// Open as long as the workspace is.
    way_out: Option<ContainerTunnel>,
}

/// What waits in a container for the project.
pub struct UploadTarget {
    process: Attached,
}

/// The project on its way into a container. It can be made ready while that starts.
pub struct Upload {
    mirror: Mirror,
    base: Base,
    run: String,
    /// Where the base branch stands.
    target: CommitId,
    /// The work that was kept of the run, if there is any.
    unfinished: Option<CommitId>,
    /// The repository's settings in the container.
    settings: String,
    pack: Box<dyn AsyncRead + Send + Unpin>,
}

impl Upload {
    /// Begins to pack the history, the branch, and the unfinished work of the run that was kept.
    pub async fn pack(mirror: Mirror, base: Base, author: &Author, run: String) -> Result<Self, WorkspaceError> {
        let unfinished = mirror.kept_wip(&run).await?;
        Self::pack_with(mirror, base, author, run, unfinished).await
    }

    /// Begins to pack the history and the branch alone.
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
        Ok(Self {
            pack: mirror.pack(&tips).await?,
            settings: settings(author),
            mirror,
            base,
            run,
            target,
            unfinished,
        })
    }
}

impl Workspace {
    /// Takes over a container that holds the project already.
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

    /// Starts what takes the project in, in a fresh container. It waits for [`Self::hand_in`].
    pub async fn receiver(container: &Container) -> Result<UploadTarget, EnvironmentError> {
        let process = container.attach(&script(HAND_IN, &[]), &scripts::ENVIRONMENT).await?;
        Ok(UploadTarget { process })
    }

    /// Hands the project to what waits for it in `container`.
    pub async fn hand_in(container: Container, receiver: UploadTarget, parcel: Upload) -> Result<Self, WorkspaceError> {
        let Upload {
            mirror,
            base,
            run,
            target,
            unfinished,
            settings,
            pack,
        } = parcel;
        let lines = [
            base.head_branch.as_str(),
            base.commit.as_str(),
            &base.branch,
            target.as_str(),
            unfinished.as_ref().map_or("", CommitId::as_str),
        ];
        // Git has no such names; whoever else has one does not get to say what comes behind it.
        if let Some(name) = lines.iter().find(|line| line.contains(char::is_control)) {
            let reason = format!("{name:?} is no name of a branch");
            return Err(RepositoryError::Unacceptable(reason).into());
        }
        let head = format!("{}\n{settings}\n", lines.join("\n"));
        let project = std::io::Cursor::new(head).chain(pack);
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

    /// Keeps the container's way out open from now on.
    #[must_use]
    pub fn with(mut self, way_out: Option<ContainerTunnel>) -> Self {
        self.way_out = way_out;
        self
    }

    /// Lets the container out while set-up commands run in it, until what is returned is dropped;
    /// `None` where it has no way out.
    pub fn let_out(&self) -> Option<HeldOpen> {
        self.way_out.as_ref().map(ContainerTunnel::during_set_up)
    }

    /// Returns the built-in tool server in `container`; the project need not be there yet.
    pub fn server(container: &Container, config: &environment::Config) -> McpServer {
        let connect = ExecutorStream {
            container: container.clone(),
            config: config.clone(),
        };
        // The executor enforces the command's own time-out inside; this one is for a stream that
        // says nothing any more.
        let patience = Duration::from_secs(config.timeout_seconds + 30);
        McpServer::new(WORKSPACE, None, None, patience, Box::new(connect))
    }

    /// Commits what is left, takes all new commits out and has them judged, by the rules of the
    /// project as well: nothing of a change that reaches files which they leave out goes anywhere.
    /// What is in the container from then on is no work, until [`Self::bring_back`].
    pub async fn take_back(&self, message: &str, files: &Files) -> Result<Accepted, WorkspaceError> {
        let head = self.print_commit(&scripts::commit(), &[message]).await?;
        let incoming = self.receive(&head).await?;
        let accepted = incoming.accept(&self.acceptance(head)).await?;
        if files.leave_something_out() {
            let changed = self.mirror.changed(&self.base.commit, &accepted.head).await?;
            let left_out = left_out(files, changed.into_iter().map(|changed| changed.path));
            if !left_out.is_empty() {
                return Err(WorkspaceError::OutsideRules(format!(
                    "the work changes what {}, so nothing of it was pushed: {}; let the rules on the branch `{}` allow it, or \
                     ask for something else",
                    files.reason(),
                    named(&left_out),
                    self.base.branch
                )));
            }
        }
        Ok(accepted)
    }

    /// Returns what the work so far changes although the rules leave it out, for the model; `None`
    /// where there is nothing. It is the container's word: good enough for a reminder, while what
    /// is delivered is judged outside.
    pub async fn outside_the_rules(&self, files: &Files) -> Result<Option<String>, WorkspaceError> {
        if !files.leave_something_out() {
            return Ok(None);
        }
        let (printed, _) = self
            .run_script(TOUCHED, &[self.base.commit.as_str()], 1024 * 1024)
            .await?;
        let printed = String::from_utf8_lossy(&printed);
        let left_out = left_out(files, printed.split('\0').map(str::to_owned));
        Ok((!left_out.is_empty()).then(|| named(&left_out)))
    }

    fn acceptance(&self, head: CommitId) -> Acceptance {
        Acceptance {
            base: Some(self.base.commit.clone()),
            head,
            run: self.run.clone(),
        }
    }

    /// Keeps the work as it is, uncommitted changes included, in the mirror, so that another
    /// container can go on with it.
    pub async fn keep(&self) -> Result<CommitId, WorkspaceError> {
        let mut kept = self.kept.lock().await;
        let before = kept.as_ref().map_or("", CommitId::as_str);
        let head = self.print_commit(&scripts::snapshot(), &[before]).await?;
        if kept.as_ref() != Some(&head) {
            let incoming = self.receive(&head).await?;
            *kept = Some(incoming.keep_as_is(&self.acceptance(head.clone())).await?);
        }
        Ok(head)
    }

    /// Has what the set-up commands left in the project count as nobody's work, and undoes what
    /// they changed of the project's own files. Returns the first of those, one on each line.
    pub async fn end_set_up(&self) -> Result<String, WorkspaceError> {
        let (printed, ending) = self.run_script(END_SET_UP, &[], 64 * 1024).await?;
        succeeded("the set-up could not be ended in the container", &ending)?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }

    /// Shows the project as it was before anything was changed, until [`Self::undo_checks`]. The
    /// work was taken back before.
    pub async fn exchange_for_base(&self) -> Result<(), WorkspaceError> {
        let text = scripts::in_project(EXCHANGE);
        self.arrange(&text, &[self.base.commit.as_str()]).await
    }

    /// Shows the work again as it was taken back, whatever was changed since.
    pub async fn undo_checks(&self) -> Result<(), WorkspaceError> {
        self.arrange(&scripts::in_project(UNDO_CHECKS), &[]).await
    }

    /// Gives the work back to the model as it left it.
    pub async fn bring_back(&self) -> Result<(), WorkspaceError> {
        self.arrange(&scripts::in_project(BRING_BACK), &[]).await
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
    ) -> Result<(Vec<u8>, Ending), EnvironmentError> {
        let process = self
            .container
            .attach(&script(text, arguments), &scripts::ENVIRONMENT)
            .await?;
        let what = "a script of the program's own";
        self.container.talk(what, process, tokio::io::empty(), max_output).await
    }

    async fn receive(&self, head: &CommitId) -> Result<crate::repository::incoming::Incoming, WorkspaceError> {
        let command = script(PACK, &[head.as_str(), self.base.commit.as_str()]);
        let attached = self.container.attach(&command, &scripts::ENVIRONMENT).await?;
        drop(attached.stdin);
        let incoming = self.mirror.receive(attached.stdout).await?;
        succeeded(
            "the commits could not be packed in the container",
            &attached.ending.await?,
        )?;
        Ok(incoming)
    }

    async fn print_commit(&self, text: &str, arguments: &[&str]) -> Result<CommitId, WorkspaceError> {
        let (printed, ending) = self.run_script(text, arguments, 64 * 1024).await?;
        succeeded("the work could not be committed in the container", &ending)?;
        let printed = String::from_utf8_lossy(&printed);
        let id = printed.lines().last().unwrap_or_default();
        id.parse()
            .map_err(|error: NotACommitId| RepositoryError::Unacceptable(error.to_string()).into())
    }

    /// Returns the commit the work began from.
    pub fn base(&self) -> &CommitId {
        &self.base.commit
    }

    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// Returns the container that it is in.
    pub fn inside(&self) -> &Container {
        &self.container
    }

    /// Returns the name of the kept set-up that the container began with.
    pub fn set_up(&self) -> Option<&str> {
        self.container.set_up()
    }

    /// Returns the container's id.
    pub fn container(&self) -> &str {
        self.container.id()
    }

    /// Removes the container; one that cannot be removed now is swept later.
    pub async fn remove(&self) {
        if let Err(error) = self.container.remove().await {
            tracing::warn!("a container could not be removed, it is swept later: {error}");
        }
    }
}

/// Returns what stands in the repository's configuration besides what git itself writes there.
fn settings(author: &Author) -> String {
    let quoted = |text: &str| {
        let escaped = text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        format!("\"{escaped}\"")
    };
    let (name, email) = (quoted(&author.author_name), quoted(&author.author_email));
    format!("[user]\n\tname = {name}\n\temail = {email}\n[advice]\n\tdetachedHead = false\n")
}

fn script<'a>(text: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    ["/bin/sh", "-c", text, "sh"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect()
}

fn left_out(files: &Files, paths: impl Iterator<Item = String>) -> Vec<String> {
    let filter = files.filter();
    paths.filter(|path| !path.is_empty() && !filter.takes(path)).collect()
}

/// Names the first few paths, each on a line of code.
fn named(paths: &[String]) -> String {
    const MOST: usize = 10;
    let shown = paths.iter().take(MOST).map(|path| format!("`{}`", path.escape_debug()));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn succeeded(what: &str, ending: &Ending) -> Result<(), WorkspaceError> {
    if ending.exit_code == 0 {
        return Ok(());
    }
    Err(WorkspaceError::Failed(format!(
        "{what}: git ended with {}: {}",
        ending.exit_code,
        ending.stderr.trim()
    )))
}
