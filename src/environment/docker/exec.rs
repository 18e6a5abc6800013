//! Processes in a container, with their streams attached: its first one, and others.

use std::sync::{Arc, Mutex};

use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::query_parameters::AttachContainerOptionsBuilder;
use tokio::io::{AsyncRead, AsyncWrite};

use super::stream::{Output, StderrTail};
use super::{Client, Failure};

/// Read buffer of an attached process. The client clears the buffer before each poll, which with 64
/// KiB took a tenth of the program's time in a turn; larger parts are still read whole.
const READ_AT_ONCE: usize = 16 * 1024;

/// A started process.
pub(crate) struct Process {
    /// The engine's id, by which its exit code is asked for.
    pub(crate) id: String,
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Complete once stdout was read to its end.
    pub(crate) stderr: Arc<Mutex<StderrTail>>,
}

/// The streams of a container's first process. Both closed, its input ends.
pub(crate) struct FirstStreams {
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
}

impl Client {
    /// Attaches to the first process of a container, which need not be started yet.
    pub(crate) async fn attach(&self, container: &str) -> Result<FirstStreams, Failure> {
        let options = AttachContainerOptionsBuilder::default()
            .stream(true)
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .build();
        let attached = self.ask(self.docker.attach_container(container, Some(options))).await?;
        let (stdout, _) = Output::new(attached.output);
        Ok(FirstStreams {
            stdin: Box::new(attached.input),
            stdout: Box::new(stdout),
        })
    }

    /// Starts `command` in a running container as its user in `folder`; `environment` as
    /// `NAME=value`.
    pub(crate) async fn exec(
        &self,
        container: &str,
        folder: &str,
        command: &[&str],
        environment: &[&str],
    ) -> Result<Process, Failure> {
        let options = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(false),
            cmd: Some(command.to_vec()),
            env: Some(environment.to_vec()),
            working_dir: Some(folder),
            ..CreateExecOptions::default()
        };
        let id = self.ask(self.docker.create_exec(container, options)).await?.id;
        let options = StartExecOptions {
            output_capacity: Some(READ_AT_ONCE),
            ..StartExecOptions::default()
        };
        let started = self.ask(self.docker.start_exec(&id, Some(options))).await?;
        let StartExecResults::Attached { output, input } = started else {
            return Err(Failure::Other("the engine did not attach the streams".to_owned()));
        };
        let (stdout, stderr) = Output::new(output);
        Ok(Process {
            id,
            stdin: Box::new(input),
            stdout: Box::new(stdout),
            stderr,
        })
    }

    /// Returns the exit code of a process that has ended.
    pub(crate) async fn exit_code(&self, process: &str) -> Result<Option<i64>, Failure> {
        let state = self.ask(self.docker.inspect_exec(process)).await?;
        Ok(state.exit_code.filter(|_| state.running == Some(false)))
    }
}
