//! The words by which the fields of a review are known, as JSON keys, labels and headings.

/// The field that a label announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    /// Whether the document is ready; whatever is not plainly yes means no.
    Ready,
    /// A word that also announces other things: it counts where yes or no follows.
    Verdict,
    /// The score of the whole.
    Overall,
    Score,
    Confidence,
    Text(Text),
    List(List),
    /// Holds strengths and weaknesses.
    Analysis,
    /// Holds the whole answer.
    Wrapper,
}

/// A field that is a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    Conclusion,
    Rationale,
    TechnicalNotes,
}

/// A field that is a list of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Strengths,
    Weaknesses,
    Recommendations,
    Blockers,
}

/// Longest label, in characters; a longer beginning of a line is a sentence.
const LONGEST: usize = 60;

/// Each label without spaces, signs and what is in parentheses, in small letters.
const LABELS: [(Label, &[&str]); 15] = [
    (
        Label::Ready,
        &[
            "readyforimplementation",
            "implementationready",
            "implementationreadiness",
            "ready",
            "isready",
            "readytoimplement",
            "readyforcoding",
            "readiness",
            "実装準備",
            "実装準備完了",
            "実装準備判定",
            "実装準備状況",
            "実装可否",
            "実装可能",
            "実装に移れるか",
            "準備完了",
            "合否",
        ],
    ),
    (
        Label::Verdict,
        &[
            "pass",
            "passed",
            "approved",
            "approval",
            "verdict",
            "decision",
            "status",
            "recommendation",
            "gonogo",
            "判定",
            "最終判定",
            "総合判定",
            "結果",
        ],
    ),
    (
        Label::Overall,
        &[
            "overallscore",
            "totalscore",
            "finalscore",
            "overall",
            "overallrating",
            "overallevaluation",
            "総合評価",
            "総合スコア",
            "総合点",
            "総合得点",
            "最終スコア",
        ],
    ),
    (
        Label::Score,
        &[
            "score",
            "rating",
            "grade",
            "myscore",
            "evaluationscore",
            "qualityscore",
            "スコア",
            "評価スコア",
            "評価点",
            "点数",
            "得点",
            "評点",
            "採点",
        ],
    ),
    (Label::Confidence, &["confidence", "確信度", "信頼度"]),
    (
        Label::Text(Text::Conclusion),
        &[
            "conclusion",
            "summary",
            "overallassessment",
            "assessment",
            "context",
            "結論",
            "総評",
            "まとめ",
            "要約",
        ],
    ),
    (
        Label::Text(Text::Rationale),
        &[
            "rationale",
            "reasoning",
            "reason",
            "reasons",
            "justification",
            "explanation",
            "根拠",
            "理由",
            "評価理由",
        ],
    ),
    (
        Label::Text(Text::TechnicalNotes),
        &[
            "technicalnotes",
            "notes",
            "technicalnote",
            "技術メモ",
            "技術的な注意",
            "技術ノート",
            "備考",
            "補足",
        ],
    ),
    (
        Label::List(List::Strengths),
        &[
            "strengths",
            "pros",
            "strongpoints",
            "whatisgood",
            "強み",
            "良い点",
            "長所",
        ],
    ),
    (
        Label::List(List::Weaknesses),
        &[
            "weaknesses",
            "cons",
            "concerns",
            "issues",
            "weakpoints",
            "弱み",
            "弱点",
            "懸念点",
            "懸念事項",
            "短所",
            "問題点",
        ],
    ),
    (
        Label::List(List::Recommendations),
        &[
            "recommendations",
            "suggestions",
            "improvements",
            "suggestedimprovements",
            "nextsteps",
            "推奨事項",
            "改善提案",
            "改善点",
            "提案",
            "改善案",
        ],
    ),
    (
        Label::List(List::Blockers),
        &[
            "blockers",
            "blocker",
            "blockingissues",
            "blockingissue",
            "criticalissues",
            "showstoppers",
            "mustfix",
            "mustfixes",
            "ブロッカー",
            "阻害要因",
            "重大な問題",
            "必須修正",
            "必須の修正",
        ],
    ),
    (Label::Analysis, &["analysis", "分析"]),
    (
        Label::Wrapper,
        &[
            "evaluation",
            "review",
            "result",
            "response",
            "output",
            "answer",
            "reviewresult",
            "evaluationresult",
            "評価",
            "レビュー",
        ],
    ),
    (Label::Wrapper, &["data", "assessmentresult"]),
];

/// Returns the field that a JSON key, a label or a heading announces.
pub(super) fn of(text: &str) -> Option<Label> {
    if text.chars().nth(LONGEST).is_some() {
        return None;
    }
    let mut depth = 0_usize;
    let mut name = String::new();
    for letter in text.chars() {
        match letter {
            '(' | '（' | '[' => depth += 1,
            ')' | '）' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 && letter.is_alphanumeric() => name.extend(letter.to_lowercase()),
            _ => {}
        }
    }
    // "1. Score" and "第3章 結論" are numbered.
    let name = name.trim_start_matches(|letter: char| letter.is_ascii_digit());
    LABELS
        .iter()
        .find(|(_, names)| names.contains(&name))
        .map(|(label, _)| *label)
}
