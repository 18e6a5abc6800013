//! Traces, taken by a collector that others wrote (Datadog's test agent) and read as it tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::world::World;
use crate::world::ports::free_port;
use crate::world::scripts::{executes, greets, plan};

/// A collector in a process of its own, ended when it is dropped.
struct Collector {
    endpoint: String,
    client: reqwest::Client,
    _process: tokio::process::Child,
    _folder: tempfile::TempDir,
}

/// A span, as the collector understood it.
#[derive(Debug)]
struct Span {
    trace: Vec<u8>,
    id: String,
    parent: Option<String>,
    name: String,
    kind: String,
    begun: u64,
    ended: u64,
    is_error: bool,
    attributes: BTreeMap<String, Value>,
}

impl Collector {
    async fn start() -> Self {
        let installed = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("collector/bin/ddapm-test-agent");
        assert!(
            installed.exists(),
            "{} is missing: run `make setup`",
            installed.display()
        );
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut command = tokio::process::Command::new(installed);
        command
            .args([
                "--port",
                &free_port().to_string(),
                "--otlp-http-port",
                &port.to_string(),
            ])
            .args(["--otlp-grpc-port", &free_port().to_string(), "--host", "127.0.0.1"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let collector = Self {
            endpoint: format!("http://127.0.0.1:{port}"),
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            _process: command.spawn().unwrap(),
            _folder: folder,
        };
        crate::web::until("the collector", async || collector.told().await.is_ok()).await;
        collector
    }

    async fn told(&self) -> reqwest::Result<Value> {
        let asked = self.client.get(format!("{}/test/session/traces", self.endpoint));
        asked.send().await?.json().await
    }

    /// Returns all spans that it got, and checks whose they are.
    async fn spans(&self) -> Vec<Span> {
        let told = self.told().await.unwrap();
        let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
        let mut spans = Vec::new();
        for of_resource in told
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|one| list(one, "resource_spans"))
        {
            let resource = attributes(&of_resource["resource"]);
            assert_eq!(resource["service.name"], "coding-agent", "{of_resource}");
            for of_scope in list(&of_resource, "scope_spans") {
                assert!(
                    of_scope["schema_url"].as_str().unwrap().contains("/schemas/"),
                    "{of_scope}"
                );
                spans.extend(list(&of_scope, "spans").iter().map(Span::of));
            }
        }
        spans
    }
}

fn attributes(of: &Value) -> BTreeMap<String, Value> {
    let pairs = of["attributes"].as_array().into_iter().flatten();
    let read = |pair: &Value| {
        let value = pair["value"].as_object().unwrap().values().next().unwrap().clone();
        (pair["key"].as_str().unwrap().to_owned(), value)
    };
    pairs.map(read).collect()
}

impl Span {
    fn of(span: &Value) -> Self {
        let text = |key: &str| span[key].as_str().unwrap_or_default().to_owned();
        let time = |key: &str| text(key).parse().unwrap();
        Self {
            trace: STANDARD.decode(text("trace_id")).unwrap(),
            id: text("span_id"),
            parent: span["parent_span_id"].as_str().map(str::to_owned),
            name: text("name"),
            kind: text("kind"),
            begun: time("start_time_unix_nano"),
            ended: time("end_time_unix_nano"),
            is_error: span["status"]["code"] == "STATUS_CODE_ERROR",
            attributes: attributes(span),
        }
    }
}

#[tokio::test]
async fn a_collector_gets_a_run_as_a_trace_with_its_stages_replies_and_tools() {
    let collector = Collector::start().await;
    let mut world = World::start().await;
    world.configure(|config| {
        config["traces"] = json!({ "endpoint": collector.endpoint, "headers": { "X-Team": "agents" } });
    });
    let script = executes(world.model.plans(plan()), "echo a-word-of-the-work");
    greets(script.calls("workspace/read_file", json!({ "path": "no-such-file" })));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let ended = world.run().await;
    assert_eq!(issue.labels(), ["coding agent done"], "{ended:?}\n{}", world.story());

    let spans = collector.spans().await;
    let run = world
        .journal()
        .iter()
        .find_map(|fact| fact["run"].as_str().map(str::to_owned))
        .unwrap();
    let run: uuid::Uuid = run.parse().unwrap();
    assert!(spans.iter().all(|span| span.trace == run.as_bytes()), "{spans:#?}");
    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let [whole] = named("invoke_agent coding-agent")[..] else {
        panic!("{spans:#?}");
    };
    assert!(whole.parent.is_none() && !whole.is_error);
    assert_eq!(whole.attributes["gen_ai.operation.name"], "invoke_agent");
    assert_eq!(whole.attributes["coding_agent.outcome"], "done");
    assert_eq!(whole.attributes["coding_agent.task"], "github:acme/widgets#1");

    // Each span lies within the one that it belongs to, and no id is there twice.
    let ids: BTreeSet<&String> = spans.iter().map(|span| &span.id).collect();
    assert_eq!(ids.len(), spans.len());
    for span in spans.iter().filter(|span| span.id != whole.id) {
        let parent = spans.iter().find(|other| Some(&other.id) == span.parent.as_ref());
        let parent = parent.unwrap_or_else(|| panic!("{span:#?} belongs to nothing"));
        let slack = 5_000_000;
        assert!(
            span.begun + slack >= parent.begun && span.ended <= parent.ended + slack,
            "{span:#?}\n{parent:#?}"
        );
    }
    for stage in ["planning", "preparing", "working", "verifying", "delivering"] {
        assert!(!named(&format!("stage {stage}")).is_empty(), "{stage}: {spans:#?}");
    }
    let of_operation = |operation: &str| -> Vec<&Span> {
        let is_it = |span: &&Span| span.attributes.get("gen_ai.operation.name") == Some(&json!(operation));
        spans.iter().filter(is_it).collect()
    };
    let chats = of_operation("chat");
    let asked = world.model.requests().len();
    assert_eq!(chats.len(), asked, "{chats:#?}");
    for chat in chats {
        assert_eq!(chat.kind, "SPAN_KIND_CLIENT");
        assert!(chat.attributes.contains_key("gen_ai.provider.name"), "{chat:#?}");
        let tokens = chat.attributes["gen_ai.usage.input_tokens"].as_str().unwrap();
        assert!(tokens.parse::<u64>().unwrap() > 0, "{chat:#?}");
    }
    let tools = of_operation("execute_tool");
    assert!(
        tools
            .iter()
            .any(|tool| tool.is_error && tool.name == "execute_tool workspace/read_file")
    );
    assert!(
        tools
            .iter()
            .any(|tool| !tool.is_error && tool.name == "execute_tool workspace/execute_command")
    );
    let told = collector.told().await.unwrap().to_string();
    for word in ["a-word-of-the-work", "no-such-file", "Greet the reader"] {
        assert!(!told.contains(word), "what was said is in the traces: {word}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_collector_that_is_away_costs_a_run_nothing() {
    let mut world = World::start().await;
    let endpoint = "http://127.0.0.1:1";
    world.configure(|config| config["traces"] = json!({ "endpoint": endpoint }));
    greets(world.model.plans(plan()));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.until_logged("traces could not be sent").await;
    world.finish().await;
}
