//! Pictures that people send in messengers, and that stand in issues, reach models that take them.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{ALICE, ends, serves, world};
use crate::fake::board::HUMAN;
use crate::fake::line;
use crate::fake::line::Line;
use crate::fake::slack::Slack;
use crate::web::opened;
use crate::world::World;
use crate::world::facts::facts;
use crate::world::scripts::{greets, plan};

/// A text within the picture's bytes that nobody sees.
const HIDDEN: &str = "taken-at-home-by-alice";

/// Returns a picture of this colour, with a hidden text in it.
fn picture(red: u8) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let seen = RgbImage::from_pixel(40, 20, Rgb([red, 0, 0]));
    DynamicImage::ImageRgb8(seen)
        .write_to(&mut bytes, ImageFormat::Png)
        .unwrap();
    let mut bytes = bytes.into_inner();
    bytes.extend_from_slice(HIDDEN.as_bytes());
    bytes
}

/// Returns the red of each picture that the model was shown in its last request.
fn shown(world: &World) -> Vec<u8> {
    let request = world.model.requests().pop().unwrap();
    let reds = request.pictures().into_iter().map(|(_, bytes)| {
        assert!(!bytes.windows(HIDDEN.len()).any(|part| part == HIDDEN.as_bytes()));
        let seen = image::load_from_memory(&bytes).unwrap().to_rgb8();
        assert_eq!(seen.dimensions(), (40, 20));
        seen.get_pixel(3, 3).0[0]
    });
    reds.collect()
}

fn sees(world: &mut World) {
    world.configure(|config| config["llm"]["openai"]["pictures"] = json!(true));
}

fn nothing_is_kept(world: &World, picture: &[u8]) {
    let kept = std::fs::read(world.state_dir().join("coding-agent.db")).unwrap_or_default();
    let part = &picture[picture.len() - HIDDEN.len()..];
    assert!(!kept.windows(part.len()).any(|window| window == part));
}

#[tokio::test]
async fn a_picture_in_slack_is_shown_without_its_metadata_and_the_journal_tells_of_it() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    sees(&mut world);
    let script = world.model.for_task("what colour is it").says("Red, I would say.");
    script.says("Still red.").too_long();
    let mut program = serves(&world, &slack).await;

    let bytes = picture(200);
    // Neither the name nor the kind that Slack tells is believed.
    let thread = slack.sends_file(ALICE, "/chat what colour is it", "shot.txt", "image/gif", &bytes);
    program
        .until(&world, async { drop(slack.until_said("Red, I would say").await) })
        .await;
    assert_eq!(shown(&world), [200]);
    assert_eq!(slack.fetched().len(), 1);
    let facts = facts(&world, "picture_shown");
    let fact = &facts[0];
    assert_eq!(fact["kind"], "image/png");
    assert_eq!(fact["bytes"], bytes.len());
    assert_eq!(fact["from"], ALICE);
    assert_eq!((&fact["model"], &fact["role"]), (&json!("llm"), &json!("chat")));
    assert_eq!((&fact["width"], &fact["is_shown"]), (&json!(40), &json!(true)));
    assert_eq!(fact["digest"].as_str().unwrap().len(), 64);

    // The question about it comes behind it.
    slack.replies(ALICE, &thread, "/chat are you sure");
    program
        .until(&world, async { drop(slack.until_said("Still red").await) })
        .await;
    assert_eq!(shown(&world), [200]);
    // Whether a model that gave no answer got the picture, nobody knows; the journal says so.
    slack.replies(ALICE, &thread, "/chat once more");
    program
        .until(&world, async { drop(slack.until_said("I have no answer").await) })
        .await;
    let unanswered = crate::world::facts::until_facts(&world, "picture_unanswered", 1).await;
    assert_eq!(unanswered.len(), 1, "{unanswered:?}");
    assert_eq!(unanswered[0]["digests"][0], fact["digest"]);
    assert_eq!(unanswered[0]["shown_bytes"], fact["shown_bytes"]);
    nothing_is_kept(&world, &bytes);
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn what_is_no_picture_is_named_and_a_model_that_takes_none_has_none_fetched() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    sees(&mut world);
    world.model.for_task("what is that").says("I cannot see it.");
    let mut program = serves(&world, &slack).await;
    slack.sends_file(
        ALICE,
        "/chat what is that",
        "page.png",
        "image/png",
        b"<html>no picture</html>",
    );
    program
        .until(&world, async { drop(slack.until_said("cannot see").await) })
        .await;
    let request = world.model.requests().pop().unwrap();
    assert!(request.pictures().is_empty());
    let said = request.last_user_message();
    assert!(said.contains("page.png (it is no PNG, JPEG, GIF or WebP)"), "{said}");
    program.signal("TERM");
    assert_eq!(program.ended().await.code, Some(0));

    world.configure(|config| config["llm"]["openai"]["pictures"] = json!(false));
    world.model.for_task("and this").says("I see none.");
    let mut program = serves(&world, &slack).await;
    slack.sends_file(ALICE, "/chat and this", "shot.png", "image/png", &picture(9));
    program
        .until(&world, async { drop(slack.until_said("I see none").await) })
        .await;
    let said = world.model.requests().pop().unwrap().last_user_message();
    assert!(said.contains("shot.png (the model takes no pictures)"), "{said}");
    assert_eq!(slack.fetched().len(), 1, "the first alone");
    let reasons: Vec<Value> = facts(&world, "picture_shown")
        .iter()
        .map(|fact| fact["reason"].clone())
        .collect();
    assert_eq!(
        reasons,
        ["it is no PNG, JPEG, GIF or WebP", "the model takes no pictures"]
    );
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_picture_in_line_is_shown_by_itself_and_with_the_question_behind_it() {
    let line = Line::start().await;
    let mut world = World::start().await.attentive();
    sees(&mut world);
    let section = line.section(&json!({ ALICE: { "github": HUMAN } }));
    world.configure(|config| {
        config["chat"] = json!({ "default_repository": "github:acme/widgets", "line": section });
        config["http"] = json!({ "listen": "127.0.0.1:0" });
    });
    world.model.allows_restarts();
    world.model.forbids(line::ACCESS_TOKEN);
    let script = world.model.for_task("no words").says("何の絵ですか。").says("赤です。");
    drop(script);
    let (mut program, web) = opened(&world, &["serve"]).await;
    let deliver = async |(body, signature): (String, String)| {
        let request = web
            .request(Method::POST, "/hooks/line")
            .header("x-line-signature", signature);
        let answer = request.body(body).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
    };
    let bytes = picture(120);
    deliver(line.sends_picture(ALICE, &bytes)).await;
    program
        .until(&world, async { drop(line.until_said("何の絵").await) })
        .await;
    assert_eq!(shown(&world), [120]);
    deliver(line.writes(ALICE, "何色ですか")).await;
    program
        .until(&world, async { drop(line.until_said("赤です").await) })
        .await;
    assert_eq!(shown(&world), [120]);
    nothing_is_kept(&world, &bytes);
    crate::web::ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn pictures_of_an_issue_are_shown_to_planner_and_worker_if_they_lie_with_the_forge() {
    let mut world = World::start().await;
    sees(&mut world);
    world.model.allows_restarts();
    greets(world.model.for_task("Greet the reader").plans(plan()));
    let own = world.github.attaches(&picture(77));
    let issue = world.github.open_issue("Greet the reader");
    issue.body(&format!(
        "As here:\n\n<img width=\"40\" alt=\"Image\" src=\"{own}\" />\n\n![no](https://images.example/x.png)\n"
    ));
    issue.comment("mallory", &format!("![mine]({own}?mallory)"));
    issue.label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    issue.until(|issue| issue.labels() == ["coding agent done"]).await;

    let shown: Vec<usize> = world
        .model
        .requests()
        .iter()
        .map(|request| request.pictures().len())
        .collect();
    let said = world.model.requests()[0].first_user_message();
    assert!(shown.iter().all(|pictures| *pictures == 1), "{shown:?}: {said}");
    assert!(
        said.contains(&format!("picture 1 by {HUMAN} (image/png, 40 × 20), sha256")),
        "{said}"
    );
    let facts = facts(&world, "picture_shown");
    let roles: Vec<&Value> = facts.iter().map(|fact| &fact["role"]).collect();
    assert_eq!(roles, ["planner", "worker"], "{facts:?}");
    assert!(
        facts
            .iter()
            .all(|fact| fact["from"] == HUMAN && fact["is_shown"] == true)
    );
    world.finish().await;
}

#[tokio::test]
async fn a_picture_that_is_sent_with_a_request_is_shown_to_the_run_and_forgotten_with_it() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    sees(&mut world);
    greets(world.model.for_task("Greet the reader").plans(plan()));
    let mut program = serves(&world, &slack).await;
    let bytes = picture(150);
    slack.sends_file(ALICE, "/code Greet the reader", "shot.png", "image/png", &bytes);
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;

    assert_eq!(slack.fetched().len(), 1);
    let issue = world.github.items().remove(0);
    let words = "_Pictures that were sent with it, which the model is shown and this page does not have: shot.png._";
    assert!(issue.text().contains(words), "{}", issue.text());
    assert_eq!(shown(&world), [150], "the worker's last request");
    let said = world.model.requests()[0].first_user_message();
    assert!(
        said.contains(&format!("picture 1 by {HUMAN} (image/png, 40 × 20), sha256")),
        "{said}"
    );
    let told = facts(&world, "picture_shown");
    let roles: Vec<&Value> = told.iter().map(|fact| &fact["role"]).collect();
    assert_eq!(roles, ["planner", "worker"], "{told:?}");
    assert!(
        told.iter()
            .all(|fact| fact["from"] == HUMAN && fact["is_shown"] == true)
    );
    nothing_is_kept(&world, &bytes);
    issue.until(|issue| issue.labels() == super::DONE).await;

    // What cannot go with it is named, to whoever asked as well.
    greets(world.model.for_task("Greet them all").plans(plan()));
    slack.sends_file(ALICE, "/code Greet them all", "page.png", "image/png", b"<html></html>");
    let told = slack.until_said("do not go with it").await.text;
    assert!(told.contains("page.png (it is no PNG, JPEG, GIF or WebP)"), "{told}");
    // Behind the first issue and its pull request.
    let second = world.github.items().remove(2);
    assert!(
        second.text().contains("that nobody is shown: page.png"),
        "{}",
        second.text()
    );
    second.until(|issue| issue.labels() == super::DONE).await;
    program
        .until(&world, slack.until(|slack| slack.texts().len() == 6))
        .await;
    program.signal("TERM");
    assert_eq!(program.ended().await.code, Some(0));

    // The log beside the file goes into it when the last connection closes, and may not have yet.
    let kept = |words: &str| {
        ["coding-agent.db", "coding-agent.db-wal"].iter().any(|name| {
            let kept = std::fs::read(world.state_dir().join(name)).unwrap_or_default();
            kept.windows(words.len()).any(|part| part == words.as_bytes())
        })
    };
    assert!(kept("pictures of github:acme/widgets#1"));
    let ended = world.command(&["forget", "github:acme/widgets#1"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!kept("pictures of github:acme/widgets#1"));
    world.finish().await;
}

#[tokio::test]
async fn an_issue_on_gitlab_shows_the_pictures_that_were_sent_with_its_request() {
    let slack = Slack::start().await;
    let mut world = World::on_gitlab().await.attentive();
    sees(&mut world);
    let section = slack.section(&json!({ ALICE: { "gitlab": HUMAN } }));
    world.configure(|config| {
        config["chat"] = json!({ "default_repository": "gitlab:acme/widgets", "slack": section });
    });
    world.model.allows_restarts();
    greets(world.model.for_task("Greet the reader").plans(plan()));
    let mut program = serves(&world, &slack).await;
    let bytes = picture(90);
    slack.sends_file(ALICE, "/code Greet the reader", "shot.png", "image/png", &bytes);
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    let issue = world.gitlab.items().remove(0);
    assert!(
        issue.text().contains("![A picture that was sent with it](/uploads/")
            && !issue.text().contains("does not have"),
        "{}",
        issue.text()
    );
    assert_eq!(shown(&world), [90]);
    nothing_is_kept(&world, &bytes);
    let facts = facts(&world, "picture_shown");
    assert!(
        facts.iter().all(|fact| fact["is_shown"] == true) && facts.len() == 2,
        "{facts:?}"
    );
    ends(program, world, &slack).await;
}
