//! The executor in a container, as the connection of a tool server.

use std::time::Duration;

use async_trait::async_trait;

use crate::environment::{self, Container, EXECUTOR, Ending, EnvironmentError};
use crate::tool::connect::{Away, Connect, Connection};
use crate::workspace::scripts::PROJECT;

/// Connection to the executor in a container, over one attached exec.
pub(crate) struct ExecutorStream {
    pub(crate) container: Container,
    pub(crate) config: environment::Config,
}

#[async_trait]
impl Connect for ExecutorStream {
    async fn connect(&self) -> anyhow::Result<Connection> {
        let timeout = self.config.timeout_seconds.to_string();
        let output = self.config.max_output_bytes.to_string();
        let largest = self.config.files.max_bytes.to_string();
        let mut command = vec![
            EXECUTOR,
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
                away @ EnvironmentError::EngineUnavailable { .. } => anyhow::Error::new(Away(away.to_string())),
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
