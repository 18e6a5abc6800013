//! The repository that a message is about.

use crate::chat::desk::Desk;
use crate::routing::{command, text};

/// Most parts of a path or an address that are looked at.
const MOST_PARTS: usize = 12;
/// Most commands of a message that stand before what it is about: `/local`, and that of a route.
const MOST_COMMANDS: usize = 2;

/// Returns the repository that a request is about, and the request without it: the one that the
/// person's words begin with, the one that a model's wording of them begins with where the person
/// names it anywhere but in a quotation, or the default one.
///
/// A model that chose it freely could be told by anybody to show a conversation what only some of
/// its people may see.
pub(super) fn repository<'a>(desk: &Desk, own: &str, request: &'a str) -> (Option<String>, &'a str) {
    let (by_model, rest) = at_the_beginning(desk, request);
    let (by_person, _) = at_the_beginning(desk, own);
    let said = text::own_text(own);
    let is_named = |repository: &&str| names(&said).any(|name| name.eq_ignore_ascii_case(path_of(repository)));
    let named = by_person.or(by_model.filter(is_named)).map(str::to_owned);
    let repository = named.or_else(|| desk.service.config().chat.default_repository.clone());
    (repository, rest)
}

/// Returns the repository that a request begins with, if it does, and the rest.
fn at_the_beginning<'a>(desk: &Desk, request: &'a str) -> (Option<&'a str>, &'a str) {
    let end = request.find(char::is_whitespace).unwrap_or(request.len());
    let word = request[..end].trim_end_matches(':');
    match desk.service.forge_of(word) {
        Some(_) => (Some(word), request[end..].trim_start()),
        None => (None, request),
    }
}

/// Returns the path of a repository such as `github:owner/repo`.
pub(super) fn path_of(repository: &str) -> &str {
    repository.split_once(':').map_or(repository, |(_, path)| path)
}

/// Returns the rule that keeps a message on near models: that of a confidential repository which it
/// names in any form, or of the default one unless it begins with another.
///
/// It is looked for before any model reads the message, which is itself what the repository's work
/// is about.
pub(in crate::chat) fn near_rule(desk: &Desk, message: &str) -> Option<String> {
    let named = names(message).find_map(|name| desk.rule(&name));
    named.or_else(|| {
        let mut request = message.to_owned();
        for _ in 0..MOST_COMMANDS {
            request = command::read(&request).map_or(request, |command| command.rest);
        }
        let default = desk.service.config().chat.default_repository.as_deref();
        let default = default.filter(|_| at_the_beginning(desk, &request).0.is_none());
        default.and_then(|default| desk.rule(path_of(default)))
    })
}

/// Returns all that may be the path of a repository in a text, also within an address or a longer
/// path.
fn names(text: &str) -> impl Iterator<Item = String> {
    let is_of_path = |sign: char| sign.is_ascii_alphanumeric() || "-_./:".contains(sign);
    text.split(move |sign: char| !is_of_path(sign)).flat_map(|word| {
        let parts = word.split(['/', ':']).map(|part| part.trim_end_matches('.'));
        let parts = parts.map(|part| part.strip_suffix(".git").unwrap_or(part));
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).take(MOST_PARTS).collect();
        let mut names = Vec::new();
        for first in 0..parts.len() {
            for behind in first + 2..=parts.len() {
                names.push(parts[first..behind].join("/"));
            }
        }
        names
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_named_in_many_forms() {
        for text in [
            "acme/vault",
            "github:acme/vault: how is it",
            "how is it in (acme/vault)?",
            "github:acme/vaultの仕組み",
            "see https://git.example/acme/vault.git, please",
            "<https://git.example/acme/vault/blob/main/src/key.rs#L3|this>",
            "of acme/vault.",
        ] {
            assert!(names(text).any(|name| name == "acme/vault"), "{text}");
        }
        for text in ["", "acme vault", "acme / vault", "a/acme/vaults", "acme/vault-2"] {
            assert!(!names(text).any(|name| name == "acme/vault"), "{text}");
        }
        assert_eq!(names("a/b/c d").collect::<Vec<_>>(), ["a/b", "a/b/c", "b/c"]);
        let long = "a/".repeat(10_000);
        assert!(names(&long).count() < 100);
    }
}
