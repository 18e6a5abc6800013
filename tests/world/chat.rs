//! People ask for work in Slack, answer and approve there.

mod approving;
mod emulator;
mod hearing;
mod keeping;
mod kills;
mod loops;
mod near;
mod outbox;
mod people_in_line;
mod pictures;
mod replies;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake::board::HUMAN;
use crate::fake::github::Permission;
use crate::fake::slack;
use crate::fake::slack::{Fault, Slack, buttons};
use crate::marks::{PIECE, long_token};
use crate::web::{WebClient, opened, problem};
use crate::world::facts::{count, facts, until_facts};
use crate::world::scripts::{greets, plan};
use crate::world::{MODEL_KEY, Program, World};

/// Somebody with a linked account that may write.
const ALICE: &str = "U0ALICE0";
/// Somebody with a linked account that may only read.
const BOB: &str = "U0BOB000";
/// Somebody without an account.
const CAROL: &str = "U0CAROL0";
/// Somebody whom the configuration does not name.
const MALLORY: &str = "U0MALLORY";

const DONE: [&str; 1] = ["coding agent done"];
/// Messages that are written while connections come and go.
const MESSAGES: usize = 20;

async fn world(slack: &Slack) -> World {
    let mut world = World::start().await.attentive();
    let users = json!({ ALICE: { "github": HUMAN }, BOB: { "github": "bob" }, CAROL: {} });
    let section = slack.section(&users);
    world.configure(|config| {
        config["chat"] = json!({ "default_repository": "github:acme/widgets", "slack": section });
    });
    world.github.default_repository().member("bob", Permission::Read);
    world.model.allows_restarts();
    for secret in [slack::APP_TOKEN, slack::BOT_TOKEN] {
        world.model.forbids(secret);
    }
    world
}

async fn serves(world: &World, slack: &Slack) -> Program {
    let mut program = world.spawn(&["serve"]);
    program.until(world, slack.until(Slack::has_socket)).await;
    program
}

/// Has Slack tell by requests what people say.
fn has_no_socket(world: &mut World) {
    world.configure(|config| {
        config["chat"]["slack"]["app_token"] = json!(null);
        config["chat"]["slack"]["signing_secret"] = json!(slack::SIGNING_SECRET);
        config["http"] = json!({ "listen": "127.0.0.1:0" });
    });
}

/// Sends a request as Slack does, signed at a time.
async fn posts(web: &WebClient, body: &str, at: i64, signature: &str) -> reqwest::Response {
    let request = web
        .request(Method::POST, "/hooks/slack")
        .header("content-type", "application/json");
    let request = request
        .header("x-slack-request-timestamp", at.to_string())
        .header("x-slack-signature", signature);
    request.body(body.to_owned()).send().await.unwrap()
}

async fn ends(program: Program, world: World, slack: &Slack) {
    program.signal("TERM");
    let ended = program.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(slack.refused(), [] as [String; 0], "Slack took everything");
    world.finish().await;
}

/// Returns the decisions about messages: route and who decided.
fn decisions(world: &World) -> Vec<(String, String)> {
    let text = |fact: &Value, key: &str| fact[key].as_str().unwrap().to_owned();
    let found = facts(world, "router_decision");
    found
        .iter()
        .map(|fact| (text(fact, "route"), text(fact, "source")))
        .collect()
}

/// Has a worker of ANALYZE look at the repository, and the chat model tell what it found.
fn looks_at_the_readme(world: &World) {
    let found = json!({
        "result": "The README is empty: README.md:1.", "needs_next_loop": false, "why": "seen", "next_actions": [],
        "questions_for_user": [], "confidence": 0.9, "risk": "low",
    });
    world
        .model
        .for_task("Explain what the request asks about")
        .calls("repository/list_files", json!({}))
        .says(&found.to_string());
    world
        .model
        .for_task("A worker has looked into this")
        .says("There is nothing in the README (README.md:1).");
}

#[tokio::test]
async fn a_message_becomes_an_issue_and_comes_back_with_the_pull_request() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    let plan = plan().verified_by("grep -q Hello README.md");
    greets(world.model.for_task("Greet the reader").plans(plan));
    let mut program = serves(&world, &slack).await;

    let asked = slack.mentions(ALICE, "/code Greet the reader\nin the README");
    program
        .until(&world, async { drop(slack.until_said("Done and verified").await) })
        .await;

    let issue = world.github.items().remove(0);
    assert_eq!(issue.title(), "Greet the reader");
    assert!(
        issue.text().contains("in the README") && issue.text().contains(HUMAN),
        "{}",
        issue.text()
    );
    issue.until(|issue| issue.labels() == DONE).await;
    let said = slack.said();
    assert!(
        said.iter().all(|message| message.thread.as_ref() == Some(&asked)),
        "{said:#?}"
    );
    // One text with the link, one that was changed with the progress, and the end.
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(
        said[0].text.contains("issues/1") && said[0].text.contains("CODE"),
        "{}",
        said[0].text
    );
    assert!(
        said[1].edits > 0 && said[1].text.contains("☑ greet the reader"),
        "{}",
        said[1].text
    );
    let pull = world.github.pull_request_for(&issue).await;
    assert!(
        said[2].text.contains(&format!("pull/{}", pull.number())),
        "{}",
        said[2].text
    );
    assert!(said[2].text.contains("tokens"), "{}", said[2].text);
    assert_eq!(decisions(&world), [("CODE".to_owned(), "command".to_owned())]);
    assert_eq!(count(&world, "final_route"), 1);
    assert!(slack.is_heard(), "all was acknowledged");
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn only_people_whom_the_configuration_names_are_heard_and_do_what_their_accounts_may() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    world.model.for_task("tell me a joke").says("Two bits meet in a byte.");
    let mut program = serves(&world, &slack).await;

    // What people say to one another is noted of nobody, and hides nothing that is said to the bot.
    slack.writes(MALLORY, slack::CHANNEL, None, "good morning, all");
    slack.mentions(MALLORY, "/code Open the door");
    slack.writes(MALLORY, "D0000009", None, "/code Open the door");
    slack.writes(ALICE, "C0000002", None, "/code Not in this channel");
    slack.writes(ALICE, slack::CHANNEL, None, "/code nobody spoke to the bot");
    let refused = slack.mentions(BOB, "/code Greet the reader");
    program
        .until(&world, async { drop(slack.until_said("may not write").await) })
        .await;
    slack.mentions(CAROL, "/code Greet the reader");
    program
        .until(&world, async { drop(slack.until_said("linked to no account").await) })
        .await;
    slack.writes(CAROL, "D0000001", None, "/chat tell me a joke");
    program
        .until(&world, async { drop(slack.until_said("Two bits").await) })
        .await;

    let said = slack.said();
    assert_eq!(said.len(), 3, "{said:#?}");
    assert_eq!(said[0].thread.as_ref(), Some(&refused));
    assert_eq!(world.github.items().len(), 0, "{}", world.story());
    let ignored = facts(&world, "ignored");
    assert_eq!(ignored.len(), 1, "strangers are noted once: {ignored:?}");
    // Somebody whose right was taken back a moment ago asks for nothing any more.
    world.github.default_repository().member(HUMAN, Permission::Read);
    slack.mentions(ALICE, "/code Greet the reader");
    program
        .until(&world, slack.until(|slack| slack.said().len() == 4))
        .await;
    assert_eq!(world.github.items().len(), 0, "{}", world.story());
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn what_is_said_survives_kills_and_lost_answers_and_is_said_once() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    for number in 0..4 {
        world
            .model
            .for_task(&format!("question {number}"))
            .says(&format!("answer {number}"));
    }
    let mut program = serves(&world, &slack).await;

    // Slack has it, and the answer is lost.
    slack.fails_next("chat.postMessage", Fault::DoneAndCut);
    slack.mentions(ALICE, "/chat question 0");
    program
        .until(&world, async { drop(slack.until_said("answer 0").await) })
        .await;
    // Slack has it, and the program is killed before it hears so.
    slack.fails_next("chat.postMessage", Fault::DoneAndHeld);
    slack.mentions(ALICE, "/chat question 1");
    program
        .until(&world, async { drop(slack.until_said("answer 1").await) })
        .await;
    program.kill().await;
    // It was said while nobody listened: Slack tells it when somebody does.
    slack.mentions(ALICE, "/chat question 2");
    let mut program = serves(&world, &slack).await;
    program
        .until(&world, async { drop(slack.until_said("answer 2").await) })
        .await;
    // Slack has it not, says so or not at all.
    slack.fails_next("chat.postMessage", Fault::Limited(1));
    slack.fails_next("chat.postMessage", Fault::Broken);
    slack.mentions(ALICE, "/chat question 3");
    program
        .until(&world, async { drop(slack.until_said("answer 3").await) })
        .await;
    // Once more, over another connection.
    slack.cuts_sockets();
    slack.repeats_all();
    program.until(&world, slack.until(Slack::is_heard)).await;

    let mut texts = slack.texts();
    texts.sort();
    assert_eq!(texts, ["answer 0", "answer 1", "answer 2", "answer 3"]);
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn nothing_is_lost_while_connections_come_and_go() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    for number in 0..MESSAGES {
        world
            .model
            .for_task(&format!("question {number};"))
            .says(&format!("answer {number};"));
    }
    let mut program = serves(&world, &slack).await;
    for number in 0..MESSAGES {
        slack.mentions(ALICE, &format!("/chat question {number};"));
        match number % 4 {
            0 => slack.cuts_sockets(),
            2 => slack.refreshes(),
            _ => {}
        }
        program.until(&world, slack.until(Slack::has_socket)).await;
    }
    program
        .until(&world, slack.until(|slack| slack.said().len() >= MESSAGES))
        .await;
    program.until(&world, slack.until(Slack::is_heard)).await;
    let mut texts = slack.texts();
    texts.sort();
    let mut expected: Vec<String> = (0..MESSAGES).map(|number| format!("answer {number};")).collect();
    expected.sort();
    assert_eq!(texts, expected, "none is lost, and none is said twice");
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_slack_to_which_no_connection_can_be_opened_any_more_is_logged() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    let mut program = serves(&world, &slack).await;
    slack.fails_next("apps.connections.open", Fault::Broken);
    slack.refreshes();
    let told = world.until_logged("no connection to Slack: apps.connections.open: status 500");
    program.until(&world, told).await;
    program.until(&world, slack.until(Slack::has_socket)).await;
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_plan_is_approved_by_the_button_of_somebody_who_may_and_by_no_other() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let address = world.model.openai_address();
    world.configure(|config| {
        config["approval"] = json!({ "plan": true });
        let large = json!({ "provider": "openai", "base_url": address, "api_key": MODEL_KEY, "model": "large" });
        config["llm"]["models"] = json!({ "strong": large });
    });
    greets(world.model.for_task("Greet the reader").plans(plan()));
    let mut program = serves(&world, &slack).await;

    // Whatever case the repository is written in, it is the same.
    let thread = slack.mentions(ALICE, "/code strong github:ACME/widgets Greet the reader");
    let question = slack.until_said("needs your approval").await;
    assert_eq!(buttons(&question).len(), 2, "{question:#?}");
    assert_eq!(question.thread.as_ref(), Some(&thread));

    // A stranger, somebody without an account, and somebody who may only read.
    for (user, answer) in [
        (MALLORY, "Only people"),
        (CAROL, "linked to no account"),
        (BOB, "may not write"),
    ] {
        slack.presses(user, &question, 0);
        program
            .until(&world, async { drop(slack.until_said(answer).await) })
            .await;
    }
    // A digest of something else.
    slack.replies(ALICE, &thread, "approve 0123456789abcdef");
    program
        .until(&world, async { drop(slack.until_said("something else").await) })
        .await;
    assert_eq!(count(&world, "approval_granted"), 0, "{}", world.story());

    slack.presses(ALICE, &question, 0);
    program
        .until(&world, async { drop(slack.until_said("Approved").await) })
        .await;
    // Until the run has heard of it, another click is told the same.
    program
        .until(&world, slack.until(|_| count(&world, "approval_granted") == 1))
        .await;
    slack.presses(ALICE, &question, 0);
    program
        .until(&world, async { drop(slack.until_said("Nothing waits").await) })
        .await;
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    slack.presses(ALICE, &question, 1);
    program
        .until(
            &world,
            slack.until(|slack| {
                slack
                    .texts()
                    .iter()
                    .filter(|text| text.contains("Nothing waits"))
                    .count()
                    == 2
            }),
        )
        .await;
    let granted = facts(&world, "approval_granted");
    assert_eq!(granted.len(), 1, "{granted:?}");
    assert_eq!(granted[0]["approver"], HUMAN);
    let models: Vec<String> = world
        .model
        .requests()
        .into_iter()
        .map(|request| request.model)
        .collect();
    assert!(
        models.iter().all(|model| model == "large"),
        "the model that was named: {models:?}"
    );
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn the_chat_model_delegates_once_and_sees_no_secret() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    world.model.forbids(secret);
    let talk = json!({ "route": "CHAT", "confidence": 0.9, "reason": "r", "evidence": [] });
    let delegated = json!({
        "comment": "It is a change.",
        "command": { "tool": "chat/delegate", "args": { "route": "CODE", "task": "Greet the reader, @mallory" } },
    });
    let script = world.model.for_task("please fix the greeting").says(&talk.to_string());
    greets(script.says(&delegated.to_string()).plans(plan()));
    let mut program = serves(&world, &slack).await;

    slack.mentions(ALICE, &format!("hm, please fix the greeting, my token is {secret}"));
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    let ended = facts(&world, "final_route");
    assert_eq!(
        (&ended[0]["initial_route"], &ended[0]["final_route"]),
        (&json!("CHAT"), &json!("CODE"))
    );
    assert_eq!(ended[0]["reroute_used"], true);
    assert_eq!(count(&world, "route_overridden"), 1);
    let issue = world.github.items().remove(0);
    assert!(!issue.text().contains(secret));
    // It is in the person's words, and the model's are shown as what they are.
    assert!(
        issue.title().starts_with("hm, please fix the greeting"),
        "{}",
        issue.title()
    );
    let text = issue.text();
    let words = text.find("hm, please fix the greeting").unwrap();
    let of_model = text.find("These are no words of the person's").unwrap();
    let wording = text.find("```\nGreet the reader, @mallory\n```").unwrap();
    assert!(words < of_model && of_model < wording, "{text}");
    assert!(slack.texts().iter().all(|text| !text.contains(secret)));
    assert_eq!(world.files_with(secret), "", "neither store nor logs have it");
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn commands_of_the_list_are_run_once_and_nothing_else() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let marks = world.folder().join("marks");
    // Of the token the end would stay where the output is cut, by which nobody recognises it.
    let (before, after) = ("a line ".repeat(500), "and more ".repeat(60));
    let output = format!("all is well\n{before}{} {after}\n", long_token());
    let output = world.keeps("output.txt", &output);
    let script = format!("echo run >> {}; cat {output}", marks.display());
    world.configure(|config| {
        config["chat"]["ops"] = json!({ "status": { "command": ["sh", "-c", script], "description": "how it is" } });
    });
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/ops");
    program
        .until(&world, async { drop(slack.until_said("how it is").await) })
        .await;
    slack.mentions(ALICE, "/ops status; rm -rf /");
    slack.mentions(ALICE, "/ops sh");
    program
        .until(
            &world,
            slack.until(|slack| {
                slack
                    .texts()
                    .iter()
                    .filter(|text| text.contains("nothing else is ever run"))
                    .count()
                    == 2
            }),
        )
        .await;
    slack.mentions(BOB, "/ops status");
    program
        .until(&world, async { drop(slack.until_said("may not write").await) })
        .await;
    assert!(!marks.exists());
    slack.mentions(ALICE, "/ops status");
    program
        .until(&world, async { drop(slack.until_said("all is well").await) })
        .await;
    slack.repeats_all();
    program.until(&world, slack.until(Slack::is_heard)).await;
    assert_eq!(std::fs::read_to_string(marks).unwrap(), "run\n");
    assert!(slack.texts().iter().all(|text| !text.contains(PIECE)));
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_worker_looks_at_the_repository_and_the_chat_model_tells_what_it_found() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    looks_at_the_readme(&world);
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/analyze why the README is so short");
    program
        .until(&world, async { drop(slack.until_said("nothing in the README").await) })
        .await;
    assert_eq!(count(&world, "worker_succeeded"), 1, "{}", world.story());
    assert_eq!(slack.texts().len(), 1);
    assert!(slack.texts()[0].contains("Evidence:\n- `README.md:1` <http"));
    assert!(
        slack.texts()[0].contains("ANALYZE"),
        "the route is announced: {:?}",
        slack.texts()
    );
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn the_doctor_tells_who_the_bot_is_and_which_token_is_wrong() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let told = world.command(&["doctor"]).await.stdout;
    assert!(
        told.contains("speaks as agent, and a socket opens") && !told.contains("lacks"),
        "{told}"
    );
    slack.grants("app_mentions:read,chat:write");
    world.configure(|config| {
        config["llm"]["openai"]["pictures"] = json!(true);
        config["chat"]["slack"]["app_token"] = json!("xapp-another");
    });
    let told = world.command(&["doctor"]).await.stdout;
    for words in [
        "app_token: apps.connections.open: invalid_auth",
        "turn Socket Mode on",
        "bot_token lacks channels:history (or groups:history) (to hear what follows in a thread), files:read (to fetch pictures)",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    world.configure(|config| {
        config["chat"]["slack"]["bot_token"] = json!("xoxb-another");
        config["chat"]["slack"]["channels"] = json!([]);
        config["chat"]["slack"]["allowed_users"] = json!({});
    });
    let told = world.command(&["doctor"]).await.stdout;
    assert!(
        told.contains("bot_token: auth.test: invalid_auth") && told.contains("nobody is heard"),
        "{told}"
    );
    world.finish().await;
}

#[tokio::test]
async fn without_a_socket_what_slack_sends_is_taken_where_it_is_signed() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    has_no_socket(&mut world);
    world.model.for_task("question 0").says("answer 0");
    let (mut program, web) = opened(&world, &["serve"]).await;
    let now = chrono::Utc::now().timestamp();
    let posts = async |body: &str, at: i64, signature: &str| posts(&web, body, at, signature).await;
    let asked = json!({ "type": "url_verification", "challenge": "3eZbrw1aB", "token": "t" }).to_string();
    let answer = posts(&asked, now, &slack::signature(&asked, now)).await;
    assert_eq!(answer.json::<Value>().await.unwrap()["challenge"], "3eZbrw1aB");

    let body = slack.mentions_by_request(ALICE, "/chat question 0");
    let good = slack::signature(&body, now);
    for (at, wrong) in [
        (now, String::new()),
        (now, good[..20].to_owned()),
        (now + 1, good.clone()),
        (now - 400, slack::signature(&body, now - 400)),
    ] {
        problem(posts(&body, at, &wrong).await, StatusCode::UNAUTHORIZED).await;
    }
    for _ in 0..5 {
        assert_eq!(posts(&body, now, &good).await.status(), StatusCode::OK);
    }
    program
        .until(&world, async { drop(slack.until_said("answer 0").await) })
        .await;
    crate::web::ends(program, &world).await;
    assert_eq!(slack.texts(), ["answer 0"]);
    world.finish().await;
}

#[tokio::test]
async fn a_conversation_that_is_kept_near_refuses_what_needs_other_models() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    world.configure(|config| {
        let cloud = json!({
            "provider": "openai", "base_url": "https://models.example.com/v1", "api_key": "sk-cloud-0123456789",
            "model": "large",
        });
        config["llm"]["models"] = json!({ "cloud": cloud });
        config["llm"]["roles"] = json!({ "planner": "cloud" });
    });
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/local");
    program
        .until(&world, async {
            drop(slack.until_said("only models on our own machines").await);
        })
        .await;
    slack.replies(ALICE, &thread, "/code Greet the reader");
    program
        .until(&world, async {
            drop(slack.until_said("CODE needs a model that is not").await);
        })
        .await;
    slack.replies(ALICE, &thread, "バグを修正して");
    program
        .until(&world, async {
            drop(slack.until_said("CODEには外部のモデルが必要").await);
        })
        .await;
    assert_eq!(world.github.items().len(), 0, "{}", world.story());
    let decisions = until_facts(&world, "router_decision", 2).await;
    let refused = decisions.iter().filter(|fact| fact["is_refused"] == true);
    assert_eq!(refused.count(), 2);
    assert_eq!(world.model.requests().len(), 0, "nothing was sent");
    slack.replies(ALICE, &thread, "/cloud");
    program
        .until(&world, async { drop(slack.until_said("may be asked again").await) })
        .await;
    ends(program, world, &slack).await;
}
