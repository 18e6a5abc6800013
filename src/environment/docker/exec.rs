//! Processes in a container, with their streams attached: its first one, and others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::query_parameters::AttachContainerOptionsBuilder;
use futures_util::FutureExt;
use tokio::time::{Instant, sleep};

use super::Client;
use super::stream::{Output, StderrTail};
use crate::environment::processes::{Failure, Process, ProcessExit, Streams};

/// Read buffer of an attached process. The client clears the buffer before each poll, which with 64
/// KiB took a tenth of the program's time in a turn; larger parts are still read whole.
const READ_AT_ONCE: usize = 16 * 1024;

/// Time limit between the end of a process' streams and its exit code from the engine.
const ENDING_LIMIT: Duration = Duration::from_secs(10);

impl Client {
    /// Attaches to the first process of a container, which need not be started yet.
    pub(crate) async fn attach(&self, container: &str) -> Result<Streams, Failure> {
        let options = AttachContainerOptionsBuilder::default()
            .stream(true)
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .build();
        let attached = self.ask(self.docker.attach_container(container, Some(options))).await?;
        let (stdout, _) = Output::new(attached.output);
        Ok((Box::new(attached.input), Box::new(stdout)))
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
            stdin: Box::new(input),
            stdout: Box::new(stdout),
            ending: self.clone().ending(id, stderr).boxed(),
        })
    }

    /// Polls for the exit code: the streams end before the engine knows it, and no event reports
    /// it. `None` if the process still runs after [`ENDING_LIMIT`].
    async fn ending(self, process: String, stderr: Arc<Mutex<StderrTail>>) -> Result<Option<ProcessExit>, Failure> {
        let deadline = Instant::now() + ENDING_LIMIT;
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(exit_code) = self.exit_code(&process).await? {
                let stderr = stderr.lock().unwrap_or_else(PoisonError::into_inner).text();
                return Ok(Some(ProcessExit { exit_code, stderr }));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    /// Returns the exit code of a process that has ended.
    async fn exit_code(&self, process: &str) -> Result<Option<i64>, Failure> {
        let state = self.ask(self.docker.inspect_exec(process)).await?;
        Ok(state.exit_code.filter(|_| state.running == Some(false)))
    }
}
