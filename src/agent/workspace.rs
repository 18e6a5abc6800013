//! Container and repository together: history goes in as a pack, commits come out as a pack. Between the two only
//! streams; the worker's disk sees the bare mirror and nothing else.

use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncRead;
use tokio::sync::Mutex;

use super::WORKSPACE;
use super::record::Base;
use super::setback::Setback;
use super::way_out::WayOut;
use crate::environment::container::{Container, Ending};
use crate::environment::{self, EnvironmentError};
use crate::repository::incoming::{Acceptance, Accepted};
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, Config as Author, NotACommitId, RepositoryError};
use crate::rules::Files;
use crate::tool::connect::{Away, Connect, Connection};
use crate::tool::mcp::McpServer;

/// Where the project lies in the container.
pub const PROJECT: &str = "/workspace/project";

/// Receives the pack on stdin. Each git takes some milliseconds that somebody waits for, so there are as few as can be. Arguments: branch,
/// its commit, base branch's name and commit, settings, commit of unfinished work or empty.
const HAND_IN: &str = r#"
set -e
cd /workspace/project
git init -q --template= .
git index-pack --stdin >/dev/null
mkdir -p .git/info
printf '%s\n' node_modules/ .venv/ __pycache__/ '*.pyc' .pytest_cache/ .mypy_cache/ > .git/info/exclude
printf '%s' "$5" >> .git/config
git update-ref --stdin <<REFS
create refs/remotes/origin/$3 $4
create refs/heads/$1 $2
REFS
git symbolic-ref HEAD "refs/heads/$1"
if [ -n "$6" ]; then
  # The kept commit holds what was committed (its parent) and what was not.
  git update-ref "refs/heads/$1" "$6^"
  git read-tree "$6^"
  git read-tree -u --reset "$6"
  git read-tree "$6^"
else
  git reset -q --hard
fi
"#;

/// Puts the files of another commit in the place of the work, which the commit in the first argument holds: what is installed,
/// built or ignored stays where it is. A copy beside the project would be simpler, and its tests would find the changed code wherever
/// a path was written down at installation. Arguments: commit of the work, the other commit.
const EXCHANGE: &str = r#"
cd /workspace/project
cp .git/index .git/coding-agent-index
git update-ref refs/coding-agent/work "$1"
git add -A
git read-tree -u --reset "$2"
"#;

/// Undoes that, whatever came between; does nothing where nothing was set aside. Whatever takes the work out does it first, so that a
/// process that was killed between the two loses nothing.
const BRING_BACK: &str = r#"
set -e
cd /workspace/project
if work=$(git rev-parse -q --verify refs/coding-agent/work); then
  git read-tree -u --reset "$work"
  git clean -fdq
  if [ -f .git/coding-agent-index ]; then mv .git/coding-agent-index .git/index; fi
  git update-ref -d refs/coding-agent/work
fi
"#;

/// Commits what is uncommitted and prints the commit. Arguments: message, branch, base commit.
const COMMIT: &str = r#"
cd /workspace/project
git -c core.hooksPath=/dev/null add -A
if ! git diff --cached --quiet; then
  git -c core.hooksPath=/dev/null -c commit.gpgSign=false commit -q --no-verify -m "$1"
fi
git rev-parse HEAD
"#;

/// Writes a commit of everything as it is, without touching branch or index, and prints it; the one before where nothing
/// has changed since. Argument: the one before, or empty.
const SNAPSHOT: &str = r#"
cd /workspace/project
index=$(mktemp)
cp .git/index "$index" 2>/dev/null || true
export GIT_INDEX_FILE="$index"
git add -A
tree=$(git write-tree)
rm -f "$index"
now="$tree $(git rev-parse HEAD)"
if [ -n "$1" ] && [ "$(git log -1 --format='%T %P' "$1")" = "$now" ]; then
  echo "$1"
else
  git commit-tree "$tree" -p HEAD -m 'work in progress'
fi
"#;

/// Prints the paths that differ from the base, NUL after each. Argument: base commit.
const TOUCHED: &str = r#"
cd /workspace/project
git diff --name-only --no-renames -z "$1" --
git ls-files -z --others --exclude-standard
"#;

/// Prints the pack of what is new. Arguments: head, base.
const PACK: &str = r#"
cd /workspace/project
printf '%s\n^%s\n' "$1" "$2" | git pack-objects --revs --stdout --thin -q
"#;

/// The project in a running container.
pub struct Workspace {
    container: Container,
    mirror: Mirror,
    base: Base,
    run: String,
    /// The snapshot that was kept last, by this process.
    kept: Mutex<Option<CommitId>>,
    /// Open as long as the workspace is.
    way_out: Option<WayOut>,
}

/// The project on its way into a container. It can be made ready while that starts.
pub struct Parcel {
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

impl Parcel {
    /// Begins to pack the history, the branch, and the unfinished work of the run that was kept.
    pub async fn pack(mirror: Mirror, base: Base, author: &Author, run: String) -> Result<Self, Setback> {
        let unfinished = mirror.kept_wip(&run).await?;
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

    /// Hands the project into a fresh container.
    pub async fn hand_in(container: Container, parcel: Parcel) -> Result<Self, Setback> {
        let Parcel {
            mirror,
            base,
            run,
            target,
            unfinished,
            settings,
            pack,
        } = parcel;
        let arguments = [
            base.head_branch.as_str(),
            base.commit.as_str(),
            &base.branch,
            target.as_str(),
            &settings,
            unfinished.as_ref().map_or("", CommitId::as_str),
        ];
        let (_, ending) = container.run(&script(HAND_IN, &arguments), pack, 64 * 1024).await?;
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
    pub fn with(mut self, way_out: Option<WayOut>) -> Self {
        self.way_out = way_out;
        self
    }

    /// Returns the built-in tool server in `container`; the project need not be there yet.
    pub fn server(container: &Container, config: &environment::Config) -> McpServer {
        let connect = ExecutorStream {
            container: container.clone(),
            config: config.clone(),
        };
        // The executor enforces the command's own time-out inside; this one is for a stream that says nothing any more.
        let patience = Duration::from_secs(config.timeout_seconds + 30);
        McpServer::new(WORKSPACE, None, None, patience, Box::new(connect))
    }

    /// Commits what is left, takes all new commits out and has them judged, by the rules of the project as well: nothing of
    /// a change that reaches files which they leave out goes anywhere.
    pub async fn take_back(&self, message: &str, files: &Files) -> Result<Accepted, Setback> {
        let head = self.print_commit(COMMIT, &[message]).await?;
        let incoming = self.receive(&head).await?;
        let accepted = incoming.accept(&self.acceptance(head)).await?;
        if files.leave_something_out() {
            let changed = self.mirror.changed(&self.base.commit, &accepted.head).await?;
            let left_out = left_out(files, changed.into_iter().map(|changed| changed.path));
            if !left_out.is_empty() {
                return Err(Setback::refused_by_policy(format!(
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

    /// Returns what the work so far changes although the rules leave it out, for the model; `None` where there is nothing.
    /// It is the container's word: good enough for a reminder, while what is delivered is judged outside.
    pub async fn outside_the_rules(&self, files: &Files) -> Result<Option<String>, Setback> {
        if !files.leave_something_out() {
            return Ok(None);
        }
        let command = script(TOUCHED, &[self.base.commit.as_str()]);
        let (printed, _) = self.container.run(&command, tokio::io::empty(), 1024 * 1024).await?;
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

    /// Keeps the work as it is, uncommitted changes included, in the mirror, so that another container can go on with it.
    pub async fn keep(&self) -> Result<CommitId, Setback> {
        let mut kept = self.kept.lock().await;
        let before = kept.as_ref().map_or("", CommitId::as_str);
        let head = self.print_commit(SNAPSHOT, &[before]).await?;
        if kept.as_ref() != Some(&head) {
            let incoming = self.receive(&head).await?;
            *kept = Some(incoming.keep_as_is(&self.acceptance(head.clone())).await?);
        }
        Ok(head)
    }

    /// Shows the project as it was before anything was changed, until [`Workspace::bring_back`]. `work` is what was kept last.
    pub async fn exchange_for_base(&self, work: &CommitId) -> Result<(), Setback> {
        self.arrange(EXCHANGE, &[work.as_str(), self.base.commit.as_str()])
            .await
    }

    /// Shows the work again.
    pub async fn bring_back(&self) -> Result<(), Setback> {
        self.arrange("", &[]).await
    }

    async fn arrange(&self, text: &str, arguments: &[&str]) -> Result<(), Setback> {
        let text = format!("{BRING_BACK}{text}");
        let (_, ending) = self
            .container
            .run(&script(&text, arguments), tokio::io::empty(), 64 * 1024)
            .await?;
        succeeded("the project's files could not be exchanged in the container", &ending)
    }

    async fn receive(&self, head: &CommitId) -> Result<crate::repository::incoming::Incoming, Setback> {
        let command = script(PACK, &[head.as_str(), self.base.commit.as_str()]);
        let attached = self.container.attach(&command, &[]).await?;
        drop(attached.stdin);
        let incoming = self.mirror.receive(attached.stdout).await?;
        succeeded(
            "the commits could not be packed in the container",
            &attached.ending.await?,
        )?;
        Ok(incoming)
    }

    async fn print_commit(&self, text: &str, arguments: &[&str]) -> Result<CommitId, Setback> {
        let text = format!("{BRING_BACK}{text}");
        let (printed, ending) = self
            .container
            .run(&script(&text, arguments), tokio::io::empty(), 64 * 1024)
            .await?;
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
    ["sh", "-c", text, "sh"]
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

fn succeeded(what: &str, ending: &Ending) -> Result<(), Setback> {
    if ending.exit_code == 0 {
        return Ok(());
    }
    Err(Setback::failed(format!(
        "{what}: git ended with {}: {}",
        ending.exit_code,
        ending.stderr.trim()
    )))
}

/// The executor in the container, reached over one attached exec.
struct ExecutorStream {
    container: Container,
    config: environment::Config,
}

#[async_trait]
impl Connect for ExecutorStream {
    async fn connect(&self) -> anyhow::Result<Connection> {
        let timeout = self.config.timeout_seconds.to_string();
        let output = self.config.max_output_bytes.to_string();
        let largest = self.config.files.max_bytes.to_string();
        let mut command = vec![
            "coding-agent-executor",
            "--root",
            PROJECT,
            "--default-timeout",
            &timeout,
            "--max-timeout",
            &timeout,
            "--max-output-bytes",
            &output,
            "--max-file-bytes",
            &largest,
        ];
        for extension in &self.config.files.allowed_extensions {
            command.extend(["--allow-extension", extension]);
        }
        let attached = self
            .container
            .attach(&command, &[])
            .await
            .map_err(|error| match error {
                away @ EnvironmentError::NoDocker { .. } => anyhow::Error::new(Away(away.to_string())),
                other => other.into(),
            })?;
        let ending = attached.ending;
        Ok(Connection {
            reader: attached.stdout,
            writer: attached.stdin,
            // The executor ends itself and everything it started when its stdin closes.
            end: Box::new(|| {
                Box::pin(async move {
                    let _: Result<Result<Ending, EnvironmentError>, _> =
                        tokio::time::timeout(Duration::from_secs(10), ending).await;
                })
            }),
        })
    }
}
