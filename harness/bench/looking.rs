//! How long a planner looks for the place of its task, with the code index and without.
//!
//! The planner is a script that knows nothing: it lists the files, searches for one word of the
//! issue's title after the other, and reads each file that a search names, until it has seen the
//! function that the issue is about. What it is shown decides how many requests that takes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Mutex;

use anyhow::Context;
use serde_json::json;

use crate::fake::model::{Answer, Model, Plan, Request};
use crate::figure::Figure;
use crate::sent;
use crate::site::Site;

const TITLE: &str = "Connections wait longer after each failed attempt than they should";
/// The function that the issue is about, and its file.
const WANTED: &str = "def backoff_delay";
const PACKAGES: usize = 10;
const FILES: usize = 12;

/// The state of the scripted planner.
#[derive(Default)]
struct Looking {
    has_listed: bool,
    searched: usize,
    read: BTreeSet<String>,
    /// Requests of the planner and their tokens.
    requests: f64,
    tokens: f64,
    has_planned: bool,
}

pub async fn measure() -> anyhow::Result<Vec<Figure>> {
    let with = planned(true).await?;
    let without = planned(false).await?;
    Ok(vec![
        Figure::of("planning, requests until the plan", "", &[with.0])?.beside(&[without.0]),
        Figure::of("planning, tokens until the plan", "tokens", &[with.1])?.beside(&[without.1]),
    ])
}

/// Returns requests and tokens of the planner.
async fn planned(has_index: bool) -> anyhow::Result<(f64, f64)> {
    let looking = std::sync::Arc::new(Mutex::new(Looking::default()));
    let shared = std::sync::Arc::clone(&looking);
    let model = Model::answering(move |request: &Request| match shared.lock() {
        Ok(mut looking) => looking.answer(request),
        Err(_) => Answer::done("broken"),
    })
    .await;
    let site = Site::new(&model).await?.configured(|config| {
        config["index"] = json!({ "enabled": has_index });
        // Without the index it takes more than the planner has by default.
        config["planning"] = json!({ "max_look_turns": 100 });
    })?;
    let files = project();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    site.github
        .default_repository()
        .git()
        .commit("main", "main", "Grow", &files);
    site.github.open_issue(TITLE).label("coding agent");
    site.deliver().await?;
    let looking = looking.lock().ok().context("the planner broke")?;
    anyhow::ensure!(looking.has_planned, "the planner made no plan");
    Ok((looking.requests, looking.tokens))
}

impl Looking {
    fn answer(&mut self, request: &Request) -> Answer {
        if self.has_planned {
            return if self.read.insert("done".to_owned()) {
                Answer::calls("workspace/write_file", crate::turns::file("A line.\n"))
            } else {
                Answer::done("The note is written.")
            };
        }
        self.requests += 1.0;
        self.tokens += sent::tokens(request);
        let text = request.text();
        if text.contains(WANTED) && self.has_read(&text) {
            self.has_planned = true;
            self.read.clear();
            return Answer::plans(
                Plan::of(&["mend the delay"])
                    .in_environment("python")
                    .verified_by("test -s NOTES.md"),
            );
        }
        if let Some(path) = self.next_file(&text) {
            self.read.insert(path.clone());
            return Answer::calls("repository/read_file", json!({ "path": path }));
        }
        if !self.has_listed {
            self.has_listed = true;
            return Answer::calls("repository/list_files", json!({}));
        }
        let word = TITLE
            .split(' ')
            .filter(|word| word.len() > 3)
            .nth(self.searched)
            .unwrap_or("def");
        self.searched += 1;
        Answer::calls("repository/search", json!({ "pattern": word }))
    }

    /// True once a file that was read had the function.
    fn has_read(&self, text: &str) -> bool {
        !self.read.is_empty() && text.contains("return min(limit, base * 2 ** attempts)")
    }

    /// Returns the first file that a place or a line was shown of, and that was not read yet.
    fn next_file(&self, text: &str) -> Option<String> {
        // Results are JSON, in which a line break is an 'n' behind a backslash.
        let words = text.split(|letter: char| letter.is_whitespace() || "\"\\<>(),".contains(letter));
        let mut paths = words.filter_map(|word| {
            let (path, line) = word.split_once(':')?;
            let is_place =
                path.rsplit('.').next() == Some("py") && line.starts_with(|digit: char| digit.is_ascii_digit());
            is_place.then(|| path.trim_start_matches('n').to_owned())
        });
        paths.find(|path| !self.read.contains(path))
    }
}

/// Returns a project whose words are everywhere, and whose task has one place.
fn project() -> Vec<(String, String)> {
    let nouns = [
        "request", "session", "cache", "header", "cookie", "proxy", "stream", "timer", "token", "route",
    ];
    let mut files = Vec::new();
    for (package, noun) in nouns.iter().enumerate().take(PACKAGES) {
        for number in 0..FILES {
            let mut text = format!("\"\"\"Parts of a {noun}.\"\"\"\n\n");
            for step in 0..8 {
                let _ = write!(
                    text,
                    "def {noun}_step_{step}(value, attempt):\n    # A failed {noun} is tried again; connections wait for it.\n    \
                     if not value:\n        raise ValueError(\"failed {noun} {number}\")\n    return value + attempt\n\n\n"
                );
            }
            if (package, number) == (7, 5) {
                text.push_str(
                    "def backoff_delay(attempts, base=1, limit=60):\n    \"\"\"Seconds that a connection waits after each failed \
                     attempt, longer each time.\"\"\"\n    return min(limit, base * 2 ** attempts)\n",
                );
            }
            files.push((format!("{noun}/part_{number}.py"), text));
        }
    }
    files
}
