//! The containers and images of a world, as the engine itself tells it, and what happens to them
//! from outside.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, RemoveContainerOptionsBuilder, RemoveImageOptionsBuilder,
};
use tokio::process::Command;
use tokio::time::sleep;

use crate::world::{World, clusters};

/// The time in which an engine lets go of the image of a container that it has removed.
const LETTING_GO: Duration = Duration::from_secs(10);

impl World {
    /// Returns the containers of this world that exist, by name.
    pub async fn containers(&self) -> Vec<String> {
        Self::containers_of(&self.state_dir()).await
    }

    /// Returns the containers of the installation with this state folder.
    pub async fn containers_of(state_dir: &Path) -> Vec<String> {
        let instance = coding_agent::service::instance(state_dir);
        if clusters::is_used() {
            return clusters::pods_of(&instance).await;
        }
        let docker = Docker::connect_with_defaults().unwrap();
        let filters = HashMap::from([("label", vec![format!("coding-agent.instance={instance}")])]);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let containers = docker.list_containers(Some(options)).await.unwrap();
        containers
            .into_iter()
            .map(|container| container.names.unwrap_or_default().join(" "))
            .collect()
    }

    /// Returns the images that this world keeps.
    pub async fn images(&self) -> Vec<String> {
        let docker = Docker::connect_with_defaults().unwrap();
        let instance = coding_agent::service::instance(&self.state_dir());
        let filters = HashMap::from([("label", vec![format!("coding-agent.instance={instance}")])]);
        let options = ListImagesOptionsBuilder::default().all(true).filters(&filters).build();
        let images = docker.list_images(Some(options)).await.unwrap();
        images.into_iter().map(|image| image.id).collect()
    }

    /// Removes what is meant to outlive the program: environments that are kept for the next run.
    pub(super) async fn remove_images(&self) {
        let docker = Docker::connect_with_defaults().unwrap();
        for image in self.images().await {
            // What they were made of is everybody's.
            let alone = RemoveImageOptionsBuilder::default().noprune(true).build();
            let deadline = Instant::now() + LETTING_GO;
            // Podman has removed a container before it lets go of its image, and sometimes removes
            // an image that it calls one in use.
            while let Err(error) = docker.remove_image(&image, Some(alone.clone()), None).await {
                let error = error.to_string();
                if error.contains("image not known") {
                    break;
                }
                assert!(
                    error.contains("in use") && Instant::now() < deadline,
                    "{image}: {error}"
                );
                sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Runs a shell command in the one container of this world.
    pub async fn in_container(&self, command: &str) {
        let containers = self.containers().await;
        let [container] = containers.as_slice() else {
            panic!("not one container: {containers:?}\n{}", self.story());
        };
        let mut client = if clusters::is_used() {
            let mut client = clusters::client();
            client.args(["exec", container, "--container", "work", "--"]);
            client
        } else {
            let mut client = Command::new("docker");
            client.args(["exec", container.trim_start_matches('/')]);
            client
        };
        let done = client.args(["sh", "-c", command]).status().await.unwrap();
        assert!(done.success(), "{command}: {done}");
    }

    /// Lets the processes in this world's containers stand still.
    pub async fn freeze_containers(&self) {
        if clusters::is_used() {
            return clusters::each(&self.containers().await, "pause").await;
        }
        let docker = Docker::connect_with_defaults().unwrap();
        for name in self.containers().await {
            docker.pause_container(name.trim_start_matches('/')).await.unwrap();
        }
    }

    /// Lets them go on.
    pub async fn thaw_containers(&self) {
        if clusters::is_used() {
            return clusters::each(&self.containers().await, "unpause").await;
        }
        let docker = Docker::connect_with_defaults().unwrap();
        for name in self.containers().await {
            docker.unpause_container(name.trim_start_matches('/')).await.unwrap();
        }
    }

    /// Kills the containers of this world, as the kernel does it when memory runs out.
    pub async fn kill_containers(&self) {
        let containers = self.containers().await;
        assert!(!containers.is_empty(), "no container runs\n{}", self.story());
        if clusters::is_used() {
            return clusters::each(&containers, "kill").await;
        }
        let docker = Docker::connect_with_defaults().unwrap();
        for name in containers {
            docker.kill_container(name.trim_start_matches('/'), None).await.unwrap();
        }
    }

    /// Removes the containers of this world, as somebody does who tidies up.
    pub async fn remove_containers(&self) {
        if clusters::is_used() {
            for name in self.containers().await {
                clusters::kubectl(&["delete", "pod", &name, "--wait=false"]).await;
            }
            return;
        }
        let docker = Docker::connect_with_defaults().unwrap();
        let force = RemoveContainerOptionsBuilder::default().force(true).build();
        for name in self.containers().await {
            let removed = docker.remove_container(name.trim_start_matches('/'), Some(force.clone()));
            removed.await.unwrap();
        }
    }
}
