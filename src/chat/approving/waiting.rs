//! The runs of a conversation that wait with questions, and which of them an answer is about.

use uuid::Uuid;

use crate::agent::record::Record;
use crate::agent::record::saved::Unreadable;
use crate::agent::text::waits::{decided, question_of, wait_of};
use crate::approval::Question;
use crate::chat::answers::Answer;
use crate::chat::services::ChatServices;
use crate::chat::watched::Watched;
use crate::messenger::place::Incoming;
use crate::store::{Run, StoreError};
use crate::task::id::RunId;
use crate::task::state::State;

/// Tasks of a conversation that are looked through.
const MOST_WATCHES: u32 = 500;
/// Most questions that somebody is told of who may mean one of them.
const MOST_LISTED: usize = 20;

/// The question that a run is set aside with.
pub(super) struct AskedQuestion {
    pub(super) question: Question,
    /// Whether the record has a decision on it, which takes effect when the run goes on, as after a
    /// pause of all runs.
    pub(super) is_decided: bool,
}

impl AskedQuestion {
    /// Returns the question of a run in a state, by its record.
    fn of(services: &ChatServices, state: State, record: &Record) -> Option<Self> {
        let days = services.service.config().steering.expire_days;
        wait_of(state, record, days)?;
        Some(Self {
            question: question_of(record)?.clone(),
            is_decided: decided(record).is_some(),
        })
    }
}

/// Returns the question that a run is set aside with.
pub(super) fn waiting_question(services: &ChatServices, run: &Run) -> Result<Option<AskedQuestion>, Unreadable> {
    if !run.state.is_set_aside() {
        return Ok(None);
    }
    Ok(AskedQuestion::of(services, run.state, &Record::read(run)?))
}

/// Returns the question that a run in a state waits for a decision on, by its record.
pub(in crate::chat) fn open_question(services: &ChatServices, state: State, record: &Record) -> Option<Question> {
    let asked = AskedQuestion::of(services, state, record)?;
    (!asked.is_decided).then_some(asked.question)
}

/// The waiting run that an answer is about, as far as it can be told.
pub(super) enum MeantRun {
    Run(Box<Run>),
    /// Several runs wait, or it is not certain that the person has read what the only one asks.
    Unclear(Vec<WaitingRun>),
    /// Runs wait, but under other digests.
    Other,
    /// All questions with which runs wait are decided already.
    Decided,
    /// It may be one of which nobody can tell what it waits for.
    Unreadable(Unreadable),
    Nothing,
}

/// A run that is set aside with a question.
pub(super) struct WaitingRun {
    run: Run,
    asked: AskedQuestion,
    /// The address of its item.
    url: String,
}

/// The runs of a conversation that wait for people.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) questions: Vec<WaitingRun>,
    /// Why it cannot be told what another one waits for.
    pub(super) unreadable: Option<Unreadable>,
}

/// Tells whether nobody has decided yet what a run waits with.
pub(super) fn is_open(waiting: &WaitingRun) -> bool {
    !waiting.asked.is_decided
}

/// Returns the addresses of runs, each with the digest of its question.
pub(super) fn listed(waiting: &[WaitingRun]) -> String {
    let lines = waiting.iter().take(MOST_LISTED).map(|waiting| {
        let digest = waiting.asked.question.digest.short();
        format!("{}: `{digest}`", waiting.url)
    });
    let more = (waiting.len() > MOST_LISTED).then(|| "…".to_owned());
    lines.chain(more).collect::<Vec<_>>().join("\n")
}

/// Returns the runs of this conversation that are set aside with questions.
pub(super) async fn waiting_here(services: &ChatServices, incoming: &Incoming) -> Result<Waiting, StoreError> {
    let session = incoming.place.to_string();
    let mut waiting = Waiting::default();
    for watch in services.store().chat_watches(MOST_WATCHES).await? {
        if watch.session != session {
            continue;
        }
        let Some(run) = services.store().unfinished_of(&watch.task).await? else {
            continue;
        };
        match waiting_question(services, &run) {
            Ok(Some(asked)) => {
                let watched = serde_json::from_value::<Watched>(watch.document);
                let url = watched.map_or_else(|_| watch.task.to_string(), |watched| watched.url);
                waiting.questions.push(WaitingRun { run, asked, url });
            }
            Ok(None) => {}
            Err(unreadable) => waiting.unreadable = Some(unreadable),
        }
    }
    Ok(waiting)
}

/// Returns the run of this conversation that waits for the answer.
pub(super) async fn asked_about(
    services: &ChatServices,
    incoming: &Incoming,
    answer: &Answer,
) -> Result<MeantRun, StoreError> {
    let Waiting {
        mut questions,
        unreadable,
    } = waiting_here(services, incoming).await?;
    let is_any = !questions.is_empty();
    match &answer.digest {
        Some(given) => {
            questions.retain(|waiting| waiting.asked.question.digest.begins_with(given));
            // One that is decided is meant only where no other one has the digest.
            if questions.iter().any(is_open) {
                questions.retain(is_open);
            }
        }
        // Another question may be open than the one that can be read.
        None if unreadable.is_some() => questions.clear(),
        None => questions.retain(is_open),
    }
    let Some(first) = questions.first() else {
        return Ok(match unreadable {
            Some(unreadable) => MeantRun::Unreadable(unreadable),
            None if !is_any => MeantRun::Nothing,
            None if answer.digest.is_none() => MeantRun::Decided,
            None => MeantRun::Other,
        });
    };
    let (run, question) = (&first.run, first.asked.question.id);
    let is_known = answer.digest.is_some() || is_shown_before(services, incoming, run.id, question).await?;
    Ok(if questions.len() == 1 && is_known {
        MeantRun::Run(Box::new(run.clone()))
    } else {
        MeantRun::Unclear(questions)
    })
}

/// Tells whether a question was shown in its conversation before a message was written.
async fn is_shown_before(
    services: &ChatServices,
    incoming: &Incoming,
    run: RunId,
    question: Uuid,
) -> Result<bool, StoreError> {
    let shown = services.store().shown_at(run, question).await?;
    Ok(shown.zip(incoming.at).is_some_and(|(shown, written)| shown < written))
}
