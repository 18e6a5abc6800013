//! Kept set-ups: a plan's set-up is kept, and the next run with the same project begins with it.

mod poisoned;

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{ContainerConfig, ContainerCreateBody};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, CreateContainerOptions, ListImagesOptionsBuilder, RemoveContainerOptions,
    RemoveImageOptionsBuilder,
};
use serde_json::{Value, json};

use crate::fake::model::{Model, Plan, Request};
use crate::world::scripts::COMMAND;
use crate::world::{World, executor};

/// A set-up that leaves a trace for each time it was run, something ignored, and something in the
/// place of a file of the project's.
const SET_UP: &str =
    "echo run >> /workspace/times; mkdir -p node_modules; echo installed > node_modules/x; echo spoilt > README.md";
const LOOK: &str = "cat /workspace/times node_modules/x README.md; git status --porcelain; git log --format=%s";

async fn world(keep: usize) -> World {
    let mut world = World::start().await;
    world.configure(|config| {
        config["command_executor"]["snapshots"] = json!({ "keep": keep, "after_seconds": 0 });
    });
    world
}

/// Scripts one run that is set up by `set_up`, looks around and writes `file`.
fn script(model: &Model, set_up: &str, file: &str) {
    model
        .plans(Plan::of(&["write"]).set_up_by(&[set_up]))
        .calls(COMMAND, json!({ "command": LOOK }))
        .calls("workspace/write_file", json!({ "path": file, "content": "A line.\n" }))
        .done("Wrote it.");
}

/// Returns whether each run began with what was kept.
fn were_set_up(world: &World) -> Vec<bool> {
    let journal = world.journal();
    let started = journal.iter().filter(|line| line["fact"] == "environment_started");
    started.map(|line| line["is_set_up"] == Value::Bool(true)).collect()
}

/// Returns what the model was last told that has `words`.
fn last_told(world: &World, words: &str) -> String {
    let requests = world.model.requests();
    let told = requests.iter().rev().map(Request::last_user_message);
    told.into_iter().find(|text| text.contains(words)).unwrap()
}

#[tokio::test]
async fn the_next_run_begins_where_the_set_up_ended() {
    let world = world(10).await;
    for file in ["a.txt", "b.txt"] {
        script(&world.model, SET_UP, file);
        world.github.open_issue(&format!("Write {file}")).label("coding agent");
        let ended = world.run().await;
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        // It was run once, and of the project there is what the commit has.
        let told = last_told(&world, "installed");
        let expected = "run\\ninstalled\\n# widgets\\nBegin";
        assert!(told.contains(expected), "{told}\n{}", world.story());
    }
    assert_eq!(were_set_up(&world), [false, true], "{}", world.story());

    // The command may read any file: with another one nobody knows what it does.
    let repository = world.github.repository("acme/widgets");
    repository.commit("main", "Change", &[("other.txt", "x\n")]);
    script(&world.model, SET_UP, "c.txt");
    world.github.open_issue("Write c.txt").label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(were_set_up(&world), [false, true, false], "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn no_more_are_kept_than_are_wanted_and_none_of_a_set_up_that_failed() {
    let world = world(1).await;
    for (file, set_up) in [
        ("a.txt", "echo a"),
        ("b.txt", "echo b"),
        ("c.txt", "false"),
        ("d.txt", "echo a"),
    ] {
        script(&world.model, set_up, file);
        world.github.open_issue(&format!("Write {file}")).label("coding agent");
        let ended = world.run().await;
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        assert_eq!(world.images().await.len(), 1, "{}", world.story());
    }
    // The first gave way to the second, and had to be made again.
    assert_eq!(were_set_up(&world), [false; 4], "{}", world.story());
    world.finish().await;
}

/// Returns the image that `image` was made of.
async fn parent(engine: &Docker, image: &str) -> String {
    let all = ListImagesOptionsBuilder::default().all(true).build();
    let listed = engine.list_images(Some(all)).await.unwrap();
    let found = listed.into_iter().find(|listed| listed.id == image);
    prefixed(found.unwrap().parent_id)
}

/// Returns an id as engines take it: podman leaves out the prefix, and does not take the id without
/// it.
fn prefixed(id: String) -> String {
    if id.contains(':') { id } else { format!("sha256:{id}") }
}

/// Makes an image that has what `image` has and the same labels, and returns its id.
async fn twin(engine: &Docker, image: &str) -> String {
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        ..ContainerCreateBody::default()
    };
    let created = engine.create_container(None::<CreateContainerOptions>, body).await;
    let container = created.unwrap().id;
    let options = CommitContainerOptionsBuilder::default().container(&container).build();
    let made = engine.commit_container(options, ContainerConfig::default()).await;
    let removed = engine
        .remove_container(&container, None::<RemoveContainerOptions>)
        .await;
    removed.unwrap();
    prefixed(made.unwrap().id)
}

#[tokio::test]
async fn it_is_found_whichever_of_two_like_images_is() {
    let mut world = world(10).await;
    // An executor that no other world has, so that the image with it in it is this world's own.
    let own = world.folder().join("executor");
    let mut program = std::fs::read(executor()).unwrap();
    program.extend_from_slice(own.as_os_str().as_encoded_bytes());
    std::fs::write(&own, program).unwrap();
    world.configure(|config| config["command_executor"]["executor_path"] = json!(own));

    // Two workers that begin at the same moment make two.
    let engine = Docker::connect_with_defaults().unwrap();
    let mut furnished = Vec::new();
    for file in ["a.txt", "b.txt"] {
        script(&world.model, SET_UP, file);
        world.github.open_issue(&format!("Write {file}")).label("coding agent");
        let ended = world.run().await;
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        if furnished.is_empty() {
            let first = parent(&engine, &world.images().await[0]).await;
            furnished = vec![twin(&engine, &first).await, first];
        }
    }
    assert_eq!(were_set_up(&world), [false, true], "{}", world.story());
    world.finish().await;
    for image in furnished {
        let alone = RemoveImageOptionsBuilder::default().noprune(true).build();
        match engine.remove_image(&image, Some(alone), None).await {
            // Podman has removed it with the last image that was made from it.
            Ok(_) | Err(Error::DockerResponseServerError { status_code: 404, .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
