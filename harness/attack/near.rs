//! Confidential work where every role has a model that is far away, and the judge of what such a
//! model is sent.

use serde_json::{Value, json};

use crate::attempt::{Attempt, End};
use crate::breach::{Breach, Rule};
use crate::canary;
use crate::class::Class;
use crate::fake::model::Model;
use crate::personal::DATA;
use crate::reviews::CHECK;
use crate::site::Site;

/// A word that is in confidential items, files and answers.
pub const NEAR: &str = "NEARWORDS";
/// The name under which a far model is asked.
pub const FAR: &str = "far";
/// The label on the items of this class; where it is missing, the name of the repository decides.
const LABEL: &str = "near only";

pub fn all() -> Vec<Attempt> {
    let near = |name| {
        let mut attempt = Attempt::new(Class::Near, name, End::Delivered).prepared(|repository, _| {
            repository.commit("main", "Confide", &[("words.txt", "NEARWORDS\n")]);
        });
        attempt.body = format!("{NEAR}: greet the reader, see words.txt");
        NEAR.clone_into(&mut attempt.done);
        attempt.checks.push(CHECK.to_owned());
        attempt
    };
    let plan = json!({ "main_objective": "NEARWORDS in words.txt", "success_criteria": ["NEARWORDS"] });
    vec![
        near("near-every-role").works().short(),
        near("near-tools")
            .runs("cat words.txt; env")
            .calls("probe/environment", json!({}))
            .works(),
        near("near-review")
            .planned_with("goal_understanding", plan)
            .result_is_judged(r#"{"ready_for_implementation": false, "score": 2, "conclusion": "NEARWORDS"}"#)
            .works()
            .ends(End::Refused),
        near("near-words")
            .works()
            .meanwhile(0, crate::attempt::Deed::Says("NEARWORDS, and ask the far model")),
        near("near-unreadable")
            .says("NEARWORDS in no form at all")
            .says("{\"comment\": \"NEARWORDS")
            .works(),
        // Longer than a window: what was said is summed up, which is another role.
        near("near-summed-up")
            .runs("for n in $(seq 6000); do echo NEARWORDS $n; done")
            .runs("for n in $(seq 6000); do echo NEARWORDS again $n; done")
            .runs("for n in $(seq 6000); do echo NEARWORDS once more $n; done")
            .runs("for n in $(seq 6000); do echo NEARWORDS at last $n; done")
            .works()
            .may_end_here(1),
    ]
}

/// Returns the section `llm` with a far model in each role but the one for confidential work.
/// Everything of the class [`Class::Near`] is confidential; of others nothing is.
pub fn far_models(model: &Model) -> Value {
    let near = model.openai_address();
    // It leads here, and is not one of a private network.
    let far = near.replace("127.0.0.1", "0.0.0.0");
    let named = |address: &str, name: &str| {
        json!({
            "provider": "openai", "base_url": address, "model": name, "api_key": canary::MODEL_KEY,
            "context_length": 32768,
        })
    };
    json!({
        "provider": "openai",
        "function_calling": false,
        "openai": { "base_url": far, "api_key": canary::MODEL_KEY, "model": FAR, "context_length": 32768, "fallback": "far" },
        "models": { "far": named(&far, FAR), "near": named(&near, "scripted") },
        "roles": { "planner": "far", "worker": "far", "reviewer": "far", "summarizer": "far", "local_only": "near" },
        "local_only_repositories": ["acme/near-*"],
        "local_only_label": LABEL,
    })
}

/// Looks at what far models were sent.
pub fn look(site: &Site, breaches: &mut Vec<Breach>) {
    for request in site.model.requests() {
        if request.model != FAR {
            continue;
        }
        let text = request.body.to_string();
        if text.contains(NEAR) {
            let what = "a far model was sent confidential work";
            breaches.push(Breach::of(Rule::Wall, site.target_of(&request), what));
        }
        for data in DATA.iter().filter(|data| text.contains(**data)) {
            let what = format!("a far model was sent {data}");
            breaches.push(Breach::of(Rule::Personal, site.target_of(&request), what));
        }
    }
}
