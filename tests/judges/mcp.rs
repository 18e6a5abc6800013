//! Clients that others wrote drive `coding-agent mcp`: the official SDKs for Python and for
//! TypeScript. What they do not send is sent by hand.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fake::model::{Answer, Model, NAME};
use crate::python::judge;

const PROGRAM: &str = env!("CARGO_BIN_EXE_coding-agent");

async fn model() -> Model {
    Model::answering(|request| {
        let text = request.text();
        let has = |words: &str| text.contains(words);
        if has("A good plan.") {
            return Answer::says(r#"{"ready_for_implementation": true, "score": 9, "conclusion": "Good."}"#);
        }
        if has("A bad plan.") {
            return Answer::says(
                r#"{"ready_for_implementation": true, "score": 9, "blockers": [{"claim": "It does nothing"}]}"#,
            );
        }
        Answer::says("I would rather not say.")
    })
    .await
}

/// Writes a configuration with the model at this address.
fn configuration(folder: &TempDir, name: &str, address: &str) -> String {
    let path = folder.path().join(name);
    let config = json!({
        "state_dir": folder.path().join("state"),
        "llm": {"provider": "openai", "openai": {"base_url": address, "api_key": "key", "model": NAME, "context_length": 32768}},
    });
    fs::write(&path, config.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A server that takes requests and never answers; tells when their connections end.
fn hanging() -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (tell, ended) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, tell) = (stream.unwrap(), tell.clone());
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while stream.read(&mut bytes).is_ok_and(|read| read > 0) {}
                let _ = tell.send(());
            });
        }
    });
    (address, ended)
}

#[tokio::test]
async fn the_python_sdk_has_documents_evaluated() {
    let (folder, model, (address, ended)) = (TempDir::new().unwrap(), model().await, hanging());
    let config = configuration(&folder, "config.yaml", &model.openai_address());
    let hanging = configuration(&folder, "hanging.yaml", &address);
    let project = folder.path().join("project");
    fs::create_dir_all(project.join("net")).unwrap();
    let source = "def close_adapter(pool):\n    \"\"\"Closes the pooled connections.\"\"\"\n    pool.close()\n";
    fs::write(project.join("net/sessions.py"), source).unwrap();
    judge(
        "mcp_sdk.py",
        &[
            ("PROGRAM", PROGRAM),
            ("CONFIG", &config),
            ("HANGING", &hanging),
            ("PROJECT", project.to_str().unwrap()),
        ],
    );
    ended
        .recv_timeout(Duration::ZERO)
        .expect("the model's call ended with the client's");

    let listed: Value = serde_json::from_str(&evaluations(&config, &["--json"])).unwrap();
    let states: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|one| &one["state"])
        .collect();
    let of_a_client = ["passed", "not passed", "passed", "not passed", "failed"];
    let expected: Vec<_> = of_a_client.iter().chain(&of_a_client).chain(&["failed"]).collect();
    assert_eq!(json!(states), json!(expected));
    assert_eq!(listed[0]["error"], "the call was cancelled");
    let lines = evaluations(&config, &[]);
    let bad = lines.lines().find(|line| line.contains(" two ")).unwrap();
    let shown = evaluations(&config, &[&bad[..12]]);
    assert!(
        shown.starts_with("two: not passed\n") && shown.contains("\"claim\": \"It does nothing\""),
        "{shown}"
    );
}

/// Returns what `coding-agent evaluations` prints.
fn evaluations(config: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(PROGRAM);
    command.args(["--config", config, "evaluations"]).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_typescript_sdk_has_documents_evaluated() {
    let (folder, model, (address, ended)) = (TempDir::new().unwrap(), model().await, hanging());
    let config = configuration(&folder, "config.yaml", &model.openai_address());
    let hanging = configuration(&folder, "hanging.yaml", &address);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges-npm");
    assert!(
        installed.exists(),
        "{} is missing: run `make setup`",
        installed.display()
    );
    let output = Command::new("node")
        .arg(root.join("tests/judges/mcp_sdk.mjs"))
        .env("JUDGES", &installed)
        .envs([("PROGRAM", PROGRAM), ("CONFIG", &config), ("HANGING", &hanging)])
        .output()
        .unwrap();
    let (said, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}\n{complained}");
    ended
        .recv_timeout(Duration::ZERO)
        .expect("the model's call ended with the client's");
}

/// A client that sends what it is told to.
struct Raw {
    program: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Raw {
    fn start(config: &str) -> Self {
        let mut program = Command::new(PROGRAM)
            .args(["--config", config, "mcp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (requests, answers) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
        Self {
            program,
            requests,
            answers: BufReader::new(answers),
        }
    }

    /// Says hello with this version of the protocol, and returns what is said to that.
    fn greets(&mut self, version: &str) -> Value {
        let hello = self.asks(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}}));
        self.sends(r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#);
        hello
    }

    fn sends(&mut self, line: &str) {
        writeln!(self.requests, "{line}").unwrap();
    }

    fn hears(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn asks(&mut self, request: &Value) -> Value {
        self.sends(&request.to_string());
        self.hears()
    }

    fn ends(self) {
        let Self {
            mut program,
            requests,
            answers,
        } = self;
        drop(requests);
        let rest: Vec<_> = answers.lines().collect();
        assert!(rest.is_empty(), "{rest:?}");
        assert!(program.wait().unwrap().success());
    }
}

#[tokio::test]
async fn each_version_of_the_protocol_is_spoken_and_each_error_has_a_text_for_people() {
    let (folder, model) = (TempDir::new().unwrap(), model().await);
    let config = configuration(&folder, "config.yaml", &model.openai_address());
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Raw::start(&config);
        let hello = client.greets(version);
        assert_eq!(hello["result"]["protocolVersion"], version);
        assert_eq!(hello["result"]["serverInfo"]["name"], "coding-agent");
        for (line, code) in [
            ("this is no JSON", -32700),
            ("{\"jsonrpc\": \"2.0\",", -32700),
            ("[]", -32600),
            ("{\"jsonrpc\": \"2.0\", \"id\": 2}", -32600),
            (r#"{"jsonrpc": "2.0", "id": 3, "method": "documents/evaluate"}"#, -32601),
            (
                r#"{"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "evaluate_document"}}"#,
                -32602,
            ),
            (r#"{"jsonrpc": "2.0", "id": 4, "method": "tools/call"}"#, -32602),
            (
                r#"{"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {}}"#,
                -32602,
            ),
            (
                r#"{"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "evaluate_document", "arguments": "text"}}"#,
                -32602,
            ),
            (
                r#"{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "evaluate_document", "arguments": {"content": "x"}}}"#,
                -32603,
            ),
        ] {
            client.sends(line);
            let answer = client.hears();
            assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
            let text = answer["error"]["data"]["formatted"].as_str().unwrap();
            assert!(text.starts_with("# Evaluation failed"), "{answer}");
            if code == -32603 {
                assert_eq!(answer["error"]["data"]["code"], "EVAL_UNREADABLE");
            }
        }
        let call = json!({"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {
            "name": "evaluate_document", "arguments": {"content": "A good plan."}}});
        let answer = client.asks(&call);
        assert_eq!(answer["result"]["structuredContent"]["passed"], true, "{answer}");
        client.ends();
    }
}

#[tokio::test]
async fn a_document_that_comes_to_no_review_costs_the_others_nothing() {
    let (folder, model) = (TempDir::new().unwrap(), model().await);
    let config = configuration(&folder, "config.yaml", &model.openai_address());
    let mut client = Raw::start(&config);
    client.greets("2025-06-18");
    let documents = json!([
        {"name": "one", "content": "A good plan."},
        {"name": "two", "content": "A plan that the reviewer says nothing of."},
        {"name": "three", "content": "A bad plan."},
    ]);
    let answer = client.asks(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "evaluate_documents", "arguments": {"documents": documents}}}));
    let told = &answer["result"]["structuredContent"];
    assert_eq!(told["passed"], false, "{answer}");
    let entries: Vec<_> = told["evaluations"].as_array().unwrap().iter().collect();
    let passed: Vec<_> = entries.iter().map(|one| json!([one["name"], one["passed"]])).collect();
    assert_eq!(
        json!(passed),
        json!([["one", true], ["two", false], ["three", false]]),
        "{answer}"
    );
    let errors: Vec<_> = entries.iter().map(|one| &one["error"]["code"]).collect();
    assert_eq!(json!(errors), json!([null, "EVAL_UNREADABLE", null]), "{answer}");
    assert_eq!(entries[2]["blockers"][0]["claim"], "It does nothing", "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    for heading in ["# Passed: one", "# Evaluation failed: two", "# Not passed: three"] {
        assert!(text.contains(heading), "{text}");
    }
    client.ends();

    let listed: Value = serde_json::from_str(&evaluations(&config, &["--json"])).unwrap();
    let states = listed.as_array().unwrap().iter().rev().map(|one| &one["state"]);
    assert_eq!(
        json!(states.collect::<Vec<_>>()),
        json!(["passed", "failed", "not passed"])
    );
}
