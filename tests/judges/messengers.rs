//! The SDKs of Slack and LINE drive the fakes and accept their signatures; LINE's description of its
//! API judges what the program sends and what the fake sends.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use coding_agent::messenger::config;
use coding_agent::messenger::line::Line as Client;
use coding_agent::messenger::outcome::Outcome;
use coding_agent::messenger::place::{Messenger, Place};
use coding_agent::secret::Redactor;
use uuid::Uuid;

use crate::fake::line::{ACCESS_TOKEN, CHANNEL_SECRET, Line};
use crate::fake::slack::{APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, Slack, signature};
use crate::python::judge;

const USER: &str = "U0000000000000000000000000000a11ce";
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns the folder with the packages for Node.
fn installed() -> PathBuf {
    let usual = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges-npm");
    let installed = std::env::var_os("CODING_AGENT_TEST_NODE").map_or_else(usual, PathBuf::from);
    assert!(
        installed.join("node_modules/@slack/bolt").exists(),
        "{} is missing or old: run `make setup`",
        installed.display()
    );
    installed
}

fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judges").join(script))
        .env("JUDGES", installed());
    command
}

/// Returns the reply token of a webhook.
fn token(body: &str) -> String {
    let told: serde_json::Value = serde_json::from_str(body).unwrap();
    told["events"][0]["replyToken"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_sdks_of_line_drive_the_fake_and_its_description_fits_all_that_is_sent() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let line = Line::start().await;
    let folder = tempfile::tempdir().unwrap();
    let (text, signed) = line.writes(USER, "hello 日本語");
    let (picture, also_signed) = line.sends_picture(USER, b"a picture");
    let webhooks = folder.path().join("webhooks");
    std::fs::write(&webhooks, format!("{signed} {text}\n{also_signed} {picture}\n")).unwrap();
    let message: serde_json::Value = serde_json::from_str(&picture).unwrap();
    let message = message["events"][0]["message"]["id"].as_str().unwrap().to_owned();

    // The program sends answers and messages, short, long and with every sign.
    let client = Client::new(&config::Line {
        api_url: line.origin().to_owned(),
        data_url: line.origin().to_owned(),
        channel_secret: Some(CHANNEL_SECRET.into()),
        channel_access_token: Some(ACCESS_TOKEN.into()),
        ..config::Line::default()
    });
    let client = client.unwrap().unwrap();
    let place = Place {
        messenger: Messenger::Line,
        channel: USER.to_owned(),
        thread: None,
    };
    let redactor = Redactor::new(&[]);
    let (asked, _) = line.writes(USER, "again");
    let long = "🎉".repeat(9_000);
    for (text, reply) in [
        ("answered", Some(token(&asked))),
        ("日本語", None),
        (&long, None),
        ("<@all> {x}", None),
    ] {
        let said = client
            .say(&place, Uuid::new_v4(), &redactor.clean(text), reply.as_deref(), false)
            .await;
        assert_eq!(said, Outcome::Taken(None), "{text}");
    }
    assert_eq!(client.picture(&message).await.unwrap().as_ref(), b"a picture");
    let bodies: Vec<String> = line
        .bodies()
        .into_iter()
        .map(|(call, body)| format!("{call} {body}\n"))
        .collect();
    let sent = folder.path().join("bodies");
    std::fs::write(&sent, bodies.concat()).unwrap();

    judge(
        "line.py",
        &[
            ("API", line.origin()),
            ("TOKEN", ACCESS_TOKEN),
            ("SECRET", CHANNEL_SECRET),
            ("BODIES", sent.to_str().unwrap()),
            ("WEBHOOKS", webhooks.to_str().unwrap()),
            ("REPLY_TOKEN", &token(&text)),
            ("PICTURE", &message),
        ],
    );
    let output = node("line.mjs")
        .envs([
            ("API", line.origin()),
            ("TOKEN", ACCESS_TOKEN),
            ("SECRET", CHANNEL_SECRET),
            ("WEBHOOKS", webhooks.to_str().unwrap()),
            ("REPLY_TOKEN", &token(&picture)),
            ("PICTURE", &message),
        ])
        .output()
        .unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complained}");
}

#[tokio::test]
async fn the_framework_of_slack_drives_the_fake_and_accepts_its_signatures() {
    let slack = Slack::start().await;
    let folder = tempfile::tempdir().unwrap();
    let now = chrono::Utc::now().timestamp();
    let bodies = [
        "{\"type\":\"event_callback\",\"event\":{\"text\":\"日本語\"}}",
        "payload=%7B%7D",
    ];
    let signed: Vec<String> = bodies
        .iter()
        .map(|body| format!("{now} {} {body}\n", signature(body, now)))
        .collect();
    let file = folder.path().join("signed");
    std::fs::write(&file, signed.concat()).unwrap();
    let complaints = folder.path().join("complaints");
    let mut program = node("slack.mjs")
        .envs([
            ("API", slack.api_url().as_str()),
            ("APP_TOKEN", APP_TOKEN),
            ("BOT_TOKEN", BOT_TOKEN),
            ("SECRET", SIGNING_SECRET),
            ("SIGNED", file.to_str().unwrap()),
        ])
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&complaints).unwrap())
        .spawn()
        .unwrap();
    let story = async {
        slack.until(Slack::has_socket).await;
        let thread = slack.mentions("U0ALICE0", "please");
        let question = slack.until_said("May it go on?").await;
        assert_eq!(question.thread, Some(thread));
        slack.presses("U0ALICE0", &question, 0);
        assert_eq!(slack.until_said("You said yes.").await.edits, 1);
        slack.until(Slack::is_heard).await;
    };
    let told = tokio::time::timeout(PATIENCE, story).await;
    program.kill().unwrap();
    program.wait().unwrap();
    let complained = std::fs::read_to_string(complaints).unwrap();
    assert!(told.is_ok(), "in Slack: {:?}\n{complained}", slack.texts());
    assert_eq!(slack.refused(), [] as [String; 0], "{complained}");
}
