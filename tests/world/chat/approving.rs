//! What runs wait for, as a conversation is told of it, and answers to it, as far as they count.

use serde_json::json;

use super::{ALICE, ends, serves, world};
use crate::fake::board::HUMAN;
use crate::fake::model::Plan;
use crate::fake::slack::{Fault, Message, Slack, buttons};
use crate::store_trouble::tamper;
use crate::world::World;
use crate::world::facts::{count, until_facts};
use crate::world::scripts::{greets, plan, writes};

/// A world in which every plan waits, and a plan to greet the reader.
async fn asking(slack: &Slack) -> World {
    let mut world = world(slack).await;
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    greets(world.model.for_task("Greet the reader").plans(plan()));
    world
}

#[tokio::test]
async fn an_approval_while_all_runs_are_paused_counts_when_they_go_on() {
    let slack = Slack::start().await;
    let world = asking(&slack).await;
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/code Greet the reader");
    let question = slack.until_said("needs your approval").await;
    world.all_runs("pause").await;
    let answers = |slack: &Slack| -> Vec<String> {
        let mut texts = slack.texts();
        texts.retain(|text| text.starts_with("Approved"));
        texts
    };
    for times in 1.. {
        slack.presses(ALICE, &question, 0);
        program
            .until(&world, slack.until(|slack| answers(slack).len() == times))
            .await;
        let answer = answers(&slack).pop().unwrap();
        if answer.contains("All runs are paused") {
            break;
        }
        // The service looks after the run at this moment.
        assert!(answer.contains("passed on"), "{answer}");
    }
    assert_eq!(count(&world, "environment_started"), 0, "{}", world.story());
    // A word alone is for a question that is open, and there is none.
    slack.replies(ALICE, &thread, "deny");
    program
        .until(&world, async { drop(slack.until_said("decided already").await) })
        .await;
    assert_eq!(count(&world, "approval_denied"), 0, "{}", world.story());

    world.all_runs("resume").await;
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    assert_eq!(count(&world, "approval_granted"), 1, "{}", world.story());
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_digest_that_only_begins_as_the_right_one_approves_nothing_and_is_not_told_as_if() {
    let slack = Slack::start().await;
    let world = asking(&slack).await;
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/code Greet the reader");
    program
        .until(&world, async { drop(slack.until_said("needs your approval").await) })
        .await;
    let asked = until_facts(&world, "approval_requested", 1).await;
    let whole = asked[0]["digest"].as_str().unwrap();
    let last = if whole.ends_with('0') { "1" } else { "0" };
    let other = &whole[..whole.len() - 1];
    slack.replies(ALICE, &thread, &format!("approve {other}{last}"));
    program
        .until(&world, async { drop(slack.until_said("something else").await) })
        .await;
    assert_eq!(count(&world, "approval_granted"), 0, "{}", world.story());
    assert!(slack.texts().iter().all(|text| !text.contains("Approved")));
    slack.replies(ALICE, &thread, &format!("approve {whole}"));
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_question_that_is_asked_a_second_time_in_the_same_words_is_told_again() {
    let slack = Slack::start().await;
    let world = world(&slack).await;
    let asks = json!({ "question": "Red or blue?" });
    let script = world.model.for_task("Greet the reader").plans(plan());
    let script = writes(script.calls("agent/ask_people", asks.clone()), "color.txt", "blue\n");
    greets(script.calls("agent/ask_people", asks));
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/code Greet the reader");
    for times in 1..=2 {
        let told = |slack: &Slack| {
            let texts = slack.texts();
            texts.iter().filter(|text| text.starts_with("✋ Red or blue?")).count()
        };
        program.until(&world, slack.until(|slack| told(slack) == times)).await;
        let issue = world.github.items().remove(0);
        issue.until(|issue| issue.labels() == ["coding agent waiting"]).await;
        issue.comment(HUMAN, "Blue, please.");
    }
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_plan_that_is_made_again_after_its_denial_is_asked_about_again() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    // The denied plan goes back to the planner once, before people are asked about it again.
    let script = world.model.for_task("Greet the reader").plans(plan()).plans(plan());
    greets(script.plans(plan()));
    let questions = |slack: &Slack| -> Vec<Message> {
        let mut said = slack.said();
        said.retain(|message| message.text.contains("needs your approval"));
        said
    };
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/code Greet the reader");
    program
        .until(&world, slack.until(|slack| questions(slack).len() == 1))
        .await;
    let asked = until_facts(&world, "approval_requested", 1).await;
    let digest = &asked[0]["digest"].as_str().unwrap()[..16];
    slack.replies(ALICE, &thread, &format!("deny {digest} Say it in French."));
    program
        .until(&world, slack.until(|slack| questions(slack).len() == 2))
        .await;
    let asked = until_facts(&world, "approval_requested", 2).await;
    assert_eq!(asked[0]["digest"], asked[1]["digest"], "the plan is the same");

    slack.presses(ALICE, &questions(&slack)[1], 0);
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    assert_eq!(questions(&slack).len(), 2, "{:#?}", slack.texts());
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_word_without_a_digest_approves_no_question_that_nobody_was_shown() {
    let slack = Slack::start().await;
    let mut world = asking(&slack).await;
    world.configure(|config| config["approval"] = json!({ "plan": true, "result": "always" }));
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/code Greet the reader");
    program
        .until(&world, async {
            drop(slack.until_said("plan needs your approval").await);
        })
        .await;
    // Somebody approves the plan on its page, and the question that follows does not come through.
    slack.fails_next("chat.postMessage", Fault::Refused("restricted_action"));
    let issue = world.github.items().remove(0);
    issue.until(|issue| issue.labels() == ["coding agent waiting"]).await;
    let asked = until_facts(&world, "approval_requested", 1).await;
    issue.comment(
        HUMAN,
        &format!("/agent approve {}", &asked[0]["digest"].as_str().unwrap()[..16]),
    );
    let warned = until_facts(&world, "warned", 1).await;
    assert!(
        warned[0]["text"].as_str().unwrap().contains("was not said"),
        "{warned:?}"
    );

    slack.replies(ALICE, &thread, "approve");
    program
        .until(&world, async { drop(slack.until_said("Which question").await) })
        .await;
    assert_eq!(count(&world, "approval_granted"), 1, "{}", world.story());
    let asked = until_facts(&world, "approval_requested", 2).await;
    let digest = &asked[1]["digest"].as_str().unwrap()[..16];
    // It is told where the question can be read, and how it is answered.
    let told = slack.until_said("Which question").await.text;
    assert!(told.contains("/issues/1") && told.contains(digest), "{told}");
    slack.replies(ALICE, &thread, &format!("approve {digest}"));
    program
        .until(&world, async { drop(slack.until_said("/pull/").await) })
        .await;
    assert_eq!(slack.refused(), ["chat.postMessage: restricted_action"]);
    crate::web::ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn a_word_without_a_digest_approves_no_question_whose_beginning_was_not_shown() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    let steps: Vec<String> = (1..=18)
        .map(|number| format!("step {number} {}", "greets ".repeat(30)))
        .collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let script = world.model.for_task("Greet the reader").plans(plan());
    script.plans(Plan::of(&steps).in_environment("python"));
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/code Greet the reader");
    program
        .until(&world, async { drop(slack.until_said("needs your approval").await) })
        .await;
    // Somebody denies the plan on its page. The next one needs two messages, of which one is refused.
    slack.fails_next("chat.postMessage", Fault::Refused("restricted_action"));
    let issue = world.github.items().remove(0);
    issue.until(|issue| issue.labels() == ["coding agent waiting"]).await;
    let asked = until_facts(&world, "approval_requested", 1).await;
    let digest = &asked[0]["digest"].as_str().unwrap()[..16];
    issue.comment(HUMAN, &format!("/agent deny {digest} Say more."));
    let with_buttons = |slack: &Slack| {
        let said = slack.said();
        said.iter().filter(|message| !buttons(message).is_empty()).count()
    };
    program
        .until(&world, slack.until(|slack| with_buttons(slack) == 2))
        .await;
    // What is said behind the question shows that the program knows what came of it.
    slack.replies(ALICE, &thread, "approve 0123456789abcdef");
    program
        .until(&world, async { drop(slack.until_said("something else").await) })
        .await;

    slack.replies(ALICE, &thread, "approve");
    program
        .until(&world, async { drop(slack.until_said("Which question").await) })
        .await;
    assert_eq!(count(&world, "approval_granted"), 0, "{}", world.story());
    let asked = until_facts(&world, "approval_requested", 2).await;
    let digest = &asked[1]["digest"].as_str().unwrap()[..16];
    slack.replies(ALICE, &thread, &format!("deny {digest}"));
    program
        .until(&world, async { drop(slack.until_said("Stopped").await) })
        .await;
    assert_eq!(slack.refused(), ["chat.postMessage: restricted_action"]);
    crate::web::ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn a_word_alone_answers_the_only_question_and_a_sentence_that_begins_with_one_does_not() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    greets(world.model.for_task("Greet the reader").plans(plan()));
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/code Greet the reader");
    for (said, answer) in [
        ("", "needs your approval"),
        ("Deny requests without a token", "Which question"),
    ] {
        if !said.is_empty() {
            slack.replies(ALICE, &thread, said);
        }
        program
            .until(&world, async { drop(slack.until_said(answer).await) })
            .await;
    }
    assert_eq!(count(&world, "approval_denied"), 0, "{}", world.story());

    slack.replies(ALICE, &thread, "approve");
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    assert_eq!(count(&world, "approval_granted"), 1, "{}", world.story());
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn of_a_run_whose_record_cannot_be_read_that_is_told_and_later_how_it_stands() {
    let slack = Slack::start().await;
    let world = asking(&slack).await;
    let program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/code Greet the reader");
    let question = slack.until_said("needs your approval").await;
    crate::web::ends(program, &world).await;
    // As a machine with a newer version of the program writes it.
    tamper(
        &world,
        "UPDATE runs SET format = format + 100,
         record = json_set(record, '$.version', json_extract(record, '$.version') + 1000)",
    )
    .await;
    world
        .add_fact(json!({ "fact": "stage_changed", "from": "preparing", "to": "working" }))
        .await;

    let mut program = serves(&world, &slack).await;
    let unreadable = |slack: &Slack, words: &str| {
        let texts = slack.texts();
        let told = format!("{words}: what was saved of the run");
        texts.iter().filter(|text| text.contains(&told)).count()
    };
    program
        .until(
            &world,
            slack.until(|slack| unreadable(slack, "I cannot tell you how it stands") == 1),
        )
        .await;
    slack.presses(ALICE, &question, 0);
    slack.replies(ALICE, &thread, "approve");
    slack.replies(ALICE, &thread, "approve it please");
    program
        .until(&world, slack.until(|slack| unreadable(slack, "That did not work") == 3))
        .await;
    assert_eq!(count(&world, "approval_granted"), 0, "{}", world.story());

    tamper(
        &world,
        "UPDATE runs SET format = format - 100,
         record = json_set(record, '$.version', json_extract(record, '$.version') - 1000)",
    )
    .await;
    slack.presses(ALICE, &question, 0);
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    assert_eq!(
        unreadable(&slack, "I cannot tell you how it stands"),
        1,
        "it is told once"
    );
    let story = world.story();
    let logged = story
        .lines()
        .filter(|line| line.contains("cannot be told how it stands"));
    assert_eq!(logged.count(), 1, "{story}");
    ends(program, world, &slack).await;
}
