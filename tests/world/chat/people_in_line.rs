//! People ask for work in LINE, and approve by typing a digest.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::fake::board::HUMAN;
use crate::fake::line;
use crate::fake::line::{Fault, Line, Sent, signature};
use crate::fake::model::Plan;
use crate::store_trouble::tamper;
use crate::web::{WebClient, opened, problem};
use crate::world::World;
use crate::world::facts::{count, facts, until_facts};
use crate::world::scripts::{greets, plan};

const ALICE: &str = "U0000000000000000000000000000a11ce";
const MALLORY: &str = "U000000000000000000000000000ma110";

async fn world(line: &Line) -> World {
    let mut world = World::start().await.attentive();
    let section = line.section(&json!({ ALICE: { "github": HUMAN } }));
    world.configure(|config| {
        config["chat"] = json!({ "default_repository": "github:acme/widgets", "line": section });
        config["http"] = json!({ "listen": "127.0.0.1:0" });
    });
    world.model.allows_restarts();
    world.model.forbids(line::ACCESS_TOKEN);
    world.model.forbids(line::CHANNEL_SECRET);
    world
}

async fn delivers(web: &WebClient, body: &str, signature: &str) -> reqwest::Response {
    let request = web
        .request(Method::POST, "/hooks/line")
        .header("x-line-signature", signature);
    request.body(body.to_owned()).send().await.unwrap()
}

async fn writes(web: &WebClient, line: &Line, user: &str, text: &str) {
    let (body, signature) = line.writes(user, text);
    assert_eq!(delivers(web, &body, &signature).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_request_in_line_becomes_an_issue_whose_plan_is_approved_by_its_digest() {
    let line = Line::start().await;
    let mut world = world(&line).await;
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    let delegated = json!({
        "comment": "変更です", "command": { "tool": "chat/delegate", "args": { "route": "CODE", "task": "READMEで挨拶して" } },
    });
    let script = world.model.for_task("READMEに挨拶を書いて");
    greets(script.says(&delegated.to_string()).plans(plan()));
    let (mut program, web) = opened(&world, &["serve"]).await;

    writes(&web, &line, ALICE, "READMEに挨拶を書いて").await;
    let question = line.until_said("計画の承認").await;
    assert_eq!(question.to, ALICE);
    let asked = facts(&world, "approval_requested");
    let digest = &asked[0]["digest"].as_str().unwrap()[..16];
    assert!(question.text.contains(digest), "{}", question.text);
    assert!(line.texts()[0].contains("issues/1"), "{:?}", line.texts());
    assert_eq!(world.github.items()[0].title(), "READMEに挨拶を書いて");
    assert!(line.sent()[0].is_reply, "the first answer is free");

    writes(&web, &line, ALICE, "承認 0123456789abcdef").await;
    line.until_said("別のもの").await;
    assert_eq!(count(&world, "approval_granted"), 0);
    writes(&web, &line, ALICE, digest).await;
    program
        .until(&world, async {
            drop(line.until_said("検証は何も行われていません").await);
        })
        .await;
    assert_eq!(count(&world, "approval_granted"), 1);
    // LINE counts messages: link, question, two answers, end.
    assert_eq!(line.sent().len(), 5, "{:#?}", line.texts());
    assert_eq!(line.refused(), [] as [String; 0]);
    crate::web::ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn a_question_that_is_longer_than_a_message_comes_in_parts_of_which_the_first_has_its_digest() {
    let line = Line::start().await;
    let mut world = world(&line).await;
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    let delegated = json!({
        "comment": "c", "command": { "tool": "chat/delegate", "args": { "route": "CODE", "task": "Greet the reader" } },
    });
    let script = world.model.for_task("Greet the reader").says(&delegated.to_string());
    let steps: Vec<String> = (1..=18)
        .map(|number| format!("step {number} {}", "greets ".repeat(25)))
        .collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let environment = json!({ "name": "python", "reasoning": "", "setup_commands": ["touch /tmp/set-up"] });
    let plan = Plan::of(&steps).with("selected_environment", environment);
    script.plans(plan);
    let (mut program, web) = opened(&world, &["serve"]).await;
    writes(&web, &line, ALICE, "/code Greet the reader").await;
    let begin = line.until_said("needs your approval").await.text;
    let asked = until_facts(&world, "approval_requested", 1).await;
    let digest = &asked[0]["digest"].as_str().unwrap()[..16];
    assert!(begin.contains(digest), "{begin}");
    let end = line.until_said("and 3 more").await.text;
    for words in ["Set-up: touch /tmp/set-up", "Network: ", "thrown away"] {
        assert!(end.contains(words), "{words}: {end}");
    }
    writes(&web, &line, ALICE, &format!("deny {digest}")).await;
    program
        .until(&world, async { drop(line.until_said("Stopped").await) })
        .await;
    assert_eq!(line.refused(), [] as [String; 0]);
    crate::web::ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn a_word_alone_answers_a_question_that_came_and_none_that_did_not() {
    let line = Line::start().await;
    let mut world = world(&line).await;
    world.configure(|config| config["approval"] = json!({ "plan": true, "result": "always" }));
    let delegated = json!({
        "comment": "c", "command": { "tool": "chat/delegate", "args": { "route": "CODE", "task": "Greet the reader" } },
    });
    let script = world.model.for_task("Greet the reader").says(&delegated.to_string());
    greets(script.plans(plan()));
    let (mut program, web) = opened(&world, &["serve"]).await;
    writes(&web, &line, ALICE, "/code Greet the reader").await;
    line.until_said("plan needs your approval").await;
    // What is said behind the question shows that the program knows that it came.
    writes(&web, &line, ALICE, "approve 0123456789abcdef").await;
    line.until_said("something else").await;

    line.uses_up_the_month();
    writes(&web, &line, ALICE, "approve").await;
    program
        .until(&world, async { drop(line.until_said("Approved").await) })
        .await;
    // The question about the result is a push, which LINE takes no more; answers are free.
    until_facts(&world, "approval_granted", 1).await;
    let warned = until_facts(&world, "warned", 1).await;
    assert!(
        warned[0]["text"].as_str().unwrap().contains("monthly limit"),
        "{warned:?}"
    );
    writes(&web, &line, ALICE, "approve").await;
    program
        .until(&world, async { drop(line.until_said("Which question").await) })
        .await;
    assert_eq!(count(&world, "approval_granted"), 1, "{}", world.story());
    let asked = until_facts(&world, "approval_requested", 2).await;
    let digest = &asked[1]["digest"].as_str().unwrap()[..16];
    writes(&web, &line, ALICE, &format!("approve {digest}")).await;
    let issue = world.github.items().remove(0);
    let is_done = issue.until(|issue| issue.labels() == ["coding agent done"]);
    program.until(&world, is_done).await;
    crate::web::ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn of_the_operators_list_a_model_runs_only_what_the_person_names() {
    let line = Line::start().await;
    let mut world = world(&line).await;
    let marks = world.folder().join("marks");
    let script = format!("echo run >> {}", marks.display());
    world.configure(|config| {
        config["chat"]["ops"] = json!({
            "status": { "command": ["sh", "-c", "echo all is well"] },
            "erase": { "command": ["sh", "-c", script] },
            "space": { "command": ["sh", "-c", "echo much is free"] },
        });
    });
    let delegated = |task: &str| {
        let args = json!({ "route": "OPS", "task": task });
        json!({ "comment": "c", "command": { "tool": "chat/delegate", "args": args } }).to_string()
    };
    let script = world.model.says(&delegated("status"));
    script.says(&delegated("erase")).says(&delegated("space"));
    let (mut program, web) = opened(&world, &["serve"]).await;
    writes(&web, &line, ALICE, "/ops status").await;
    program
        .until(&world, async { drop(line.until_said("all is well").await) })
        .await;
    // The dictionary says that a command is asked for, and the model chooses one.
    writes(&web, &line, ALICE, "show me the disk usage").await;
    program
        .until(&world, async {
            drop(line.until_said("There is no such command").await);
        })
        .await;
    writes(&web, &line, ALICE, "show me the disk usage, by `space`").await;
    program
        .until(&world, async { drop(line.until_said("much is free").await) })
        .await;
    assert!(!marks.exists(), "{:?}", line.texts());
    crate::web::ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn forged_repeated_and_strange_requests_do_nothing_and_answers_are_given_once() {
    let line = Line::start().await;
    let world = world(&line).await;
    // One conversation, which begins with the first question.
    let script = world.model.for_task("question 0").says("answer 0").says("answer 1");
    script.says("answer 2").says("answer 3");
    let (mut program, web) = opened(&world, &["serve"]).await;

    let (body, good) = line.writes(ALICE, "question 0");
    for wrong in ["", "AAAA", &good[..20], &signature("other")] {
        problem(delivers(&web, &body, wrong).await, StatusCode::UNAUTHORIZED).await;
    }
    let changed = body.replace("question 0", "question 9");
    problem(delivers(&web, &changed, &good).await, StatusCode::UNAUTHORIZED).await;
    writes(&web, &line, MALLORY, "question 9").await;
    let empty = json!({ "destination": "U1", "events": [] }).to_string();
    assert_eq!(
        delivers(&web, &empty, &signature(&empty)).await.status(),
        StatusCode::OK
    );

    // The answer is given, and nobody hears so: the token is worth nothing any more.
    line.fails_next("reply", Fault::DoneAndCut);
    for _ in 0..10 {
        assert_eq!(delivers(&web, &body, &good).await.status(), StatusCode::OK);
    }
    program
        .until(&world, async { drop(line.until_said("answer 0").await) })
        .await;
    // A limit.
    line.fails_next("reply", Fault::Limited(1));
    writes(&web, &line, ALICE, "question 1").await;
    program
        .until(&world, async { drop(line.until_said("answer 1").await) })
        .await;
    // The token has ended: it goes as a message, whose confirmation is lost.
    let (body, good) = line.writes(ALICE, "question 2");
    line.tokens_end();
    line.fails_next("push", Fault::DoneAndCut);
    assert_eq!(delivers(&web, &body, &good).await.status(), StatusCode::OK);
    program
        .until(&world, async { drop(line.until_said("answer 2").await) })
        .await;
    writes(&web, &line, ALICE, "question 3").await;
    program
        .until(&world, async { drop(line.until_said("answer 3").await) })
        .await;
    crate::web::ends(program, &world).await;
    // A conversation is answered in order: what was said twice would stand before the last.
    assert_eq!(line.texts(), ["answer 0", "answer 1", "answer 2", "answer 3"]);
    world.finish().await;
}

#[tokio::test]
async fn an_answer_of_which_nobody_knows_whether_it_arrived_is_pushed_when_its_token_is_too_old() {
    let line = Line::start().await;
    let world = world(&line).await;
    world.model.for_task("question 0").says("answer 0");
    let (mut program, web) = opened(&world, &["serve"]).await;
    line.fails_next("reply", Fault::Held);
    writes(&web, &line, ALICE, "question 0").await;
    program.until(&world, line.until_held()).await;
    program.kill().await;
    // A minute passes.
    line.tokens_end();
    tamper(
        &world,
        "UPDATE chat_outbox SET document = json_set(document, '$.reply[1]', '2000-01-01T00:00:00Z')",
    )
    .await;

    let (mut program, _) = opened(&world, &["serve"]).await;
    program
        .until(&world, async { drop(line.until_said("answer 0").await) })
        .await;
    let pushed = Sent {
        to: ALICE.to_owned(),
        text: "answer 0".to_owned(),
        is_reply: false,
    };
    assert_eq!(line.sent(), [pushed]);
    crate::web::ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn a_month_of_messages_that_is_used_up_keeps_no_free_answer_back() {
    let line = Line::start().await;
    let world = world(&line).await;
    world.model.for_task("question 0").says("answer 0").says("answer 1");
    let (mut program, web) = opened(&world, &["serve"]).await;
    line.uses_up_the_month();
    // The token has ended, so the answer is to go as a message.
    let (body, good) = line.writes(ALICE, "question 0");
    line.tokens_end();
    assert_eq!(delivers(&web, &body, &good).await.status(), StatusCode::OK);
    let warned = until_facts(&world, "warned", 1).await;
    let told = warned[0]["text"].as_str().unwrap();
    assert!(
        told.contains("was not said") && told.contains("monthly limit"),
        "{told}"
    );

    writes(&web, &line, ALICE, "question 1").await;
    program
        .until(&world, async { drop(line.until_said("answer 1").await) })
        .await;
    assert_eq!(line.texts(), ["answer 1"]);
    assert!(line.sent()[0].is_reply);
    crate::web::ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn what_is_to_be_said_waits_for_a_token_that_is_good_again() {
    let line = Line::start().await;
    let world = world(&line).await;
    world.model.for_task("question 0").says("answer 0");
    let (mut program, web) = opened(&world, &["serve"]).await;
    line.fails_next("reply", Fault::LoggedOut);
    writes(&web, &line, ALICE, "question 0").await;
    program
        .until(&world, async { drop(line.until_said("answer 0").await) })
        .await;
    assert!(line.sent()[0].is_reply);
    assert_eq!(count(&world, "warned"), 0, "{}", world.story());
    crate::web::ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn the_doctor_tells_whether_line_delivers() {
    let line = Line::start().await;
    let mut world = world(&line).await;
    let told = world.command(&["doctor"]).await.stdout;
    assert!(
        told.contains("speaks as Agent, and hears nothing: no webhook is set"),
        "{told}"
    );
    let address = "https://agent.example.com/hooks/line";
    line.delivers_to(address, false);
    let told = world.command(&["doctor"]).await.stdout;
    assert!(told.contains("is turned off") && told.contains("Use webhook"), "{told}");
    line.delivers_to(address, true);
    let told = world.command(&["doctor"]).await.stdout;
    assert!(told.contains(&format!("delivers to {address}")), "{told}");
    world.configure(|config| config["chat"]["line"]["channel_access_token"] = json!("another"));
    let told = world.command(&["doctor"]).await.stdout;
    assert!(told.contains("issue a channel access token"), "{told}");
    world.finish().await;
}
