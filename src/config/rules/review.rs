//! Checks of the section on reviews.

use super::check_positive;
use crate::config::Config;
use crate::config::fault::Faults;
use crate::llm::config::model_config::OWN;
use crate::llm::config::role::Role;
use crate::review::score::Score;
use crate::reviewer;
use crate::reviewer::config::LONGEST_SECONDS;

pub(super) fn check(config: &Config, faults: &mut Faults) {
    let review = &config.review;
    for (key, target_score, max_rounds) in [
        ("review.plan", review.plan.target_score, review.plan.max_rounds),
        ("review.result", review.result.target_score, review.result.max_rounds),
    ] {
        if Score::try_from(target_score).is_err() {
            faults.at(&format!("{key}.target_score"), "must be from 0 to 10");
        }
        if max_rounds == 0 {
            let reason = format!("must be at least 1; to have nothing reviewed set {key}.enabled to false");
            faults.at(&format!("{key}.max_rounds"), reason);
        }
    }
    // The section of a provider that no role has is not checked otherwise.
    let is_made = review.plan.enabled || review.result.enabled;
    let is_unchecked = || !config.llm.used_models().iter().any(|name| name == OWN);
    if is_made && config.llm.roles.named(Role::Reviewer).is_none() && is_unchecked() {
        faults.at(
            "llm.roles.reviewer",
            "is missing, and reviews are switched on (`review`)",
        );
    }
    check_positive("review.timeout_seconds", review.timeout_seconds, faults);
    if review.timeout_seconds > LONGEST_SECONDS {
        let reason = format!("must be at most {LONGEST_SECONDS}");
        faults.at("review.timeout_seconds", reason);
    }
}

/// Returns why the operator's prompt is not used, if it is not.
pub(super) fn doubt(config: &Config) -> Option<String> {
    let (_, doubt) = reviewer::prompt(config.review.prompt_file.as_deref());
    doubt.map(|doubt| format!("review.prompt_file: {doubt}"))
}
