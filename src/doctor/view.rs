//! A finding as scripts and pages read it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::finding::{Finding, Verdict};
use crate::secret::Redactor;

/// One thing that a run needs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FindingView {
    pub subject: String,
    /// `good`, `doubtful` or `bad`.
    pub verdict: String,
    pub detail: String,
    pub remedy: Option<String>,
}

impl FindingView {
    /// Returns the view of a finding, without secrets.
    pub fn of(finding: &Finding, redactor: &Redactor) -> Self {
        let (verdict, detail, remedy) = match &finding.verdict {
            Verdict::Good { detail } => ("good", detail, None),
            Verdict::Doubtful { detail, remedy } => ("doubtful", detail, Some(remedy)),
            Verdict::Bad { detail, remedy } => ("bad", detail, Some(remedy)),
        };
        let clean = |text: &str| redactor.clean(text).into_string();
        Self {
            subject: clean(&finding.subject),
            verdict: verdict.to_owned(),
            detail: clean(detail),
            remedy: remedy.map(|text| clean(text.as_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_view_names_the_verdict_and_holds_no_secret() {
        let redactor = Redactor::new(&["a-token-0123456789".into()]);
        let view = |finding: Finding| json!(FindingView::of(&finding, &redactor));
        assert_eq!(
            view(Finding::good("git", "2.47")),
            json!({ "subject": "git", "verdict": "good", "detail": "2.47", "remedy": null })
        );
        let bad = view(Finding::bad(
            "forge",
            "a-token-0123456789 is refused",
            "set another token",
        ));
        assert_eq!(
            (&bad["verdict"], &bad["remedy"]),
            (&json!("bad"), &json!("set another token"))
        );
        assert!(!bad.to_string().contains("0123456789"), "{bad}");
    }
}
