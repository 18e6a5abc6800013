//! CODE: an issue is opened, with the label that has it worked on.

use uuid::Uuid;

use crate::chat::desk::Desk;
use crate::chat::phrases::Phrase;
use crate::chat::session::Session;
use crate::chat::watching::Watched;
use crate::messenger::place::Incoming;
use crate::service::requested::{NotOpened, Request};
use crate::store::{ChatWatch, StoreError};

/// Most characters of a title.
const LONGEST_TITLE: usize = 120;

/// Where something is to be done, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::chat) struct Order {
    /// Such as `github:owner/repo`.
    pub(in crate::chat) repository: String,
    /// The account on its forge.
    pub(in crate::chat) login: String,
    /// What is to be done.
    pub(in crate::chat) request: String,
    /// The names of pictures that belong to it. No forge has a way to attach them for somebody.
    pub(in crate::chat) pictures: Vec<String>,
}

/// Finds out where something is to be done, and whether the person may have it done there at this
/// moment; else returns what they are told.
pub(in crate::chat) async fn order(
    desk: &Desk,
    incoming: &Incoming,
    session: &Session,
    request: &str,
) -> Result<Order, String> {
    let told = |phrase: Phrase<'_>| phrase.in_words(session.is_japanese);
    let (named, rest) = named_repository(desk, request);
    let repository = named.or_else(|| desk.service.config().chat.default_repository.clone());
    let Some(repository) = repository else {
        return Err(told(Phrase::NoRepository));
    };
    let host = repository.split(':').next().unwrap_or_default();
    let accounts = desk.accounts(incoming.place.messenger, &incoming.user);
    let Some(login) = accounts.and_then(|accounts| accounts.get(host)) else {
        return Err(told(Phrase::NotLinked));
    };
    match desk.service.may_ask_for(&repository, login).await {
        Ok(true) => Ok(Order {
            login: login.clone(),
            request: rest.to_owned(),
            repository,
            pictures: session.pictures.iter().map(|one| one.name.clone()).collect(),
        }),
        Ok(false) => Err(told(Phrase::MayNot(&repository))),
        Err(NotOpened::NotConfigured(_)) => Err(told(Phrase::NotConfigured(&repository))),
        Err(error) => Err(told(Phrase::CannotNow(&error.to_string()))),
    }
}

/// Returns the repository that a request begins with, if it does, and the rest.
fn named_repository<'a>(desk: &Desk, request: &'a str) -> (Option<String>, &'a str) {
    let end = request.find(char::is_whitespace).unwrap_or(request.len());
    let word = request[..end].trim_end_matches(':');
    match desk.service.forge_of(word) {
        Some(_) => (Some(word.to_owned()), request[end..].trim_start()),
        None => (None, request),
    }
}

/// Opens an issue for an order, once for each message, and has its progress told; returns what the
/// person is told.
pub(in crate::chat) async fn open(
    desk: &Desk,
    incoming: &Incoming,
    order: &Order,
    model: Option<&str>,
    is_japanese: bool,
) -> Result<String, StoreError> {
    if order.request.trim().is_empty() {
        return Ok(Phrase::WhatToDo.in_words(is_japanese));
    }
    let is_first = desk.store().first_time(&format!("chat {}", incoming.id), "").await?;
    let by = format!("{} ({})", order.login, incoming.place.messenger.as_str());
    let mut text = format!("{}\n\n_Asked for by {by}._\n", order.request.trim());
    if !order.pictures.is_empty() {
        let named = order.pictures.join(", ");
        text += "_Pictures that were sent with it, and are not here: ";
        text += &named;
        text += "._\n";
    }
    let request = Request {
        repository: &order.repository,
        title: &title(&order.request),
        text: &text,
        by: &order.login,
        key: Uuid::new_v5(&Uuid::NAMESPACE_OID, incoming.id.as_bytes()),
        is_repeated: !is_first,
        model,
    };
    let opened = match desk.service.request(&request).await {
        Ok(opened) => opened,
        Err(NotOpened::Store(error)) => return Err(error),
        Err(error) => return Ok(Phrase::CannotNow(&error.to_string()).in_words(is_japanese)),
    };
    let watched = Watched {
        url: opened.url.clone(),
        is_japanese,
        ..Watched::default_at(incoming.place.clone())
    };
    let watch = ChatWatch {
        task: opened.task.clone(),
        session: incoming.place.to_string(),
        document: serde_json::to_value(&watched).unwrap_or_default(),
    };
    desk.store().watch_in_chat(&watch).await?;
    Ok(Phrase::Opened(&opened.url).in_words(is_japanese))
}

/// Returns the first line as a title.
fn title(request: &str) -> String {
    let line = request
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("A request");
    let line: String = line.chars().filter(|sign| !sign.is_control()).collect();
    if line.chars().count() <= LONGEST_TITLE {
        return line;
    }
    let cut: String = line.chars().take(LONGEST_TITLE - 1).collect();
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(title("\n Fix it \nsoon"), "Fix it");
        assert_eq!(title(&"x".repeat(300)).chars().count(), LONGEST_TITLE);
        assert_eq!(title(""), "A request");
    }
}
