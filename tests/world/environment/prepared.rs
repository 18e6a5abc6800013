//! The executor is put into an image once, and every container begins with it.

use bollard::query_parameters::TagImageOptionsBuilder;
use coding_agent::environment::Config;
use coding_agent::task::id::RunId;

use super::site::{IMAGE, Site, executor_with, on_engine, shell};

/// Returns the image that the container of a run was made of.
async fn image_of(site: &Site, container: &str) -> String {
    let inspected = site.engine.inspect_container(container, None).await.unwrap();
    inspected.image.unwrap()
}

#[tokio::test]
async fn two_containers_are_made_of_the_same_image_and_a_lost_one_is_no_loss() {
    on_engine(Config::default(), async |site| {
        let own = site.own_image();
        let (name, tag) = own.split_once(':').unwrap();
        let options = TagImageOptionsBuilder::default().repo(name).tag(tag).build();
        site.engine.tag_image(IMAGE, Some(options)).await.unwrap();
        // Nobody else has an image with this one in it. Its user may run the executor and not read
        // it, so executors are told apart by size.
        let program = executor_with(&site.instance);
        std::fs::write(site.executor(), &program).unwrap();
        let size = "stat -c %s \"$(command -v coding-agent-executor)\"";
        let command = format!("{size}; stat -c '%u %a' /workspace/project; touch /workspace/project/mine");
        let expected = format!("{}\n1000 755\n", program.len());
        let mut images = Vec::new();
        for _ in 0..2 {
            let container = site.start_image(RunId::new(), &own).await.unwrap();
            assert_eq!(shell(&container, &command).await.0, expected);
            images.push(image_of(site, container.id()).await);
            container.remove().await.unwrap();
        }
        assert_eq!(images[0], images[1]);

        site.remove_image(&images[0]).await;
        let container = site.start_image(RunId::new(), &own).await.unwrap();
        assert_eq!(shell(&container, &command).await.0, expected);
        container.remove().await.unwrap();

        // Another executor is no leftover of this one.
        let another = executor_with("another");
        std::fs::write(site.executor(), &another).unwrap();
        let container = site.start_image(RunId::new(), &own).await.unwrap();
        assert_eq!(shell(&container, size).await.0, format!("{}\n", another.len()));
        container.remove().await.unwrap();
        site.remove_image(&own).await;
    })
    .await;
}
