//! Readers of the deliveries of messengers, and of the pictures that people send there.

use chrono::DateTime;
use coding_agent::messenger::config::Slack;
use coding_agent::messenger::line;
use coding_agent::messenger::place::{Body, Incoming};
use coding_agent::messenger::slack;
use coding_agent::messenger::slack::request::RequestContent;
use coding_agent::picture::{links, prepared};
use coding_agent::routing::decision::{self, Step};
use coding_agent::routing::rules::Rules;

use super::text;

/// The longest edge of a picture that a model is shown; `MOST_BYTES` limits its size.
const LONGEST_EDGE: u32 = 1_568;
const MOST_BYTES: usize = 1_000_000;

/// Reads the bodies of Slack and LINE, behind their signatures, and finds the route of what is said
/// in them.
pub fn messages(bytes: &[u8]) {
    let config = Slack {
        channels: vec!["C1".to_owned()],
        ..Slack::default()
    };
    for kind in ["application/json", "application/x-www-form-urlencoded"] {
        match slack::request::read(kind, bytes) {
            Some(RequestContent::Challenge(challenge)) => assert!(challenge.chars().count() <= 200),
            Some(RequestContent::Payload(payload)) => {
                if let Some(incoming) = slack::heard(&payload, &config, "UBOT") {
                    holds(&incoming);
                }
            }
            None => {}
        }
    }
    if let Ok(all) = line::request::read(bytes, DateTime::UNIX_EPOCH) {
        assert!(all.len() <= 100);
        all.iter().for_each(holds);
    }
}

/// Checks that nothing that a messenger says becomes more than a plain name, and that no text is
/// without end.
fn holds(incoming: &Incoming) {
    let is_plain = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    assert!(is_plain(&incoming.user) && incoming.user.len() <= 64, "{incoming:?}");
    assert!(is_plain(&incoming.place.channel), "{incoming:?}");
    assert!(
        !incoming.place.to_string().contains(char::is_whitespace),
        "{incoming:?}"
    );
    assert!(incoming.id.len() < 300, "{incoming:?}");
    assert!(incoming.attached.len() <= 10, "{incoming:?}");
    for attached in &incoming.attached {
        assert!(attached.name.chars().count() <= 80 && !attached.name.contains(char::is_control));
    }
    let Body::Text { text } = &incoming.body else { return };
    assert!(text.chars().count() <= 20_000);
    let message = decision::Incoming {
        text,
        local_only: true,
        far: &[],
        models: &[],
        enters_as_chat: false,
    };
    if let Step::Decided(decided) = decision::decide(&message, Rules::shipped()) {
        assert!(decided.request.len() <= text.len());
    }
}

/// Reads a picture, or bytes that are none, and the addresses of pictures in a text.
pub fn picture(bytes: &[u8]) {
    if let Ok(picture) = prepared(bytes, "a picture") {
        assert!(picture.width <= LONGEST_EDGE && picture.height <= LONGEST_EDGE);
        assert!(picture.bytes().len() <= MOST_BYTES);
        // What is shown is a picture itself, as large as it is said to be.
        let again = prepared(picture.bytes(), "again");
        assert!(again.is_ok_and(|again| (again.width, again.height) == (picture.width, picture.height)));
    }
    let text = text(bytes);
    for address in links(&text) {
        assert!(
            !address.is_empty() && !address.contains(char::is_whitespace),
            "{address:?}"
        );
    }
}
