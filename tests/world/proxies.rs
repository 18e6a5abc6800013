//! On machines that reach the world only through a proxy.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fake::model::Plan;
use crate::fake::proxy::Proxy;
use crate::world::World;

/// Gives what runs on this machine a name that only the proxy knows.
fn names(address: &mut Value, name: &str) {
    *address = json!(address.as_str().unwrap().replace("127.0.0.1", name));
}

#[tokio::test]
async fn an_issue_becomes_a_pull_request_through_a_proxy() {
    let mut world = World::start().await;
    let proxy = Proxy::start().await;
    world.sets("http_proxy", proxy.address());
    world.configure(|config| {
        names(&mut config["github"]["api_url"], "github.test");
        names(&mut config["llm"]["openai"]["base_url"], "model.test");
    });
    world
        .model
        .plans(Plan::of(&["greet"]))
        .calls(
            "workspace/execute_command",
            json!({"command": "echo Hello > hello.txt"}),
        )
        .done("Greeted.");
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.github.pulls().len(), 1);
    // The API, the model, and git, which goes to the address that the API gives.
    let asked: BTreeSet<_> = proxy.asked().into_iter().collect();
    for request in ["GET github.test", "POST model.test", "GET 127.0.0.1", "POST 127.0.0.1"] {
        assert!(asked.contains(request), "{asked:?}");
    }
    world.finish().await;
}

#[tokio::test]
async fn gitlab_and_what_is_encrypted_go_through_the_proxy_as_well() {
    let mut world = World::start().await;
    let proxy = Proxy::start().await;
    for name in ["http_proxy", "HTTPS_PROXY"] {
        world.sets(name, proxy.address());
    }
    world.configure(|config| {
        config["task_sources"] = json!(["github", "gitlab"]);
        config["github"]["api_url"] = json!("https://github.test/api/v3");
        names(&mut config["gitlab"]["api_url"], "gitlab.test");
        config["llm"]["openai"]["base_url"] = json!("https://model.test/v1");
    });

    let ended = world.command(&["doctor"]).await;

    assert!(ended.stdout.contains("GitLab project acme/widgets"), "{ended:?}");
    let asked: BTreeSet<_> = proxy.asked().into_iter().collect();
    for request in ["CONNECT github.test:443", "GET gitlab.test", "CONNECT model.test:443"] {
        assert!(asked.contains(request), "{asked:?}");
    }
    world.finish().await;
}

#[tokio::test]
async fn what_no_proxy_names_is_reached_without_it() {
    let mut world = World::start().await;
    let proxy = Proxy::start().await;
    world.sets("http_proxy", proxy.address());
    world.sets("no_proxy", "localhost,127.0.0.1");
    world.configure(|config| config["task_sources"] = json!(["github", "gitlab"]));

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(proxy.asked(), Vec::<String>::new());
    assert!(!world.github.requests().is_empty() && !world.gitlab.requests().is_empty());
    world.finish().await;
}
