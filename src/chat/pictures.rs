//! Pictures that people send: fetched from the messenger when a model is about to see them, made
//! anew without metadata, and told to the journal. No picture is ever kept.

use super::desk::Desk;
use crate::journal::fact::Fact;
use crate::journal::fact::picture::Shown;
use crate::llm::config::role::Role;
use crate::llm::model::Model;
use crate::messenger::place::{Attached, Incoming, Messenger};
use crate::picture::{MOST, Picture, prepared};

/// What a model gets of pictures.
#[derive(Default)]
pub(super) struct Sight {
    pub(super) pictures: Vec<Picture>,
    /// A sentence about those that it is not shown; empty where there are none.
    pub(super) words: String,
}

/// Returns what a model gets of the pictures that were sent. A model that takes none has none
/// fetched.
pub(super) async fn sight(desk: &Desk, incoming: &Incoming, attached: &[Attached], model: &Model, role: Role) -> Sight {
    let mut sight = Sight::default();
    let mut missing = Vec::new();
    for (place, one) in attached.iter().enumerate() {
        let came = if place < MOST {
            came(desk, incoming, one, model).await
        } else {
            Err(format!("no more than {MOST} are shown"))
        };
        let mut fact = Shown {
            place: incoming.place.to_string(),
            from: incoming.user.clone(),
            name: one.name.clone(),
            model: model.name().to_owned(),
            role: role.as_str().to_owned(),
            ..Shown::default()
        };
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
        desk.note(Fact::PictureShown(fact));
    }
    if !missing.is_empty() {
        sight.words = format!(
            "\n\n[Pictures that you are not shown: {}. Say so where the answer depends on them.]",
            missing.join("; ")
        );
    }
    sight
}

/// Fetches one picture, and makes it anew.
async fn came(desk: &Desk, incoming: &Incoming, attached: &Attached, model: &Model) -> Result<Picture, String> {
    if !model.takes_pictures() {
        return Err("the model takes no pictures".to_owned());
    }
    if attached.place.is_empty() {
        return Err("it does not lie with the messenger".to_owned());
    }
    let fetched = match (incoming.place.messenger, &desk.slack, &desk.line) {
        (Messenger::Slack, Some(slack), _) => slack.picture(&attached.place).await,
        (Messenger::Line, _, Some(line)) => line.picture(&attached.place).await,
        _ => return Err("its messenger is not configured any more".to_owned()),
    };
    let bytes = fetched.map_err(|failure| format!("it cannot be fetched: {failure}"))?;
    // One at a time: decoded it may be a hundred times as large.
    let _turn = desk.decoding.lock().await;
    let name = attached.name.clone();
    let made = tokio::task::spawn_blocking(move || prepared(&bytes, &name)).await;
    match made {
        Ok(made) => made.map_err(|unusable| unusable.to_string()),
        Err(_) => Err("it is damaged".to_owned()),
    }
}
