//! The repository that a message is about.

use crate::chat::services::ChatServices;
use crate::chat::session::Session;
use crate::routing::command::ChatCommand;
use crate::routing::{Route, command, text};

/// Most parts of a path or an address that are looked at.
const MOST_PARTS: usize = 12;
/// Most commands of a message that stand before what it is about: `/local`, and that of a route.
const MOST_COMMANDS: usize = 2;

/// Returns the repository that a request is about, and the request without it: the one that the
/// person's words begin with, the one that a model's wording of them begins with where the person
/// names it anywhere but in a quotation, and not as one of another forge, or the default one.
///
/// A model that chose it freely could be told by anybody to show a conversation what only some of
/// its people may see.
pub(super) fn repository<'a>(services: &ChatServices, own: &str, request: &'a str) -> (Option<String>, &'a str) {
    let (by_model, rest) = at_the_beginning(services, request);
    let (by_person, _) = at_the_beginning(services, own);
    let said = text::own_text(own);
    let said = names(&said);
    let is_meant = |repository: &&str| {
        let (host, path) = repository.split_once(':').unwrap_or_default();
        let (own, others) = services.service.names_of_forges(host);
        is_named(path, &own, &others, &said)
    };
    let named = by_person.or(by_model.filter(is_meant)).map(str::to_owned);
    let repository = named.or_else(|| services.service.config().chat.default_repository.clone());
    (repository, rest)
}

/// Tells whether people name the repository at `path` of a forge, by the names in what they `said`:
/// with a name of its forge, or by the path alone. Where they name the repository of that path on
/// one of the `others`, they do not mean this one.
fn is_named(path: &str, own: &[String], others: &[String], said: &[String]) -> bool {
    let path = path.to_ascii_lowercase();
    let below = format!("/{path}");
    let is_on = |name: &String, forge: &String| {
        let rest = name.strip_prefix(forge.to_ascii_lowercase().as_str());
        rest.is_some_and(|rest| rest.starts_with('/') && rest.ends_with(&below))
    };
    let is_on_one = |forges: &[String]| said.iter().any(|name| forges.iter().any(|forge| is_on(name, forge)));
    is_on_one(own) || (said.contains(&path) && !is_on_one(others))
}

/// Returns the repository that a request begins with, if it does, and the rest.
fn at_the_beginning<'a>(services: &ChatServices, request: &'a str) -> (Option<&'a str>, &'a str) {
    let end = request.find(char::is_whitespace).unwrap_or(request.len());
    let word = request[..end].trim_end_matches(':');
    match services.service.forge_of(word) {
        Some(_) => (Some(word), request[end..].trim_start()),
        None => (None, request),
    }
}

/// Returns the path of a repository such as `github:owner/repo`.
pub(super) fn path_of(repository: &str) -> &str {
    repository.split_once(':').map_or(repository, |(_, path)| path)
}

/// Returns the rule that keeps a message on near models: that of a confidential repository which it
/// or what its conversation remembers names in any form, or of the default one unless the message
/// begins with another.
///
/// It is looked for before any model reads the message, which is itself what the repository's work
/// is about. What is remembered may be older than the rule: the configuration may have named the
/// repository since.
pub(in crate::chat) fn local_only_rule(
    services: &ChatServices,
    session: &Session,
    message: &str,
    has_pictures: bool,
) -> Option<String> {
    let remembered = session.memory.iter().map(|remembered| remembered.text.as_str());
    let mut named = std::iter::once(message).chain(remembered).flat_map(names);
    let named = named.find_map(|name| services.rule(&name));
    named.or_else(|| {
        let request = without_commands(message, &services.service.models().names());
        // `/cloud` alone is about no repository: the default one would take it back at once.
        if request.is_empty() && !has_pictures && command::local_only(message).is_some() {
            return None;
        }
        let default = services.service.config().chat.default_repository.as_deref();
        let default = default.filter(|_| at_the_beginning(services, &request).0.is_none());
        default.and_then(|default| services.rule(path_of(default)))
    })
}

/// Returns what a message is about: the message without the commands that stand before that, and
/// without the one of `models` that is named behind `/code`.
fn without_commands(message: &str, models: &[String]) -> String {
    let mut request = message.to_owned();
    for _ in 0..MOST_COMMANDS {
        let Some(commanded) = command::read(&request) else {
            break;
        };
        request = match commanded.command {
            ChatCommand::Route(Route::Code) => command::named_model(&commanded.rest, models).1.to_owned(),
            ChatCommand::Route(_) | ChatCommand::LocalOnly | ChatCommand::Anywhere => commanded.rest,
        };
    }
    request
}

/// Returns all that may be the path of a repository in a text, in small letters, also within an
/// address or a longer path.
fn names(said: &str) -> Vec<String> {
    let is_of_path = |sign: char| sign.is_ascii_alphanumeric() || "-_./:".contains(sign);
    // GitLab's API has such a slash in its addresses.
    let said = text::folded(said).replace("%2f", "/");
    let mut names = Vec::new();
    for word in said.split(|sign: char| !is_of_path(sign)) {
        // Slack writes italics between two `_`, which may be part of a name as well.
        let bare = word.trim_matches(|sign: char| !sign.is_ascii_alphanumeric());
        let bare = Some(bare).filter(|bare| *bare != word);
        for word in std::iter::once(word).chain(bare) {
            let parts = word.split(['/', ':']).map(|part| part.trim_end_matches('.'));
            let parts = parts.map(|part| part.strip_suffix(".git").unwrap_or(part));
            let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).take(MOST_PARTS).collect();
            for first in 0..parts.len() {
                for behind in first + 2..=parts.len() {
                    names.push(parts[first..behind].join("/"));
                }
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_is_about_stands_behind_its_commands_and_the_model_for_the_work() {
        let models = ["large".to_owned(), "small".to_owned()];
        for text in [
            "github:acme/open: go on",
            "/code github:acme/open: go on",
            "/code large github:acme/open: go on",
            "/local\n/code small github:acme/open: go on",
        ] {
            assert_eq!(without_commands(text, &models), "github:acme/open: go on", "{text}");
        }
        // Elsewhere it is a word as any other.
        assert_eq!(without_commands("/chat large words", &models), "large words");
        assert_eq!(without_commands("large words", &models), "large words");
        assert_eq!(without_commands("/cloud", &models), "");
    }

    #[test]
    fn the_repository_of_one_forge_is_not_the_one_of_the_same_path_on_another() {
        let forges = |all: [&str; 2]| all.map(str::to_owned).to_vec();
        let (github, gitlab) = (forges(["github", "github.com"]), forges(["gitlab", "git.example"]));
        let of = |said: &str| {
            let said = names(said);
            (
                is_named("Acme/open", &github, &gitlab, &said),
                is_named("Acme/open", &gitlab, &github, &said),
            )
        };
        for said in [
            "and in acme/open?",
            "see (Acme/Open), please",
            "github:acme/open as gitlab:acme/open",
        ] {
            assert_eq!(of(said), (true, true), "{said}");
        }
        for said in ["and in github:acme/open?", "see https://github.com/acme/open/issues/3"] {
            assert_eq!(of(said), (true, false), "{said}");
        }
        for said in ["and in gitlab:acme/open?", "see https://git.example:8443/acme/open.git"] {
            assert_eq!(of(said), (false, true), "{said}");
        }
        for said in ["", "acme/opens", "github:acme", "gitlab"] {
            assert_eq!(of(said), (false, false), "{said}");
        }
    }

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
            "of _acme/vault.git_, please",
            "of _acme/vault_.",
            "-acme/vault",
            "Acme/Vault",
            "ａｃｍｅ／ｖａｕｌｔの仕組み",
            "https://git.example/api/v4/projects/acme%2Fvault/issues",
        ] {
            assert!(names(text).contains(&"acme/vault".to_owned()), "{text}");
        }
        for text in ["", "acme vault", "acme / vault", "a/acme/vaults", "acme/vault-2"] {
            assert!(!names(text).contains(&"acme/vault".to_owned()), "{text}");
        }
        assert_eq!(names("a/b/c d"), ["a/b", "a/b/c", "b/c"]);
        let long = "a/".repeat(10_000);
        assert!(names(&long).len() < 200);
    }
}
