//! Images that declare volumes: no image that is made of their containers has what is in there.

use coding_agent::environment::{Config, KeepResult, Purpose, StartRequest, WantedSetUp};
use coding_agent::task::id::RunId;

use super::site::{on_engine, shell, task};

#[tokio::test]
async fn a_set_up_is_not_kept_where_a_volume_would_be_left_out() {
    on_engine(Config::default(), async |site| {
        let dockerfile = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nVOLUME [\"/home/agent/.gradle\", \"/cache\"]\n";
        let environment = site.environment_with_dockerfile(dockerfile);
        site.docker.ensure_image(&environment, &|_| ()).await.unwrap();
        let executor = site.executor();
        let start = StartRequest {
            task: &task(),
            run: RunId::new(),
            purpose: Purpose::Work,
            environment: "python",
            image: &environment.image,
            executor: &executor,
            set_up: Some(("a place", WantedSetUp::Only("installed"))),
        };
        let container = site.docker.start(&start).await.unwrap();

        let kept = site.docker.keep_set_up(&container, "installed").await.unwrap();

        let volumes = ["/cache", "/home/agent/.gradle"].map(str::to_owned).to_vec();
        assert_eq!(kept, KeepResult::HasVolumes { volumes });
        assert!(!site.docker.start_images(&start).await.unwrap().has_set_up());
        container.remove().await.unwrap();
        site.remove_image(&environment.image).await;
    })
    .await;
}

#[tokio::test]
async fn an_image_whose_workspace_is_a_volume_is_worked_in() {
    on_engine(Config::default(), async |site| {
        let dockerfile = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nUSER root\nWORKDIR /\nRUN rm -rf /workspace\n\
                          VOLUME /workspace\nUSER agent\n";
        let environment = site.environment_with_dockerfile(dockerfile);
        site.docker.ensure_image(&environment, &|_| ()).await.unwrap();
        let container = site.start_image(RunId::new(), &environment.image).await.unwrap();

        let (stdout, ending) = shell(&container, "stat -c %U project && touch project/file && echo written").await;
        assert_eq!(stdout, "agent\nwritten\n", "{}", ending.stderr);

        container.remove().await.unwrap();
        site.remove_image(&environment.image).await;
    })
    .await;
}
