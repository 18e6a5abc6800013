//! The executor: copied into a container, it serves the workspace tools on stdin and stdout.
//!
//! Nothing but protocol goes to stdout; why it could not serve goes to stderr.

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use coding_agent::executor;

/// Serves the workspace tools of the coding agent over MCP on stdin and stdout.
#[derive(Parser)]
#[command(name = "coding-agent-executor", version)]
struct Arguments {
    /// The project folder.
    #[arg(long, default_value = "/workspace/project")]
    root: PathBuf,
    /// Seconds a command may take that asks for no time-out.
    #[arg(long, default_value_t = 300)]
    default_timeout: u64,
    /// Most seconds a command may ask for.
    #[arg(long, default_value_t = 3600)]
    max_timeout: u64,
    /// Most bytes of output, or of a file, in one answer.
    #[arg(long, default_value_t = 128 * 1024)]
    max_output_bytes: usize,
    /// Largest file, in bytes, that is read or written.
    #[arg(long, default_value_t = 512 * 1024)]
    max_file_bytes: usize,
    /// Files that may be written: an end of their name such as `.py`, or a whole name such as
    /// `Makefile`. Repeat it for more.
    #[arg(long = "allow-extension")]
    allowed_extensions: Vec<String>,
}

fn main() -> ExitCode {
    // Whatever else runs in the container has the same user, and could write answers into the
    // stream of this process. No kernel refuses this.
    let _ = coding_agent::process::keep_private();
    // Before the options are looked at: this happens with every command, and has to be quick.
    let mut words = std::env::args_os().skip(1);
    let first = words.next().unwrap_or_default();
    if first == "supervise" {
        let (folder, command) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        return executor::supervise(&folder, &command);
    }
    let served = if first == "tunnel" {
        tunnel()
    } else {
        serve(Arguments::parse())
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(
                clippy::print_stderr,
                reason = "stdout belongs to the protocol, and there is no log in a container"
            )]
            {
                eprintln!("coding-agent-executor: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Hands connections to the container's loopback on over stdin and stdout.
fn tunnel() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(executor::tunnel());
    // A thread that still waits for stdin cannot be joined.
    runtime.shutdown_background();
    served
}

fn serve(arguments: Arguments) -> anyhow::Result<()> {
    let options = executor::Options {
        root: arguments.root,
        // The file this process was started from, even when it was replaced or removed since.
        supervisor: PathBuf::from("/proc/self/exe"),
        default_timeout: Duration::from_secs(arguments.default_timeout),
        max_timeout: Duration::from_secs(arguments.max_timeout.max(1)),
        max_output_bytes: arguments.max_output_bytes,
        max_file_bytes: arguments.max_file_bytes,
        allowed_extensions: arguments.allowed_extensions,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = runtime.block_on(executor::serve(options));
    // A thread that still waits for stdin cannot be joined.
    runtime.shutdown_background();
    served
}
