//! The hosts that a container reaches: those that the configuration names, through the way out, and
//! no others.
//!
//! The site of these tests lies on an address of this machine, which is never reached but by an
//! exception: with it the way out is tried, and without it the refusal.

use serde_json::json;

use crate::fake::model::{Plan, Request};
use crate::fake::proxy::Proxy;
use crate::fake::site::Site;
use crate::world::World;
use crate::world::scripts::COMMAND;

/// Has the model run `commands`, one for each turn.
fn runs(world: &World, commands: &[&str]) {
    let mut script = world.model.plans(Plan::of(&["ask"]).in_environment("python"));
    for command in commands {
        script = script.calls(COMMAND, json!({ "command": command }));
    }
    script.done("Asked.");
}

/// Works on an issue, and returns what the commands said.
async fn outputs(world: &World) -> Vec<String> {
    world.github.open_issue("Ask around").label("coding agent");
    work(world).await
}

async fn work(world: &World) -> Vec<String> {
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", world);
    said(world)
}

/// Returns what the model was told after each command.
fn said(world: &World) -> Vec<String> {
    let requests = world.model.requests();
    requests[2..].iter().map(Request::last_user_message).collect()
}

#[tokio::test]
async fn a_host_that_is_named_is_reached_plainly_and_through_a_tunnel() {
    let site = Site::start();
    let world = World::with_network(json!({ "allow_private": [site.address()] })).await;
    let address = site.address();
    runs(
        &world,
        &[
            &format!("curl -sS http://{address}/plain; curl -sS -d written http://{address}/plain"),
            &format!("curl -sS --proxytunnel http://{address}/one http://{address}/two"),
            &format!("python3 -c \"import urllib.request as r; print(r.urlopen('http://{address}/python').read())\""),
        ],
    );

    let said = outputs(&world).await;

    assert!(said[0].contains(r"hello from /plain\nhello from /plain"), "{}", said[0]);
    assert!(said[1].contains(r"hello from /one\nhello from /two"), "{}", said[1]);
    assert!(said[2].contains("hello from /python"), "{}", said[2]);
    let expected = ["GET /plain", "POST /plain", "GET /one", "GET /two", "GET /python"];
    let mut expected: Vec<String> = expected.iter().map(|line| format!("{line} {address}")).collect();
    expected[1].push_str(" written");
    assert_eq!(site.asked(), expected);
    assert!(
        world.model.requests()[1]
            .system()
            .contains("through the proxy in the environment")
    );
    world.finish().await;
}

#[tokio::test]
async fn another_host_is_refused_and_people_read_how_it_is_allowed() {
    let world = World::start().await;
    runs(
        &world,
        &[
            "curl -sS http://evil.example/; curl -sS https://evil.example:8443/",
            "curl -sS -o /dev/null https://evil.example:8443/; echo x > x.txt",
            "python3 -c 'import urllib.request as r; r.urlopen(\"https://mirror.example/\")' 2>&1 | tail -n 1",
        ],
    );

    let issue = world.github.open_issue("Ask around").label("coding agent");
    let said = work(&world).await;

    let sentence = "evil.example is not among the hosts that containers may reach; whoever runs coding-agent can allow it in \
                    config.yaml: command_executor.network.allow: [evil.example]";
    assert!(said[0].contains(sentence), "{}", said[0]);
    let second = sentence.replace("allow: [evil.example]", r#"allow: [\"evil.example:8443\"]"#);
    assert!(said[1].contains(&format!("[network: {second}.]")), "{}", said[1]);
    assert!(
        said[2].contains("Tunnel connection failed: 403 Forbidden: mirror.example is not among"),
        "{}",
        said[2]
    );
    let journal = world.journal();
    let refused: Vec<_> = journal
        .iter()
        .filter(|entry| entry["fact"] == "egress_refused")
        .map(|entry| format!("{}:{} {}", entry["host"], entry["port"], entry["reason"]))
        .collect();
    insta::assert_snapshot!(refused.join("\n"), @r#"
    "evil.example":80 "evil.example is not among the hosts that containers may reach"
    "evil.example":8443 "evil.example is not among the hosts that containers may reach"
    "mirror.example":443 "mirror.example is not among the hosts that containers may reach"
    "#);
    let section = "**Hosts that the container may not reach**\n\n\
        - `evil.example:80`: not among the hosts that containers may reach; to allow it: `command_executor.network.allow: [evil.example]`\n\
        - `evil.example:8443`: not among the hosts that containers may reach; to allow it: `command_executor.network.allow: [\"evil.example:8443\"]`\n\
        - `mirror.example:443`: not among the hosts that containers may reach; to allow it: `command_executor.network.allow: [mirror.example]`\n";
    let comments = issue.comments_of(world.github.bot());
    assert_eq!(comments.len(), 2);
    for text in comments.iter().chain([&world.github.pulls()[0].text()]) {
        assert!(text.contains(section), "{text}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_name_that_leads_into_a_private_network_is_refused_although_it_is_named() {
    let site = Site::start();
    let port = site.port();
    let world = World::with_network(json!({
        "allow": [format!("localhost:{port}"), site.address()],
        "allow_private": ["169.254.169.254"],
    }))
    .await;
    runs(
        &world,
        &[
            // As a program that takes no notice of NO_PROXY.
            &format!(
                "curl -sS --noproxy '' http://localhost:{port}/; curl -sS http://{}/",
                site.address()
            ),
            "curl -sS -m 5 http://169.254.169.254/latest/meta-data/; curl -sS -o /dev/null -w '%{http_code}' -x http://127.0.0.1:3128 http://[::ffff:169.254.169.254]/",
        ],
    );

    let said = outputs(&world).await;

    assert!(
        said[0].contains("localhost leads to ") && said[0].contains("in a private network"),
        "{}",
        said[0]
    );
    let line = format!(r#"command_executor.network.allow_private: [\"127.0.0.2:{port}\"]"#);
    assert!(said[0].contains(&line), "{}", said[0]);
    let never = "169.254.169.254 (link-local or cloud metadata) is never reached from a container, whatever the configuration says";
    assert!(said[1].contains(never) && said[1].contains("403"), "{}", said[1]);
    assert_eq!(site.asked(), [""; 0]);
    world.finish().await;
}

#[tokio::test]
async fn there_is_no_device_but_loopback_and_no_name_is_looked_up() {
    let looks = [
        "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; timeout 4 getent hosts evil.example; echo \"resolved: $?\"",
        "timeout 5 bash -c 'echo > /dev/tcp/172.17.0.1/22' 2>&1; timeout 5 bash -c 'echo > /dev/udp/1.1.1.1/53' 2>&1; env | grep -ic proxy",
    ];
    let (with_way_out, without) = tokio::join!(
        World::with_network(json!({})),
        World::with_network(json!({ "mode": "none" }))
    );
    for (world, variables) in [(&with_way_out, 11), (&without, 0)] {
        runs(world, &looks);
        let said = outputs(world).await;
        assert!(said[0].contains(r"lo\n") && !said[0].contains("eth"), "{}", said[0]);
        // A look-up would wait for a server, and be ended with 124.
        assert!(said[0].contains("resolved: 2"), "{}", said[0]);
        assert_eq!(
            said[1].matches("connect: Network is unreachable").count(),
            2,
            "{}",
            said[1]
        );
        let count = format!(r"\n{variables}\n");
        assert!(said[1].contains(&count), "{}", said[1]);
    }
    assert!(without.model.requests()[1].system().contains("There is no network."));
    with_way_out.finish().await;
    without.finish().await;
}

#[tokio::test]
async fn an_open_network_is_dockers_bridge() {
    let world = World::with_network(json!({ "mode": "open" })).await;
    runs(
        &world,
        &["tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; env | grep -ic proxy"],
    );

    let said = outputs(&world).await;

    assert!(said[0].contains("eth0") && said[0].contains(r"\n0\n"), "{}", said[0]);
    assert!(!world.model.requests()[1].system().contains("etwork:"));
    world.finish().await;
}

#[tokio::test]
async fn a_container_that_is_taken_over_still_has_its_way_out_and_one_that_was_ended_comes_back() {
    let site = Site::start();
    let mut world = World::with_network(json!({ "allow_private": [site.address()] })).await;
    world.configure(|config| config["consumers"] = json!(1));
    world.model.allows_restarts();
    let asks = |path: &str| {
        let command = format!(
            "curl -sS http://{}{path}; pgrep -fc '[e]xecutor (tunnel|multiplex)'",
            site.address()
        );
        json!({ "command": command })
    };
    let ends = "pkill -f '[e]xecutor tunnel'; until curl -sS -m 60 http://ADDRESS/ended; do sleep 0.2; done";
    world
        .model
        .plans(Plan::of(&["ask"]).in_environment("python"))
        .calls(COMMAND, asks("/before"))
        .calls(COMMAND, asks("/never"))
        .holds()
        .calls(COMMAND, asks("/after"))
        .calls(COMMAND, json!({ "command": ends.replace("ADDRESS", site.address()) }))
        .done("Asked.");
    world.github.open_issue("Ask").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    program.kill().await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let started = world
        .journal()
        .iter()
        .filter(|entry| entry["fact"] == "environment_started")
        .count();
    assert_eq!(started, 1, "{}", world.story());
    let asked: Vec<_> = site
        .asked()
        .iter()
        .map(|line| line.split(' ').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(asked, ["/before", "/after", "/ended"]);
    let said = said(&world);
    for output in [&said[0], &said[2]] {
        assert!(output.contains(r"\n1\n"), "{output}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_way_out_that_lost_its_first_stream_comes_back() {
    let site = Site::start();
    let world = World::with_network(json!({ "allow_private": [site.address()] })).await;
    let ends =
        "setsid sh -c 'sleep 1; pkill -KILL -f \"[e]xecutor multiplex\"' & curl -sS http://ADDRESS/before; sleep 9";
    let asks = "until curl -sS -m 5 http://ADDRESS/after; do sleep 0.2; done";
    let [ends, asks] = [ends, asks].map(|command| command.replace("ADDRESS", site.address()));
    runs(&world, &[&ends, &asks]);

    let said = outputs(&world).await;

    assert!(said[0].contains("was started again"), "{}", said[0]);
    assert!(said[1].contains("hello from /after"), "{}", said[1]);
    world.finish().await;
}

#[tokio::test]
async fn a_container_of_another_network_than_the_configuration_says_is_not_taken_over() {
    let mut world = World::with_network(json!({ "mode": "open" })).await;
    world.model.allows_restarts();
    let asks = || json!({ "command": "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '" });
    world
        .model
        .plans(Plan::of(&["ask"]).in_environment("python"))
        .calls(COMMAND, asks())
        .holds()
        .calls(COMMAND, asks())
        .done("Asked.");
    world.github.open_issue("Ask").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    program.kill().await;
    world.configure(|config| config["command_executor"]["network"] = json!({ "mode": "none" }));
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let last = world.model.requests().last().unwrap().last_user_message();
    assert!(last.contains(r#""lo\n"#) && !last.contains("eth"), "{last}");
    world.finish().await;
}

#[tokio::test]
async fn however_many_connections_are_made_only_so_many_go_out_at_once() {
    let site = Site::start();
    let world = World::with_network(json!({ "allow_private": [site.address()] })).await;
    let many = format!(
        "for i in $(seq 100); do curl -sS http://{}/held/$i >> /tmp/answers & done; wait; wc -l < /tmp/answers",
        site.address()
    );
    runs(&world, &[&many]);
    world.github.open_issue("Ask often").label("coding agent");

    let program = world.spawn(&["run"]);
    world.until("64 requests at once", || site.most_at_once() == 64).await;
    site.release();
    let ended = program.ended().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let said = said(&world);
    assert!(said[0].contains(r"100\n"), "{}", said[0]);
    assert_eq!(site.asked().len(), 100);
    assert_eq!(site.most_at_once(), 64);
    world.finish().await;
}

#[tokio::test]
async fn a_worker_behind_a_proxy_lets_its_containers_out_through_it() {
    let mut world = World::with_network(json!({ "allow": ["site.test", "10.0.0.1"] })).await;
    // Where the proxy looks for every name.
    let (site, proxy) = (Site::start_on("127.0.0.1"), Proxy::start().await);
    world.sets("http_proxy", proxy.address());
    world.sets("HTTPS_PROXY", proxy.address());
    world.sets("no_proxy", "127.0.0.1");
    world.configure(|config| {
        let allow = config["command_executor"]["network"]["allow"].as_array_mut().unwrap();
        allow.push(json!(format!("site.test:{}", site.port())));
    });
    let at = format!("http://site.test:{}", site.port());
    runs(
        &world,
        &[
            &format!("curl -sS {at}/far; curl -sS https://site.test/ -o /dev/null; curl -sS http://other.test/"),
            &format!("curl -sS --proxytunnel {at}/tunnel; curl -sS http://10.0.0.1/"),
        ],
    );

    let said = outputs(&world).await;

    assert!(said[0].contains("hello from /far"), "{}", said[0]);
    assert!(
        said[0].contains("502") && said[0].contains("other.test is not among the hosts"),
        "{}",
        said[0]
    );
    assert!(said[1].contains("hello from /tunnel"), "{}", said[1]);
    assert!(said[1].contains("10.0.0.1 is in a private network"), "{}", said[1]);
    let tunnel = format!("CONNECT site.test:{}", site.port());
    assert_eq!(proxy.asked(), ["GET site.test", "CONNECT site.test:443", &tunnel]);
    world.finish().await;
}
