//! Which models get what is said in a conversation: those elsewhere get nothing of what is to stay
//! near.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, RgbImage};
use serde_json::{Value, json};

use super::{ALICE, ends, serves, world};
use crate::fake::model::{Model, Request};
use crate::fake::slack::Slack;
use crate::world::scripts::{greets, plan};
use crate::world::{MODEL_KEY, World};

/// A word that no model elsewhere may read.
const WORD: &str = "heffalump";

/// Has a far model, which is returned, talk with people and sort what they say. The world's own
/// model looks at repositories, and takes every place where only near ones are asked.
async fn with_a_far_chat(slack: &Slack) -> (World, Model) {
    let mut world = world(slack).await;
    let far = Model::start().await;
    let model =
        |address: &str| json!({ "provider": "openai", "base_url": address, "api_key": MODEL_KEY, "model": "scripted" });
    let address = far.openai_address().replace("127.0.0.1", "0.0.0.0");
    let models = json!({ "far": model(&address), "near": model(&world.model.openai_address()) });
    world.configure(|config| {
        config["llm"]["models"] = models;
        config["llm"]["roles"] = json!({ "chat": "far", "classifier": "far", "local_only": "near" });
    });
    far.forbids(WORD);
    // Conversations move from the one to the other.
    for either in [&world.model, &far] {
        either.allows_restarts();
        either.goes_on_for_another();
    }
    (world, far)
}

/// Makes a second repository, in which a file holds the word, and has work on it kept near.
fn has_a_vault(world: &mut World) {
    let files = [("key.py", "# made of a heffalump\n")];
    world
        .github
        .repository("acme/vault")
        .commit("main", "Add the key", &files);
    world.configure(|config| {
        config["github"]["repositories"] = json!(["acme/widgets", "acme/vault"]);
        config["llm"]["local_only_repositories"] = json!(["acme/vault"]);
    });
}

/// Has the near model look at the vault, and tell what it found.
fn looks_into_the_vault(world: &World) {
    let found = json!({
        "result": format!("It is made of a {WORD}: key.py:1."), "needs_next_loop": false, "why": "seen", "next_actions": [],
        "questions_for_user": [], "confidence": 0.9, "risk": "low",
    });
    world
        .model
        .for_task("Explain what the request asks about")
        .says(&found.to_string());
    world
        .model
        .for_task("A worker has looked into this")
        .says(&format!("Of a {WORD}."));
}

/// Returns a small picture.
fn picture() -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let seen = DynamicImage::ImageRgb8(RgbImage::new(30, 30));
    seen.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// Returns the classifier's answer that a message is talk.
fn is_talk() -> String {
    json!({ "route": "CHAT", "confidence": 0.9, "reason": "r", "evidence": [] }).to_string()
}

#[tokio::test]
async fn what_is_said_behind_local_stays_near_and_is_forgotten_at_cloud() {
    let slack = Slack::start().await;
    let (world, far) = with_a_far_chat(&slack).await;
    world.model.says(&is_talk()).says("It sleeps well.");
    far.says("I know of none.");
    let mut program = serves(&world, &slack).await;

    // The message that says so is sorted and answered near itself.
    let thread = slack.mentions(ALICE, &format!("/local\nthe {WORD} sleeps in the cellar"));
    program
        .until(&world, async { drop(slack.until_said("It sleeps well.").await) })
        .await;
    slack.replies(ALICE, &thread, "/cloud");
    program
        .until(&world, async {
            drop(slack.until_said("What was said here before is forgotten").await);
        })
        .await;
    slack.replies(ALICE, &thread, "/chat what sleeps there?");
    program
        .until(&world, async { drop(slack.until_said("I know of none.").await) })
        .await;
    assert_eq!((world.model.requests().len(), far.requests().len()), (2, 1));
    let messages = far.requests()[0].messages.len();
    assert_eq!(messages, 2, "the system prompt and the question alone");
    // Nothing was kept back meanwhile, so nothing is forgotten.
    slack.replies(ALICE, &thread, "/cloud");
    program
        .until(
            &world,
            slack.until(|slack| {
                slack
                    .texts()
                    .iter()
                    .any(|text| text == "Models elsewhere may be asked again.")
            }),
        )
        .await;
    far.finish();
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn what_is_found_in_a_confidential_repository_and_all_that_follows_stays_near() {
    let slack = Slack::start().await;
    let (mut world, far) = with_a_far_chat(&slack).await;
    has_a_vault(&mut world);
    looks_into_the_vault(&world);
    world.model.says(&is_talk()).says("Long enough.");
    far.says("I know of none.");
    let mut program = serves(&world, &slack).await;

    let thread = slack.mentions(ALICE, "/analyze github:acme/vault what is the key made of");
    let told = slack.until_said(&format!("Of a {WORD}.")).await.text;
    assert!(told.contains("about a confidential repository"), "{told}");
    // Neither the classifier nor the chat model elsewhere gets a word of what follows.
    slack.replies(ALICE, &thread, "hm, and how long is that");
    program
        .until(&world, async { drop(slack.until_said("Long enough.").await) })
        .await;
    assert_eq!(far.requests().len(), 0, "{}", far.dump());
    let asked = world.model.requests().pop().unwrap();
    assert!(asked.text().contains(WORD), "the near one remembers: {}", asked.text());
    // It is said once.
    let notices = slack.texts();
    let notices = notices.iter().filter(|text| text.contains("confidential repository"));
    assert_eq!(notices.count(), 1);

    slack.replies(ALICE, &thread, "/cloud");
    program
        .until(&world, async {
            drop(slack.until_said("What was said here before is forgotten").await);
        })
        .await;
    slack.replies(ALICE, &thread, "/chat what is it made of?");
    program
        .until(&world, async { drop(slack.until_said("I know of none.").await) })
        .await;
    assert_eq!(far.requests().len(), 1, "{}", far.dump());
    far.finish();
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn people_are_told_also_where_only_the_model_that_takes_over_is_elsewhere() {
    let slack = Slack::start().await;
    let mut world = world(&slack).await;
    has_a_vault(&mut world);
    let cloud = json!({
        "provider": "openai", "base_url": "https://models.example.com/v1", "api_key": "sk-cloud-0123456789",
        "model": "large",
    });
    world.configure(|config| {
        config["llm"]["models"] = json!({ "cloud": cloud });
        config["llm"]["openai"]["fallback"] = json!("cloud");
    });
    world.model.says("I am.");
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/chat are you there, acme/vault?");
    program
        .until(&world, async {
            let told = slack.until_said("I am.").await.text;
            assert!(told.contains("about a confidential repository"), "{told}");
        })
        .await;
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_model_named_for_the_work_hides_no_repository_behind_it() {
    let slack = Slack::start().await;
    let (mut world, far) = with_a_far_chat(&slack).await;
    has_a_vault(&mut world);
    world.configure(|config| config["chat"]["default_repository"] = json!("github:acme/vault"));
    greets(world.model.for_task("Greet the reader").plans(plan()));
    far.says("Hello.");
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/code near github:acme/widgets Greet the reader");
    program
        .until(&world, async {
            let told = slack.until_said("start as soon as a worker").await.text;
            assert!(!told.contains("confidential repository"), "{told}");
        })
        .await;
    // What is about that repository goes on elsewhere.
    slack.replies(ALICE, &thread, "/chat github:acme/widgets are you there?");
    program
        .until(&world, async { drop(slack.until_said("Hello.").await) })
        .await;
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    let issue = world.github.items().remove(0);
    issue.until(|issue| issue.labels() == super::DONE).await;
    far.finish();
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_confidential_repository_is_one_by_an_earlier_name_as_well() {
    let slack = Slack::start().await;
    let (mut world, far) = with_a_far_chat(&slack).await;
    let cellar = world.github.repository("acme/cellar");
    cellar.commit("main", "Add the key", &[("key.py", "# made of a heffalump\n")]);
    cellar.renames_to("vault");
    world.configure(|config| {
        config["github"]["repositories"] = json!(["acme/*"]);
        config["llm"]["local_only_repositories"] = json!(["acme/vault"]);
    });
    looks_into_the_vault(&world);
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/analyze github:acme/cellar what is the key made of");
    program
        .until(&world, async {
            drop(slack.until_said(&format!("Of a {WORD}.")).await);
        })
        .await;
    assert_eq!(far.requests().len(), 0, "{}", far.dump());
    far.finish();
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn of_a_confidential_conversation_only_the_persons_words_go_into_an_issue_elsewhere() {
    let slack = Slack::start().await;
    let (mut world, far) = with_a_far_chat(&slack).await;
    has_a_vault(&mut world);
    world.configure(|config| {
        for model in ["near", "far"] {
            config["llm"]["models"][model]["pictures"] = json!(true);
        }
        config["llm"]["openai"]["pictures"] = json!(true);
    });
    looks_into_the_vault(&world);
    let delegated = json!({
        "comment": "c",
        "command": { "tool": "chat/delegate", "args": { "route": "CODE", "task": format!("Say that it is a {WORD}.") } },
    });
    world.model.says(&delegated.to_string());
    greets(world.model.for_task("please fix that").says(&is_talk()).plans(plan()));
    let mut program = serves(&world, &slack).await;
    let text = "/analyze github:acme/vault what is the key made of";
    let thread = slack.sends_file(ALICE, text, "vault.png", "image/png", &picture());
    program
        .until(&world, async {
            drop(slack.until_said(&format!("Of a {WORD}.")).await);
        })
        .await;
    slack.replies(ALICE, &thread, "hm, please fix that");
    let told = slack.until_said("do not go with it").await.text;
    assert!(
        told.contains("vault.png (it was sent where a confidential repository was talked about)"),
        "{told}"
    );
    program
        .until(&world, async { drop(slack.until_said("nothing was checked").await) })
        .await;
    let issue = world.github.items().remove(0);
    assert_eq!(issue.title(), "hm, please fix that");
    assert!(!issue.text().contains(WORD), "{}", issue.text());
    issue.until(|issue| issue.labels() == super::DONE).await;
    far.finish();
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn a_model_takes_no_conversation_into_a_repository_that_nobody_named() {
    let slack = Slack::start().await;
    let (mut world, far) = with_a_far_chat(&slack).await;
    has_a_vault(&mut world);
    let delegated = |task: &str| {
        let args = json!({ "route": "ANALYZE", "task": task });
        json!({ "comment": "c", "command": { "tool": "chat/delegate", "args": args } }).to_string()
    };
    far.says(&delegated("github:acme/vault what is the key made of"));
    // The default repository is looked at, with the chat model elsewhere.
    let found = json!({
        "result": "There is no key.", "needs_next_loop": false, "why": "seen", "next_actions": [],
        "questions_for_user": [], "confidence": 0.9, "risk": "low",
    });
    let look = world
        .model
        .for_task("Explain what the request asks about")
        .says(&found.to_string());
    far.for_task("A worker has looked into this").says("There is none.");
    let mut program = serves(&world, &slack).await;
    slack.mentions(ALICE, "/chat what is the key made of?");
    program
        .until(&world, async { drop(slack.until_said("There is none.").await) })
        .await;
    let asked = world.model.requests().pop().unwrap();
    assert!(
        asked.system().contains("The repository: acme/widgets"),
        "{}",
        asked.system()
    );

    // Where the person names it, in whatever form, the model's wording counts; and all stays near.
    let delegated = delegated("github:acme/vault what is the key made of");
    world.model.for_task("and in acme/vault?").says(&delegated);
    look.says(&found.to_string());
    world
        .model
        .for_task("A worker has looked into this")
        .says("There is one.");
    slack.mentions(ALICE, "/chat and in acme/vault?");
    program
        .until(&world, async { drop(slack.until_said("There is one.").await) })
        .await;
    let systems: Vec<String> = world.model.requests().iter().map(Request::system).collect();
    assert!(
        systems
            .iter()
            .any(|system| system.contains("The repository: acme/vault")),
        "{systems:?}"
    );
    far.finish();
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn words_about_a_confidential_default_repository_are_refused_where_no_near_model_talks() {
    let slack = Slack::start().await;
    let (mut world, far) = with_a_far_chat(&slack).await;
    has_a_vault(&mut world);
    world.configure(|config| {
        config["chat"]["default_repository"] = json!("github:acme/vault");
        config["llm"]["roles"] = json!({ "chat": "far", "classifier": "far" });
    });
    far.says("Hello.");
    let mut program = serves(&world, &slack).await;
    for text in [
        "/chat is it of a heffalump?",
        "hm, of a heffalump?",
        "/chat github:acme/widgets of a heffalump, as http://git.example/acme/vault/key.py?",
    ] {
        let thread = slack.mentions(ALICE, text);
        let is_refused = |slack: &Slack| {
            let said = slack.said();
            let mut said = said.iter().filter(|message| message.thread.as_ref() == Some(&thread));
            said.any(|message| {
                message
                    .text
                    .contains("only models on our own machines may be asked here")
            })
        };
        program.until(&world, slack.until(is_refused)).await;
    }
    assert_eq!(far.requests().len(), 0, "{}", far.dump());
    // What is about another repository alone is answered as ever.
    slack.mentions(ALICE, "/chat github:acme/widgets are you there?");
    program
        .until(&world, async { drop(slack.until_said("Hello.").await) })
        .await;
    far.finish();
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn cloud_alone_counts_where_the_default_repository_is_confidential() {
    let slack = Slack::start().await;
    let (mut world, far) = with_a_far_chat(&slack).await;
    has_a_vault(&mut world);
    world.configure(|config| config["chat"]["default_repository"] = json!("github:acme/vault"));
    world.model.says("It is.");
    far.says("Hello.");
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, &format!("/chat is it of a {WORD}?"));
    program
        .until(&world, async { drop(slack.until_said("It is.").await) })
        .await;
    slack.replies(ALICE, &thread, "/cloud");
    let told = slack.until_said("What was said here before is forgotten").await.text;
    assert!(!told.contains("confidential repository"), "{told}");
    // What is about another repository alone goes elsewhere again.
    slack.replies(ALICE, &thread, "/chat github:acme/widgets are you there?");
    program
        .until(&world, async { drop(slack.until_said("Hello.").await) })
        .await;
    assert_eq!((world.model.requests().len(), far.requests().len()), (1, 1));
    far.finish();
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn what_was_said_of_a_repository_stays_near_from_when_that_is_confidential() {
    let slack = Slack::start().await;
    let (mut world, far) = with_a_far_chat(&slack).await;
    far.says("A good one.");
    world.model.says("No better one.");
    let mut program = serves(&world, &slack).await;
    let thread = slack.mentions(ALICE, "/chat is acme/vault a good name?");
    program
        .until(&world, async { drop(slack.until_said("A good one.").await) })
        .await;
    program.signal("TERM");
    assert_eq!(program.ended().await.code, Some(0));

    has_a_vault(&mut world);
    let mut program = serves(&world, &slack).await;
    slack.replies(ALICE, &thread, "/chat is there a better one?");
    program
        .until(&world, async { drop(slack.until_said("No better one.").await) })
        .await;
    assert_eq!((world.model.requests().len(), far.requests().len()), (1, 1));
    far.finish();
    ends(program, world, &slack).await;
}

#[tokio::test]
async fn no_issue_is_opened_under_local_whose_run_may_ask_somebody_elsewhere() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change); 4] = [
        ("/code Greet the reader", |config| {
            config["llm"]["openai"]["fallback"] = json!("cloud");
        }),
        ("/code Greet the reader", |config| {
            config["llm"]["roles"] = json!({ "reviewer": "critic" });
        }),
        ("/code Greet the reader", |config| {
            config["index"] = json!({ "embeddings": "cloud" });
        }),
        ("/code near Greet the reader", |_| {}),
    ];
    for (text, change) in cases {
        let slack = Slack::start().await;
        let mut world = world(&slack).await;
        let near = json!({
            "provider": "openai", "base_url": world.model.openai_address(), "api_key": MODEL_KEY, "model": "scripted",
            "fallback": "cloud",
        });
        let cloud = json!({
            "provider": "openai", "base_url": "https://models.example.com/v1", "api_key": "sk-cloud-0123456789",
            "model": "large",
        });
        let critic = json!({ "provider": "command", "command": ["cat"] });
        world.configure(|config| {
            config["llm"]["models"] = json!({ "near": near, "cloud": cloud, "critic": critic });
            change(config);
        });
        let mut program = serves(&world, &slack).await;
        let thread = slack.mentions(ALICE, "/local");
        program
            .until(&world, async {
                drop(slack.until_said("only models on our own machines").await);
            })
            .await;
        slack.replies(ALICE, &thread, text);
        program
            .until(&world, async {
                drop(slack.until_said("CODE needs a model that is not").await);
            })
            .await;
        assert_eq!(world.github.items().len(), 0, "{}", world.story());
        ends(program, world, &slack).await;
    }
}
