//! The effect of answers to questions of runs, given by a button or by words that somebody types.
//!
//! An answer is bound to the digest of the question; without one it counts only where a single
//! question is open in the conversation, and the person can have read all of it. It counts where
//! that is what the run waits for at this moment, and where the person's account may write to the
//! repository at this moment; all else changes nothing, and is told.

pub(super) mod waiting; // which runs of a conversation wait with questions, and which one is meant

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::answers::Answer;
use super::phrases::Phrase;
use super::services::ChatServices;
use crate::agent::record::Record;
use crate::agent::text::waits::{Decided, decided, question_of};
use crate::agent::waiting::Visited;
use crate::approval::{Grant, Question};
use crate::journal::fact::{Entry, Fact};
use crate::messenger::place::Incoming;
use crate::plain::one_line;
use crate::service::attending::CommandOutcome;
use crate::store::{FactFilter, NumberedFact, Run, StoreError};
use crate::task::command::Command;
use crate::task::id::RunId;
use waiting::{MeantRun, asked_about, is_open, listed, waiting_here, waiting_question};

/// Facts that are read at once, and how often, to find what came of an answer.
const PAGE: u32 = 200;
const MOST_PAGES: usize = 50;

/// Returns what somebody is told whose words may be an answer; `None` where no run of their
/// conversation waits for one.
pub(super) async fn ask_back(
    services: &ChatServices,
    incoming: &Incoming,
    is_japanese: bool,
) -> Result<Option<String>, StoreError> {
    let waiting = waiting_here(services, incoming).await?;
    let mut open = waiting.questions;
    open.retain(is_open);
    Ok(match waiting.unreadable {
        _ if !open.is_empty() => Some(Phrase::WhichQuestion(&listed(&open)).in_words(is_japanese)),
        Some(unreadable) => Some(Phrase::CannotNow(&unreadable.to_string()).in_words(is_japanese)),
        None => None,
    })
}

/// Carries out an answer; returns what the person is told. `None`: no run of this conversation
/// waits, and so what was typed is no answer.
pub(super) async fn carry_out(
    services: &ChatServices,
    incoming: &Incoming,
    answer: &Answer,
    is_japanese: bool,
) -> Result<Option<String>, StoreError> {
    let told = |phrase: Phrase<'_>| Ok(Some(phrase.in_words(is_japanese)));
    let mut begun = None;
    if let Some(taken) = taken_before(services, incoming).await?
        && let Some(run) = services.store().run(taken.run).await?
    {
        let waiting = waiting_question(services, &run);
        let still_waits = matches!(&waiting, Ok(Some(asked)) if taken.is_to(&asked.question));
        if !still_waits {
            if taken.stands_in(&run) || has_counted(services, &taken).await? {
                return Ok(Some(taken.in_words(is_japanese)));
            }
            return match waiting {
                Ok(_) => told(Phrase::NothingWaits),
                Err(unreadable) => told(Phrase::CannotNow(&unreadable.to_string())),
            };
        }
        // It was understood before, by what was open then.
        begun = Some(run);
    }
    let run = match (begun, answer.run) {
        (Some(run), _) => run,
        (None, Some(run)) => match services.store().run(run).await? {
            Some(run) => run,
            None => return told(Phrase::NothingWaits),
        },
        (None, None) => match asked_about(services, incoming, answer).await? {
            MeantRun::Run(run) => *run,
            MeantRun::Unclear(open) => return told(Phrase::WhichQuestion(&listed(&open))),
            MeantRun::Decided => return told(Phrase::DecidedBefore),
            MeantRun::Other => return told(Phrase::OtherDigest),
            MeantRun::Unreadable(unreadable) => return told(Phrase::CannotNow(&unreadable.to_string())),
            MeantRun::Nothing => return Ok(None),
        },
    };
    let question = match waiting_question(services, &run) {
        Ok(Some(asked)) => asked.question,
        Ok(None) => return told(Phrase::NothingWaits),
        Err(unreadable) => return told(Phrase::CannotNow(&unreadable.to_string())),
    };
    let digest = &question.digest;
    if answer.digest.as_ref().is_some_and(|given| !digest.begins_with(given)) {
        return told(Phrase::OtherDigest);
    }
    let Some((repository, login)) = account(services, incoming, &run) else {
        return told(Phrase::NotLinked);
    };
    match services.service.may_ask_for(&repository, &login).await {
        Ok(true) => {}
        Ok(false) => return told(Phrase::MayNot(&repository)),
        Err(error) => return told(Phrase::CannotNow(&error.to_string())),
    }
    let taken = Taken {
        run: run.id,
        question: Some(question.id),
        digest: digest.short().to_owned(),
        login: login.clone(),
        is_yes: answer.is_yes,
        since: services.store().newest_fact().await?,
    };
    let document = serde_json::to_string(&taken).unwrap_or_default();
    services.store().keep_chat_answer(&incoming.id, &document).await?;
    let named = answer.digest.clone().or_else(|| digest.short().parse().ok());
    let command = if answer.is_yes {
        Command::Approve(named)
    } else {
        Command::Deny {
            digest: named,
            reason: answer.reason.as_ref().map(|reason| one_line(reason)),
        }
    };
    let came = services.service.tell(&run.task, &command, Some(&login)).await?;
    let done = taken.in_words(is_japanese);
    Ok(Some(match came {
        CommandOutcome::NoRun | CommandOutcome::Here(Visited::EndsAt(_)) => Phrase::NothingWaits.in_words(is_japanese),
        CommandOutcome::Worker(_) => format!("{done} {}", Phrase::Passed.in_words(is_japanese)),
        CommandOutcome::Here(Visited::Stays) => of_waiting(services, &taken, is_japanese).await?,
        CommandOutcome::Here(_) => done,
    }))
}

/// Returns what somebody is told of an answer to a run that waits after it.
async fn of_waiting(services: &ChatServices, taken: &Taken, is_japanese: bool) -> Result<String, StoreError> {
    let run = services.store().run(taken.run).await?;
    let record = run.map(|run| Record::read(&run));
    let refused = match &record {
        None => Some(Phrase::NothingWaits),
        Some(Ok(record)) => taken.refusal(record),
        Some(Err(unreadable)) => return Ok(Phrase::CannotNow(&unreadable.to_string()).in_words(is_japanese)),
    };
    if let Some(refused) = refused {
        return Ok(refused.in_words(is_japanese));
    }
    let paused = Phrase::AllPaused.in_words(is_japanese);
    Ok(format!("{} {paused}", taken.in_words(is_japanese)))
}

/// An answer that was about to take effect, written down before it did: after a kill in between
/// nothing waits for it any more, and whoever gave it is told all the same that it counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Taken {
    run: RunId,
    /// The question that was answered; an earlier version noted the digest alone.
    #[serde(default)]
    question: Option<Uuid>,
    digest: String,
    login: String,
    is_yes: bool,
    /// Number of the newest fact before the answer.
    since: u64,
}

impl Taken {
    /// Tells whether it answers a question, whose digest an earlier one of the run may have had.
    fn is_to(&self, question: &Question) -> bool {
        match self.question {
            Some(id) => id == question.id,
            None => question.digest.short() == self.digest,
        }
    }

    /// Tells whether a run says itself that the answer took effect.
    fn stands_in(&self, run: &Run) -> bool {
        let Ok(record) = Record::read(run) else { return false };
        if !self.is_yes {
            // Denials of earlier questions stay in the record.
            let mut denials = record.planned.denials.iter();
            return denials.any(|denial| denial.by == self.login && Some(denial.question) == self.question);
        }
        let of_plan = record.planned.approval.as_ref().map(|approval| &approval.grant);
        let grants = of_plan.into_iter().chain(record.delivered.approval.as_ref());
        let is_it = |grant: &Grant| grant.by == self.login && grant.digest.as_str().starts_with(&self.digest);
        grants.into_iter().any(is_it)
    }

    /// Returns why the answer does not count, by the record of a run that waits; `None` if it does.
    fn refusal(&self, record: &Record) -> Option<Phrase<'static>> {
        if !question_of(record).is_some_and(|question| self.is_to(question)) {
            return Some(Phrase::OtherDigest);
        }
        match decided(record) {
            Some(Decided::Approved { by }) if self.is_yes && by == self.login => None,
            Some(Decided::Denied { by }) if !self.is_yes && by == self.login => None,
            Some(Decided::Approved { .. } | Decided::Denied { .. }) => Some(Phrase::DecidedBefore),
            None => Some(Phrase::NotTaken),
        }
    }

    fn in_words(&self, is_japanese: bool) -> String {
        let done = if self.is_yes { Phrase::Approved } else { Phrase::Denied };
        format!("{} ({}, `{}`).", done.in_words(is_japanese), self.login, self.digest)
    }
}

async fn taken_before(services: &ChatServices, incoming: &Incoming) -> Result<Option<Taken>, StoreError> {
    let document = services.store().kept_chat_answer(&incoming.id).await?;
    Ok(document.and_then(|document| serde_json::from_str(&document).ok()))
}

/// Tells whether the facts say that an answer took effect: they stay where a record goes on.
async fn has_counted(services: &ChatServices, taken: &Taken) -> Result<bool, StoreError> {
    let filter = FactFilter::OfRun(taken.run);
    let mut after = taken.since;
    for _ in 0..MOST_PAGES {
        let facts = services.store().facts(after, &filter, PAGE).await?;
        let Some(last) = facts.last() else { return Ok(false) };
        after = last.sequence;
        let is_it = |fact: &NumberedFact| {
            let Ok(entry) = serde_json::from_str::<Entry>(&fact.document) else {
                return false;
            };
            match (entry.fact, taken.is_yes) {
                (Fact::ApprovalGranted { approver, digest, .. }, true)
                | (Fact::ApprovalDenied { approver, digest, .. }, false) => {
                    approver == taken.login && digest.starts_with(&taken.digest)
                }
                _ => false,
            }
        };
        if facts.iter().any(is_it) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the repository of a run, and the person's account on its forge.
fn account(services: &ChatServices, incoming: &Incoming, run: &Run) -> Option<(String, String)> {
    let item = run.task.item()?;
    let accounts = services.accounts(incoming.place.messenger, &incoming.user)?;
    let login = accounts.get(item.host.as_str())?;
    Some((format!("{}:{}", item.host.as_str(), item.repository), login.clone()))
}

#[cfg(test)]
mod tests {
    use chrono::Utc;

    use super::*;
    use crate::agent::record::{HeldResult, Paused, PausedBy};
    use crate::approval::digest::Digest;
    use crate::approval::proposal::Denial;
    use crate::task::state::State;

    #[test]
    fn an_answer_counts_to_a_run_that_waits_only_where_it_says_so() {
        let question = Question::new(Digest::of(&[b"a result"]), "");
        let held = HeldResult {
            question: Some(question.clone()),
            ..HeldResult::default()
        };
        let mut record = Record::default();
        record.waiting.paused = Some(Paused {
            by: PausedBy::Objections(Box::new(held)),
            at: Utc::now(),
            saved: None,
        });
        let answer = |login: &str, is_yes: bool, digest: &str| Taken {
            run: RunId::new(),
            question: None,
            digest: digest.to_owned(),
            login: login.to_owned(),
            is_yes,
            since: 0,
        };
        let digest = question.digest.short();
        let other = answer("alice", true, "0123456789abcdef").refusal(&record);
        assert_eq!(other, Some(Phrase::OtherDigest));
        let yes = answer("alice", true, digest);
        let no = answer("alice", false, digest);
        assert_eq!(yes.refusal(&record), Some(Phrase::NotTaken));
        assert_eq!(no.refusal(&record), Some(Phrase::NotTaken));
        // What was denied before was another question.
        let denial = |question: &Question, by: &str| Denial {
            question: question.id,
            by: by.to_owned(),
            reason: String::new(),
            plan: None,
        };
        let before = Question::new(Digest::of(&[b"another"]), "");
        record.planned.denials.push(denial(&before, "alice"));
        assert_eq!(no.refusal(&record), Some(Phrase::NotTaken));

        record.delivered.approval = Some(question.granted("alice"));
        assert_eq!(yes.refusal(&record), None);
        assert_eq!(no.refusal(&record), Some(Phrase::DecidedBefore));
        let somebody = answer("bob", true, digest);
        assert_eq!(somebody.refusal(&record), Some(Phrase::DecidedBefore));
        record.planned.denials.push(denial(&question, "alice"));
        assert_eq!(no.refusal(&record), None);
        assert_eq!(yes.refusal(&record), Some(Phrase::DecidedBefore));
        record.waiting.paused = None;
        assert_eq!(yes.refusal(&record), Some(Phrase::OtherDigest));
    }

    #[test]
    fn an_answer_is_carried_out_to_its_own_question_and_to_no_other_with_the_digest() {
        let digest = Digest::of(&[b"a plan"]);
        let (before, now) = (Question::new(digest.clone(), ""), Question::new(digest, ""));
        let taken = |question: Option<Uuid>, digest: &str| Taken {
            run: RunId::new(),
            question,
            digest: digest.to_owned(),
            login: "alice".to_owned(),
            is_yes: false,
            since: 0,
        };
        let short = now.digest.short();
        assert!(taken(Some(now.id), short).is_to(&now));
        assert!(!taken(Some(before.id), short).is_to(&now), "the plan was made again");
        // An earlier version noted the digest alone.
        assert!(taken(None, short).is_to(&now));
        assert!(!taken(None, "0123456789abcdef").is_to(&now));
    }

    #[test]
    fn a_denial_stands_in_a_run_only_as_one_of_the_same_question() {
        let (before, now) = (
            Question::new(Digest::of(&[b"a plan"]), ""),
            Question::new(Digest::of(&[b"another"]), ""),
        );
        let denied = |question: &Question| {
            let mut record = Record::default();
            record.planned.denials.push(Denial {
                question: question.id,
                by: "alice".to_owned(),
                reason: String::new(),
                plan: None,
            });
            Run {
                id: RunId::new(),
                task: "github:acme/widgets#1".parse().unwrap(),
                title: String::new(),
                state: State::Planning,
                record: record.to_saved().unwrap(),
                created_at: Utc::now(),
                updated_at: Utc::now(),
                not_before: None,
            }
        };
        let taken = |login: &str, question: Option<&Question>| Taken {
            run: RunId::new(),
            question: question.map(|question| question.id),
            digest: now.digest.short().to_owned(),
            login: login.to_owned(),
            is_yes: false,
            since: 0,
        };
        assert!(taken("alice", Some(&now)).stands_in(&denied(&now)));
        assert!(!taken("alice", Some(&now)).stands_in(&denied(&before)));
        assert!(!taken("bob", Some(&now)).stands_in(&denied(&now)));
        // What an earlier version noted is looked up in the facts.
        assert!(!taken("alice", None).stands_in(&denied(&now)));
        let noted = serde_json::json!({
            "run": RunId::new(), "digest": "d", "login": "alice", "is_yes": false, "since": 3,
        });
        assert_eq!(serde_json::from_value::<Taken>(noted).unwrap().question, None);
    }
}
