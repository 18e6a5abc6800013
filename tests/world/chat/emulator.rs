//! The program with a Slack that others wrote: `local-slack` speaks the Web API and Socket Mode, and
//! acts as the people of a workspace.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::{ALICE, BOB, MALLORY};
use crate::fake::board::HUMAN;
use crate::fake::github::Permission;
use crate::world::World;
use crate::world::facts::{count, facts};
use crate::world::ports::free_port;
use crate::world::scripts::{greets, plan};

const BOT: &str = "UBOT0000";
const CHANNEL: &str = "C0000001";
const APP_TOKEN: &str = "xapp-emulated-0123456789";
const BOT_TOKEN: &str = "xoxb-emulated-0123456789";
const PATIENCE: Duration = Duration::from_mins(2);

/// A running `local-slack`.
struct Emulator {
    origin: String,
    client: Client,
    program: Child,
}

impl Emulator {
    async fn start(world: &World) -> Self {
        let usual = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges-npm");
        let installed = std::env::var_os("CODING_AGENT_TEST_NODE").map_or_else(usual, PathBuf::from);
        let program = installed.join("node_modules/local-slack-linux-x64/bin/local-slack");
        assert!(program.exists(), "{} is missing: run `make setup`", program.display());
        let user = |id: &str, name: &str| json!({ "id": id, "name": name, "real_name": name });
        let config = json!({
            "workspace": { "name": "Acme", "domain": "acme", "teamId": "T0000001" },
            "app": {
                "appId": "A0000001", "botUserId": BOT, "botName": "agent", "botToken": BOT_TOKEN, "appToken": APP_TOKEN,
                "signingSecret": "s", "mode": "socket",
            },
            "users": [user(ALICE, "alice"), user(BOB, "bob"), user(MALLORY, "mallory")],
            "channels": [{ "id": CHANNEL, "name": "general", "members": [ALICE, BOB, MALLORY, BOT] }],
        });
        // JSON is YAML.
        let file = world.folder().join("emulator.yaml");
        std::fs::write(&file, config.to_string()).unwrap();
        let port = free_port().to_string();
        let process = Command::new(program)
            .args(["--port", &port, "--base-host", "127.0.0.1", "--config"])
            .arg(file)
            .args(["--files-dir".into(), world.folder().join("emulated")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let emulator = Self {
            origin: format!("http://127.0.0.1:{port}"),
            client: Client::builder().no_proxy().build().unwrap(),
            program: process,
        };
        emulator
            .until("it answers", async |emulator| emulator.ask("state").await.is_some())
            .await;
        emulator
    }

    async fn end(mut self) {
        self.program.kill().await.unwrap();
    }

    fn section(&self) -> Value {
        json!({
            "api_url": format!("{}/api", self.origin), "app_token": APP_TOKEN, "bot_token": BOT_TOKEN,
            "channels": [CHANNEL], "allowed_users": { ALICE: { "github": HUMAN }, BOB: { "github": "bob" } },
        })
    }

    async fn ask(&self, what: &str) -> Option<Value> {
        let answer = self.client.get(format!("{}/_control/{what}", self.origin)).send().await;
        answer.ok()?.json().await.ok()
    }

    async fn does(&self, what: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}/_control/{what}", self.origin)).json(body);
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["ok"], true, "{what}: {answer}");
        answer
    }

    /// Somebody mentions the bot; returns the message's name.
    async fn mentions(&self, user: &str, text: &str) -> String {
        let body = json!({ "channel": CHANNEL, "user": user, "text": format!("<@{BOT}> {text}") });
        self.does("message", &body).await["message"]["ts"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Somebody mentions the bot, and sends a picture.
    async fn sends_picture(&self, user: &str, text: &str, bytes: &[u8]) {
        let mut body = Vec::new();
        let text = format!("<@{BOT}> {text}");
        for (name, value) in [("channel", CHANNEL), ("user", user), ("text", text.as_str())] {
            let part = format!("--part\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
            body.extend_from_slice(part.as_bytes());
        }
        let head = "--part\r\nContent-Disposition: form-data; name=\"file\"; filename=\"shot.png\"\r\n\
                    Content-Type: image/png\r\n\r\n";
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n--part--\r\n");
        let request = self.client.post(format!("{}/_control/upload", self.origin));
        let request = request.header("content-type", "multipart/form-data; boundary=part");
        let answer: Value = request.body(body).send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["ok"], true, "{answer}");
    }

    /// Somebody presses the button of this place below a message.
    async fn presses(&self, user: &str, message: &Value, place: usize) {
        let buttons = &message["blocks"][1]["elements"];
        let body = json!({
            "channel": CHANNEL, "messageTs": message["ts"], "user": user, "action": buttons[place],
        });
        self.does("interact", &body).await;
    }

    async fn said(&self) -> Vec<Value> {
        let answer = self.ask(&format!("messages/{CHANNEL}")).await.unwrap_or_default();
        let messages = answer["messages"].as_array().cloned().unwrap_or_default();
        messages.into_iter().filter(|message| message["user"] == BOT).collect()
    }

    async fn until(&self, what: &str, is_so: impl AsyncFn(&Self) -> bool) {
        let begun = std::time::Instant::now();
        while !is_so(self).await {
            assert!(
                begun.elapsed() < PATIENCE,
                "waited in vain until {what}: {:#?}",
                self.said().await
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the bot has said something with these words, and returns it.
    async fn until_said(&self, words: &str) -> Value {
        let has = |message: &Value| message["text"].as_str().unwrap_or_default().contains(words);
        self.until(words, async |emulator| emulator.said().await.iter().any(has))
            .await;
        self.said().await.into_iter().rev().find(has).unwrap()
    }
}

#[tokio::test]
async fn a_request_is_carried_to_its_pull_request_in_a_slack_that_others_wrote() {
    let mut world = World::start().await.attentive();
    let slack = Emulator::start(&world).await;
    let section = slack.section();
    world.configure(|config| {
        config["chat"] = json!({ "default_repository": "github:acme/widgets", "slack": section });
        config["approval"] = json!({ "plan": true });
        config["llm"]["openai"]["pictures"] = json!(true);
    });
    world.github.default_repository().member("bob", Permission::Read);
    world.model.allows_restarts();
    for secret in [APP_TOKEN, BOT_TOKEN] {
        world.model.forbids(secret);
    }
    greets(world.model.for_task("Greet the reader").plans(plan()));
    world.model.for_task("what is this").says("A black square.");
    let told = world.command(&["doctor"]).await.stdout;
    assert!(told.contains("speaks as agent, and a socket opens"), "{told}");

    let mut program = world.spawn(&["serve"]);
    program
        .until(&world, async {
            let is_open = async |slack: &Emulator| {
                let log = slack.ask("log").await.unwrap_or_default();
                log.to_string().contains("socket connected")
            };
            slack.until("the socket opens", is_open).await;
            slack.mentions(MALLORY, "/code Open the door").await;
            let thread = slack.mentions(ALICE, "/code Greet the reader").await;
            let link = slack.until_said("start as soon as a worker").await;
            assert_eq!(link["thread_ts"], thread.as_str());
            let question = slack.until_said("needs your approval").await;
            slack.presses(BOB, &question, 0).await;
            slack.until_said("may not write").await;
            slack.presses(ALICE, &question, 0).await;
            slack.until_said("Approved").await;
            slack.until_said("nothing was checked").await;
        })
        .await;
    let said = slack.said().await;
    let texts: Vec<&str> = said.iter().filter_map(|message| message["text"].as_str()).collect();
    assert_eq!(
        texts.len(),
        6,
        "link, progress, question, two answers and the end: {texts:#?}"
    );
    let progress = said.iter().find(|message| message["edited"].is_object()).unwrap();
    assert!(
        progress["text"].as_str().unwrap().contains("☑ greet the reader"),
        "{progress}"
    );
    assert_eq!(count(&world, "approval_granted"), 1);
    assert_eq!(
        world
            .github
            .items()
            .iter()
            .filter(|item| item.text().contains("Asked for by"))
            .count(),
        1
    );

    let mut bytes = std::io::Cursor::new(Vec::new());
    image::DynamicImage::ImageRgb8(image::RgbImage::new(30, 30))
        .write_to(&mut bytes, image::ImageFormat::Png)
        .unwrap();
    program
        .until(&world, async {
            slack
                .sends_picture(ALICE, "/chat what is this", &bytes.into_inner())
                .await;
            slack.until_said("black square").await;
        })
        .await;
    assert_eq!(world.model.requests().pop().unwrap().pictures().len(), 1);
    assert_eq!(facts(&world, "picture_shown")[0]["is_shown"], true);
    let log = slack.ask("log").await.unwrap().to_string();
    for error in ["invalid_auth", "unknown_method", "channel_not_found", "internal_error"] {
        assert!(!log.contains(error), "{error}: {log}");
    }
    program.signal("TERM");
    assert_eq!(program.ended().await.code, Some(0));
    slack.end().await;
    world.finish().await;
}
