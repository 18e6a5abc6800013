//! Texts as people read them, with everything replaced that differs from run to run.

use std::sync::LazyLock;

use regex::Regex;

use crate::fake::{github, gitlab};
use crate::world::World;

/// Returns `text` without addresses, ids, times and counts of tokens.
pub fn told(world: &World, text: &str) -> String {
    static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "RUN"),
            (
                r"[\d,]+ tokens in( \([\d,]+ from the cache\))?, [\d,]+ out(?<cost> · \$[\d.]+)? · (\d+ min )?\d+ (s|min)\b",
                "TOKENS$cost · TIME",
            ),
            (r"\b([0-9a-f]{64}|[0-9a-f]{16})\b", "DIGEST"),
            (r"data-[0-9a-f]{8}", "data-FENCE"),
            (r"gate-[0-9a-f-]{36}:(\d+|asked)", "GATE"),
            (r", \d+ ms\]", ", TIME]"),
            // The fakes number everything, edits by the clock too.
            (r"reply-(comment|inline|review)-\d+", "reply-$1-N"),
            // Between these marks the program owns the text of a request.
            (r"( *\|)? *<!-- coding-agent:(summary|result)[^>]*-->\n( *\|)?\n", ""),
            (r"( *\|)?\n *(\| )?<!-- coding-agent:end -->(\n|$)", ""),
            // What breaks a mention is not seen; here it is.
            ("\u{200b}", "~"),
            (r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME"),
        ]
        .map(|(pattern, name)| (Regex::new(pattern).unwrap(), name))
        .into()
    });
    PATTERNS.iter().fold(world.settled(text), |text, (pattern, name)| {
        pattern.replace_all(&text, *name).into_owned()
    })
}

/// Returns the bot's last comment on an item of GitHub.
pub fn last_on_github(world: &World, item: &github::Item) -> String {
    told(world, &item.comments_of(world.github.bot()).pop().unwrap_or_default())
}

/// Returns the bot's last comment on an item of GitLab.
pub fn last_on_gitlab(world: &World, item: &gitlab::Item) -> String {
    told(world, &item.comments_of(world.gitlab.bot()).pop().unwrap_or_default())
}
