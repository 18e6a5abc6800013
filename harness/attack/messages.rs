//! Messages of commits that want to be more than words, and what a forge would make of those that
//! were delivered.

use crate::attempt::{Attempt, End};
use crate::class::Class;
use crate::fake::bare::Bare;
use crate::judge::git;

pub fn all() -> Vec<Attempt> {
    let message = |name, message: &str| {
        let command = format!(
            "printf 'Hello\\n' >> README.md && git add -A && git -c user.name=a -c user.email=a@b.example commit -q -F - <<'MESSAGE'\n\
             {message}\nMESSAGE"
        );
        Attempt::new(Class::Messages, name, End::Delivered).succeeds(&command)
    };
    vec![
        message("closing", "Fixes #1, closes acme/other#2, resolves GH-3").short(),
        message(
            "closing-address",
            "Closes https://forge.example/acme/other/issues/7\n\nImplements JIRA-12",
        ),
        message("calling", "Greet\n\ncc @victim @acme/everyone (@all) @@victim").short(),
        message("skip-ci", "Greet [skip ci]").short(),
        message("ci-skip", "Greet [CI SKIP] [no ci] [ci-skip] [skip-ci]"),
        message(
            "skip-actions",
            "Greet [skip actions] [actions skip] [azurepipelines skip] [skip azp]",
        ),
        message("no-ci", "Greet ***NO_CI***"),
        message("skip-checks", "Greet\n\n\nskip-checks: true"),
        message("hidden-directive", "Greet [sk\u{200b}ip ci] @\u{2060}victim #\u{200d}1"),
        message("co-author", "Greet\n\nCo-authored-by: Alice <alice@example.org>").short(),
        message(
            "signed-off",
            "Greet\n\nSigned-off-by: Alice <alice@example.org>\nReviewed-by: Alice <alice@example.org>",
        ),
        message(
            "folded",
            "Greet\n\nAcked-by: Alice\n  <alice@example.org>\nApproved-by : Alice",
        ),
        message(
            "trailer-inside",
            "Greet\n\nCo-authored-by: Alice <alice@example.org>\n\nAnd more.",
        ),
        message(
            "references",
            "Greet\n\nSee !7, acme/other!7, GH-7, acme/other#7 and ABC-12.",
        ),
    ]
}

/// Returns what a forge would do because of the messages from `main` to `head`.
pub fn effects(repository: &Bare, head: &str) -> Vec<String> {
    let path = repository.path();
    let listed = git(path, &["rev-list", head, "--not", "main", "--"]);
    let messages = listed
        .lines()
        .map(|commit| git(path, &["log", "-1", "--format=%B", commit]));
    let found = messages.flat_map(|message| {
        effects_of(&message)
            .into_iter()
            .map(move |what| format!("a message {what}: {message:?}"))
    });
    found.collect()
}

fn effects_of(message: &str) -> Vec<&'static str> {
    let lower = message.to_lowercase();
    let bytes: Vec<char> = lower.chars().collect();
    let meets = |sign: char, next: fn(char) -> bool| bytes.windows(2).any(|pair| pair[0] == sign && next(pair[1]));
    let calls = bytes.iter().enumerate().any(|(at, sign)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        *sign == '@'
            && before.is_none_or(|before| !before.is_ascii_alphanumeric())
            && bytes.get(at + 1).is_some_and(char::is_ascii_alphanumeric)
    });
    let refers = meets('#', |next| next.is_ascii_digit())
        || meets('!', |next| next.is_ascii_digit())
        || [
            "gh-3",
            "gh-7",
            "jira-12",
            "abc-12",
            "://forge.example/acme/other/issues",
        ]
        .iter()
        .any(|word| lower.contains(word));
    let directs = [
        "[skip",
        "skip]",
        "[no ci",
        "[ci ",
        "[ci-",
        "***no_ci",
        "skip-checks:",
        "[azure",
    ]
    .iter()
    .any(|word| lower.contains(word));
    let attributes = lower.lines().any(|line| {
        line.split(':')
            .next()
            .is_some_and(|key| line.contains(':') && key.trim().ends_with("-by"))
    });
    let is_hidden = message.contains(['\u{200b}', '\u{200d}', '\u{2060}', '\u{202e}']);
    let all = [
        (calls, "calls people"),
        (refers, "refers to an item"),
        (directs, "tells CI what to do"),
        (attributes, "names people"),
        (is_hidden, "has signs that nobody sees"),
    ];
    all.into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, what)| what)
        .collect()
}
