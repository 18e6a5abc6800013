//! Answers one message: an answer to a question of a run, or anything else.

use super::answers::{self, Typed};
use super::approving;
use super::handling::Handling;
use super::phrases::Phrase;
use super::sayings::Draft;
use super::services::ChatServices;
use super::session::Session;
use crate::journal::fact::Fact;
use crate::messenger::place::{Body, Incoming};
use crate::routing::command;
use crate::routing::text::is_japanese;
use crate::store::{ChatMessage, StoreError};

/// Answers a message. An error leaves it as it was, to be answered later.
pub(super) async fn answer(services: &ChatServices, message: ChatMessage) -> Result<(), StoreError> {
    let Ok(incoming) = serde_json::from_value::<Incoming>(message.document.clone()) else {
        return services.store().finish_chat_message(&message, None, &[]).await;
    };
    // Whoever was heard when they spoke may be struck off since.
    if services.accounts(incoming.place.messenger, &incoming.user).is_none() {
        return services.store().finish_chat_message(&message, None, &[]).await;
    }
    let mut session = services.session(&incoming.place).await?;
    let text = match &incoming.body {
        Body::Text { text } => text.clone(),
        Body::Press { .. } => String::new(),
    };
    // A digest says nothing of the language.
    if !text.is_empty() && !matches!(answers::typed(&text), Some(Typed::Answer(_))) {
        session.is_japanese = is_japanese(&text);
    }
    let said = match answer_to_question(services, &incoming, &session).await? {
        Some(said) => said,
        None if text.trim().is_empty() && incoming.attached.is_empty() => String::new(),
        None => {
            session.see(&incoming.attached);
            let mut handling = Handling::new(services, &incoming, &mut session);
            Box::pin(handling.handle(&text)).await?
        }
    };
    let draft = Draft::of(services, &incoming.place, &incoming.id).in_reply(incoming.reply_token.clone(), message.at);
    let draft = if said.is_empty() { draft } else { draft.says(&said) };
    let document = serde_json::to_value(&session).unwrap_or_default();
    services
        .store()
        .finish_chat_message(&message, Some(&document), &draft.finished())
        .await
}

/// Ends a message that breaks this program off each time, and tells the person so: nobody waits for
/// an answer that never comes, nor for what was said behind it.
pub(super) async fn give_up(services: &ChatServices, message: ChatMessage) -> Result<(), StoreError> {
    finish_unanswered(services, &message).await?;
    // Told once: while the store cannot be written, the message is given up again and again.
    services.note(Fact::Warned {
        text: format!(
            "a message in {} was given up: each attempt at it ended because of a fault of this program",
            message.session
        ),
    });
    Ok(())
}

/// Ends a message with the words that it could not be answered. A `/local` in it counts all the
/// same: its sender takes it for said, and what follows would go elsewhere.
async fn finish_unanswered(services: &ChatServices, message: &ChatMessage) -> Result<(), StoreError> {
    let Ok(incoming) = serde_json::from_value::<Incoming>(message.document.clone()) else {
        return services.store().finish_chat_message(message, None, &[]).await;
    };
    let mut session = services.session(&incoming.place).await?;
    let mut said = Phrase::Broken.in_words(session.is_japanese);
    let document = keeps_near(&incoming, &mut session).then(|| serde_json::to_value(&session).unwrap_or_default());
    if document.is_some() {
        said = format!("{}\n\n{said}", Phrase::LocalOnly.in_words(session.is_japanese));
    }
    let draft = Draft::of(services, &incoming.place, &incoming.id).in_reply(incoming.reply_token.clone(), message.at);
    services
        .store()
        .finish_chat_message(message, document.as_ref(), &draft.says(&said).finished())
        .await
}

/// Takes up a `/local` of a message that is given up; returns whether there is one. A `/cloud` is
/// not taken up: the conversation stays near until it was answered.
fn keeps_near(incoming: &Incoming, session: &mut Session) -> bool {
    let is_near = match &incoming.body {
        Body::Text { text } => command::local_only(text) == Some(true),
        Body::Press { .. } => false,
    };
    session.local_only |= is_near;
    is_near
}

/// Carries out what is an answer to a question of a run; returns what the person is told.
async fn answer_to_question(
    services: &ChatServices,
    incoming: &Incoming,
    session: &Session,
) -> Result<Option<String>, StoreError> {
    let answer = match &incoming.body {
        Body::Press { value } => match answers::pressed(value) {
            Some(answer) => answer,
            None => return Ok(Some(Phrase::NothingWaits.in_words(session.is_japanese))),
        },
        Body::Text { text } => match answers::typed(text) {
            Some(Typed::Answer(answer)) => answer,
            Some(Typed::Unclear) => return approving::ask_back(services, incoming, session.is_japanese).await,
            None => return Ok(None),
        },
    };
    approving::carry_out(services, incoming, &answer, session.is_japanese).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messenger::place::{Messenger, Place};

    #[test]
    fn a_message_that_is_given_up_leaves_its_conversation_as_near_as_it_wanted() {
        let incoming = |text: &str| Incoming {
            id: "m".to_owned(),
            place: Place {
                messenger: Messenger::Slack,
                channel: "C1".to_owned(),
                thread: None,
            },
            at: None,
            user: "U1".to_owned(),
            is_addressed: true,
            body: Body::Text { text: text.to_owned() },
            attached: Vec::new(),
            reply_token: None,
        };
        let mut session = Session::default();
        for text in ["what is it", "/cloud", "> /local"] {
            assert!(!keeps_near(&incoming(text), &mut session), "{text}");
            assert!(!session.local_only, "{text}");
        }
        for text in ["/local", "/chat what is it\n/local"] {
            let mut session = Session::default();
            assert!(keeps_near(&incoming(text), &mut session), "{text}");
            assert!(session.local_only, "{text}");
            // What is near is not opened by a message that nobody has answered.
            assert!(!keeps_near(&incoming("/cloud"), &mut session), "{text}");
            assert!(session.local_only, "{text}");
        }
    }
}
