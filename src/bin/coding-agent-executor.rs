//! The executor: copied into a container, it serves the workspace tools on stdin and stdout.
//!
//! Only the protocol goes to stdout; an error goes to stderr.

use clap::Parser;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use coding_agent::executor;
use coding_agent::process::{framed, init};
use coding_agent::reach;

/// The file that this process was started from, even if it was replaced or removed since.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Serves the workspace tools of the coding agent over MCP on stdin and stdout.
#[derive(Parser)]
#[command(name = "coding-agent-executor", version)]
struct Arguments {
    /// The project folder.
    #[arg(long, default_value = "/workspace/project")]
    root: PathBuf,
    /// Seconds that a command may take if it asks for no time-out.
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
    /// Files that may be written: the end of a name such as `.py`, or a whole name such as
    /// `Makefile`. May be repeated.
    #[arg(long = "allow-extension")]
    allowed_extensions: Vec<String>,
}

fn main() -> ExitCode {
    // Everything else in the container has the same user, and could write answers into the stream
    // of this process. No kernel refuses this call.
    let _ = coding_agent::process::keep_private();
    // Before the options are parsed: this is called with every command, and has to be quick.
    let mut words = std::env::args_os().skip(1);
    let first = words.next().unwrap_or_default();
    if first == "supervise" {
        return executor::supervise();
    }
    let served = match first.to_str() {
        Some("init") => Err(stay(words.next().is_some_and(|word| word == "alone"))),
        Some("multiplex") => multiplex(),
        Some("attach") => alone(executor::attach()),
        Some("end") => alone(executor::end()),
        Some("tunnel") => alone(executor::tunnel()),
        Some("framed") => {
            let home = variable("HOME");
            framed::run(home.as_ref(), std::io::stdin(), std::io::stdout()).map_err(Into::into)
        }
        Some("reach") => {
            let said = |name: &str| variable(name).and_then(|value| value.into_string().ok());
            let server = said("KUBERNETES_SERVICE_HOST").zip(said("KUBERNETES_SERVICE_PORT"));
            let targets = words.map(|word| word.to_string_lossy().into_owned());
            reach::print(targets, server.as_ref(), std::io::stdout()).map_err(Into::into)
        }
        Some("listen") => reach::listen(std::io::stdin(), std::io::stdout()).map_err(Into::into),
        Some("lfs-receive") => executor::receive(&git(words)),
        Some("lfs-filter") => executor::filter(&git(words)),
        Some("lfs-send") => {
            let folder = git(words.by_ref().take(1));
            executor::send(&folder, words.map(|word| word.to_string_lossy().into_owned()))
        }
        _ => serve(options(Arguments::parse())),
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

#[expect(
    clippy::disallowed_methods,
    reason = "this program is the command line of the container"
)]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Returns the repository's folder `.git`, the first of these arguments.
fn git(mut words: impl Iterator<Item = OsString>) -> PathBuf {
    PathBuf::from(words.next().unwrap_or_default())
}

/// Does work that needs no second thread.
fn alone(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(work);
    // A thread that still waits for stdin cannot be joined.
    runtime.shutdown_background();
    served
}

/// Is the container's first process, and stays. Starts `multiplex`, unless that is asked for over
/// a stream of its own.
fn stay(alone: bool) -> anyhow::Error {
    if alone {
        return init::stay_alone().into();
    }
    let mut program = Command::new(THIS_PROGRAM);
    program.arg0("coding-agent-executor").arg("multiplex");
    let broken = || {
        // Nobody may read it any more.
        let _ = std::io::stdout().write_all(&executor::BROKEN);
        let _ = std::io::stdout().flush();
    };
    init::stay(program, broken).into()
}

/// Serves tools, tunnel and the project's receiver over stdin and stdout.
fn multiplex() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = runtime.block_on(executor::multiplex(|words| {
        let words = std::iter::once("coding-agent-executor".to_owned()).chain(words);
        Ok(options(Arguments::try_parse_from(words)?))
    }));
    // A thread that still waits for stdin cannot be joined.
    runtime.shutdown_background();
    served
}

fn options(arguments: Arguments) -> executor::Options {
    executor::Options {
        root: arguments.root,
        supervisor: PathBuf::from(THIS_PROGRAM),
        default_timeout: Duration::from_secs(arguments.default_timeout),
        max_timeout: Duration::from_secs(arguments.max_timeout.max(1)),
        max_output_bytes: arguments.max_output_bytes,
        max_file_bytes: arguments.max_file_bytes,
        allowed_extensions: arguments.allowed_extensions,
    }
}

fn serve(options: executor::Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = runtime.block_on(executor::serve(options));
    // A thread that still waits for stdin cannot be joined.
    runtime.shutdown_background();
    served
}
