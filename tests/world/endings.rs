//! How runs end when something is not as it should be. Each story looks at the whole of what is
//! left for people: the exit code, the labels, and every comment of the program's own, word for
//! word.

mod deliveries;
mod engines;
mod environments_chosen;
mod forge_trouble;
mod limits;
mod merges;
mod model_trouble;
mod prompts;
mod providers;
mod replies;
mod repositories;
mod servers;
mod unbrought_work;
mod verification;
mod withdrawals;
mod wrong_configuration;

use regex::Regex;

use crate::fake::github::Item;
use crate::world::scripts::{executes, greets, plan, writes};
use crate::world::{Ended, World};

/// Opens the issue that most stories are about.
fn greeting(world: &World) -> Item {
    world
        .github
        .open_issue("Greet the reader")
        .body("Say hello.")
        .label("coding agent")
}

/// Tells how a command ended and what it left on an item.
fn told(ended: &Ended, item: &Item) -> String {
    let code = ended.code.map_or_else(|| "none".to_owned(), |code| code.to_string());
    format!("exit code: {code}\n{}", left_on(item))
}

/// Tells what people see on an item: its labels, and what the program wrote.
fn left_on(item: &Item) -> String {
    let mut text = format!("labels: {}\n", item.labels().join(", "));
    for comment in item.comments().iter().filter(|comment| comment.author != "alice") {
        text.push_str("-----\n");
        text.push_str(&comment.body);
        text.push('\n');
    }
    steady(&text)
}

/// Tells what a pull request offers.
fn offered(pull: &Item) -> String {
    let kind = if pull.is_draft() { "draft" } else { "pull request" };
    let text = format!(
        "{kind} from {} into {}: {}\n-----\n{}\n",
        pull.head(),
        pull.base(),
        pull.title(),
        pull.text()
    );
    steady(&text)
}

/// Makes the same what differs from run to run.
fn steady(text: &str) -> String {
    let patterns = [
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
            "<run>",
        ),
        (r"data-[0-9a-f]{8}", "data-<run>"),
        // Between these marks the program owns the text of a request.
        (r"<!-- coding-agent:(summary|result)[^>]*-->\n\n", ""),
        (r"\n\n<!-- coding-agent:end -->", ""),
        (r"[\d,]+ tokens in( \([\d,]+ from the cache\))?, [\d,]+ out", "<tokens>"),
        (r" · (\d+ min )?\d+ (s|min)\b", " · <time>"),
        (r"\d+ ms\b", "<time>"),
        (r"127\.0\.0\.1:\d+", "<address>"),
        (r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}(:\d{2})?( UTC)?", "<time>"),
    ];
    patterns.iter().fold(text.to_owned(), |text, (pattern, replacement)| {
        Regex::new(pattern)
            .unwrap()
            .replace_all(&text, *replacement)
            .into_owned()
    })
}
