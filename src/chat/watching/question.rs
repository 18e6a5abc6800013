//! The question whether a plan or a result may go on, as a conversation is asked it.
//!
//! It begins with where all of it can be read and how it is answered: behind long lists both would
//! be cut off. It names every part that an approval covers, and counts what it leaves out.

use super::words::{MOST_STEPS, and_more, cut};
use crate::agent::record::{HeldResult, PausedBy, Record};
use crate::approval::proposal::{Egress, HeldPlan, Part};
use crate::chat::phrases::Wording;

/// Most characters of a list on one line, unless its first entry is longer.
const LONGEST_LIST: usize = 400;

/// The facts that a question shows besides those of the run's record.
pub(super) struct QuestionContext<'a> {
    /// The address of the page that shows all of it.
    pub(super) url: &'a str,
    pub(super) digest: &'a str,
    pub(super) cost_usd: Option<f64>,
    pub(super) wording: Wording,
}

/// Returns the question. It may be longer than a message: a messenger gets it in parts.
pub(super) fn question(record: &Record, asked: &QuestionContext<'_>) -> String {
    let wording = asked.wording;
    let (title, details) = match record.waiting.paused.as_ref().map(|paused| &paused.by) {
        Some(PausedBy::Plan(held)) => (
            wording.of("The plan needs your approval", "計画の承認をお願いします"),
            plan(held, wording),
        ),
        Some(PausedBy::Objections(held)) => (
            wording.of("The result needs your approval", "結果の承認をお願いします"),
            result(held, wording),
        ),
        Some(PausedBy::Person(_) | PausedBy::AllRuns | PausedBy::Limit(_) | PausedBy::Question(_)) | None => {
            (wording.of("Your approval is needed", "承認をお願いします"), Vec::new())
        }
    };
    let digest = asked.digest;
    let mut lines = vec![
        format!("🔐 {title}"),
        wording.field("All of it", "全文", asked.url),
        format!("`approve {digest}` / `deny {digest} …`"),
    ];
    lines.extend(details);
    if let Some(cost) = asked.cost_usd {
        lines.push(wording.field("Cost so far", "これまでの費用", &dollars(cost)));
    }
    lines.join("\n")
}

fn plan(held: &HeldPlan, wording: Wording) -> Vec<String> {
    let mut lines = Vec::new();
    if !held.changed.is_empty() {
        let changed: Vec<&str> = held.changed.iter().map(|part| in_words(*part, wording)).collect();
        lines.push(wording.field(
            "Changed since it was asked before",
            "前回の確認からの変更",
            &changed.join(", "),
        ));
    }
    if held.was_denied {
        let words = wording.of(
            "This is the plan that was denied before.",
            "前回却下された計画と同じです。",
        );
        lines.push(words.to_owned());
    }
    if !held.goal.is_empty() {
        lines.push(cut(&held.goal));
    }
    lines.extend(listed(&held.steps, 0, wording));
    for (english, japanese, list) in [
        ("Set-up", "準備コマンド", &held.set_up),
        ("Checks", "検証コマンド", &held.checks),
        ("Files", "ファイル", &held.files),
    ] {
        if !list.is_empty() {
            lines.push(wording.field(english, japanese, &on_one_line(list, wording)));
        }
    }
    let environment = format!("{} ({})", held.environment, held.image);
    lines.push(wording.field("Environment", "環境", &environment));
    lines.push(wording.field("Network", "接続先", &network(&held.egress, wording)));
    lines.push(wording.field("Limits", "上限", &on_one_line(&held.budget, wording)));
    lines.push(
        wording
            .of(
                "The work is done in a container that is thrown away, so it can be undone. What programs send to hosts that \
                 they may reach cannot.",
                "作業は使い捨てのコンテナで行うため、取り消せます。接続先へ送られたものは取り消せません。",
            )
            .to_owned(),
    );
    if let Some(cost) = held.estimate.cost_usd {
        lines.push(wording.field("Estimated cost", "概算費用", &dollars(cost)));
    }
    lines
}

fn result(held: &HeldResult, wording: Wording) -> Vec<String> {
    let mut lines = Vec::new();
    if !held.changed.is_empty() {
        lines.push(wording.field(
            "It differs from what was approved in",
            "承認された結果からの変更",
            &on_one_line(&held.changed, wording),
        ));
    }
    let (files, rows) = (held.extent.files.to_string(), held.extent.lines.to_string());
    lines.push(format!(
        "{} / {}",
        wording.field("Files", "ファイル数", &files),
        wording.field("lines", "行数", &rows)
    ));
    let reasons: Vec<String> = held.objections.iter().map(ToString::to_string).collect();
    lines.extend(listed(&reasons, held.more.protected + held.more.secrets, wording));
    if !held.environment.is_empty() {
        lines.push(wording.field("Environment", "環境", &held.environment));
    }
    lines.push(
        wording
            .of(
                "It is pushed to a branch of its own, which can be deleted. What the forge runs because of the push cannot be \
                 undone.",
                "ブランチへ送られ、ブランチを消せば取り消せます。フォージがそれを受けて実行したことは取り消せません。",
            )
            .to_owned(),
    );
    lines
}

fn in_words(part: Part, wording: Wording) -> &'static str {
    let japanese = match part {
        Part::Plan => "計画",
        Part::SetUp => "準備コマンド",
        Part::Environment => "環境",
        Part::Egress => "接続先",
        Part::Budget => "上限",
        Part::Allowance => "追加のトークン",
    };
    wording.of(part.in_words(), japanese)
}

fn network(egress: &Egress, wording: Wording) -> String {
    match egress {
        Egress::Nothing => wording.of("none", "なし").to_owned(),
        Egress::Everything => wording.of("everything", "すべて").to_owned(),
        Egress::Hosts {
            hosts,
            only_during_set_up,
        } => {
            let hosts = on_one_line(hosts, wording);
            if *only_during_set_up {
                return hosts + wording.of(" (only while the set-up commands run)", "(準備コマンドの実行中のみ)");
            }
            hosts
        }
    }
}

/// Returns a line for each of the first entries, and one that counts the others and those `beyond`
/// the list.
fn listed(list: &[String], beyond: usize, wording: Wording) -> Vec<String> {
    let shown = list.iter().take(MOST_STEPS).map(|entry| format!("- {}", cut(entry)));
    let more = list.len().saturating_sub(MOST_STEPS) + beyond;
    let counted = (more > 0).then(|| format!("- {}", and_more(more, wording)));
    shown.chain(counted).collect()
}

/// Returns a list on one line: the first entries, and how many others there are.
fn on_one_line(list: &[String], wording: Wording) -> String {
    let mut line = String::new();
    for (shown, entry) in list.iter().enumerate() {
        let entry = cut(entry);
        if shown > 0 && line.chars().count() + entry.chars().count() > LONGEST_LIST {
            line.push_str("; ");
            line.push_str(&and_more(list.len() - shown, wording));
            break;
        }
        if shown > 0 {
            line.push_str("; ");
        }
        line.push_str(&entry);
    }
    line
}

fn dollars(cost: f64) -> String {
    format!("${cost:.2}")
}

#[cfg(test)]
mod tests {
    use chrono::Utc;

    use super::*;
    use crate::agent::record::Paused;
    use crate::agent::record::hold_reason::{HoldReason, Unlisted};
    use crate::approval::Question;
    use crate::approval::digest::Digest;
    use crate::approval::proposal::{Bound, Estimate, Reason};
    use crate::chat::sayings::parts;
    use crate::messenger::place::Messenger;

    const DIGEST: &str = "0123456789abcdef";

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn held_plan() -> HeldPlan {
        HeldPlan {
            question: Question::new(Digest::of(&[b"a plan"]), ""),
            bound: Bound::default(),
            reason: Reason::Configured,
            changed: vec![Part::SetUp],
            is_void: false,
            is_at_work: false,
            was_denied: false,
            goal: "Greet the reader".to_owned(),
            steps: (1..=17).map(|number| format!("step {number}")).collect(),
            set_up: texts(&["pip install -r requirements.txt", "make"]),
            checks: texts(&["pytest -q"]),
            files: texts(&["README.md"]),
            environment: "python".to_owned(),
            image: "python:3.14".to_owned(),
            egress: Egress::Hosts {
                hosts: texts(&["pypi.org"]),
                only_during_set_up: true,
            },
            budget: texts(&["1000 model turns"]),
            estimate: Estimate {
                tokens: 1,
                cost_usd: Some(1.5),
            },
        }
    }

    fn asked(by: PausedBy, is_japanese: bool) -> String {
        let mut record = Record::default();
        record.waiting.paused = Some(Paused {
            by,
            at: Utc::now(),
            saved: None,
        });
        let asked = QuestionContext {
            url: "https://forge.example/1",
            digest: DIGEST,
            cost_usd: Some(0.25),
            wording: Wording { is_japanese },
        };
        question(&record, &asked)
    }

    #[test]
    fn a_plan_is_asked_about_with_all_parts_that_its_approval_covers() {
        let text = asked(PausedBy::Plan(Box::new(held_plan())), false);
        let lines: Vec<&str> = text.lines().collect();
        let begin = [
            "🔐 The plan needs your approval",
            "All of it: https://forge.example/1",
            "`approve 0123456789abcdef` / `deny 0123456789abcdef …`",
            "Changed since it was asked before: its set-up commands",
            "Greet the reader",
            "- step 1",
        ];
        assert_eq!(lines[..begin.len()], begin);
        let end = [
            "- step 15",
            "- and 2 more",
            "Set-up: pip install -r requirements.txt; make",
            "Checks: pytest -q",
            "Files: README.md",
            "Environment: python (python:3.14)",
            "Network: pypi.org (only while the set-up commands run)",
            "Limits: 1000 model turns",
        ];
        let at = lines.iter().position(|line| *line == end[0]).unwrap();
        assert_eq!(lines[at..at + end.len()], end);
        assert!(text.ends_with("Estimated cost: $1.50\nCost so far: $0.25"), "{text}");
        assert!(!text.contains("denied before"), "{text}");
        let again = HeldPlan {
            was_denied: true,
            ..held_plan()
        };
        let again = asked(PausedBy::Plan(Box::new(again)), false);
        let words = "its set-up commands\nThis is the plan that was denied before.\nGreet the reader";
        assert!(again.contains(words), "{again}");
        let japanese = asked(PausedBy::Plan(Box::new(held_plan())), true);
        assert!(japanese.contains("\n- ほか2件\n準備コマンド: pip"), "{japanese}");
    }

    #[test]
    fn a_question_that_is_longer_than_a_message_comes_whole_and_its_digest_first() {
        let mut held = held_plan();
        held.steps = (1..=15).map(|_| "x".repeat(190)).collect();
        held.set_up = (1..=100)
            .map(|number| format!("command {number:03} {}", "y".repeat(37)))
            .collect();
        let text = asked(PausedBy::Plan(Box::new(held)), false);
        // Each has 49 characters, and 2 between them.
        for words in ["; command 007 ", "; and 93 more\n"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let parts = parts(Messenger::Line, &text);
        assert!(parts.len() > 1 && parts[0].contains(DIGEST), "{parts:#?}");
        assert!(parts.concat().contains("Network: pypi.org"), "{parts:#?}");
    }

    #[test]
    fn a_result_is_asked_about_with_every_reason_that_holds_it() {
        let protected = |number: usize| HoldReason::Protected {
            path: format!("{number}.yml"),
        };
        let objections = (0..16).map(protected).chain([HoldReason::Always]).collect();
        let held = HeldResult {
            objections,
            more: Unlisted {
                protected: 3,
                secrets: 1,
            },
            changed: texts(&["a.txt"]),
            ..HeldResult::default()
        };
        let text = asked(PausedBy::Objections(Box::new(held)), false);
        for words in [
            "It differs from what was approved in: a.txt\nFiles: 0 / lines: 0\n- `0.yml` is changed",
            "\n- and 6 more\nIt is pushed",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let held = HeldResult {
            objections: vec![HoldReason::Always],
            ..HeldResult::default()
        };
        let text = asked(PausedBy::Objections(Box::new(held)), false);
        assert!(text.contains("- every result waits"), "{text}");
    }
}
