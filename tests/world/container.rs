//! The container of a real run, looked at from outside while the model works in it: what the engine
//! holds of it, key by key, and what a process in it finds.

use bollard::Docker;
use bollard::models::ContainerInspectResponse;
use serde_json::{Value, json};

use crate::fake::model::Plan;
use crate::world::scripts::COMMAND;
use crate::world::{MODEL_KEY, World};

/// The engine's own defaults, which say nothing of what a container may do, and what is looked at
/// apart.
const OF_NO_MATTER: [&str; 7] = [
    "ConsoleSize",
    "LogConfig",
    "MaskedPaths",
    "ReadonlyPaths",
    "RestartPolicy",
    "Runtime",
    "ShmSize",
];

const SECRET: &str = "s3cret-of-the-worker";

/// Files that every container has in `/dev`, whichever engine made it; none of them leads to hardware.
const HARMLESS_DEVICES: &str =
    "console|core|fd|full|mqueue|null|ptmx|pts|pts/.*|random|shm|stderr|stdin|stdout|tty|urandom|zero";

/// Has a model look around in its container with this command; returns what the engine holds of the
/// container meanwhile, and what the model saw.
async fn looks_around(world: &mut World, look: &str) -> (ContainerInspectResponse, String) {
    world.sets("A_SECRET_OF_THE_WORKER", SECRET);
    world
        .model
        .plans(Plan::of(&["look"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": look }))
        .done("Looked.")
        .holds();
    world.github.open_issue("Look around").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let containers = world.containers().await;
    let docker = Docker::connect_with_defaults().unwrap();
    let name = containers[0].trim_start_matches('/');
    let inspected = docker.inspect_container(name, None).await.unwrap();
    world.model.release();
    let ended = program.ended().await;
    ended.prints("github:acme/widgets#1: done\n", world);
    assert_eq!(containers.len(), 1, "{containers:?}");

    let said = world.model.requests()[2].last_user_message();
    let said: Value = serde_json::from_str(&said).unwrap();
    let (output, _) = said["output"].as_str().unwrap().rsplit_once("\n[exit code 0").unwrap();
    (inspected, output.to_owned())
}

/// Looks from inside the container, at signs that every engine has in common.
#[tokio::test]
async fn a_process_in_a_container_is_as_confined_as_it_is_promised() {
    let mut world = World::start().await;
    let look = format!(
        "id; grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; \
        touch /usr/local/bin/x /etc/x /x 2>&1; \
        find / -xdev -type s 2>/dev/null; ls -d /var/run/docker.sock /run/docker.sock /run/podman/podman.sock 2>&1; \
        cat /proc/1/environ /proc/self/environ | tr '\\0' '\\n' | grep -ci -e secret -e token; \
        find /dev -printf '%P\\n' | grep -vxE '|{HARMLESS_DEVICES}'; \
        ls /sys/class/net; \
        for forbidden in 'mount -t tmpfs x /mnt' 'dmesg' 'head -c 1 /proc/kcore' 'ip link add x type dummy' \
            'sysctl -w kernel.hostname=x' 'mknod /tmp/x b 8 0'; do \
          timeout 5 $forbidden >/dev/null 2>&1 && echo \"$forbidden: done\"; done; echo tried"
    );

    let (_, output) = looks_around(&mut world, &look).await;

    insta::assert_snapshot!(output, @r"
    uid=1000(agent) gid=1000(agent) groups=1000(agent)
    CapInh:	0000000000000000
    CapPrm:	0000000000000000
    CapEff:	0000000000000000
    CapBnd:	0000000000000000
    CapAmb:	0000000000000000
    NoNewPrivs:	1
    Seccomp:	2
    touch: cannot touch '/usr/local/bin/x': Permission denied
    touch: cannot touch '/etc/x': Permission denied
    touch: cannot touch '/x': Permission denied
    ls: cannot access '/var/run/docker.sock': No such file or directory
    ls: cannot access '/run/docker.sock': No such file or directory
    ls: cannot access '/run/podman/podman.sock': No such file or directory
    cat: /proc/1/environ: Permission denied
    0
    lo
    tried
    [no file changed]
    ");
    world.finish().await;
}

/// Looks at what only Docker's own inspection and its own filter of system calls show. Podman tells
/// the same settings in other words, leaves the machine's name servers where none can be reached,
/// and lets a process have a user namespace of its own.
#[tokio::test]
async fn dockers_inspection_shows_nothing_that_was_not_promised() {
    let mut world = World::start().await;
    let look = "ls -x -w 200 /dev; grep ^nameserver /etc/resolv.conf; timeout 5 unshare -Ur true 2>&1 || echo refused";

    let (inspected, output) = looks_around(&mut world, look).await;

    assert_eq!(inspected.mounts, Some(Vec::new()));
    let networks = inspected.network_settings.unwrap().networks.unwrap();
    assert_eq!(networks.keys().collect::<Vec<_>>(), ["none"]);
    let config = inspected.config.unwrap();
    assert_eq!(config.user.as_deref(), Some("agent"));
    assert_eq!(config.volumes.unwrap_or_default().len(), 0);
    let variables = config.env.unwrap();
    // What the program sets comes first, and then what the image does.
    let ours = variables.iter().map(|variable| variable.split('=').next().unwrap());
    let ours: Vec<&str> = ours.take_while(|name| *name != "PATH").collect();
    insta::assert_snapshot!(ours.join(" "), @"HTTP_PROXY HTTPS_PROXY http_proxy https_proxy YARN_HTTP_PROXY YARN_HTTPS_PROXY NO_PROXY no_proxy NODE_USE_ENV_PROXY MAVEN_OPTS GRADLE_OPTS");
    let secrets = [world.github.token(), world.gitlab.token(), MODEL_KEY, SECRET];
    let is_secret = |variable: &&String| secrets.iter().any(|secret| variable.contains(secret));
    assert_eq!(variables.iter().find(is_secret), None);
    let host = inspected.host_config.unwrap();
    // Newer engines hide more.
    let is_hidden = |path: &str| host.masked_paths.iter().flatten().any(|hidden| hidden == path);
    assert!(
        is_hidden("/proc/kcore") && is_hidden("/proc/keys") && is_hidden("/sys/firmware"),
        "{host:?}"
    );
    let is_fixed = |path: &str| host.readonly_paths.iter().flatten().any(|fixed| fixed == path);
    assert!(is_fixed("/proc/sys") && is_fixed("/proc/sysrq-trigger"), "{host:?}");
    insta::assert_snapshot!(all_that_is_set(host), @r#"
    CapDrop: ["ALL"]
    CgroupnsMode: "private"
    Dns: ["127.0.0.1"]
    DnsSearch: ["."]
    IpcMode: "private"
    Memory: 4294967296
    MemorySwap: 4294967296
    NanoCpus: 2000000000
    NetworkMode: "none"
    PidsLimit: 512
    SecurityOpt: ["no-new-privileges"]
    "#);
    insta::assert_snapshot!(output, @r"
    fd  full  mqueue  null	ptmx  pts  random  shm	stderr	stdin  stdout  tty  urandom  zero
    nameserver 127.0.0.1
    unshare: unshare failed: Operation not permitted
    refused
    [no file changed]
    ");
    world.finish().await;
}

/// Tells the settings of a container that have a value, one key a line. A setting that is not named
/// has none: no capability that was added, no device, no mount, no privilege.
fn all_that_is_set(host: bollard::models::HostConfig) -> String {
    let Value::Object(host) = serde_json::to_value(host).unwrap() else {
        panic!("no object");
    };
    let is_set = |(key, value): &(&String, &Value)| !OF_NO_MATTER.contains(&key.as_str()) && !is_nothing(value);
    let mut lines: Vec<String> = host
        .iter()
        .filter(is_set)
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    lines.sort();
    lines.join("\n")
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
    }
}

/// Lists the executor's processes in a container, the shell of the look itself left out.
const PROCESSES: &str = "pgrep -af '[e]xecutor (init|multiplex|tunnel|--root)' | sed 's/^[0-9]* //'";

#[tokio::test]
async fn one_stream_carries_tools_way_out_and_project() {
    let world = World::start().await;
    let kills = "pkill -KILL -f '[e]xecutor multiplex'; sleep 9";
    let script = world.model.plans(Plan::of(&["look"]).in_environment("python"));
    [
        "echo alive > alive.txt; ls",
        kills,
        PROCESSES,
        "cat alive.txt",
        "kill -9 -1",
    ]
    .into_iter()
    .fold(
        script.calls(COMMAND, json!({ "command": PROCESSES })),
        |script, command| script.calls(COMMAND, json!({ "command": command })),
    )
    .done("Looked.");
    world.github.open_issue("Look around").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let said = |at: usize| world.model.requests()[at + 2].last_user_message();
    assert!(
        said(0).contains("coding-agent-executor init\\ncoding-agent-executor multiplex\\n[no file changed]"),
        "{}",
        said(0)
    );
    assert!(said(1).contains("README.md"), "{}", said(1));
    // The stream is lost at once, and the tools are back in the same container.
    assert!(said(2).contains("was started again"), "{}", said(2));
    assert!(said(3).contains("executor --root"), "{}", said(3));
    assert!(said(4).contains("alive\\n"), "{}", said(4));
    world.finish().await;
}

#[tokio::test]
async fn a_runtime_that_the_engine_does_not_have_is_a_sentence() {
    let mut world = World::start().await;
    world.configure(|config| config["command_executor"]["runtime"] = json!("runsc-that-is-not-there"));
    world.model.plans(Plan::of(&["look"]).in_environment("python"));
    let issue = world.github.open_issue("Look around").label("coding agent");

    let ended = world.run().await;
    let examined = world.command(&["doctor"]).await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent failed"]);
    let sentence = "the Docker engine has no runtime 'runsc-that-is-not-there', but ";
    let comments = issue.comments_of(world.github.bot());
    assert!(
        comments[1].contains(&sentence[1..]) && comments[1].contains("daemon.json"),
        "{comments:?}"
    );
    assert!(examined.stdout.contains(sentence), "{}", examined.stdout);
    world.finish().await;
}
