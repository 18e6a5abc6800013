//! Confidential work stays near: nothing of it is sent to a model elsewhere, and people are told
//! why.

use serde_json::{Value, json};

use crate::fake::model::{Model, Plan};
use crate::world::scripts::{plan, writes};
use crate::world::{Ended, MODEL_KEY, World};

/// The fake model under an address that is neither loopback nor private, and yet answered by this
/// machine.
fn far(world: &mut World) -> String {
    let address = world.model.openai_address().replace("127.0.0.1", "0.0.0.0");
    assert!(address.contains("0.0.0.0"), "{address}");
    world.configure(|config| config["llm"]["openai"]["base_url"] = json!(address));
    address
}

/// Has items with a label worked on by the world's own model, and all others by a far one, which is
/// returned. Comments are worked on at once.
async fn near_and_far(world: &mut World) -> Model {
    let far = Model::start().await;
    let address = far.openai_address().replace("127.0.0.1", "0.0.0.0");
    let near = json!({
        "provider": "openai", "base_url": world.model.openai_address(), "model": "scripted",
        "api_key": MODEL_KEY,
    });
    world.configure(|config| {
        config["llm"]["openai"]["base_url"] = json!(address);
        config["llm"]["models"] = json!({ "near": near });
        config["llm"]["roles"] = json!({ "local_only": "near" });
        config["llm"]["local_only_label"] = json!("confidential");
        config["follow_up"] = json!({ "debounce_seconds": 0 });
    });
    far
}

/// Runs the program once, in which `model` writes this into the README.
async fn runs_with(world: &World, model: &Model, text: &str, outcome: &str) {
    writes(model.plans(plan()), "README.md", text).done("Done.");
    let ended = world.run().await;
    ended.prints(outcome, world);
}

const ISSUE_DONE: &str = "github:acme/widgets#1: done\n";
const PULL_DONE: &str = "github:acme/widgets#2: done\n";

#[tokio::test]
async fn confidential_work_stays_near_in_all_that_follows_its_pull_request() {
    let mut world = World::start().await;
    let far = near_and_far(&mut world).await;
    let issue = world
        .github
        .open_issue("Greet")
        .label("confidential")
        .label("coding agent");
    runs_with(&world, &world.model, "Hello\n", ISSUE_DONE).await;
    let pull = world.github.pull_request_for(&issue).await;
    assert_eq!(pull.labels(), [""; 0]);
    // What was made under the label stays in the request.
    issue.unlabel("confidential");

    pull.comment("alice", "Louder, please.");
    runs_with(&world, &world.model, "HELLO\n", PULL_DONE).await;
    pull.check_fails("test", "E   it is too loud");
    runs_with(&world, &world.model, "Hello!\n", PULL_DONE).await;
    pull.label("coding agent");
    runs_with(&world, &world.model, "Hello.\n", PULL_DONE).await;

    assert_eq!(far.requests().len(), 0, "{}", far.dump());
    assert_eq!(pull.file("README.md").as_deref(), Some("Hello.\n"));
    far.finish();
    world.finish().await;
}

#[tokio::test]
async fn the_pull_request_of_an_issue_that_becomes_confidential_is_worked_on_near() {
    let mut world = World::start().await;
    let far = near_and_far(&mut world).await;
    let issue = world.github.open_issue("Greet").label("coding agent");
    runs_with(&world, &far, "Hello\n", ISSUE_DONE).await;
    let asked = far.requests().len();
    let pull = world.github.pull_request_for(&issue).await;

    issue.label("confidential");
    pull.comment("alice", "Louder, please.");
    runs_with(&world, &world.model, "HELLO\n", PULL_DONE).await;

    assert_eq!(far.requests().len(), asked, "{}", far.dump());
    far.finish();
    world.finish().await;
}

#[tokio::test]
async fn of_the_work_on_an_issue_each_run_counts_and_what_cannot_be_read_counts_as_confidential() {
    let mut world = World::start().await;
    let far = near_and_far(&mut world).await;
    let issue = world
        .github
        .open_issue("Greet")
        .label("confidential")
        .label("coding agent");
    runs_with(&world, &world.model, "Hello\n", ISSUE_DONE).await;
    let pull = world.github.pull_request_for(&issue).await;
    issue.unlabel("confidential").label("coding agent");
    runs_with(&world, &far, "HELLO\n", ISSUE_DONE).await;
    let asked = far.requests().len();

    // Earlier versions noted nothing on the request.
    let forgets = |notes: &mut Value| _ = notes.as_object_mut().unwrap().remove("local_only");
    world.rewrite_notes(forgets).await;
    pull.label("coding agent");
    runs_with(&world, &world.model, "Hello!\n", PULL_DONE).await;
    assert_eq!(far.requests().len(), asked, "{}", far.dump());
    far.finish();
    world.finish().await;

    let mut world = World::start().await;
    let far = near_and_far(&mut world).await;
    let issue = world.github.open_issue("Greet").label("coding agent");
    runs_with(&world, &far, "Hello\n", ISSUE_DONE).await;
    let asked = far.requests().len();
    // As a newer version of the program writes it.
    world.rewrite_records(|record| record["version"] = json!(1_000)).await;
    world.github.pull_request_for(&issue).await.label("coding agent");
    runs_with(&world, &world.model, "HELLO\n", PULL_DONE).await;
    assert_eq!(far.requests().len(), asked, "{}", far.dump());
    far.finish();
    world.finish().await;
}

#[tokio::test]
async fn a_confidential_repository_or_item_is_refused_before_anything_is_sent_to_a_far_model() {
    for (key, value) in [
        ("local_only", json!(true)),
        ("local_only_repositories", json!(["acme/*"])),
        ("local_only_label", json!("confidential")),
    ] {
        let mut world = World::start().await;
        far(&mut world);
        world.configure(|config| config["llm"][key] = value);
        let issue = world
            .github
            .open_issue("Greet")
            .label("confidential")
            .label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.code, Some(2), "{key}: {ended:?}\n{}", world.story());
        assert_eq!(world.model.requests().len(), 0, "{key}");
        assert!(
            issue.labels().contains(&"coding agent failed".to_owned()),
            "{:?}",
            issue.labels()
        );
        let told = issue.comments_of(world.github.bot()).join("\n");
        assert!(
            told.contains("llm.local_endpoints if it is one of yours") && told.contains(key),
            "{key}: {told}"
        );
        world.finish().await;
    }
}

#[tokio::test]
async fn what_is_not_confidential_and_what_is_named_as_near_goes_on() {
    for rule in [
        json!({"local_only_repositories": ["acme/vault"], "local_only_label": "confidential"}),
        json!({"local_only": true, "local_endpoints": ["0.0.0.0"]}),
    ] {
        let mut world = World::start().await;
        far(&mut world);
        world.configure(|config| {
            let llm = config["llm"].as_object_mut().unwrap();
            llm.extend(rule.as_object().unwrap().clone());
        });
        let script = world.model.plans(Plan::of(&["greet"]));
        script.done("Nothing to do.").done("Nothing to do.");
        world.github.open_issue("Greet").label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        world.finish().await;
    }
}

#[tokio::test]
async fn doctor_says_whether_confidential_work_can_be_done() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["llm"]["local_only_repositories"] = json!(["acme/vault", "secret/*"]);
        config["llm"]["local_only_label"] = json!("confidential");
    });
    let said = |ended: &Ended| {
        let line = ended
            .stdout
            .lines()
            .skip_while(|line| !line.contains("confidential work"))
            .take(2);
        line.collect::<Vec<_>>().join("\n")
    };

    let near = world.command(&["doctor"]).await;
    let address = far(&mut world);
    let refused = world.command(&["doctor"]).await;

    insta::assert_snapshot!(said(&near), @"ok    confidential work               the model is local, as it has to be for work on `acme/vault`, work on `secret/*`, items labelled `confidential`");
    insta::assert_snapshot!(said(&refused).replace(&address, "ADDRESS"), @"
    look  confidential work               nothing was sent to the model at ADDRESS: work on `acme/vault`, work on `secret/*`, items labelled `confidential` must stay local, so only a server on this machine, in a private network or in llm.local_endpoints may be used, and 0.0.0.0 is at 0.0.0.0
                                          -> choose such a server in the section llm, or add its host to llm.local_endpoints if it is one of yours
    ");
    assert_eq!((near.code, refused.code), (Some(0), Some(0)));
    world.finish().await;
}
