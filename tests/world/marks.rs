//! Redaction in files: what is hidden from the model stays in the file, and a redaction mark is
//! never written over the value it stands for.

use serde_json::{Value, json};

use crate::fake::model::Plan;
use crate::world::World;

/// Returns a token built from parts, so that no scanner takes this file for a leak.
fn token() -> String {
    format!("ghp_{}", "Ab3dEf6hIj9lMn2p".repeat(3))
}

/// A piece of [`long_token`].
pub const PIECE: &str = "x1200x1201";

/// Returns a token that is long enough to lie where a text is cut. It is built from parts as well.
pub fn long_token() -> String {
    let pieces: Vec<String> = (1_000..1_250).map(|number: u32| format!("x{number}")).collect();
    format!("ghp_{}", pieces.concat())
}

fn outputs(results: &str) -> Vec<String> {
    let results: Value = serde_json::from_str(results).unwrap();
    // One result stands alone.
    let several = results["previous_output"].as_array().cloned();
    let results = several.unwrap_or_else(|| vec![results]);
    let outputs = results
        .iter()
        .map(|result| result["output"].as_str().unwrap().to_owned());
    outputs.collect()
}

#[tokio::test]
async fn a_mark_is_not_written_over_a_real_value_and_a_file_as_it_was_shown_keeps_its_own() {
    let world = World::start().await;
    let settings = format!("port = 1\ntoken = {}\nname = \"old\"\n", token());
    let notes = "Shown as [redacted:github-token].\n";
    world.github.default_repository().commit(
        "main",
        "Settings",
        &[("settings.toml", settings.as_str()), ("notes.md", notes)],
    );
    world.model.forbids(&token());
    let shown = "port = 2\ntoken = [redacted:github-token]\nname = \"new\"\n";
    let copied = shown.replace("\ntoken", "\ncopy");
    let replace = |old: &str, new: &str| json!({"path": "settings.toml", "old": old, "new": new});
    world
        .model
        .plans(Plan::of(&["rename"]).in_environment("python"))
        .calls("workspace/read_file", json!({"path": "settings.toml"}))
        .calls_all([
            (
                "workspace/write_file",
                json!({"path": "settings.toml", "content": copied, "mode": "overwrite"}),
            ),
            (
                "workspace/str_replace",
                replace("token = [redacted:github-token]\nname = \"old\"", "name = \"new\""),
            ),
            (
                "workspace/insert",
                json!({"path": "settings.toml", "line": 1, "text": "copy = [redacted:github-token]\n"}),
            ),
            // Here the file holds the words itself.
            (
                "workspace/write_file",
                json!({"path": "notes.md", "content": format!("# Notes\n{notes}"), "mode": "overwrite"}),
            ),
        ])
        .calls(
            "workspace/write_file",
            json!({"path": "settings.toml", "content": shown, "mode": "overwrite"}),
        )
        .done("Renamed.");
    world.github.open_issue("Rename it").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    assert_eq!(
        outputs(&requests[2].last_user_message()),
        ["port = 1\ntoken = [redacted:github-token]\nname = \"old\"\n"]
    );
    let answers = outputs(&requests[3].last_user_message());
    insta::assert_snapshot!(answers[0], @r#"redaction_mark 403: nothing was written to "settings.toml": `[redacted:github-token]` stands in what you were shown for a value that is hidden from you, the file holds the value itself. Leave that line as it is and change the lines around it with str_replace or a command (sed), without the mark; where a value is to be set, read it from the environment"#);
    assert_eq!(answers[1..3], [answers[0].clone(), answers[0].clone()]);
    assert_eq!(answers[3], "overwrote notes.md");
    assert_eq!(outputs(&requests[4].last_user_message()), ["overwrote settings.toml"]);
    let pull = &world.github.pulls()[0];
    let changed = settings.replace("port = 1", "port = 2").replace("\"old\"", "\"new\"");
    assert_eq!(pull.file("settings.toml"), Some(changed));
    assert_eq!(pull.file("notes.md"), Some(format!("# Notes\n{notes}")));
    world.finish().await;
}
