//! Programs in containers trust whom the configuration names: an index of packages behind TLS with a
//! company's own authority, reached through the way out.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request as Asked, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fake::model::{Plan, Request};
use crate::fake::server::Server;
use crate::fake::tls::{Front, Tls};
use crate::world::scripts::COMMAND;
use crate::world::{IMAGE, World};

/// The certificates in containers.
const FILE: &str = "/usr/local/share/coding-agent-certificates.pem";

/// No program in a container takes this for its own machine.
const ADDRESS: &str = "127.0.0.2";

/// The path of its package.
const WHEEL: &str = "/greeting-1.0-py3-none-any.whl";

/// An index of packages with one package, `greeting`. Ends when dropped.
struct Index {
    front: Front,
    tls: Tls,
    asked: Arc<Mutex<Vec<String>>>,
    _server: Server,
}

impl Index {
    fn start() -> Self {
        let tls = Tls::by_an_authority_at(ADDRESS);
        let behind = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = behind.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let shelf = (Arc::clone(&asked), Arc::new(wheel()));
        let server = Server::start(behind, Router::new().fallback(answer).with_state(shelf));
        let front = Front::start(&tls, address);
        Self {
            front,
            tls,
            asked,
            _server: server,
        }
    }

    fn place(&self) -> String {
        self.front.origin().replace("https://", "")
    }

    /// Returns how often the package was fetched.
    fn fetched(&self) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|path| **path == WHEEL).count()
    }
}

/// The paths that were asked for, and the package.
type Shelf = (Arc<Mutex<Vec<String>>>, Arc<Vec<u8>>);

async fn answer(State((asked, wheel)): State<Shelf>, request: Asked) -> Response {
    let path = request.uri().path().to_owned();
    asked.lock().unwrap().push(path.clone());
    match &*path {
        "/simple/greeting/" => {
            Html("<a href='/greeting-1.0-py3-none-any.whl'>greeting-1.0-py3-none-any.whl</a>").into_response()
        }
        WHEEL => wheel.to_vec().into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns a package in the form that pip installs.
fn wheel() -> Vec<u8> {
    let script = "import io, sys, zipfile\n\
        file = io.BytesIO()\n\
        with zipfile.ZipFile(file, 'w') as wheel:\n\
        \x20   about = 'greeting-1.0.dist-info/'\n\
        \x20   wheel.writestr('greeting.py', 'print(\"Hello from the index\")\\n')\n\
        \x20   wheel.writestr(about + 'METADATA', 'Metadata-Version: 2.1\\nName: greeting\\nVersion: 1.0\\n')\n\
        \x20   wheel.writestr(about + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        \x20   wheel.writestr(about + 'RECORD', 'greeting.py,,\\n')\n\
        sys.stdout.buffer.write(file.getvalue())\n";
    let made = Command::new("python3").args(["-c", script]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    made.stdout
}

/// The environment's image with variables of its own; those of a stand-in for a base image, by which
/// it knows this machine's certificates, are empty. Removed when dropped, with what was made of it.
struct Image(String);

impl Image {
    fn build(variables: &str) -> Self {
        let name = format!("coding-agent-test-certificates-{}:local", Uuid::now_v7().simple());
        let dockerfile = format!(
            "FROM {IMAGE}\nENV SSL_CERT_FILE= CURL_CA_BUNDLE= GIT_SSL_CAINFO= PIP_CERT= REQUESTS_CA_BUNDLE= NODE_EXTRA_CA_CERTS=\n\
             {variables}\n"
        );
        let mut build = Command::new("docker");
        build
            .args(["build", "--quiet", "--tag", &name, "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        let mut build = build.spawn().unwrap();
        std::io::Write::write_all(&mut build.stdin.take().unwrap(), dockerfile.as_bytes()).unwrap();
        assert!(build.wait().unwrap().success());
        Self(name)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let of_it = format!("label=coding-agent.furnished.of={}", self.0);
        let found = Command::new("docker")
            .args(["images", "--quiet", "--filter", &of_it])
            .output();
        let found = found.map(|found| String::from_utf8_lossy(&found.stdout).into_owned());
        for image in found.unwrap_or_default().lines().chain([&*self.0]) {
            let _ = Command::new("docker").args(["image", "rm", "--force", image]).output();
        }
    }
}

async fn world(index: &Index, image: &Image) -> World {
    let mut world = World::start().await;
    world.configure(|config| {
        config["command_executor"]["environments"] = json!({ "python": image.0 });
        config["command_executor"]["network"] = json!({ "allow_private": [index.place()] });
        config["command_executor"]["snapshots"] = json!({ "keep": 5, "after_seconds": 0 });
    });
    world
}

/// Works on an issue with these commands of set-up and work; returns what the work's said.
async fn outputs(world: &World, set_up: &[String], commands: &[String]) -> Vec<String> {
    let environment = json!({ "name": "python", "setup_commands": set_up, "reasoning": "" });
    let before = world.model.requests().len();
    let mut script = world
        .model
        .plans(Plan::of(&["ask"]).with("selected_environment", environment));
    for command in commands {
        script = script.calls(COMMAND, json!({ "command": command }));
    }
    script.done("Asked.");
    world.github.open_issue("Ask the index").label("coding agent");
    let ended = world.run().await;
    assert!(ended.stdout.contains(": done\n"), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let output = |request: &Request| {
        let said: Value = serde_json::from_str(&request.last_user_message()).unwrap();
        said["output"].as_str().unwrap().to_owned()
    };
    requests[before + 2..].iter().map(output).collect()
}

#[tokio::test]
async fn an_index_behind_a_private_authority_is_trusted_once_that_is_named() {
    let index = Index::start();
    let image = Image::build("ENV NODE_EXTRA_CA_CERTS=/etc/own.pem");
    let mut world = world(&index, &image).await;
    world.keeps("acme.pem", index.tls.trusted());
    let at = index.front.origin();
    let installs = format!("pip install --quiet --index-url {at}/simple/ greeting");
    let refused = outputs(&world, &[], &[format!("{installs} 2>&1; ls {FILE}")]).await;
    // As before: nobody is trusted whom the image does not trust.
    assert!(refused[0].contains("CERTIFICATE_VERIFY_FAILED"), "{}", refused[0]);
    assert!(refused[0].contains("No such file"), "{}", refused[0]);
    assert_eq!(index.fetched(), 0);

    world.configure(|config| config["ca_file"] = json!("acme.pem"));
    let commands = [
        "python3 -m greeting".to_owned(),
        format!("curl -sS -o /dev/null -w '%{{http_code}}' {at}/simple/greeting/"),
        format!("python3 -c \"import urllib.request as r; print(r.urlopen('{at}/simple/greeting/').status)\""),
        format!("git ls-remote {at}/x.git 2>&1"),
        format!(
            "env | grep -E '^(SSL_CERT|CURL_CA|GIT_SSL|PIP_CERT|REQUESTS_CA|NODE_EXTRA)' | sort; stat -c '%U %a' {FILE}; \
            grep -q '^-----BEGIN CERTIFICATE-----$' {FILE} && grep -vxEc -e '-----(BEGIN|END) CERTIFICATE-----|[A-Za-z0-9+/=]+' {FILE}"
        ),
    ];
    let said = outputs(&world, std::slice::from_ref(&installs), &commands).await;

    assert!(
        said[0].contains("Hello from the index"),
        "{}\n{}",
        said[0],
        world.story()
    );
    assert!(said[1].starts_with("200"), "{}", said[1]);
    assert!(said[2].starts_with("200"), "{}", said[2]);
    assert!(said[3].contains("not found"), "{}", said[3]);
    let (environment, _) = said[4].rsplit_once("\n[exit code").unwrap();
    insta::assert_snapshot!(environment, @"
    CURL_CA_BUNDLE=/usr/local/share/coding-agent-certificates.pem
    GIT_SSL_CAINFO=/usr/local/share/coding-agent-certificates.pem
    NODE_EXTRA_CA_CERTS=/etc/own.pem
    PIP_CERT=/usr/local/share/coding-agent-certificates.pem
    REQUESTS_CA_BUNDLE=/usr/local/share/coding-agent-certificates.pem
    SSL_CERT_FILE=/usr/local/share/coding-agent-certificates.pem
    root 644
    0
    [no file changed]
    ");
    assert_eq!(index.fetched(), 1);

    // The set-up is kept as long as the same certificates are named, and no longer.
    let greets = ["python3 -m greeting".to_owned()];
    outputs(&world, std::slice::from_ref(&installs), &greets).await;
    assert_eq!(index.fetched(), 1, "{}", world.story());
    let others = Tls::by_an_authority();
    world.keeps("acme.pem", &[others.trusted(), index.tls.trusted()].concat());
    outputs(&world, &[installs], &greets).await;
    assert_eq!(index.fetched(), 2, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn the_usual_variable_of_the_worker_counts_in_containers_too() {
    let index = Index::start();
    let image = Image::build("");
    let mut world = world(&index, &image).await;
    let file = world.keeps("acme.pem", index.tls.trusted());
    world.sets("SSL_CERT_FILE", &file);
    let asks = format!(
        "curl -sS -o /dev/null -w '%{{http_code}}' {}/simple/greeting/",
        index.front.origin()
    );

    let said = outputs(&world, &[], &[asks]).await;

    assert!(said[0].starts_with("200"), "{}", said[0]);
    world.finish().await;
}
