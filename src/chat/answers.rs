//! Answers to questions of runs, as people give them: the press of a button, or words that name a
//! digest, or none.

use super::phrases::Wording;
use crate::approval::digest::Beginning;
use crate::messenger::words::Button;
use crate::routing::text::folded;
use crate::task::id::RunId;

/// Most characters of a reason.
const LONGEST_REASON: usize = 2_000;
/// Words by which people answer, as questions name them.
const YES: [&str; 2] = ["approve", "承認"];
const NO: [&str; 2] = ["deny", "却下"];
/// Other forms of them. Sentences of all kinds begin with these, and are no answers.
const ALSO_YES: [&str; 2] = ["approved", "承認します"];
const ALSO_NO: [&str; 2] = ["denied", "却下します"];

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) is_yes: bool,
    /// The run, where a button was pressed.
    pub(super) run: Option<RunId>,
    pub(super) digest: Option<Beginning>,
    pub(super) reason: Option<String>,
}

/// The words that somebody typed for a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    Answer(Answer),
    /// They begin as an answer does, and may be a sentence about something else.
    Unclear,
}

/// Returns the buttons below a question.
pub(super) fn buttons(run: RunId, digest: &str, wording: Wording) -> Vec<Button> {
    let button = |label: &str, word: &str, is_dangerous| Button {
        label: label.to_owned(),
        value: format!("{word} {run} {digest}"),
        is_dangerous,
    };
    vec![
        button(wording.of("Approve", "承認"), "approve", false),
        button(wording.of("Deny", "却下"), "deny", true),
    ]
}

/// Reads the value of a button.
pub(super) fn pressed(value: &str) -> Option<Answer> {
    let mut words = value.split(' ');
    let is_yes = match words.next()? {
        "approve" => true,
        "deny" => false,
        _ => return None,
    };
    let run = words.next()?.parse().ok()?;
    let digest = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Answer {
        is_yes,
        run: Some(run),
        digest: Some(digest),
        reason: None,
    })
}

/// Reads what somebody typed, if that is an answer: a word of assent or refusal, alone or with a
/// digest, behind which a refusal may have its reason; or a digest alone, which assents. Without a
/// digest nothing else may follow: "deny guests the access" is a task.
pub(super) fn typed(text: &str) -> Option<Typed> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let word = folded(word);
    let of = |is_yes: bool, digest: Option<Beginning>, reason: &str| {
        Typed::Answer(Answer {
            is_yes,
            run: None,
            digest,
            reason: (!reason.is_empty()).then(|| reason.chars().take(LONGEST_REASON).collect()),
        })
    };
    let word = word.as_str();
    if let Ok(digest) = word.parse::<Beginning>() {
        return rest.trim().is_empty().then(|| of(true, Some(digest), ""));
    }
    let is_yes = YES.contains(&word) || ALSO_YES.contains(&word);
    if !is_yes && !NO.contains(&word) && !ALSO_NO.contains(&word) {
        return None;
    }
    let (second, behind) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    let (digest, reason) = (folded(second).parse::<Beginning>().ok(), behind.trim());
    let is_whole = digest.is_some() || second.is_empty();
    if is_whole && (reason.is_empty() || !is_yes) {
        return Some(of(is_yes, digest, reason));
    }
    (YES.contains(&word) || NO.contains(&word)).then_some(Typed::Unclear)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_answers_only_where_it_is_nothing_else() {
        let digest = "0123456789abcdef";
        let yes = |with: bool| Answer {
            is_yes: true,
            run: None,
            digest: with.then(|| digest.parse().unwrap()),
            reason: None,
        };
        for text in [
            digest.to_owned(),
            format!("approve {digest}"),
            format!("承認　{digest}"),
            format!(" Approve {digest} "),
        ] {
            assert_eq!(typed(&text), Some(Typed::Answer(yes(true))), "{text}");
        }
        for text in ["approve", "Approved", "承認します"] {
            assert_eq!(typed(text), Some(Typed::Answer(yes(false))), "{text}");
        }
        let no = |with: bool, reason: &str| {
            Some(Typed::Answer(Answer {
                is_yes: false,
                reason: (!reason.is_empty()).then(|| reason.to_owned()),
                ..yes(with)
            }))
        };
        assert_eq!(typed("deny"), no(false, ""));
        assert_eq!(typed(&format!("Deny {digest}")), no(true, ""));
        assert_eq!(typed(&format!("deny {digest} it is ugly")), no(true, "it is ugly"));
        assert_eq!(typed(&format!("却下 {digest} まだ早い")), no(true, "まだ早い"));
        // Whoever means the question is told how to say so.
        for unclear in [
            "approve it please",
            "deny it is ugly",
            "Deny requests without a token",
            "却下 まだ早い",
            &format!("approve {digest} and merge it"),
        ] {
            assert_eq!(typed(unclear), Some(Typed::Unclear), "{unclear}");
        }
        for none in [
            "",
            "I approve of it",
            "approved by whom?",
            "Denied requests should return 403",
            "却下します という文言を変えて",
            "denying",
            "0123456",
            "facade the house",
            "yes",
        ] {
            assert_eq!(typed(none), None, "{none}");
        }
    }

    #[test]
    fn a_button_says_what_it_answers() {
        let run = RunId::new();
        let made = buttons(run, "0123456789abcdef", Wording { is_japanese: false });
        let answers: Vec<_> = made.iter().filter_map(|button| pressed(&button.value)).collect();
        assert_eq!(
            answers.iter().map(|answer| answer.is_yes).collect::<Vec<_>>(),
            [true, false]
        );
        assert!(answers.iter().all(|answer| answer.run == Some(run)));
        for none in [
            "",
            "approve",
            "approve x 0123456789abcdef",
            &format!("approve {run} 0123"),
            &format!("stop {run} 0123456789"),
        ] {
            assert_eq!(pressed(none), None, "{none}");
        }
    }
}
