//! The manifest of which people make a Slack app asks for all that the program hears with it.

use serde_json::Value;

use crate::{blocks, documents, read};

#[test]
fn people_can_write_directly_to_an_app_that_is_made_of_the_manifest() {
    let mut found = 0;
    for path in documents() {
        for (_, block) in blocks(&read(&path)).into_iter().filter(|(kind, _)| kind == "json") {
            let Ok(manifest) = serde_json::from_str::<Value>(&block) else {
                continue;
            };
            let events = &manifest["settings"]["event_subscriptions"]["bot_events"];
            let hears = |event: &str| {
                events
                    .as_array()
                    .is_some_and(|events| events.iter().any(|one| one == event))
            };
            if !hears("message.im") {
                continue;
            }
            found += 1;
            let home = &manifest["features"]["app_home"];
            let is_open = home["messages_tab_enabled"] == true && home["messages_tab_read_only_enabled"] == false;
            assert!(is_open, "{path}: Slack lets nobody write to such an app: {home}");
        }
    }
    assert_eq!(found, 1, "the manifest was not found, or stands at several places");
}
