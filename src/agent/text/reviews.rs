//! The reviews of plan and result, for people: a line for each round, and the reviewer's words
//! folded.

use crate::agent::record::Record;
use crate::agent::services::Settings;
use crate::markdown::compose::{Line, Page};
use crate::plain::counted;
use crate::plan::evidence::files_url_at;
use crate::repository::CommitId;
use crate::review::evidence;
use crate::review::rounds::{Opinion, ReviewLoop, Round, Unready};
use crate::review::score::Score;
use crate::review::{Blocker, Review};

/// Maximum number of rounds whose words are shown, the last ones.
const MOST_ROUNDS: usize = 5;
/// Maximum characters of one blocker, recommendation or reason.
const LONGEST: usize = 1000;
/// Maximum number of entries of one list.
const MOST: usize = 10;

/// Writes the reviews of the plan and those of the result.
pub(crate) fn reviews(page: &mut Page, record: &Record, settings: &Settings) {
    plan(page, record, settings);
    let pushed = record.pushed_result().filter(|_| record.delivered.change.is_some());
    of_result(page, record, settings, pushed);
}

/// Writes the reviews of a result that is not pushed yet.
pub(crate) fn result(page: &mut Page, record: &Record, settings: &Settings) {
    of_result(page, record, settings, None);
}

/// Writes the reviews of a result that is pushed.
pub(crate) fn delivered(page: &mut Page, record: &Record, settings: &Settings) {
    of_result(page, record, settings, record.pushed_result());
}

fn of_result(page: &mut Page, record: &Record, settings: &Settings, pushed: Option<&CommitId>) {
    let target = target(settings.review.config.result.target_score);
    // Nobody can look at a commit that was not pushed, or to another repository.
    let pushed = pushed.filter(|_| record.planned.fork.is_none());
    let head = record.delivered.head.as_ref().map(CommitId::as_str);
    let files = |round: &Round| {
        let commit = pushed.filter(|_| head == Some(round.commit.as_str()));
        commit.map_or_else(String::new, |commit| {
            files_url_at(&record.planned.files_url, commit.as_str())
        })
    };
    rounds(
        page,
        "**Review of the result**",
        "What the reviewer said of the result",
        &Reviewed {
            reviews: &record.reviewed.result,
            target,
            files: &files,
        },
        Vec::new(),
    );
}

/// Writes the reviews of the plan.
pub(crate) fn plan(page: &mut Page, record: &Record, settings: &Settings) {
    let target = target(settings.review.config.plan.target_score);
    let files = |round: &Round| files_url_at(&record.planned.files_url, &round.commit);
    let faults = record.reviewed.faults.iter();
    let faults = faults.map(|faults| {
        Line::from("Sent back by the program itself: ")
            .and(Line::figures(&counted(faults.len(), "fault")))
            .and(": ")
            .and(Line::said(faults.first().map_or("", String::as_str), LONGEST))
    });
    rounds(
        page,
        "**Review of the plan**",
        "What the reviewer said of the plan",
        &Reviewed {
            reviews: &record.reviewed.plan,
            target,
            files: &files,
        },
        faults.collect(),
    );
}

/// Returns a configured target; one that cannot be is refused where the configuration is read.
pub(crate) fn target(score: f64) -> Score {
    Score::try_from(score).unwrap_or(Score::EIGHT)
}

/// The reviews of a plan or of a result.
struct Reviewed<'a> {
    reviews: &'a ReviewLoop,
    target: Score,
    /// Returns the address below which the files that a round judged can be looked at.
    files: &'a dyn Fn(&Round) -> String,
}

fn rounds(
    page: &mut Page,
    heading: &'static str,
    summary: &'static str,
    reviewed: &Reviewed<'_>,
    mut lines: Vec<Line>,
) {
    let (all, target) = (reviewed.reviews.rounds(), reviewed.target);
    let number = |at: usize| Line::figures(&format!("Round {}: ", at + 1));
    lines.extend(all.iter().enumerate().map(|(at, round)| {
        let mark = if round.opinion.passes(target) { "✅ " } else { "🔁 " };
        Line::from(mark).and(number(at)).and(outcome(round, target))
    }));
    if lines.is_empty() {
        return;
    }
    page.own(heading);
    page.items(lines);
    let mut words = Page::default();
    let skipped = all.len().saturating_sub(MOST_ROUNDS);
    for (at, round) in all.iter().enumerate().skip(skipped) {
        if let (Opinion::Given { review, unproven }, false) = (&round.opinion, round.is_repeated) {
            words.paragraph(Line::from("**").and(number(at)).and(figures(review, target)).and("**"));
            let addresses = |blocker: &Blocker| links(blocker, round, &(reviewed.files)(round));
            said(&mut words, review, unproven, &addresses);
        }
    }
    if words != Page::default() {
        page.details(summary, words);
    }
}

/// Says what came of a round.
fn outcome(round: &Round, target: Score) -> Line {
    let line = match &round.opinion {
        Opinion::Given { review, .. } => figures(review, target),
        Opinion::Missing(why) => Line::from("no review: ").and(Line::said(why, LONGEST)),
    };
    if round.is_repeated {
        line.and(", as before: nothing of it was changed")
    } else {
        line
    }
}

fn figures(review: &Review, target: Score) -> Line {
    let ready = if review.ready_for_implementation {
        ""
    } else {
        ", not ready"
    };
    let mut text = format!("{} of 10{ready}", review.score);
    if review.score < target {
        text = format!("{text}, {target} is needed");
    }
    let blockers = review.blockers.len();
    if blockers > 0 {
        text = format!("{text}, {}", counted(blockers, "blocker"));
    }
    Line::figures(&text)
}

/// Returns the addresses of the places that a blocker names and that are there; `files` is the one
/// of the files of the commit that was judged.
fn links(blocker: &Blocker, round: &Round, files: &str) -> Vec<String> {
    let places = evidence::named_by(blocker, &round.places).into_iter();
    places
        .filter_map(|place| place.citation().link(files))
        .take(MOST)
        .collect()
}

/// Writes the reviewer's words, with the places of what blocks.
fn said(page: &mut Page, review: &Review, unproven: &[Blocker], links: &dyn Fn(&Blocker) -> Vec<String>) {
    page.said(&review.conclusion);
    page.said(&review.rationale);
    let blockers = review.blockers.iter().take(MOST);
    let linked = blockers.map(|blocker| {
        let line = Line::from("Blocker: ").and(Line::said(&claim(blocker), LONGEST));
        let links = links(blocker).into_iter();
        links.fold(line, |line, link| line.and(" ").and(Line::address(&link)))
    });
    let mut items: Vec<Line> = linked.collect();
    let lists = [
        ("Weakness: ", texts(&review.analysis.weaknesses)),
        ("Recommendation: ", texts(&review.recommendations)),
        ("Without evidence: ", claims(unproven)),
        ("Strength: ", texts(&review.analysis.strengths)),
    ];
    items.extend(lists.into_iter().flat_map(|(what, list)| {
        list.into_iter()
            .map(move |text| Line::from(what).and(Line::said(&text, LONGEST)))
    }));
    page.items(items);
    page.said(&review.technical_notes);
}

fn texts(list: &[String]) -> Vec<String> {
    list.iter().take(MOST).cloned().collect()
}

fn claims(blockers: &[Blocker]) -> Vec<String> {
    blockers.iter().take(MOST).map(claim).collect()
}

fn claim(Blocker { claim, evidence, why }: &Blocker) -> String {
    let evidence = Some(evidence.join(", ")).filter(|evidence| !evidence.is_empty());
    let evidence = evidence.map_or_else(String::new, |evidence| format!(" ({evidence})"));
    let why = if why.is_empty() {
        String::new()
    } else {
        format!(": {why}")
    };
    format!("{claim}{evidence}{why}")
}

/// Says, as the end of a sentence, why something did not pass its review.
pub(crate) fn why_unready(why: &Unready, reviews: &ReviewLoop, target: Score) -> String {
    let last = reviews.rounds().last().and_then(|round| match &round.opinion {
        Opinion::Given { review, .. } => Some(review),
        Opinion::Missing(_) => None,
    });
    let standing = last.map_or_else(String::new, |review| {
        let mut faults = Vec::new();
        if review.score < target {
            faults.push(format!("its score is {} where {target} is needed", review.score));
        }
        if !review.ready_for_implementation {
            faults.push("the reviewer does not call it ready".to_owned());
        }
        if !review.blockers.is_empty() {
            faults.push(format!("{} left", counted(review.blockers.len(), "blocker")));
        }
        faults.join(", and ")
    });
    match why {
        Unready::Rounds(rounds) => format!("after {} {standing}", counted(*rounds, "round")),
        Unready::Plateau => format!("{standing}, and two rounds made it no better"),
        Unready::NoReview(reason) => format!("there is no review of it: {reason}"),
    }
}

/// Returns the scores by round for a line of text; `None` if there was no review.
pub fn scores(reviews: &ReviewLoop) -> Option<String> {
    let score = |round: &Round| {
        round
            .opinion
            .score()
            .map_or("none".to_owned(), |score| score.to_string())
    };
    let scores: Vec<String> = reviews.rounds().iter().map(score).collect();
    (!scores.is_empty()).then(|| scores.join(", "))
}
