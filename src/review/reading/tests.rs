//! Answers as reviewers write them.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const ANSWERS: &str = include_str!("../../../tests/data/review-answers.txt");

fn read_text(text: &str, mode: Mode) -> Result<Review, String> {
    let reply = Reply {
        text: text.to_owned(),
        ..Reply::default()
    };
    read(&reply, mode).map_err(|unreadable| unreadable.to_string())
}

/// Returns the result in the words of the table; the number of blockers where `counts` has one.
fn in_words(result: Result<&Review, &String>, expected: &str) -> String {
    let Ok(review) = result else {
        return "unreadable".to_owned();
    };
    let ready = if review.ready_for_implementation {
        "ready"
    } else {
        "not ready"
    };
    let counts = expected
        .split(' ')
        .next_back()
        .is_some_and(|last| last.parse::<usize>().is_ok());
    if counts {
        format!("{ready} {} {}", review.score, review.blockers.len())
    } else {
        format!("{ready} {}", review.score)
    }
}

#[test]
fn answers_are_read_as_the_table_says() {
    let mut wrong = Vec::new();
    let mut number = 0;
    for record in ANSWERS.split("%%% ").skip(1) {
        let (head, text) = record.split_once('\n').unwrap();
        let [name, flexible, strict] = head.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{head}");
        };
        number += 1;
        for (mode, expected) in [(Mode::Flexible, flexible), (Mode::Strict, strict)] {
            let read = read_text(text, mode);
            let found = in_words(read.as_ref(), expected);
            if found != expected {
                wrong.push(format!(
                    "{name} ({mode:?}): expected {expected}, found {found}: {read:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(number >= 60, "the table has only {number} answers");
}

#[test]
fn all_fields_are_read_from_json_and_from_headings() {
    let from_json = read_text(
        r#"{"ready_for_implementation": false, "score": 6, "conclusion": "Almost.", "rationale": "One step is wrong.",
            "analysis": {"strengths": ["small"], "weaknesses": ["no rollback"]}, "recommendations": ["add one"],
            "blockers": [{"claim": "wrong order", "evidence": ["src/a.rs:3", "make test"], "why": "it fails"}], "technical_notes": "uses 3.12"}"#,
        Mode::Flexible,
    );
    let blocker = super::super::Blocker {
        claim: "wrong order".to_owned(),
        evidence: vec!["src/a.rs:3".to_owned(), "make test".to_owned()],
        why: "it fails".to_owned(),
    };
    let expected = Review {
        ready_for_implementation: false,
        score: Score::try_from(6.0).unwrap(),
        conclusion: "Almost.".to_owned(),
        rationale: "One step is wrong.".to_owned(),
        analysis: super::super::Analysis {
            strengths: vec!["small".to_owned()],
            weaknesses: vec!["no rollback".to_owned()],
        },
        recommendations: vec!["add one".to_owned()],
        blockers: vec![blocker],
        technical_notes: "uses 3.12".to_owned(),
    };
    assert_eq!(from_json.as_ref(), Ok(&expected));
    let from_text = read_text(
        "# Review\nReady: no\nScore: 6\n\n## Conclusion\nAlmost.\n\n## Rationale\nOne step is wrong.\n\n## Strengths\n- small\n\n\
         ## Weaknesses\n* no rollback\n\n## Recommendations\n1. add one\n\n## Blockers\n- [ ] wrong order\n\nTechnical notes: uses 3.12\n",
        Mode::Flexible,
    );
    let blocker = super::super::Blocker {
        claim: "wrong order".to_owned(),
        ..super::super::Blocker::default()
    };
    let expected = Review {
        blockers: vec![blocker],
        ..expected
    };
    assert_eq!(from_text.as_ref(), Ok(&expected));
    // What is stored is read back, and is itself an answer.
    let stored = serde_json::to_string(&expected).unwrap();
    assert_eq!(serde_json::from_str::<Review>(&stored).unwrap(), expected);
    assert_eq!(read_text(&stored, Mode::Strict).as_ref(), Ok(&expected));
}

#[test]
fn json_and_text_complete_each_other() {
    let review = read_text(
        "## Blockers\n- nothing rolls back\n\n```json\n{\"ready_for_implementation\": true, \"score\": 9}\n```",
        Mode::Flexible,
    )
    .unwrap();
    assert_eq!((review.ready_for_implementation, review.blockers.len()), (true, 1));
}

#[test]
fn an_answer_that_was_cut_is_never_read() {
    let reply = Reply {
        text: "{\"ready_for_implementation\": true, \"score\": 9}".to_owned(),
        cut: true,
        ..Reply::default()
    };
    for mode in [Mode::Flexible, Mode::Strict] {
        let error = read(&reply, mode).unwrap_err().to_string();
        assert!(error.starts_with("The answer was cut at the length limit"), "{error}");
        assert!(error.ends_with(FORM));
    }
}

#[test]
fn the_reviewer_is_told_what_is_wrong() {
    for (text, what) in [
        ("", "The reply is empty"),
        ("Score: 9/10", "The answer does not say whether the document is ready"),
        ("Ready: yes", "The answer states no score"),
        (
            "{\"ready\": true, \"score\": 12}",
            "The answer's score is not a number from 0 to 10",
        ),
        (
            "{\"ready\": true, \"score\": 9",
            "The JSON that begins at line 1, column 1 is broken",
        ),
    ] {
        let error = read_text(text, Mode::Flexible).unwrap_err();
        assert!(
            error.starts_with(what) || text.is_empty() && error.starts_with("The answer is empty"),
            "{error}"
        );
    }
}

#[test]
fn long_answers_are_cut_to_what_can_be_kept_and_read_in_linear_time() {
    let long = "x".repeat(20_000);
    let text = format!(
        "Ready: no\nScore: 3\n## Conclusion\n{long}\n## Blockers\n{}",
        format!("- {long}\n").repeat(100)
    );
    let review = read_text(&text, Mode::Flexible).unwrap();
    assert!(serde_json::to_string(&review).unwrap().len() < 200_000);
    for piece in [
        "Ready: yes, ",
        "Score: 1|",
        "<score>",
        "\"score\"",
        "`{\"a\":1}`",
        "# Blockers\n",
        "> \n",
        "not ready ",
        "判定：",
        "```\n",
    ] {
        let text = piece.repeat(1_000_000 / piece.len());
        let begin = std::time::Instant::now();
        let _ = read_text(&text, Mode::Flexible);
        assert!(begin.elapsed().as_secs() < 30, "{piece}: {:?}", begin.elapsed());
    }
}

/// An answer that says that the document is not ready, as one of many forms.
fn refusing() -> impl Strategy<Value = String> {
    let statement = select(vec![
        r#"{"ready_for_implementation": false, "score": 9.5}"#,
        r#"{"score": 9.5, "ready": "no"}"#,
        r#"{"pass": false, "confidence": "high", "context": "x"}"#,
        r#"{"evaluation": {"ready_for_implementation": false, "score": 9}}"#,
        "Ready for implementation: no",
        "**Ready:** No, the second step is missing.",
        "## Verdict\n\nNot ready",
        "| Ready | ❌ |",
        "<ready_for_implementation>false</ready_for_implementation>",
        "実装準備：未完了",
        "判定：不合格",
        "## 実装可否\n不可",
        "The plan is not ready for implementation.",
        "This document isn't ready to be implemented.",
        "実装準備が整っていません。",
        "Ready: yes, but only after the schema is added",
    ]);
    let around = select(vec![
        "",
        "Score: 9.5/10\n",
        "{\"ready_for_implementation\": true, \"score\": 9.5}\n",
        "Ready: yes\nScore: 10/10\n",
        "**Approved**\n",
        "実装準備：完了\n総合評価：9点\n",
        "<score>9</score><ready>true</ready>\n",
        "<think>ready: true, score: 9</think>\n",
        "For example {\"ready\": true, \"score\": 10}\n\n",
        "## Conclusion\nAll is well.\n\n",
        "> Ready: yes\n\n",
    ]);
    let noise = "[a-zA-Z .,\n#*あ点-]{0,40}";
    (around.clone(), noise, statement, around).prop_map(|(before, noise, statement, after)| {
        format!("{before}{}\n\n{statement}\n\n{after}", noise.replace(['`', '{'], ""))
    })
}

/// Text that states no verdict, however much it looks like one.
fn unreadable() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "I cannot evaluate this.\n",
        "An example: {\"ready_for_implementation\": true, \"score\": 9}\n\n",
        "> {\"ready_for_implementation\": true, \"score\": 9}\n\n",
        "> Ready: yes\n> Score: 9/10\n\n",
        "{\"ready_for_implementation\": true, \"score\": \n",
        "Score: 9/10\n",
        "{\"score\": 10}\n",
        "10/10 would read again\n",
        "The steps are ready when the server is.\n",
        "`{\"ready\": true, \"score\": 9}` is what was asked for.\n",
        "総合評価：10点\n",
        "<score>10</score>\n",
        "<think>Ready: yes. Score: 9</think>\n",
    ]);
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_review_that_says_not_ready_is_never_read_as_ready(text in refusing()) {
        for mode in [Mode::Flexible, Mode::Strict] {
            let is_ready = read_text(&text, mode).is_ok_and(|review| review.ready_for_implementation);
            prop_assert!(!is_ready, "{:?}: {}", mode, text);
        }
    }

    #[test]
    fn what_states_no_verdict_is_no_review(text in unreadable()) {
        for mode in [Mode::Flexible, Mode::Strict] {
            prop_assert!(read_text(&text, mode).is_err(), "{:?}: {}", mode, text);
        }
    }

    #[test]
    fn whatever_is_read_strictly_is_read_flexibly_and_never_more_kindly(ready in any::<bool>(), score in 0.0..=10.0_f64, text in "[ -~あ点]{0,60}") {
        let answer = serde_json::json!({"ready_for_implementation": ready, "score": score, "conclusion": text}).to_string();
        let strict = read_text(&answer, Mode::Strict).unwrap();
        let flexible = read_text(&answer, Mode::Flexible).unwrap();
        // In flexible mode the texts are read as well.
        prop_assert!(strict.ready_for_implementation || !flexible.ready_for_implementation);
        prop_assert!(flexible.score <= strict.score);
        prop_assert!(ready || !strict.ready_for_implementation);
        prop_assert!(strict.score.value() <= score + 1e-6);
    }

    #[test]
    fn any_text_is_taken(text in r#"([{}\[\]"',:<>/|#*`>0-9a \n点]|ready|score|yes|no|not |true|false|実装準備|判定|：|blockers|"score":){0,120}"#) {
        for mode in [Mode::Flexible, Mode::Strict] {
            let _ = read_text(&text, mode);
        }
    }
}
