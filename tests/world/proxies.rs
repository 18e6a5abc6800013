//! On machines that reach the world only through a proxy.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::doctor::said;
use crate::fake::model::Plan;
use crate::fake::proxy::Proxy;
use crate::world::World;

/// Gives what runs on this machine a name that only the proxy knows.
fn names(address: &mut Value, name: &str) {
    *address = json!(address.as_str().unwrap().replace("127.0.0.1", name));
}

/// Returns what `doctor` says of faults, each with its remedy.
async fn told_faults(world: &World) -> String {
    let ended = world.command(&["doctor"]).await;
    let text = said(world, &ended);
    let mut is_fault = false;
    let lines = text.lines().filter(|line| {
        is_fault = line.starts_with("BAD ") || (is_fault && line.starts_with(' '));
        is_fault
    });
    let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
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

#[tokio::test]
async fn a_proxy_that_cannot_be_reached_is_named_without_its_password() {
    let mut world = World::start().await;
    for name in ["http_proxy", "HTTPS_PROXY"] {
        // Nothing listens there.
        world.sets(name, "http://agent:hush@127.0.0.1:1");
    }
    world.sets("no_proxy", "127.0.0.1");
    world.configure(|config| {
        config["task_sources"] = json!(["github", "gitlab"]);
        config["github"]["api_url"] = json!("https://github.test/api/v3");
        config["gitlab"]["api_url"] = json!("http://gitlab.test/api/v4");
        config["llm"]["openai"]["base_url"] = json!("http://model.test/v1");
    });

    insta::assert_snapshot!(told_faults(&world).await, @"
    BAD GitHub token github.test cannot be reached: Connection refused (os error 111), asked through the proxy ADDRESS of HTTPS_PROXY or ALL_PROXY
    -> look at that proxy, or name github.test in NO_PROXY if it is in your own network
    BAD GitLab token gitlab.test cannot be reached: Connection refused (os error 111), asked through the proxy ADDRESS of HTTP_PROXY or ALL_PROXY
    -> look at that proxy, or name gitlab.test in NO_PROXY if it is in your own network
    BAD model the model at http://model.test/v1 cannot be reached: Connection refused (os error 111), asked through the proxy ADDRESS of HTTP_PROXY or ALL_PROXY
    -> look at that proxy, or name model.test in NO_PROXY if it is in your own network
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_whether_it_answers_with_a_page_or_opens_no_tunnel() {
    let mut world = World::start().await;
    let proxy = Proxy::start().await;
    for name in ["http_proxy", "HTTPS_PROXY"] {
        world.sets(name, proxy.address());
    }
    world.sets("no_proxy", "127.0.0.1");
    world.configure(|config| {
        config["task_sources"] = json!(["github", "gitlab"]);
        config["github"]["api_url"] = json!("https://github.test/api/v3");
        config["gitlab"]["api_url"] = json!("http://private.test/api/v4");
        config["llm"]["openai"]["base_url"] = json!("http://private.test/v1");
    });

    insta::assert_snapshot!(told_faults(&world).await, @"
    BAD GitHub token github.test cannot be reached: the proxy refuses to connect to it, asked through the proxy ADDRESS of HTTPS_PROXY or ALL_PROXY
    -> look at that proxy, or name github.test in NO_PROXY if it is in your own network
    BAD GitLab token the answer was 403 Forbidden: (a page of HTML), asked through the proxy ADDRESS of HTTP_PROXY or ALL_PROXY
    -> look at that proxy, or name private.test in NO_PROXY if it is in your own network; else check that gitlab.api_url is the address of a GitLab: https://HOST/api/v4
    BAD model the openai server at http://private.test/v1 answered 403 Forbidden to a request for 'scripted': (a page of HTML), asked through the proxy ADDRESS of HTTP_PROXY or ALL_PROXY
    -> look at that proxy, or name private.test in NO_PROXY if it is in your own network; else check llm.openai.api_key and what the key may do
    ");
    world.finish().await;
}
