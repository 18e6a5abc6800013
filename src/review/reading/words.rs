//! Words that say yes or no, in English and Japanese.
//!
//! The two languages are read in different ways: English by words, Japanese by parts of words,
//! since nothing separates its words.

use std::sync::LazyLock;

use regex::Regex;

use crate::review::score::{narrow, pattern};

const YES: &[&str] = &[
    "true", "yes", "y", "ready", "pass", "passed", "passes", "approve", "approved", "ok", "okay", "go", "lgtm",
    "accept", "accepted",
];
const NO: &[&str] = &[
    "false",
    "no",
    "not",
    "n",
    "fail",
    "failed",
    "fails",
    "reject",
    "rejected",
    "rejects",
    "nope",
    "unready",
    "blocked",
    "incomplete",
    "insufficient",
    "partially",
    "partly",
    "almost",
    "nearly",
    "conditional",
    "conditionally",
    "denied",
    "never",
    "isn't",
    "cannot",
    "can't",
    "don't",
    "needs",
    "requires",
    "pending",
    "revise",
    "changes",
];
/// Words before a verdict that make it an example or a quotation.
const QUOTING: &[&str] = &[
    "example",
    "e.g.",
    "for instance",
    "sample",
    "template",
    "expected format",
    "would look like",
    "should look like",
    "looks like this",
    "contains",
    "the text says",
    "the plan says",
    "the document says",
    "quot",
    "inject",
    "embedded",
    "previous",
    "例えば",
    "例：",
    "例:",
    "の例",
    "サンプル",
    "引用",
    "書かれて",
    "含まれて",
    "前回",
];
/// Words after a "no" with which it does not take back a yes before it.
const HARMLESS_NO: &[&str] = &[
    "blocker",
    "blockers",
    "blocking",
    "issue",
    "issues",
    "concern",
    "concerns",
    "problem",
    "problems",
    "major",
    "critical",
    "open",
    "remaining",
    "further",
    "more",
    "other",
    "changes",
    "serious",
];
/// Words behind a yes that take it back.
const CONDITIONS: &[&str] = &[
    "if",
    "but",
    "once",
    "after",
    "when",
    "unless",
    "except",
    "provided",
    "pending",
    "conditional",
    "conditionally",
    "conditions",
    "condition",
    "assuming",
    "however",
    "until",
    "almost",
    "nearly",
    "partially",
    "not",
    "no",
    "false",
    "only",
    "subject",
];
const JAPANESE_NO: &[&str] = &[
    "未",
    "不",
    "否",
    "いいえ",
    "ない",
    "ません",
    "要修正",
    "修正が必要",
    "保留",
    "条件付",
    "却下",
    "差し戻し",
    "差戻し",
    "見送り",
    "中止",
    "一部",
    "ほぼ",
    "ただし",
];
const JAPANESE_YES: &[&str] = &[
    "はい",
    "可",
    "合格",
    "完了",
    "整って",
    "できて",
    "準備完",
    "承認",
    "問題なし",
    "移れる",
    "移行可",
];

/// Tells whether the value of a label means yes; `None` for what says neither.
pub(super) fn answer(value: &str) -> Option<bool> {
    let value = narrow(value).to_lowercase();
    let clause = value
        .split(['\n', ';', '|', '。'])
        .find(|part| has_word(part))
        .unwrap_or("");
    if clause.contains(['❌', '✗', '✘', '🔴', '🚫']) {
        return Some(false);
    }
    if clause.chars().any(is_japanese) {
        let rest = NO_PROBLEM.replace_all(clause, " ");
        if JAPANESE_NO.iter().any(|word| rest.contains(word)) {
            return Some(false);
        }
        if JAPANESE_YES.iter().any(|word| clause.contains(word)) {
            return Some(true);
        }
    }
    let mut words = clause
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
        .filter(|word| !word.is_empty());
    let Some(first) = words.next() else {
        let is_ticked = clause.contains(['✅', '✓', '✔']);
        return is_ticked.then_some(true);
    };
    if NO.contains(&first) {
        return Some(false);
    }
    let rest: Vec<&str> = words.collect();
    let takes_back = |(place, word): (usize, &&str)| {
        let is_harmless = *word == "no" && rest.get(place + 1).is_some_and(|next| HARMLESS_NO.contains(next));
        CONDITIONS.contains(word) && !is_harmless
    };
    YES.contains(&first).then(|| !rest.iter().enumerate().any(takes_back))
}

/// Tells whether `text` introduces an example or a quotation.
pub(super) fn quotes(text: &str) -> bool {
    let text = text.to_lowercase();
    QUOTING.iter().any(|words| text.contains(words))
}

/// Tells whether something in `text` says that the document is not ready.
pub(super) fn speaks_against(text: &str) -> bool {
    let text = narrow(text).to_lowercase();
    let text: String = text
        .chars()
        .filter(|letter| !matches!(letter, '*' | '_' | '`' | '~'))
        .collect();
    AGAINST.is_match(&text)
}

/// Tells whether an entry of a list says that there is none.
pub(super) fn means_nothing(entry: &str) -> bool {
    let entry = narrow(entry).to_lowercase();
    let entry = entry.trim_matches(|letter: char| !letter.is_alphanumeric());
    let names_none = matches!(
        entry,
        "" | "none" | "no" | "nothing" | "null" | "n/a" | "na" | "0" | "nil" | "false"
    );
    let begins = [
        "no blocker",
        "none identified",
        "none found",
        "no blocking",
        "no critical",
        "なし",
        "特になし",
        "該当なし",
        "ありません",
        "特にありません",
    ];
    names_none || begins.iter().any(|words| entry.starts_with(words))
}

fn has_word(part: &str) -> bool {
    part.chars()
        .any(|letter| letter.is_alphanumeric() || !letter.is_ascii() && !letter.is_whitespace())
}

fn is_japanese(letter: char) -> bool {
    matches!(letter, '\u{3041}'..='\u{30FF}' | '\u{4E00}'..='\u{9FFF}')
}

/// Japanese words that there is nothing against the document: they take back no yes beside them.
/// They end a clause or give a reason; where more follows, as a question or a doubt, they say
/// nothing of the kind.
static NO_PROBLEM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?:(?:問題|不備|不足|懸念|ブロッカー|指摘)(?:点|事項)?(?:や|と|も|、|・)?)+(?:は|が)?(?:特に)?",
        r"(?:なし|無し|ない|ありません|ございません|見当たりません)(?:です|でした)?",
        r"(?:ので|ため|\s*(?:$|[、,.)!」』】]))",
    ))
});

/// Sentences about the document itself. "Not ready" alone is not enough: plans speak of services
/// that are not ready.
static AGAINST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\bnot\s+(?:\w+\s+){0,3}ready\s+(?:for|to)\s+(?:be\s+)?(?:implement|proceed|start|begin|build|cod|merg|ship|production|work|deliver|approv)",
        r"|\b(?:isn't|aren't|wasn't)\s+(?:\w+\s+){0,3}ready\s+(?:for|to)\s+(?:be\s+)?(?:implement|proceed|start|begin|cod|merg|approv)",
        r"|\b(?:plan|document|design|proposal|spec|specification|change|changes|patch|diff|result|draft|implementation)",
        r"\s+(?:is|are|was|seems|looks)(?:\s+not|n't)\s+(?:\w+\s+){0,3}(?:ready|acceptable|approved)\b",
        r"|(?:^|[.!?:\n]\s*)\W{0,8}(?:it|this)\s+(?:is\s+not|isn't|is\s+n't)\s+(?:\w+\s+){0,2}ready\b",
        r"|(?:^|\n|:)\W{0,8}(?:no\b\W{0,3})?not\s+(?:yet\s+|quite\s+|fully\s+)?(?:ready|approved|passed|passing)\b",
        r"|\b(?:ready(?:\s*for\s*implementation)?|readiness|pass(?:ed)?|approved|verdict|decision)\W{0,3}\s*[:=]\W{0,8}",
        r"(?:no\b|not\b|false\b|fail|reject|needs\s+(?:work|revision)|いいえ|未|不)",
        r"|\bnot\s+implementation[- ]ready\b|\bunready\b",
        r"|\b(?:cannot|can't|can\s+not|do\s+not|don't|will\s+not|won't|unable\s+to)\s+(?:\w+\s+){0,1}(?:approve|pass|sign\s+off)\b",
        r"|\bi\s+(?:\w+\s+)?reject\b|\b(?:should|must)\s+not\s+(?:be\s+)?(?:implemented|proceed|approved|merged|delivered)\b",
        r"|準備(?:は|が|も)?(?:まだ|十分に|完全に)?(?:整って|できて|出来て|完了して)い?(?:ない|ません|なかった)",
        r"|準備(?:未完|不足|が不十分|は不十分|が未)",
        r"|実装(?:に|へ)(?:は)?(?:まだ)?(?:移れ|進め|着手でき)(?:ない|ません)|実装できる状態(?:では|に)(?:ない|ありません|至って)",
        r"|(?:承認|合格と)(?:は|に)?でき(?:ない|ません)|不合格|却下(?:し|と|。|$)|差し?戻し",
    ))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_one() {
        for (value, expected) in [
            ("true", Some(true)),
            ("**Yes**", Some(true)),
            ("Yes, all criteria are covered.", Some(true)),
            ("✅", Some(true)),
            ("✅ Ready", Some(true)),
            ("\"true\",", Some(true)),
            ("はい", Some(true)),
            ("実装可", Some(true)),
            ("準備が整っています", Some(true)),
            ("合格", Some(true)),
            ("可（不足や懸念点は特に見当たりません）", Some(true)),
            ("はい、問題ないため移れます", Some(true)),
            ("Approved.", Some(true)),
            ("no", Some(false)),
            ("Not yet", Some(false)),
            ("❌ not ready", Some(false)),
            ("Yes, once the migration is named", Some(false)),
            ("Yes, but the schema is missing", Some(false)),
            ("ready if X", Some(false)),
            ("true/false", Some(false)),
            ("Partially", Some(false)),
            ("いいえ", Some(false)),
            ("不可", Some(false)),
            ("未完了", Some(false)),
            ("条件付き合格", Some(false)),
            ("準備ができていません", Some(false)),
            ("はい、問題ないか要確認", Some(false)),
            ("可（問題がないわけではない）", Some(false)),
            ("可（問題ない場合のみ）", Some(false)),
            ("isn't", Some(false)),
            ("問題ありません", None),
            ("maybe", None),
            ("3 of 5 tests", None),
            ("", None),
        ] {
            assert_eq!(answer(value), expected, "{value}");
        }
    }

    #[test]
    fn what_speaks_of_the_document_counts_and_not_what_speaks_of_services() {
        for text in [
            "The plan is not ready for implementation.",
            "This plan isn't quite ready to be implemented",
            "**Not ready.** Two steps are missing.",
            "Verdict: needs work",
            "Ready: no",
            "It is not yet ready.",
            "I cannot approve this.",
            "The document is NOT yet ready",
            "実装準備が整っていません。",
            "実装に移れません",
            "不合格とします",
            "This must not be merged",
        ] {
            assert!(speaks_against(text), "{text}");
        }
        for text in [
            "It answers 503 while the database is not ready.",
            "The retry covers sockets that are not ready.",
            "The plan is ready for implementation.",
            "Nothing is missing.",
            "実装準備が整っています。",
            "エラーの場合は処理を中止します。",
            "Passwords are not stored.",
        ] {
            assert!(!speaks_against(text), "{text}");
        }
    }
}
