//! The program is killed at every request that it makes for a message: nothing is lost, nothing is
//! said or done twice.
//!
//! Between two requests the program writes to its store alone, and both sides of that are among the
//! places: what was asked for and not done, and what was done and not heard.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use reqwest::Method;
use serde_json::json;

use super::{ALICE, DONE, world};
use crate::fake::board::HUMAN;
use crate::fake::line;
use crate::fake::line::Line;
use crate::fake::slack::{Slack, buttons};
use crate::store_trouble::tamper;
use crate::web::opened;
use crate::world::World;
use crate::world::facts::{count, facts, until_facts};
use crate::world::scripts::{greets, plan};

const ISSUE: &str = "POST /repos/*/*/issues";
const LABEL: &str = "POST /repos/*/*/issues/*/labels";
/// Stories that are told at once.
const AT_ONCE: usize = 3;
/// Texts that every story says or changes at least.
const TEXTS: usize = 5;
const PATIENCE: Duration = Duration::from_mins(3);

/// The point at which the program is killed.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Slack got the text after so many others, and has not taken it.
    Asked(usize),
    /// Slack has taken it, and nobody heard of it.
    Done(usize),
    /// The forge got the issue, and has not opened it; or has, and nobody heard of it.
    IssueAsked,
    IssueDone,
    /// The forge got the label that has the issue worked on, and has not put it on.
    LabelAsked,
    LabelDone,
}

/// A request becomes an issue and a pull request, over a plan that somebody approves: the link, the
/// text that is changed, the question, the answer to the approval, the end.
async fn killed_at(place: Place) {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    // The run is worked on beside the messages: an answer may be lost with the process.
    world.model.repeats_answers();
    greets(world.model.for_task("Greet the reader").plans(plan()));
    match place {
        Place::Asked(spared) => slack.holds(spared, false),
        Place::Done(spared) => slack.holds(spared, true),
        Place::IssueAsked => world.github.hangs(ISSUE, 0, false),
        Place::IssueDone => world.github.hangs(ISSUE, 0, true),
        Place::LabelAsked => world.github.hangs(LABEL, 0, false),
        Place::LabelDone => world.github.hangs(LABEL, 0, true),
    }
    let mut program = world.spawn(&["serve"]);
    program.until(&world, slack.until(Slack::has_socket)).await;
    slack.mentions(ALICE, "/code Greet the reader");
    let mut is_killed = false;
    let mut is_pressed = false;
    let begun = std::time::Instant::now();
    // What people do does not wait for the program, which is killed when the place is reached.
    loop {
        assert!(
            begun.elapsed() < PATIENCE,
            "{place:?}: {:#?}\n{}",
            slack.texts(),
            world.story()
        );
        // Before the place is looked at: a text that is held here may be the last one.
        let said = slack.said();
        let is_at = match place {
            Place::Asked(_) | Place::Done(_) => slack.held() > 0,
            Place::IssueAsked | Place::IssueDone | Place::LabelAsked | Place::LabelDone => world.github.hanging() > 0,
        };
        if is_at && !is_killed {
            is_killed = true;
            program.kill().await;
            world.github.cuts_off();
            program = world.spawn(&["serve"]);
        }
        if !is_pressed && let Some(question) = said.iter().find(|message| !buttons(message).is_empty()) {
            is_pressed = true;
            slack.presses(ALICE, question, 0);
        }
        if said.iter().any(|message| message.text.contains("nothing was checked")) {
            assert!(is_killed, "{place:?} was not reached: {:#?}", slack.texts());
            break;
        }
        program.until(&world, slack.until_news()).await;
    }
    program.until(&world, slack.until(Slack::is_heard)).await;
    let story = || format!("killed at {place:?}: {:#?}\n{}", slack.texts(), world.story());
    let issues = world.github.items();
    let issues = issues.iter().filter(|item| item.text().contains("Asked for by"));
    assert_eq!(issues.count(), 1, "{}", story());
    for (words, times) in [
        ("start as soon as a worker", 1),
        ("needs your approval", 1),
        ("Approved", 1),
        ("nothing was checked", 1),
        ("Nothing waits", 0),
        ("☑ greet the reader", 1),
    ] {
        let said = slack.texts().iter().filter(|text| text.contains(words)).count();
        assert_eq!(said, times, "{words}: {}", story());
    }
    assert_eq!(count(&world, "approval_granted"), 1, "{}", story());
    super::ends(program, world, &slack).await;
}

async fn repeat(places: impl IntoIterator<Item = Place>) {
    let stories = stream::iter(places).map(|place| Box::pin(killed_at(place)));
    stories.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

#[tokio::test]
async fn while_slack_has_not_taken_a_text() {
    repeat((0..TEXTS).map(Place::Asked)).await;
}

#[tokio::test]
async fn when_slack_has_taken_a_text_and_nobody_heard_of_it() {
    repeat((0..TEXTS).map(Place::Done)).await;
}

#[tokio::test]
async fn around_the_issue() {
    repeat([Place::IssueAsked, Place::IssueDone, Place::LabelAsked, Place::LabelDone]).await;
}

#[tokio::test]
async fn the_end_of_a_run_is_told_after_a_kill_before_its_facts_were_numbered() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    let plan = plan().verified_by("grep -q Hello README.md");
    greets(world.model.for_task("Greet the reader").plans(plan));
    let mut program = world.spawn(&["serve"]);
    program.until(&world, slack.until(Slack::has_socket)).await;
    // As if the process were killed each time before it numbers what it did.
    tamper(
        &world,
        "CREATE TRIGGER unnumbered AFTER INSERT ON facts WHEN NEW.task IS NOT NULL
         BEGIN DELETE FROM facts WHERE sequence = NEW.sequence; END",
    )
    .await;
    slack.mentions(ALICE, "/code Greet the reader");
    program
        .until(&world, async { drop(until_facts(&world, "put_down", 1).await) })
        .await;
    program.kill().await;
    let is_end = |text: &String| text.contains("Done and verified");
    assert!(!slack.texts().iter().any(is_end), "{:#?}", slack.texts());

    let mut program = world.spawn(&["serve"]);
    program
        .until(&world, async { drop(slack.until_said("Done and verified").await) })
        .await;

    program.until(&world, slack.until(Slack::is_heard)).await;
    let ends = slack.texts().iter().filter(|text| is_end(text)).count();
    assert_eq!(ends, 1, "{:#?}", slack.texts());
    super::ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_text_that_slack_does_not_let_the_program_look_for_ends_no_conversation() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    world.model.for_task("question 0").says("answer 0").says("answer 1");
    slack.grants("app_mentions:read,chat:write");
    slack.holds(0, false);
    let mut program = world.spawn(&["serve"]);
    program.until(&world, slack.until(Slack::has_socket)).await;
    let thread = slack.mentions(ALICE, "/chat question 0");
    program.until(&world, slack.until(|slack| slack.held() > 0)).await;
    program.kill().await;

    let mut program = world.spawn(&["serve"]);
    program.until(&world, slack.until(Slack::has_socket)).await;
    slack.replies(ALICE, &thread, "/chat question 1");
    program
        .until(&world, async { drop(slack.until_said("answer 1").await) })
        .await;
    // Whether the first answer was taken nobody knows, so it is not said again.
    assert_eq!(slack.texts(), ["answer 1"]);
    assert_eq!(slack.refused(), ["conversations.replies: missing_scope"]);
    let warned = until_facts(&world, "warned", 1).await;
    let told = warned[0]["text"].as_str().unwrap();
    assert!(
        told.contains("was not said") && told.contains("missing_scope"),
        "{told}"
    );
    program.signal("TERM");
    assert_eq!(program.ended().await.code, Some(0), "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn while_the_chat_model_and_a_command_are_waited_for() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    let marks = world.folder().join("marks");
    let hold = world.folder().join("hold");
    let script = format!(
        "echo run >> {}; while [ -e {} ]; do sleep 0.05; done; echo all is well",
        marks.display(),
        hold.display()
    );
    world.configure(|config| {
        config["chat"]["ops"] = json!({ "status": { "command": ["sh", "-c", script], "description": "how it is" } });
    });
    std::fs::write(&hold, "").unwrap();
    world
        .model
        .for_task("question 0")
        .says("answer 0")
        .holds()
        .says("answer 0");
    let mut program = world.spawn(&["serve"]);
    program.until(&world, slack.until(Slack::has_socket)).await;
    slack.mentions(ALICE, "/chat question 0");
    program.until(&world, world.model.until_held(1)).await;
    slack.mentions(ALICE, "/ops status");
    program
        .until(&world, async {
            while !marks.exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    program.kill().await;
    std::fs::remove_file(&hold).unwrap();
    let mut program = world.spawn(&["serve"]);
    program
        .until(&world, async {
            drop(slack.until_said("answer 0").await);
            drop(slack.until_said("I was stopped while `status` ran").await);
        })
        .await;
    program.until(&world, slack.until(Slack::is_heard)).await;
    assert_eq!(std::fs::read_to_string(marks).unwrap(), "run\n", "a command runs once");
    assert_eq!(slack.texts().len(), 2, "{:?}", slack.texts());
    super::ends(program, world, &slack).await;
}

/// Kills the program while a call of LINE is held, at its first answer or at the question behind it.
async fn killed_in_line(call: &str, fault: line::Fault) {
    let line = Line::start().await;
    let mut world = World::start().await.attentive();
    let section = line.section(&json!({ ALICE: { "github": HUMAN } }));
    world.configure(|config| {
        config["approval"] = json!({ "plan": true });
        config["chat"] = json!({ "default_repository": "github:acme/widgets", "line": section });
        config["http"] = json!({ "listen": "127.0.0.1:0" });
    });
    world.model.allows_restarts();
    world.model.repeats_answers();
    let delegated = json!({
        "comment": "c", "command": { "tool": "chat/delegate", "args": { "route": "CODE", "task": "Greet the reader" } },
    });
    let script = world.model.for_task("Greet the reader");
    greets(script.says(&delegated.to_string()).plans(plan()));
    line.fails_next(call, fault);
    let (mut program, web) = opened(&world, &["serve"]).await;
    let writes = async |web: &crate::web::WebClient, text: &str| {
        let (body, signature) = line.writes(ALICE, text);
        let request = web
            .request(Method::POST, "/hooks/line")
            .header("x-line-signature", signature);
        assert!(request.body(body).send().await.unwrap().status().is_success());
    };
    writes(&web, "/code Greet the reader").await;
    program.until(&world, line.until_held()).await;
    program.kill().await;
    let (mut program, web) = opened(&world, &["serve"]).await;
    program
        .until(&world, async { drop(line.until_said("needs your approval").await) })
        .await;
    let asked = facts(&world, "approval_requested");
    writes(&web, &asked[0]["digest"].as_str().unwrap()[..16]).await;
    program
        .until(&world, async { drop(line.until_said("nothing was checked").await) })
        .await;
    let issue = world.github.items().remove(0);
    issue.until(|issue| issue.labels() == DONE).await;
    let texts = line.texts();
    for words in [
        "start as soon as a worker",
        "needs your approval",
        "Approved",
        "nothing was checked",
    ] {
        let said = texts.iter().filter(|text| text.contains(words)).count();
        assert_eq!(said, 1, "{call} {fault:?}, {words}: {texts:#?}\n{}", world.story());
    }
    assert_eq!(texts.len(), 4, "{texts:#?}");
    crate::web::ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn in_line_around_the_free_answer_and_around_a_message() {
    let places = [
        ("reply", line::Fault::Held),
        ("reply", line::Fault::DoneAndHeld),
        ("push", line::Fault::Held),
        ("push", line::Fault::DoneAndHeld),
    ];
    let stories = stream::iter(places).map(|(call, fault)| Box::pin(killed_in_line(call, fault)));
    stories.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}
