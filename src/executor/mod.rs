//! The program inside the container: an MCP server on stdio with the seven workspace tools, and the
//! inner end of the tunnel out of the container ([`tunnel`]), both of them also over one link
//! ([`multiplex`]), which outlives its connections ([`attach`]) and is ended by the next worker
//! ([`end`]); and what git needs there for large files ([`filter`], [`receive`], [`send`]).
//!
//! It guarantees that no command outlives its time-out, its cancellation or this program, that
//! output and files are bounded, and that the file tools stay in the project folder. It is no
//! sandbox: the container around it decides what a command may do, and a model that wants to kill
//! this program can (the worker then starts another).

mod fault; // why a tool could not be carried out
mod text; // edits of texts
mod changes; // what a command changed in the project
mod large_files; // contents in the place of pointers
mod supervisor; // the process above a command
mod blocking; // the thread for work that blocks
mod command; // runs a command
mod files; // the file tools
mod tools; // names, descriptions and schemas of the tools
mod server; // serves them over MCP
mod tunnel; // the inner end of the way out
mod session; // the link with the worker, and its connections
mod multiplexer; // all of it over one link

use anyhow::Context;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use rmcp::{RoleServer, serve_server};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::process::adopt_orphans;
use crate::process::ending::end_descendants;
use blocking::Blocking;
pub use files::{ShownLines, UNCHANGED};
pub use large_files::{filter, receive, send};
pub use multiplexer::{Channel, GREETING, ScriptEnding, multiplex};
use server::Workspace;
pub use session::{BROKEN, attach, end};
pub use supervisor::supervise;
pub use tunnel::tunnel;

/// Longest request that is read: enough for the largest file, escaped.
const MAX_REQUEST_BYTES: usize = 16 * 1024 * 1024;

/// The words for an executor that cannot start its thread.
const NO_THREAD: &str = "no thread can be started; the container's processes are used up";

/// Settings of the executor.
#[derive(Debug, Clone)]
pub struct Options {
    /// The project folder.
    pub root: PathBuf,
    /// Path of this program, which also runs [`supervise`].
    pub supervisor: PathBuf,
    /// Time-out of commands that ask for none.
    pub default_timeout: Duration,
    /// Longest time-out that a command may ask for.
    pub max_timeout: Duration,
    /// Most bytes of output, or of a file, in one answer.
    pub max_output_bytes: usize,
    /// Largest file that is read or written.
    pub max_file_bytes: usize,
    /// Endings of the names of files that may be written, such as `.py`; empty for all.
    pub allowed_extensions: Vec<String>,
}

/// Serves until stdin ends, then ends all processes that are left. Calls in progress first get five
/// seconds to finish.
pub async fn serve(options: Options) -> anyhow::Result<()> {
    let (reader, writer) = stdio_pipes();
    let blocking = Blocking::start().context(NO_THREAD)?;
    serve_over(options, blocking, reader, writer).await
}

/// Like [`serve`], until `reader` ends.
async fn serve_over(
    options: Options,
    blocking: Blocking,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> anyhow::Result<()> {
    adopt_orphans().context("orphaned processes cannot be adopted")?;
    let root = options.root.display().to_string();
    let workspace = Workspace::open(options, blocking.clone())
        .with_context(|| format!("the project folder {root} cannot be opened"))?;
    let transport =
        AsyncRwTransport::<RoleServer, _, _>::new_server(reader, writer).with_max_line_length(MAX_REQUEST_BYTES);
    let service = serve_server(workspace, transport)
        .await
        .context("the handshake with the client failed")?;
    let served = service.waiting().await;
    let _ = blocking
        .run(|| end_descendants(std::process::id(), supervisor::GRACE))
        .await?;
    served.context("the server ended with an error")?;
    Ok(())
}
