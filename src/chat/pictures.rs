//! Pictures that people send: fetched from the messenger when a model is about to see them, or a
//! run is asked for, made anew without metadata, and told to the journal. No conversation keeps
//! them.

use super::services::ChatServices;
use crate::journal::fact::Fact;
use crate::journal::fact::picture::{Shown, Unanswered};
use crate::llm::config::role::Role;
use crate::llm::model::Model;
use crate::messenger::place::{Attached, Incoming, Messenger};
use crate::picture::{Picture, prepared, refusal};

/// The pictures that a model is shown, and a sentence about those that it is not shown.
#[derive(Default)]
pub(super) struct Sight {
    pub(super) pictures: Vec<Picture>,
    /// A sentence about those that it is not shown; empty where there are none.
    pub(super) words: String,
}

/// Returns the pictures that were sent, as the model is shown them. None is fetched for a model
/// that takes no pictures.
pub(super) async fn sight(
    services: &ChatServices,
    incoming: &Incoming,
    attached: &[Attached],
    model: &Model,
    role: Role,
) -> Sight {
    let mut sight = Sight::default();
    let mut missing = Vec::new();
    for one in attached {
        let came = match refusal(model.takes_pictures(), sight.pictures.len()) {
            None => came(services, incoming, one).await,
            Some(reason) => Err(reason),
        };
        let mut fact = fact_of(incoming, one, model, role);
        match came {
            Ok(picture) => {
                fact.is_shown = true;
                fact.take(&picture);
                sight.pictures.push(picture);
            }
            Err(reason) => {
                missing.push(format!("{} ({reason})", one.name));
                fact.reason = reason;
            }
        }
        services.note(Fact::PictureShown(fact));
    }
    if !missing.is_empty() {
        sight.words = format!(
            "\n\n[Pictures that you are not shown: {}. Say so where the answer depends on them.]",
            missing.join("; ")
        );
    }
    sight
}

/// Pictures that are handed over with a request.
#[derive(Default)]
pub(super) struct Handed {
    pub(super) pictures: Vec<Picture>,
    /// The pictures that cannot be handed over, each with the reason.
    pub(super) missing: Vec<String>,
}

/// Returns the pictures for a run, in which `models` see them: where none of them takes any, none
/// is fetched.
pub(super) async fn handed(
    services: &ChatServices,
    incoming: &Incoming,
    attached: &[Attached],
    models: &[(Model, Role)],
) -> Handed {
    let mut handed = Handed::default();
    let takes = models.iter().any(|(model, _)| model.takes_pictures());
    for one in attached {
        let came = match refusal(takes, handed.pictures.len()) {
            None => came(services, incoming, one).await,
            Some(reason) => Err(reason),
        };
        match came {
            Ok(picture) => handed.pictures.push(picture),
            Err(reason) => {
                handed.missing.push(format!("{} ({reason})", one.name));
                for (model, role) in models {
                    let mut fact = fact_of(incoming, one, model, *role);
                    fact.reason.clone_from(&reason);
                    services.note(Fact::PictureShown(fact));
                }
            }
        }
    }
    handed
}

/// Notes that a model that was shown pictures gave no answer, such as after a time-out: whether it
/// got them, nobody knows.
pub(super) fn note_unanswered(services: &ChatServices, incoming: &Incoming, shown: &[Picture], error: &str) {
    if shown.is_empty() {
        return;
    }
    services.note(Fact::PictureUnanswered(Unanswered {
        place: incoming.place.to_string(),
        digests: shown.iter().map(|picture| picture.original.digest.clone()).collect(),
        shown_bytes: shown.iter().map(|picture| picture.bytes().len() as u64).sum(),
        reason: error.to_owned(),
    }));
}

fn fact_of(incoming: &Incoming, one: &Attached, model: &Model, role: Role) -> Shown {
    Shown {
        place: incoming.place.to_string(),
        from: incoming.user.clone(),
        name: one.name.clone(),
        model: model.name().to_owned(),
        role: role.as_str().to_owned(),
        ..Shown::default()
    }
}

/// Fetches one picture, and makes it anew.
async fn came(services: &ChatServices, incoming: &Incoming, attached: &Attached) -> Result<Picture, String> {
    if attached.place.is_empty() {
        return Err("it does not lie with the messenger".to_owned());
    }
    let fetched = match (incoming.place.messenger, &services.slack, &services.line) {
        (Messenger::Slack, Some(slack), _) => slack.picture(&attached.place).await,
        (Messenger::Line, _, Some(line)) => line.picture(&attached.place).await,
        _ => return Err("its messenger is not configured any more".to_owned()),
    };
    let bytes = fetched.map_err(|failure| format!("it cannot be fetched: {failure}"))?;
    // One at a time: decoded it may be a hundred times as large.
    let _turn = services.decoding.lock().await;
    let name = attached.name.clone();
    let made = tokio::task::spawn_blocking(move || prepared(&bytes, &name)).await;
    match made {
        Ok(made) => made.map_err(|unusable| unusable.to_string()),
        Err(_) => Err("it is damaged".to_owned()),
    }
}
