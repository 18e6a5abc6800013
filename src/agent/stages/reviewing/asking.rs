//! Asks the reviewer about a document, counts what that costs, and keeps the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::agent::claim::Claim;
use crate::agent::dialogue::{ask, health};
use crate::agent::record::Record;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction;
use crate::agent::stages::rescue::attempts;
use crate::agent::text::reviews;
use crate::journal::fact::Fact;
use crate::llm::config::role::Role;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::review::Review;
use crate::review::document::Document;
use crate::review::evidence::{self, Known, LARGEST_FILE, MOST_BYTES};
use crate::review::rounds::{Next, Opinion, ReviewLoop, Rules, Unready};
use crate::review::score::Score;
use crate::reviewer::{Call, Judge, NoReview, Reviewer};
use crate::task::state::Judged;

/// Maximum number of cited files that are read for one document.
const MOST_FILES: usize = 50;
/// How long a run waits for a reviewer whose server is not there, at first.
const WAIT_MINUTES: i64 = 2;

/// A document with all that its judgement needs.
pub(super) struct Matter<'a> {
    pub judged: Judged,
    pub document: Document,
    /// Where the places are looked up that the reviewer names.
    pub place: (&'a Mirror, &'a CommitId),
    pub commands: Vec<String>,
    pub criteria: Vec<String>,
}

/// Returns the reviewer for this run: for confidential work the near one.
pub(super) fn reviewer(claim: &Claim) -> Result<Reviewer, Interruption> {
    let settings = &claim.services.settings.review;
    let critic = claim
        .services
        .models
        .critic(claim.record.request.local_only.as_deref())?;
    Ok(Reviewer::new(
        critic,
        &settings.config,
        Arc::clone(&settings.prompt),
        &settings.program_paths,
        Arc::clone(&claim.services.redactor),
    ))
}

/// Returns when a plan or a result passes, and how often it is made better.
pub(super) fn rules(claim: &Claim, judged: Judged) -> Rules {
    let config = &claim.services.settings.review.config;
    let (target_score, max_rounds) = match judged {
        Judged::Plan => (config.plan.target_score, config.plan.max_rounds),
        Judged::Result => (config.result.target_score, config.result.max_rounds),
    };
    Rules {
        target_score: reviews::target(target_score),
        max_rounds,
    }
}

/// Asks for as long as there is a question, and returns what to do then.
pub(super) async fn decide(claim: &mut Claim, reviewer: &Reviewer, matter: &Matter<'_>) -> Result<Next, Interruption> {
    let rules = rules(claim, matter.judged);
    let digest = matter.document.digest();
    let reviews = loop_of(&mut claim.record, matter.judged);
    if reviews.is_about_another(&digest) {
        reviews.begin_anew();
    }
    match reviews.next(&digest, rules) {
        Next::Ask => {}
        next => return Ok(next),
    }
    ask_once(claim, reviewer, matter, rules.target_score).await?;
    Ok(loop_of(&mut claim.record, matter.judged).next(&digest, rules))
}

async fn ask_once(
    claim: &mut Claim,
    reviewer: &Reviewer,
    matter: &Matter<'_>,
    target: Score,
) -> Result<(), Interruption> {
    ask::check_limits(claim).await?;
    let what = name(matter.judged).to_owned();
    let digest = matter.document.digest().as_str().to_owned();
    let round = loop_of(&mut claim.record, matter.judged).rounds().len() + 1;
    claim.note(Fact::ReviewRequested {
        what: what.clone(),
        round,
        digest: digest.clone(),
        model: reviewer.name.clone(),
    });
    let mut calls = Vec::new();
    let review = async { Ok::<_, Interruption>(reviewer.review(&matter.document.text, &mut calls).await) };
    let review = claim.unless_stopped(review).await;
    // The calls are paid, whatever came of them.
    let facts = count(claim, reviewer, &calls).await?;
    let has_failed = matches!(review, Ok(Err(NoReview::Away(_) | NoReview::Unanswered(_))));
    if has_failed && let Judge::Model(model) = &reviewer.judge {
        health::restart_after_failure(claim, model.name()).await;
    }
    let kept = match review.and_then(|review| answer(claim, review)) {
        Ok(answer) => keep(claim, matter, answer).await,
        Err(interruption) => Err(interruption),
    };
    for fact in facts {
        claim.note(fact);
    }
    kept?;
    let given = loop_of(&mut claim.record, matter.judged).rounds().last().cloned();
    match given.map(|round| round.opinion) {
        Some(Opinion::Missing(reason)) => claim.note(Fact::ReviewMissing {
            what,
            round,
            digest,
            model: reviewer.name.clone(),
            reason,
        }),
        Some(Opinion::Given { review, unproven }) => claim.note(Fact::ReviewGiven {
            what,
            round,
            digest,
            model: reviewer.name.clone(),
            score: review.score,
            ready: review.ready_for_implementation,
            passed: review.passes(target),
            blockers: review.blockers.len(),
            unproven: unproven.len(),
        }),
        None => {}
    }
    Ok(())
}

/// Counts the calls of a model. What a program uses nobody tells.
async fn count(claim: &mut Claim, reviewer: &Reviewer, calls: &[Call]) -> Result<Vec<Fact>, Interruption> {
    let mut facts = Vec::new();
    if let Judge::Model(_) = reviewer.judge {
        for call in calls {
            let by = (call.model.as_str(), Role::Reviewer);
            facts.push(if call.is_unused {
                ask::book(claim, by, call.usage, call.took).await?
            } else {
                ask::count(claim, by, call.usage, call.took).await?
            });
        }
    }
    Ok(facts)
}

/// Returns the review, or the reason why there is none, without secrets.
///
/// # Errors
/// If the reviewer may not be asked, or is to be asked later. One that was asked, and did not
/// answer, is not: what it was asked may have been worked on, and would be paid each time.
fn answer(claim: &Claim, review: Result<Review, NoReview>) -> Result<Result<Review, String>, Interruption> {
    let redactor = &claim.services.redactor;
    match review {
        Ok(review) => Ok(Ok(redaction::clean_review(&review, redactor))),
        Err(NoReview::NotLocal(reason)) => Err(Interruption::refused_by_policy(reason)),
        Err(NoReview::Later { until, reason }) => wait(claim, until, reason),
        Err(NoReview::Away(reason)) => wait(claim, Utc::now() + TimeDelta::minutes(WAIT_MINUTES), reason),
        Err(error) => Ok(Err(redactor.clean(&error.to_string()).into_string())),
    }
}

/// Returns why there is no review of a reviewer that cannot be asked now, where it was waited for
/// long enough, or nothing is waited for: a local task ends with the command that started it.
///
/// # Errors
/// If it is to be asked again then.
fn wait(claim: &Claim, until: DateTime<Utc>, reason: String) -> Result<Result<Review, String>, Interruption> {
    let now = Utc::now();
    let since = claim.record.waiting.parked_since.unwrap_or(now);
    let given_up = if claim.record.request.local.is_some() {
        Some(reason.clone())
    } else {
        attempts::given_up(claim, since, now, &reason)
    };
    match given_up {
        Some(text) => Ok(Err(claim.services.redactor.clean(&text).into_string())),
        None => Err(Interruption::Postponed { until, reason }),
    }
}

/// Records the answer with the blockers that count, and saves it.
async fn keep(claim: &mut Claim, matter: &Matter<'_>, answer: Result<Review, String>) -> Result<(), Interruption> {
    let cited = answer.as_ref().map(|review| evidence::cited_paths(&review.blockers));
    let known = Known {
        files: files(matter.place, cited.unwrap_or_default()).await?,
        commit: matter.place.1.to_string(),
        commands: matter.commands.clone(),
        criteria: matter.criteria.clone(),
    };
    loop_of(&mut claim.record, matter.judged).record(&matter.document, answer, &known);
    claim.save().await
}

/// Returns the texts of those files that exist.
async fn files(
    (mirror, commit): (&Mirror, &CommitId),
    paths: BTreeSet<String>,
) -> Result<BTreeMap<String, String>, Interruption> {
    let mut files = BTreeMap::new();
    let mut room = MOST_BYTES;
    for path in paths.into_iter().take(MOST_FILES) {
        // A file that is too large to be read is no evidence.
        if let Ok(Some(bytes)) = mirror.file(commit, &path, LARGEST_FILE.min(room)).await {
            room = room.saturating_sub(bytes.len() as u64);
            files.insert(path, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Ok(files)
}

/// Returns the number of lines of those files that exist.
pub(super) async fn lines(
    place: (&Mirror, &CommitId),
    paths: BTreeSet<String>,
) -> Result<BTreeMap<String, u32>, Interruption> {
    let files = files(place, paths).await?.into_iter();
    let counted = files.map(|(path, text)| (path, u32::try_from(text.lines().count()).unwrap_or(u32::MAX)));
    Ok(counted.collect())
}

/// Says, for people, why it is given up to have something made better.
pub(super) fn why_unready(claim: &mut Claim, judged: Judged, why: &Unready) -> String {
    let target = rules(claim, judged).target_score;
    reviews::why_unready(why, loop_of(&mut claim.record, judged), target)
}

/// Notes that it is given up, and what the configuration says then.
pub(super) fn note_unready(claim: &mut Claim, judged: Judged, reason: &str, follows: &str) {
    let last = loop_of(&mut claim.record, judged).rounds().last();
    let digest = last.map_or_else(String::new, |round| round.digest.as_str().to_owned());
    claim.note(Fact::ReviewUnready {
        what: name(judged).to_owned(),
        digest,
        reason: reason.to_owned(),
        follows: follows.to_owned(),
    });
}

fn loop_of(record: &mut Record, judged: Judged) -> &mut ReviewLoop {
    match judged {
        Judged::Plan => &mut record.reviewed.plan,
        Judged::Result => &mut record.reviewed.result,
    }
}

fn name(judged: Judged) -> &'static str {
    match judged {
        Judged::Plan => "plan",
        Judged::Result => "result",
    }
}
