//! An installation of its own on the real engine, which leaves nothing behind.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;

use bollard::query_parameters::{ListImagesOptionsBuilder, RemoveImageOptions};
use coding_agent::environment::{
    Build, Config, Container, Engine, EngineAccess, Environment, EnvironmentError, ProcessExit, Purpose, StartRequest,
};
use coding_agent::task::id::{RunId, TaskId};
use futures_util::FutureExt;

pub(super) const IMAGE: &str = "coding-agent-executor-python:latest";

/// An installation of its own on the engine: what other tests start is not seen from here.
pub(super) struct Site {
    pub(super) docker: Engine,
    /// The engine without our code in between, to look at what it made.
    pub(super) engine: bollard::Docker,
    pub(super) folder: tempfile::TempDir,
    pub(super) instance: String,
}

impl Site {
    pub(super) async fn new(config: &Config) -> Self {
        let instance = RunId::new().to_string();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("executor"), executor_with("")).unwrap();
        Self {
            docker: Engine::connect(config, &access(), &instance).await.unwrap(),
            engine: bollard::Docker::connect_with_defaults().unwrap(),
            folder,
            instance,
        }
    }

    pub(super) async fn start(&self, run: RunId) -> Container {
        self.start_image(run, IMAGE).await.unwrap()
    }

    pub(super) async fn start_image(&self, run: RunId, image: &str) -> Result<Container, EnvironmentError> {
        let start = StartRequest {
            task: &task(),
            run,
            purpose: Purpose::Work,
            environment: "python",
            image,
            executor: &self.executor(),
            set_up: None,
        };
        self.docker.start(&start).await
    }

    pub(super) fn executor(&self) -> PathBuf {
        self.folder.path().join("executor")
    }

    pub(super) fn environment_with_dockerfile(&self, dockerfile: &str) -> Environment {
        let path = self.folder.path().join("Dockerfile");
        std::fs::write(&path, dockerfile).unwrap();
        Environment {
            image: self.own_image(),
            recommended_for: String::new(),
            libraries: String::new(),
            build: Some(Build {
                dockerfile: path,
                args: [("BASE_IMAGE".to_owned(), IMAGE.to_owned())].into(),
            }),
            allow: None,
            project_files: None,
        }
    }

    /// Returns the name of an image of this site's own.
    pub(super) fn own_image(&self) -> String {
        format!("coding-agent-test-{}:local", self.instance)
    }

    /// Removes what was made of this site's own image.
    async fn remove_prepared(&self) {
        let label = format!("coding-agent.furnished.of={}", self.own_image());
        let options = ListImagesOptionsBuilder::default()
            .all(true)
            .filters(&HashMap::from([("label", vec![label])]))
            .build();
        for image in self.engine.list_images(Some(options)).await.unwrap() {
            self.remove_image(&image.id).await;
        }
    }

    pub(super) async fn remove_image(&self, image: &str) {
        self.engine
            .remove_image(image, None::<RemoveImageOptions>, None)
            .await
            .unwrap();
    }
}

/// Returns the executor with `words` behind its end, which make it another file.
pub(super) fn executor_with(words: &str) -> Vec<u8> {
    let mut program = std::fs::read(crate::world::executor()).unwrap();
    program.extend(words.as_bytes());
    program
}

/// Tells the story, and takes away all that it left even when it ends badly.
pub(super) async fn on_engine(config: Config, story: impl AsyncFnOnce(&Site)) {
    let site = Site::new(&config).await;
    let outcome = AssertUnwindSafe(Box::pin(story(&site))).catch_unwind().await;
    let left = site.docker.all().await.unwrap();
    site.docker.sweep(left, &HashSet::new()).await.unwrap();
    site.remove_prepared().await;
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

/// Returns how this machine's engine is reached, without anybody's credentials.
pub(super) fn access() -> EngineAccess {
    EngineAccess {
        host: docker_host(),
        ..EngineAccess::default()
    }
}

pub(super) fn docker_host() -> Option<String> {
    std::env::var("DOCKER_HOST").ok()
}

pub(super) fn task() -> TaskId {
    "github:owner/repository#12".parse().unwrap()
}

pub(super) async fn shell(container: &Container, script: &str) -> (String, ProcessExit) {
    let (stdout, ending) = container
        .run(&["sh", "-c", script], tokio::io::empty(), 1024 * 1024)
        .await
        .unwrap();
    (String::from_utf8(stdout).unwrap(), ending)
}
