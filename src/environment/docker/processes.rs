//! The processes of containers, as the rest of the program asks for them.

use std::time::Duration;

use async_trait::async_trait;

use super::Client;
use crate::environment::error::EnvironmentError;
use crate::environment::processes::{ContainerState, Failure, Process, Processes, WORKSPACE};

#[async_trait]
impl Processes for Client {
    async fn exec(&self, container: &str, command: &[&str], environment: &[&str]) -> Result<Process, Failure> {
        Client::exec(self, container, WORKSPACE, command, environment).await
    }

    async fn state(&self, container: &str) -> Result<ContainerState, Failure> {
        Client::state(self, container).await
    }

    async fn wait(&self, container: &str, limit: Duration) {
        Client::wait(self, container, limit).await;
    }

    async fn remove(&self, container: &str) -> Result<(), Failure> {
        Client::remove(self, container).await
    }

    fn error(&self, what: &str, failure: Failure) -> EnvironmentError {
        Client::error(self, what, failure)
    }
}
