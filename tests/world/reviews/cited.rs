//! Blockers that say what stands in a line: the program looks whether it does.

use serde_json::{Value, json};

use super::{PLANS, Team, good_plan, judged};

/// A judgement that is good enough, but for one blocker with this evidence.
fn blocked(evidence: &str) -> Value {
    json!({
        "ready_for_implementation": true, "score": 9, "conclusion": "Nearly.",
        "blockers": [{"claim": "The heading is wrong", "evidence": [evidence]}],
    })
}

#[tokio::test]
async fn a_blocker_counts_if_the_name_that_it_speaks_of_stands_where_it_says() {
    for (evidence, counts) in [
        ("README.md:1 calls `frobnicate()`", false),
        ("README.md:1 is about `widgets`", true),
    ] {
        let team = Team::start(PLANS()).await;
        let base = team.world.github.default_repository().git().resolve("main").unwrap();
        let planner = team
            .planner
            .plans(good_plan().with("evidence", json!([{"path": "README.md", "why": "the heading"}])));
        let reviewer = team.reviewer.says(&blocked(evidence).to_string());
        if counts {
            planner.plans(good_plan().with("comment", json!("The heading stays.")));
            reviewer.says(&judged(true, 9.0, "Now it is right."));
        }
        team.works();
        let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

        let ended = team.world.run().await;

        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", team.world.story());
        assert_eq!(issue.labels(), ["coding agent done"]);
        assert_eq!(team.planner.requests().len(), 1 + usize::from(counts), "{evidence}");
        let question = &team.questions()[0];
        assert!(question.contains("\nREADME.md (the heading):\n<data-"), "{question}");
        let told: String = issue.comments_of(team.world.github.bot()).concat();
        assert_eq!(
            told.contains("Without evidence: The heading is wrong"),
            !counts,
            "{told}"
        );
        // What blocks is shown where it stands, at the commit that was judged.
        assert_eq!(told.contains(&format!("/blob/{base}/README.md#L1")), counts, "{told}");
        team.finish().await;
    }
}
