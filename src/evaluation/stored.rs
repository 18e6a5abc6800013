//! How an evaluation stands that the store has, whichever process makes it.

use chrono::{DateTime, TimeDelta, Utc};

use crate::store::StoredEvaluation;

/// Key of the longest time, in seconds, that the answers of the reviewer may take. The document has
/// it until the end.
pub(super) const LONGEST_ANSWERS: &str = "longest_answers_seconds";
/// Shortest time that the reviewer's answers are waited for, also where it is not known: three
/// answers with the longest time-out of the section `review`.
const ANSWERS: TimeDelta = TimeDelta::minutes(90);
/// Time for what comes between the answers: waits for a turn, and pauses.
const WAITS: TimeDelta = TimeDelta::minutes(30);

/// Returns how an evaluation stands: `running`, `broken off`, `passed`, `not passed` or `failed`.
pub fn state(one: &StoredEvaluation, now: DateTime<Utc>) -> &'static str {
    let passed = one.document["evaluation"]["passed"].as_bool();
    match (one.ended_at, passed) {
        (None, _) if is_running(one, now) => "running",
        (None, _) => "broken off",
        (Some(_), Some(true)) => "passed",
        (Some(_), Some(false)) => "not passed",
        (Some(_), None) => "failed",
    }
}

/// Tells whether an evaluation is under way. One without an end that would be over by now was
/// broken off with its process.
pub fn is_running(one: &StoredEvaluation, now: DateTime<Utc>) -> bool {
    one.ended_at.is_none() && now - one.begun_at - WAITS < longest_answers(one)
}

/// Returns the longest time that the answers of the reviewer may take.
fn longest_answers(one: &StoredEvaluation) -> TimeDelta {
    let known = one.document[LONGEST_ANSWERS].as_i64().and_then(TimeDelta::try_seconds);
    known.map_or(ANSWERS, |known| known.max(ANSWERS))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    fn state_after(minutes: i64, document: Value) -> &'static str {
        let one = StoredEvaluation {
            id: Uuid::now_v7(),
            begun_at: Utc::now(),
            ended_at: None,
            document,
        };
        state(&one, one.begun_at + TimeDelta::minutes(minutes))
    }

    #[test]
    fn an_evaluation_runs_for_as_long_as_its_reviewer_may_answer() {
        let slow = || json!({ LONGEST_ANSWERS: 3 * 3_600 });
        assert_eq!(state_after(209, slow()), "running");
        assert_eq!(state_after(210, slow()), "broken off");
        for usual in [json!({}), json!({ LONGEST_ANSWERS: 900 })] {
            assert_eq!(state_after(119, usual.clone()), "running");
            assert_eq!(state_after(120, usual), "broken off");
        }
    }
}
