//! Services that a project's tests need: side containers that share the loopback of the run's own.

use bollard::Docker;
use serde_json::{Value, json};

use crate::fake::model::Plan;
use crate::fake::site::Site;
use crate::world::scripts::COMMAND;
use crate::world::{IMAGE, World};

/// Returns a service that answers after a second.
fn web() -> Value {
    json!({
        "image": IMAGE,
        "env": { "GREETING": "hello" },
        "entrypoint": ["sh", "-c"],
        "command": ["sleep 1; mkdir /tmp/web; echo $GREETING > /tmp/web/index.html; exec python3 -m http.server -d /tmp/web 8080"],
        "ready": "curl -sf http://127.0.0.1:8080/",
        "memory_limit": "64m",
    })
}

async fn world_with(services: Value) -> World {
    let mut world = World::start().await;
    world.configure(|config| config["command_executor"]["services"] = services);
    world
}

#[tokio::test]
async fn a_service_is_there_when_the_work_begins_and_gone_when_it_ends() {
    let mut elsewhere = web();
    elsewhere["environments"] = json!(["go"]);
    let mut world = world_with(json!({ "web": web(), "elsewhere": elsewhere })).await;
    world.configure(|config| config["command_executor"]["environments"]["go"] = json!(IMAGE));
    let asks = "curl -sS http://web:8080/; curl -sS http://localhost:8080/; getent hosts web elsewhere; \
        tail -n +3 /proc/net/dev | cut -d: -f1";
    world
        .model
        .plans(
            Plan::of(&["ask"])
                .in_environment("python")
                .verified_by("curl -sf http://web:8080/"),
        )
        .calls(COMMAND, json!({ "command": asks }))
        .done("Asked.")
        .holds();
    world.github.open_issue("Ask the service").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let journal = world.journal();
    let started = journal
        .iter()
        .find(|entry| entry["fact"] == "environment_started")
        .unwrap();
    let services = started["services"].as_object().unwrap();
    assert_eq!(services.keys().collect::<Vec<_>>(), ["web"]);
    assert!(services["web"].as_str().unwrap().contains("sha256:"), "{started}");
    let mut containers = world.containers().await;
    containers.sort();
    let docker = Docker::connect_with_defaults().unwrap();
    let inspect = async |name: &str| {
        docker
            .inspect_container(name.trim_start_matches('/'), None)
            .await
            .unwrap()
    };
    assert_eq!(containers.len(), 2, "{containers:?}");
    assert!(containers[1].ends_with("-web"), "{containers:?}");
    let (main, service) = (inspect(&containers[0]).await, inspect(&containers[1]).await);
    world.model.release();
    let ended = program.ended().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let said = world.model.requests()[2].last_user_message();
    assert!(said.contains(r"hello\nhello\n127.0.0.1       web\n"), "{said}");
    assert!(!said.contains("elsewhere\\n") && !said.contains("eth"), "{said}");
    // As confined as the container beside it, but for what makes it a service.
    let (mut main_host, mut host) = (main.host_config.unwrap(), service.host_config.unwrap());
    assert_eq!(host.network_mode, Some(format!("container:{}", main.id.unwrap())));
    assert_eq!((host.memory, host.memory_swap), (Some(64 << 20), Some(64 << 20)));
    assert_eq!(service.config.unwrap().user.as_deref(), Some("agent"));
    for host in [&mut main_host, &mut host] {
        host.network_mode = None;
        host.memory = None;
        host.memory_swap = None;
        host.log_config = None;
        host.extra_hosts = None;
        host.dns = None;
        host.dns_search = None;
        // The executor is the init of the run's container alone.
        host.init = None;
        // Podman's notes on init and on how a container is stopped.
        host.annotations = None;
    }
    assert_eq!(host, main_host);
    world.finish().await;
}

#[tokio::test]
async fn a_service_that_does_not_become_ready_fails_the_run_with_what_it_said() {
    let mut never = web();
    never["command"] = json!(["echo the disk is on fire >&2; exec sleep 60"]);
    never["ready_seconds"] = json!(1);
    let mut dead = web();
    dead["command"] = json!(["echo no password was given; exit 1"]);
    for (service, reason, said) in [
        (never, "did not succeed within 1 s", "the disk is on fire"),
        (dead, "it has ended with exit code 1", "no password was given"),
    ] {
        let world = world_with(json!({ "db": service })).await;
        world.model.plans(Plan::of(&["ask"]).in_environment("python"));
        let issue = world.github.open_issue("Ask the service").label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
        let comments = issue.comments_of(world.github.bot());
        let text = comments.last().unwrap();
        for words in [
            "The service db did not become ready",
            reason,
            "command_executor.services.db",
            said,
        ] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
        world.finish().await;
    }
}

#[tokio::test]
async fn services_outlive_a_killed_program_and_go_with_the_run() {
    let world = world_with(json!({ "web": web() })).await;
    world.model.allows_restarts();
    let asks = || json!({ "command": "curl -sS http://web:8080/" });
    world
        .model
        .plans(Plan::of(&["ask"]).in_environment("python"))
        .calls(COMMAND, asks())
        .holds()
        .calls(COMMAND, asks())
        .done("Asked.");
    world.github.open_issue("Ask the service").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    program.kill().await;
    assert_eq!(world.containers().await.len(), 2);
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let said = world.model.requests().last().unwrap().last_user_message();
    assert!(said.contains("hello"), "{said}");
    world.finish().await;
}

#[tokio::test]
async fn what_a_killed_program_left_of_a_run_that_is_over_is_swept_with_its_services() {
    let world = world_with(json!({ "web": web() })).await;
    world
        .model
        .plans(Plan::of(&["ask"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "true" }))
        .holds();
    let issue = world.github.open_issue("Ask the service").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    program.kill().await;
    issue.close();
    world.run().await;

    assert_eq!(world.containers().await, [""; 0]);
    world.model.release();
    world.finish().await;
}

/// A service that runs whatever is asked of it: an image that turned out to be somebody else's.
const TURNED: &str = r"
import http.server, subprocess, urllib.parse

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        command = urllib.parse.unquote(self.path[1:])
        done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(done.stdout)

http.server.ThreadingHTTPServer(('127.0.0.1', 8080), Handler).serve_forever()
";

#[tokio::test]
async fn a_hostile_service_reaches_neither_outside_nor_worker_nor_the_project() {
    let (forbidden, allowed) = (Site::start_on("0.0.0.0"), Site::start());
    let mut turned = web();
    turned["entrypoint"] = json!(["python3", "-c", TURNED]);
    turned["command"] = Value::Null;
    turned["ready"] = json!("curl -sf http://127.0.0.1:8080/true");
    let mut world = world_with(json!({ "web": turned })).await;
    world.configure(|config| {
        config["command_executor"]["network"] = json!({ "allow_private": [allowed.address()] });
    });
    let asks = |command: &str| {
        let encoded = percent_encoding::utf8_percent_encode(command, percent_encoding::NON_ALPHANUMERIC);
        json!({ "command": format!("curl -sS http://web:8080/{encoded}") })
    };
    let port = forbidden.port();
    let looks = format!(
        "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; timeout 2 bash -c 'echo > /dev/tcp/172.17.0.1/{port}' 2>&1; id -un; \
         grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t ' ' '"
    );
    let proxy = "curl -sS -m 5 --noproxy '' -x http://127.0.0.1:3128";
    let asks_out = format!(
        "{proxy} http://127.0.0.1:{port}/; {proxy} http://{}/through",
        allowed.address()
    );
    let looks_around = "ls /workspace/project/README.md /var/run/docker.sock; cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
    world
        .model
        .plans(Plan::of(&["ask"]).in_environment("python"))
        .calls(COMMAND, asks(&looks))
        .calls(COMMAND, asks(&asks_out))
        .calls(COMMAND, asks(looks_around))
        .calls(COMMAND, asks("kill -9 -1"))
        .calls(COMMAND, json!({ "command": "echo alive > alive.txt" }))
        .done("Asked.");
    world.github.open_issue("Ask the service").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let requests = world.model.requests();
    let output = |turn: usize| {
        let said: Value = serde_json::from_str(&requests[2 + turn].last_user_message()).unwrap();
        let output = said["output"].as_str().unwrap().to_owned();
        // What follows tells the time it took.
        output.split("\n[exit code 0").next().unwrap().to_owned()
    };
    insta::assert_snapshot!(output(0).replace(port, "PORT"), @"
    lo
    bash: connect: Network is unreachable
    bash: line 1: /dev/tcp/172.17.0.1/PORT: Network is unreachable
    agent
    CapEff: 0000000000000000
    NoNewPrivs: 1
    Seccomp: 2
    [no file changed]
    ");
    // It shares the run's way out, and what that refuses.
    insta::assert_snapshot!(output(1).replace(port, "PORT"), @r#"
    127.0.0.1 is not among the hosts that containers may reach; whoever runs coding-agent can allow it in config.yaml: command_executor.network.allow: ["127.0.0.1:PORT"]
    hello from /through
    [no file changed]
    "#);
    let around = output(2);
    assert_eq!(around.matches("No such file or directory").count(), 2, "{around}");
    assert!(!around.contains("coding-agent-executor"), "{around}");
    assert_eq!(forbidden.asked(), [""; 0]);
    world.finish().await;
}
