//! The inside of a way out: the name in TLS, the journal's record of it, and that the way is closed
//! after set-up.

use serde_json::json;

use crate::fake::ear::Ear;
use crate::fake::model::{Plan, Request};
use crate::fake::site::Site;
use crate::world::World;
use crate::world::facts::facts;
use crate::world::scripts::COMMAND;

/// Has the model run `commands` after the set-up, one for each turn, and returns what they said.
async fn outputs(world: &World, set_up: &[&str], commands: &[&str]) -> Vec<String> {
    let mut script = world.model.plans(Plan::of(&["ask"]).set_up_by(set_up));
    for command in commands {
        script = script.calls(COMMAND, json!({ "command": command }));
    }
    script.done("Asked.");
    world.github.open_issue("Ask around").label("coding agent");
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", world);
    let requests = world.model.requests();
    requests[2..].iter().map(Request::last_user_message).collect()
}

#[tokio::test]
async fn a_connection_that_asks_for_another_host_inside_of_tls_is_refused_before_a_byte_is_sent() {
    let ear = Ear::start();
    let world = World::with_network(json!({ "allow_private": [ear.address()] })).await;
    let (port, at) = (ear.port(), ear.address());
    let said = outputs(
        &world,
        &[],
        &[
            // As a program that takes no notice of NO_PROXY.
            &format!("curl -sS -m 5 --noproxy '' --connect-to evil.example:{port}:{at} https://evil.example:{port}/"),
            &format!("curl -sS -m 5 --noproxy '' https://{at}/"),
        ],
    )
    .await;

    let sentence = "evil.example was asked for inside of a TLS connection to localhost, and is not among the hosts that containers may reach";
    assert!(said[0].contains(&format!("[network: {sentence}")), "{}", said[0]);
    assert!(said[0].contains("unrecognized name"), "{}", said[0]);
    let heard = ear.heard();
    assert_eq!(heard.len(), 1, "{}", world.story());
    assert_eq!(heard[0][0], 22, "the honest connection's ClientHello");
    let refused = facts(&world, "egress_refused");
    assert_eq!(refused.len(), 1);
    assert_eq!(
        (&refused[0]["host"], &refused[0]["reason"]),
        (&json!("evil.example"), &json!(sentence))
    );
    let allowed = facts(&world, "egress_allowed");
    let connections: u64 = allowed.iter().filter_map(|fact| fact["connections"].as_u64()).sum();
    assert_eq!(connections, 1, "{allowed:?}");
    assert_eq!(allowed[0]["host"], "localhost");
    assert_eq!(allowed[0]["port"].to_string(), port);
    assert_eq!(allowed[0]["sent"], heard[0].len());
    assert!(allowed[0]["received"].as_u64().unwrap() > 0);
    let logs = world.command(&["logs", "github:acme/widgets#1"]).await.stdout;
    assert!(
        logs.contains("egress allowed") && logs.contains("host: localhost"),
        "{logs}"
    );
    world.finish().await;
}

#[tokio::test]
async fn plain_http_in_a_tunnel_asks_for_the_host_that_was_judged() {
    let ear = Ear::start();
    let world = World::with_network(json!({ "allow_private": [ear.address()] })).await;
    let at = ear.address();
    let asks = format!(
        "printf 'CONNECT {at} HTTP/1.1\\r\\n\\r\\nGET /one HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\nGET /two HTTP/1.1\\r\\nHost: \
         evil.example\\r\\n\\r\\n' | timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; cat >&3; cat <&3'"
    );
    let said = outputs(&world, &[], &[&asks]).await;

    assert!(said[0].contains("heard"), "{}", said[0]);
    let heard: Vec<String> = ear
        .heard()
        .iter()
        .map(|bytes| String::from_utf8_lossy(bytes).to_lowercase())
        .collect();
    assert_eq!(heard.len(), 1);
    assert!(heard[0].starts_with("get /one http/1.1\r\n"), "{heard:?}");
    assert!(heard[0].contains(&format!("host: {at}\r\n")), "{heard:?}");
    assert!(!heard[0].contains("evil"), "{heard:?}");
    world.finish().await;
}

#[tokio::test]
async fn with_during_setup_only_set_up_commands_get_out() {
    let site = Site::start();
    let world = World::with_network(json!({ "allow_private": [site.address()], "during": "setup" })).await;
    let asks = |path: &str| format!("curl -sS -m 5 http://{}{path}", site.address());
    // What set-up leaves in the background is cut off with it.
    let held = format!("nohup {} >/tmp/held 2>&1 & {}", asks("/held/long"), asks("/set-up"));
    let look = format!("{}; cat /tmp/held", asks("/work"));
    let said = outputs(&world, &[&held], &[&look]).await;

    let refusal = "127.0.0.2 may be reached by set-up commands only, and set-up has ended; whoever runs coding-agent can allow it in \
                   config.yaml: command_executor.network.during: always";
    assert!(said[0].contains(&format!("[network: {refusal}.]")), "{}", said[0]);
    assert!(!said[0].contains("hello"), "{}", said[0]);
    let mut asked = site.asked();
    asked.retain(|line| !line.contains("/held/"));
    assert_eq!(asked, [format!("GET /set-up {}", site.address())]);
    let requests = world.model.requests();
    assert!(requests[0].system().contains("Only these commands reach the network"));
    assert!(
        requests[1].system().contains("It is closed now"),
        "{}",
        requests[1].system()
    );
    site.release();
    world.finish().await;
}
