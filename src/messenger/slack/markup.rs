//! Texts as Slack writes and reads them.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Value, json};

use super::super::words::{Words, split, visible};
use super::LONGEST;
use crate::secret::Clean;

/// Most characters of a section.
const LONGEST_SECTION: usize = 3_000;
/// Most buttons of a message.
const MOST_BUTTONS: usize = 5;
/// Most characters of a button's label.
const LONGEST_LABEL: usize = 75;

#[expect(clippy::expect_used, reason = "the expression is part of the program")]
static ENTITY: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"<([^<>\s|]+)(?:\|([^<>]*))?>([^\S\n]*)").expect("it is right"));
#[expect(clippy::expect_used, reason = "the expression is part of the program")]
static BOLD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\*\*([^*\n]+)\*\*").expect("it is right"));
#[expect(clippy::expect_used, reason = "the expression is part of the program")]
static HEADING: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)^#{1,6} +(.+)$").expect("it is right"));

#[expect(clippy::expect_used, reason = "the expression is part of the program")]
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"https?://[^\s<>|`*]+[^\s<>|`*.,;:!?)]").expect("it is right"));

/// Returns what somebody wrote, without the bot's name and with links and names as they are seen.
/// Where a line begins with the bot's name, it begins with what follows: behind white space a
/// command would be no command.
pub(super) fn plain(text: &str, own: &str) -> String {
    let seen = ENTITY.replace_all(text, |found: &Captures<'_>| {
        let (what, label, space) = (&found[1], found.get(2).map(|label| label.as_str()), &found[3]);
        let begins_a_line = found.get(0).is_some_and(|all| {
            let before = &text[..all.start()];
            before.is_empty() || before.ends_with('\n')
        });
        let seen = match what.split_at_checked(1) {
            Some(("@", user)) if user == own && begins_a_line => return String::new(),
            Some(("@", user)) if user == own => String::new(),
            Some(("@", user)) => format!("@{}", label.unwrap_or(user)),
            Some(("#", channel)) => format!("#{}", label.unwrap_or(channel)),
            Some(("!", special)) => label.unwrap_or(special).to_owned(),
            // The label may say another address than the link has.
            _ => what.to_owned(),
        };
        seen + space
    });
    let seen = seen.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let lines: Vec<&str> = seen.trim().lines().collect();
    lines.join("\n")
}

/// Returns the body of a message: its text with all signs that Slack acts on disarmed, once for
/// notifications and once as sections with buttons. What does not fit one section goes on in the
/// next: people decide by what is above the buttons, so nothing of it is left out.
pub(super) fn message(text: &Clean, words: &Words) -> Value {
    let shown = escaped(text.as_str());
    // Escapes are longer than what they stand for.
    let sections = split(&shown, LONGEST_SECTION);
    let is_short = sections.len() == 1;
    let section =
        |text: String| json!({ "type": "section", "text": { "type": "mrkdwn", "text": text, "verbatim": true } });
    let mut blocks: Vec<Value> = sections.into_iter().map(section).collect();
    let buttons = words.buttons.iter().take(MOST_BUTTONS).zip(0..).map(|(button, place)| {
        let label: String = button.label.chars().take(LONGEST_LABEL).collect();
        let mut element = json!({
            "type": "button",
            "action_id": format!("answer-{place}"),
            "text": { "type": "plain_text", "text": label },
            "value": button.value,
        });
        if button.is_dangerous {
            element["style"] = json!("danger");
        }
        element
    });
    let buttons: Vec<Value> = buttons.collect();
    if !buttons.is_empty() {
        blocks.push(json!({ "type": "actions", "elements": buttons }));
    }
    let mut body = json!({ "text": shown, "unfurl_links": false, "unfurl_media": false, "parse": "none" });
    if is_short || !words.buttons.is_empty() {
        body["blocks"] = json!(blocks);
    }
    body
}

/// Escapes what Slack would take for a mention or a link, and writes bold and headings as it does.
fn escaped(text: &str) -> String {
    let text = visible(text);
    let text: String = text.chars().take(LONGEST).collect();
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let text = HEADING.replace_all(&text, "*$1*");
    let text = BOLD.replace_all(&text, "*$1*");
    let text = ADDRESS.replace_all(&text, "<$0>");
    // Quotations stay what they are at the beginning of a line.
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            line.strip_prefix("&gt; ")
                .map_or_else(|| line.to_owned(), |rest| format!("> {rest}"))
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messenger::words::Button;
    use crate::secret::Redactor;

    #[test]
    fn what_people_write_is_read_as_they_see_it() {
        for (written, read) in [
            ("<@UBOT> /code fix", "/code fix"),
            ("<@UBOT>\n/code fix", "/code fix"),
            ("see:\n<@UBOT>  /local a\nb <@UBOT> c", "see:\n/local a\nb  c"),
            ("hi <@U2|bob> in <#C1|general>", "hi @bob in #general"),
            ("<https://a.example/x|https://b.example>", "https://a.example/x"),
            ("<!channel> a &lt;b&gt; &amp;amp;", "channel a <b> &amp;"),
        ] {
            assert_eq!(plain(written, "UBOT"), read);
        }
    }

    #[test]
    fn all_of_a_text_is_above_its_buttons() {
        let button = Button {
            label: "Approve".to_owned(),
            value: "v".to_owned(),
            is_dangerous: false,
        };
        let words = Words {
            text: String::new(),
            buttons: vec![button],
        };
        let text = "a & b\n".repeat(400);
        let body = message(&Redactor::new(&[]).clean(&text), &words);
        let blocks = body["blocks"].as_array().unwrap();
        let (buttons, sections) = blocks.split_last().unwrap();
        assert_eq!(buttons["type"], "actions");
        let sections: Vec<&str> = sections
            .iter()
            .filter_map(|block| block["text"]["text"].as_str())
            .collect();
        assert!(
            sections
                .iter()
                .all(|section| section.chars().count() <= LONGEST_SECTION)
        );
        assert_eq!(sections.join("\n").matches("a &amp; b").count(), 400);
        // Without buttons the text itself is shown.
        let body = message(&Redactor::new(&[]).clean(&text), &Words::default());
        assert_eq!(body["blocks"], Value::Null);
    }

    #[test]
    fn nothing_that_is_said_mentions_anybody() {
        let redactor = Redactor::new(&[]);
        let words = Words::default();
        let body = message(
            &redactor.clean("## Hi\n<!channel> **bold** <@U1> \u{202e}x\n> said"),
            &words,
        );
        assert_eq!(body["text"], "*Hi*\n&lt;!channel&gt; *bold* &lt;@U1&gt; x\n> said");
        assert_eq!(body["parse"], "none");
        let link = message(&redactor.clean("see https://a.example/x?b=1&c=2."), &words);
        assert_eq!(link["text"], "see <https://a.example/x?b=1&amp;c=2>.");
    }
}
