//! The worker in a container of its own, as the compose file has it: it has the engine's socket and
//! a network, and what it starts has neither, but a way out through the worker.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use crate::fake::model::{Plan, Request};
use crate::fake::site::Site;
use crate::world::scripts::COMMAND;
use crate::world::{IMAGE, Program, World};

const SOCKET: &str = "/var/run/docker.sock";
const HOME: &str = "/var/lib/coding-agent";
const EXECUTOR: &str = "/usr/local/bin/coding-agent-executor-static";

/// The fakes say of themselves that they are at 127.0.0.1. In the worker's container that leads to
/// them from the ports that are named, notes every name that the worker asks for, and then runs the
/// program.
const WORKER: &str = r"
import socket, subprocess, sys, threading

def pump(source, sink):
    try:
        while part := source.recv(65536):
            sink.sendall(part)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass

def serve(listener, port):
    while True:
        near, _ = listener.accept()
        far = socket.create_connection(('host.docker.internal', port))
        for ends in ((near, far), (far, near)):
            threading.Thread(target=pump, args=ends, daemon=True).start()

def answer_names(server):
    while True:
        query, sender = server.recvfrom(512)
        name, place = [], 12
        while query[place]:
            name.append(query[place + 1 : place + 1 + query[place]].decode())
            place += query[place] + 1
        with open('asked-names', 'a') as asked:
            asked.write('.'.join(name) + '\n')
        # There is no such name.
        server.sendto(query[:2] + b'\x81\x83' + query[4:6] + bytes(6) + query[12 : place + 5], sender)

names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(('127.0.0.1', 53))
threading.Thread(target=answer_names, args=(names,), daemon=True).start()
for port in map(int, sys.argv[1:]):
    listener = socket.create_server(('127.0.0.1', port))
    threading.Thread(target=serve, args=(listener, port), daemon=True).start()
sys.exit(subprocess.call(['coding-agent', '--config', 'config.yaml', 'run']))
";

/// Returns the address of this machine on the engine's usual network, as a container there sees it:
/// the engine itself does not always name it, at its first start for one.
pub async fn gateway() -> String {
    let mut command = Command::new("docker");
    command.args([
        "run",
        "--rm",
        "--add-host",
        "host.docker.internal:host-gateway",
        "--entrypoint",
        "getent",
        IMAGE,
    ]);
    let found = command.args(["hosts", "host.docker.internal"]).output().await.unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    found.split_whitespace().next().unwrap().to_owned()
}

/// Leads from a port of that address to the same port of loopback, as long as the test runs.
async fn lead(gateway: &str, port: u16) {
    let listener = TcpListener::bind((gateway, port)).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let _ = copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
}

fn port_of(url: &str) -> u16 {
    reqwest::Url::parse(url).unwrap().port().unwrap()
}

pub fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_coding-agent")).with_file_name(name)
}

/// Prepares the program in a container, with the world's folder as its home.
fn worker(world: &World, ports: &[u16]) -> Command {
    let (folder, socket) = (
        world.folder().metadata().unwrap(),
        Path::new(SOCKET).metadata().unwrap(),
    );
    let mut command = Command::new("docker");
    command
        .args([
            "run",
            "--rm",
            "--init",
            // As the compose file has it.
            "--cap-drop",
            "ALL",
            "--security-opt",
            "no-new-privileges:true",
            "--read-only",
            "--tmpfs",
            "/tmp",
            "--memory",
            "4g",
            "--pids-limit",
            "512",
            "--add-host",
            "host.docker.internal:host-gateway",
            "--dns",
            "127.0.0.1",
        ])
        .args(["--user", &format!("{}:{}", folder.uid(), folder.gid())])
        .args(["--group-add", &socket.gid().to_string()])
        .args(["--volume", &format!("{SOCKET}:{SOCKET}")])
        .args([
            "--volume",
            &format!("{}:/usr/local/bin/coding-agent:ro", built("coding-agent").display()),
        ])
        .args([
            "--volume",
            &format!("{}:{EXECUTOR}:ro", built("coding-agent-executor-static").display()),
        ])
        .args(["--volume", &format!("{}:{HOME}", world.folder().display())])
        .args(["--workdir", HOME, "--env", &format!("HOME={HOME}")])
        .args(["--entrypoint", "python3", IMAGE, "-c", WORKER])
        .args(ports.iter().map(ToString::to_string));
    command
}

#[tokio::test]
async fn a_worker_in_a_container_lets_its_containers_out_to_what_is_named_and_nowhere_else() {
    let gateway = gateway().await;
    let site = Site::start_on(&gateway);
    let mut world = World::start().await;
    let ports = [world.github.url().to_owned(), world.model.openai_address()].map(|url| port_of(&url));
    for port in ports {
        lead(&gateway, port).await;
    }
    hardened(&worker(&world, &[]));
    let address = format!("host.docker.internal:{}", site.port());
    world.configure(|config| {
        config["command_executor"]["executor_path"] = json!(EXECUTOR);
        // A name that only the worker's container knows.
        config["command_executor"]["network"] = json!({ "allow": ["named.example"], "allow_private": [address] });
    });
    let direct = format!(
        "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; getent hosts host.docker.internal; ls {SOCKET}; \
         timeout 5 bash -c 'echo > /dev/tcp/{gateway}/{}' 2>&1",
        site.port()
    );
    world
        .model
        .plans(Plan::of(&["ask"]).in_environment("python"))
        .calls(
            COMMAND,
            json!({ "command": format!("curl -sS http://{address}/named") }),
        )
        .calls(
            COMMAND,
            json!({ "command": format!("curl -sS http://host.docker.internal:{}/", ports[1]) }),
        )
        .calls(
            COMMAND,
            json!({ "command": "curl -sS http://secret.evil.example/; curl -sS https://secret.evil.example/; curl -sS http://named.example/" }),
        )
        .calls(COMMAND, json!({ "command": direct }))
        .done("Asked.");
    world.github.open_issue("Ask around").label("coding agent");
    world.writes_its_configuration();

    let ended = Program::start(worker(&world, &ports)).ended().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let requests = world.model.requests();
    let said: Vec<String> = requests[2..].iter().map(Request::last_user_message).collect();
    assert!(said[0].contains("hello from /named"), "{}", said[0]);
    let other_port = format!("host.docker.internal may be reached, but not its port {}", ports[1]);
    assert!(said[1].contains(&other_port), "{}", said[1]);
    assert!(
        said[2].matches("secret.evil.example is not among the hosts").count() >= 2,
        "{}",
        said[2]
    );
    assert!(said[2].contains("named.example could not be looked up"), "{}", said[2]);
    // A name that is refused is not even looked up: who answers for it would hear what it says.
    let names = std::fs::read_to_string(world.folder().join("asked-names")).unwrap();
    let names: BTreeSet<&str> = names.lines().collect();
    assert_eq!(names, BTreeSet::from(["named.example"]));
    assert!(said[3].contains(r"lo\n") && !said[3].contains("eth"), "{}", said[3]);
    assert!(said[3].contains("Network is unreachable"), "{}", said[3]);
    assert!(said[3].contains("cannot access"), "{}", said[3]);
    assert_eq!(site.asked(), [format!("GET /named {address}")]);
    let state = Path::new(HOME).join("state");
    assert_eq!(World::containers_of(&state).await, [""; 0]);
    world.finish().await;
}

/// Asserts that the worker is denied here whatever the compose file denies it.
fn hardened(worker: &Command) {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docker-compose.yml")).unwrap();
    let compose: serde_json::Value = serde_yaml::from_str(&text).unwrap();
    let service = &compose["services"]["coding-agent"];
    assert_eq!(service["cap_drop"], json!(["ALL"]));
    assert_eq!(service["security_opt"], json!(["no-new-privileges:true"]));
    assert_eq!(service["read_only"], json!(true));
    assert_eq!(service["tmpfs"], json!(["/tmp"]));
    let arguments: Vec<_> = worker
        .as_std()
        .get_args()
        .map(|argument| argument.to_string_lossy())
        .collect();
    let given = |name: &str| {
        arguments
            .iter()
            .position(|argument| argument == name)
            .map(|place| &arguments[place + 1])
    };
    assert_eq!(given("--memory").unwrap(), service["mem_limit"].as_str().unwrap());
    assert_eq!(given("--pids-limit").unwrap(), &service["pids_limit"].to_string());
}
