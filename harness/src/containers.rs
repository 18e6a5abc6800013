//! The containers of one installation, as the engine itself tells it: nothing of what the program
//! says about them is believed.

use std::collections::HashMap;
use std::path::Path;

use bollard::Docker;
use bollard::models::ContainerSummary;
use bollard::query_parameters::ListContainersOptionsBuilder;

/// The image that every harness works in.
pub const IMAGE: &str = "coding-agent-executor-python:latest";

/// Returns the label on all containers and images of the installation with this state folder.
pub fn label(state_dir: &Path) -> String {
    format!("coding-agent.instance={}", coding_agent::service::instance(state_dir))
}

/// Returns the containers of the installation with this state folder, whether they run or not.
pub async fn of(state_dir: &Path) -> anyhow::Result<Vec<ContainerSummary>> {
    let filters = HashMap::from([("label", vec![label(state_dir)])]);
    let options = ListContainersOptionsBuilder::default()
        .all(true)
        .filters(&filters)
        .build();
    let docker = Docker::connect_with_defaults()?;
    Ok(docker.list_containers(Some(options)).await?)
}

/// Returns the names of these containers, as `docker ps` shows them.
pub async fn names(state_dir: &Path) -> anyhow::Result<Vec<String>> {
    let names = of(state_dir)
        .await?
        .into_iter()
        .flat_map(|container| container.names.unwrap_or_default());
    Ok(names.map(|name| name.trim_start_matches('/').to_owned()).collect())
}
