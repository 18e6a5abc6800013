//! Personal data before models: masked where the model is not near, and only there.

use serde_json::json;

use crate::world::World;
use crate::world::scripts::{greets, plan};

const TEXT: &str = "Taro (taro@acme.co.jp, 090-1234-5678) pays by 4111 1111 1111 1111; his number is 1234 5678 9018.";
const DATA: [&str; 4] = [
    "taro@acme.co.jp",
    "090-1234-5678",
    "4111 1111 1111 1111",
    "1234 5678 9018",
];

/// Has an issue with personal data worked on by a model at this host, and returns what it was sent.
async fn sent_to(host: &str, pii: &str) -> (World, String) {
    let mut world = World::start().await;
    let address = world.model.openai_address().replace("127.0.0.1", host);
    world.configure(|config| {
        config["llm"]["openai"]["base_url"] = json!(address);
        config["secret"] = json!({ "pii": pii });
    });
    greets(world.model.plans(plan().verified_by("grep -q Hello README.md")));
    let issue = world.github.open_issue("Greet Taro").body(TEXT).label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let seen: Vec<String> = world.model.requests().into_iter().map(|request| request.seen).collect();
    (world, seen.join("\n"))
}

#[tokio::test]
async fn a_model_that_is_not_near_gets_marks_in_the_place_of_personal_data() {
    // This address leads here, and is not one of a private network.
    let (world, sent) = sent_to("0.0.0.0", "mask").await;
    for data in DATA {
        assert!(!sent.contains(data), "{data} was sent");
    }
    for mark in ["email", "telephone", "card", "my-number"] {
        assert!(sent.contains(&format!("[redacted:{mark}]")), "{mark} is not in\n{sent}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_near_model_and_one_that_nothing_is_kept_from_get_it_all() {
    for (host, pii) in [("127.0.0.1", "mask"), ("0.0.0.0", "off")] {
        let (world, sent) = sent_to(host, pii).await;
        for data in DATA {
            assert!(sent.contains(data), "{data} was not sent to {host} with {pii}");
        }
        world.finish().await;
    }
}
