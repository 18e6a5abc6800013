//! How long a message goes on, and where to: evidence that is looked up, limits, one other route,
//! questions back.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{ALICE, ends, serves, world};
use crate::fake::slack::Slack;
use crate::world::World;
use crate::world::facts::{count, facts, until_facts};

/// Begins of what workers of a route are asked, and the chat model behind them.
const ANALYZE: &str = "Explain what the request asks about";
const PLAN: &str = "Propose steps for the request";
const TELL: &str = "A worker has looked into this";

/// Returns a worker's answer with these fields in place of the usual ones.
fn answer(fields: &Value) -> String {
    let mut answer = json!({
        "result": "It is.", "needs_next_loop": false, "why": "seen", "next_actions": [], "questions_for_user": [],
        "confidence": 0.9, "risk": "low",
    });
    for (name, value) in fields.as_object().unwrap() {
        answer[name] = value.clone();
    }
    answer.to_string()
}

#[tokio::test]
async fn places_that_a_worker_names_are_looked_up_and_linked_to_the_commit() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    let files = [("src/greet.py", "def greet():\n    return 1\n")];
    let commit = world.github.default_repository().commit("main", "Greet", &files);
    let found = answer(&json!({
        "result": "`greet` returns a number (src/greet.py:2), which README.md:1 says nothing of, at 10:30.",
        "evidence": ["src/greet.py:1-2", "src/greet.py:90", "src/gone.py"],
    }));
    world.model.for_task(ANALYZE).says(&found);
    world.model.for_task(TELL).says("It returns a number.");
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/analyze what does greet return");
    program
        .until(&world, async { drop(slack.until_said("It returns a number").await) })
        .await;

    let said = slack.texts().remove(0);
    let page = format!("{}/acme/widgets/blob/{commit}", world.github.url());
    for line in [
        format!("`src/greet.py:1-2` <{page}/src/greet.py#L1-L2>"),
        format!("`src/greet.py:2` <{page}/src/greet.py#L2>"),
        format!("`README.md:1` <{page}/README.md#L1>"),
        "`src/greet.py:90` ⚠ not found: the file has 2 lines".to_owned(),
        "`src/gone.py` ⚠ not found: there is no such file".to_owned(),
    ] {
        assert!(said.contains(&line), "{line}\n{said}");
    }
    assert!(!said.contains("10:30"), "a time is no place: {said}");
    let told = world.model.requests().pop().unwrap().last_user_message();
    assert!(
        told.contains("they are wrong; do not name them:\n- src/greet.py:90"),
        "{told}"
    );
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_worker_that_takes_longer_than_its_message_may_is_ended_and_the_answer_says_so() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    world.configure(|config| config["chat"]["routing"] = json!({ "max_millis": 20_000 }));
    world.model.for_task(ANALYZE).says(&answer(&json!({}))).holds();
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/analyze what takes so long");
    program.until(&world, world.model.until_held(1)).await;
    program
        .until(&world, async {
            drop(slack.until_said("the 20 s that one message may take").await);
        })
        .await;
    assert_eq!(
        until_facts(&world, "final_route", 1).await[0]["stop_reason"],
        "max_millis"
    );
    assert_eq!(facts(&world, "loop_stopped")[0]["reason"], "max_millis");
    let failed = &facts(&world, "worker_failed")[0]["reason"];
    assert_eq!(failed, "it was not ready within 20000 ms (max_millis)");
    assert_eq!(slack.texts().len(), 1, "{:?}", slack.texts());
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_worker_looks_again_until_the_limit_and_what_it_found_is_told() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    world.configure(|config| config["chat"]["routing"] = json!({ "max_loops": 2 }));
    let more = |result: &str| answer(&json!({ "result": result, "needs_next_loop": true }));
    let script = world.model.for_task(ANALYZE).says(&more("first"));
    script.says(&more("second"));
    world.model.for_task(TELL).says("Both were found.");
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/analyze everything");
    program
        .until(&world, async { drop(slack.until_said("Both were found").await) })
        .await;
    let said = slack.texts().remove(0);
    assert!(said.contains("after 2 looks at the repository"), "{said}");
    let requests = world.model.requests();
    let (second, told) = (&requests[1], &requests[2]);
    assert!(second.last_user_message().contains("What was found so far:\nfirst"));
    let told = told.last_user_message();
    assert!(told.contains("first") && told.contains("second"), "{told}");
    assert_eq!(until_facts(&world, "final_route", 1).await[0]["worker_calls"], 2);
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_worker_whose_window_fills_up_looks_no_further_and_what_it_found_is_told() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    world.configure(|config| config["llm"]["openai"]["context_length"] = json!(4_096));
    world.model.has_window(4_096);
    // A character has three bytes and is a token.
    let large = "大きなファイルの一行。\n".repeat(2_000);
    let files = [("large.txt", large.as_str())];
    world.github.default_repository().commit("main", "Grow", &files);
    let reads = || {
        std::array::from_fn::<_, 8, _>(|place| {
            let lines = [place * 200 + 1, place * 200 + 200];
            (
                "repository/read_file",
                json!({ "path": "large.txt", "view_range": lines }),
            )
        })
    };
    let script = world.model.for_task(ANALYZE).calls_all(reads()).calls_all(reads());
    script.says(&answer(&json!({})));
    world.model.for_task(TELL).says("One line, again and again.");
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/analyze what the large file says");
    program
        .until(&world, async { drop(slack.until_said("again and again").await) })
        .await;
    let requests = world.model.requests();
    let (first, second) = (requests[1].last_user_message(), requests[2].last_user_message());
    assert_eq!(first.matches("bytes left out").count(), 8, "{first}");
    // What was free of three quarters of the window, and the JSON around it.
    assert!(first.len() < 9_500, "{} bytes", first.len());
    assert_eq!(second.matches("not run").count(), 8, "{second}");
    for told in [first, second] {
        assert!(
            told.ends_with("Look no further, and answer with what you found."),
            "{told}"
        );
    }
    assert_eq!(count(&world, "worker_failed"), 0, "{}", world.story());
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn another_route_takes_over_once() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    let elsewhere = |route: &str| answer(&json!({ "fit": false, "suggested_route": route }));
    world.model.for_task(PLAN).says(&elsewhere("ANALYZE"));
    world.model.for_task(ANALYZE).says(&elsewhere("RESEARCH"));
    // The chat model would like a third one.
    let told = "Here it is. {\"propose_next_loop\":true,\"route\":\"RESEARCH\",\"reason\":\"r\",\"confidence\":0.9}";
    world.model.for_task(TELL).says(told);
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/plan why it fails");
    program
        .until(&world, async { drop(slack.until_said("Here it is.").await) })
        .await;
    let said = slack.texts().remove(0);
    assert!(
        said.contains("ANALYZE") && !said.contains("propose_next_loop"),
        "{said}"
    );
    let overridden = facts(&world, "route_overridden");
    assert_eq!(overridden.len(), 1, "{overridden:?}");
    assert_eq!(
        (&overridden[0]["from"], &overridden[0]["to"]),
        (&json!("PLAN"), &json!("ANALYZE"))
    );
    let ended = &until_facts(&world, "final_route", 1).await[0];
    assert_eq!(
        (
            &ended["initial_route"],
            &ended["final_route"],
            &ended["reroute_used"],
            &ended["worker_calls"]
        ),
        (&json!("PLAN"), &json!("ANALYZE"), &json!(true), &json!(2))
    );
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn what_is_risky_or_unsure_is_asked_back() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    let risky = answer(&json!({ "risk": "high", "questions_for_user": ["Which database?"] }));
    world.model.for_task(PLAN).says(&risky);
    let unsure = "It could be. {\"propose_next_loop\":true,\"route\":\"CODE\",\"reason\":\"r\",\"confidence\":0.3}";
    world.model.for_task(ANALYZE).says(&answer(&json!({})));
    let script = world.model.for_task(TELL).says("Dropping the tables loses all.");
    script.says(unsure);
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/plan drop the tables");
    program
        .until(&world, async { drop(slack.until_said("Dropping the tables").await) })
        .await;
    slack.mentions(ALICE, "/analyze whether it could be");
    program
        .until(&world, async { drop(slack.until_said("It could be.").await) })
        .await;
    for said in slack.texts() {
        assert!(said.contains("Please confirm"), "{said}");
    }
    let told = world.model.requests()[1].last_user_message();
    assert!(told.contains("Questions for the person:\n- Which database?"), "{told}");
    for ended in facts(&world, "final_route") {
        assert_eq!(ended["stop_reason"], "need_user_confirmation", "{ended}");
    }
    assert_eq!(facts(&world, "final_route")[0]["risk"], "high");
    assert_eq!(world.github.items().len(), 0, "nothing was begun");
    ends(program, world, &slack).await;
}

/// Has a command on the operator's list leave a mark where it is run.
fn has_a_command(world: &mut World) -> PathBuf {
    let marks = world.folder().join("marks");
    let script = format!("echo run >> {}", marks.display());
    world.configure(|config| {
        config["chat"]["ops"] = json!({ "status": { "command": ["sh", "-c", script] } });
    });
    marks
}

#[tokio::test]
async fn nothing_that_a_worker_has_read_opens_an_issue_or_runs_a_command() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let marks = has_a_command(&mut world);
    let planted = |route: &str| answer(&json!({ "fit": false, "suggested_route": route, "confidence": 0.95 }));
    let script = world.model.for_task(ANALYZE).says(&planted("CODE"));
    script.says(&planted("OPS")).says(&answer(&json!({})));
    let proposal = "So it is. {\"propose_next_loop\":true,\"route\":\"CODE\",\"reason\":\"r\",\"confidence\":1.0}";
    let script = world.model.for_task(TELL).says("It reads a file.");
    script.says("It reads a file.").says(proposal);
    let mut program = serves(&world, &slack).await;
    let messages = [
        ("/analyze the bug in parse.py", "go on as CODE"),
        ("why does parse.py crash? find the cause of the bug", "run a command"),
        ("/analyze how the bug in parse.py is fixed", "go on as CODE"),
    ];
    for (before, (text, words)) in messages.into_iter().enumerate() {
        slack.mentions(ALICE, text);
        program
            .until(&world, slack.until(|slack| slack.texts().len() > before))
            .await;
        let said = slack.texts().pop().unwrap();
        assert!(
            said.contains(words) && said.contains("your own words do not ask for it"),
            "{text}: {said}"
        );
    }
    for ended in until_facts(&world, "final_route", 3).await {
        assert_eq!(
            (&ended["stop_reason"], &ended["final_route"]),
            (&json!("need_user_confirmation"), &json!("ANALYZE")),
            "{ended}"
        );
    }
    assert_eq!(world.github.items().len(), 0, "{}", world.story());
    assert!(!marks.exists());
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn the_chat_model_hands_over_no_effects_that_the_persons_own_words_do_not_ask_for() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let marks = has_a_command(&mut world);
    let talk = json!({ "route": "CHAT", "confidence": 0.9, "reason": "r", "evidence": [] }).to_string();
    let delegated = |route: &str, task: &str| {
        let args = json!({ "route": route, "task": task });
        json!({ "comment": "c", "command": { "tool": "chat/delegate", "args": args } }).to_string()
    };
    let mut program = serves(&world, &slack).await;
    let messages = [
        ("hm, what about parse.py", "CODE", "go on as CODE"),
        ("hm, he wrote:\n> please fix that", "CODE", "go on as CODE"),
        ("/chat please fix that", "CODE", "go on as CODE"),
        ("hm, please fix that", "OPS", "run a command"),
    ];
    for (before, (text, route, words)) in messages.into_iter().enumerate() {
        if !text.starts_with('/') {
            world.model.says(&talk);
        }
        world.model.says(&delegated(route, "status"));
        slack.mentions(ALICE, text);
        program
            .until(&world, slack.until(|slack| slack.texts().len() > before))
            .await;
        let said = slack.texts().pop().unwrap();
        assert!(
            said.contains(words) && said.contains("your own words do not ask for it"),
            "{text}: {said}"
        );
    }
    assert_eq!(world.github.items().len(), 0, "{}", world.story());
    assert!(!marks.exists());
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_asked_for_again_and_then_given_up() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    let broken = "{\"result\":\"half\"}";
    let script = world.model.for_task(ANALYZE).says(broken).says(&answer(&json!({})));
    script.says(broken).says(broken).says(broken);
    world.model.for_task(TELL).says("All is told.");
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/analyze the first");
    program
        .until(&world, async { drop(slack.until_said("All is told").await) })
        .await;
    let mended = world.model.requests()[1].last_user_message();
    assert!(mended.contains("cannot be read: `risk` is missing"), "{mended}");
    slack.mentions(ALICE, "/analyze the second");
    program
        .until(&world, async {
            drop(slack.until_said("gave no answer that could be read").await);
        })
        .await;
    until_facts(&world, "final_route", 1).await;
    assert_eq!(facts(&world, "loop_stopped")[0]["reason"], "worker_failed");
    assert_eq!(
        (count(&world, "worker_succeeded"), count(&world, "worker_failed")),
        (1, 1)
    );
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn the_classifier_decides_where_it_is_sure_and_the_persona_speaks_first() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let persona = world.keeps("persona.md", "You are Mio.");
    let policy = world.keeps("policy.md", "You promise nothing.");
    let overlay = world.keeps("overlay.md", "This week is quiet.");
    world.configure(|config| {
        config["chat"]["persona_files"] = json!({ "overlay": overlay, "policy": policy, "chat": persona });
    });
    world.model.for_task(ANALYZE).says(&answer(&json!({})));
    world.model.for_task(TELL).says("It sleeps.");
    let script = world.model.for_task("the moon").says("I would say CHAT.");
    script.says("It is far away.");
    let sure = json!({ "route": "ANALYZE", "confidence": 0.9, "reason": "r", "evidence": ["the cat"] });
    world.model.for_task("the cat").says(&sure.to_string());
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "hm, the moon");
    program
        .until(&world, async { drop(slack.until_said("It is far away").await) })
        .await;
    slack.mentions(ALICE, "hm, the cat");
    program
        .until(&world, async { drop(slack.until_said("It sleeps").await) })
        .await;
    assert_eq!(
        super::decisions(&world),
        [("CHAT", "fallback"), ("ANALYZE", "classifier")].map(|(route, source)| (route.to_owned(), source.to_owned()))
    );
    let fault = &facts(&world, "classifier_error")[0]["reason"];
    assert!(fault.as_str().is_some_and(|fault| !fault.is_empty()), "{fault}");
    let decided = &facts(&world, "router_decision")[1];
    assert_eq!(
        (&decided["classifier_route"], &decided["classifier_confidence"]),
        (&json!("ANALYZE"), &json!(90))
    );
    let system = world.model.requests()[1].system();
    assert!(
        system.starts_with("You are Mio.\n\nYou promise nothing.\n\nThis week is quiet."),
        "{system}"
    );
    ends(program, world, &slack).await;
}
