//! Confidential work is reviewed by the near model alone.

use serde_json::json;

use super::{Team, good_plan, judged};
use crate::world::MODEL_KEY;

const REVIEW: &str = "fail";

/// A team whose planner is the world's own model, and whose work can be confidential.
async fn confidential() -> Team {
    let mut team = Team::start(json!({ "plan": { "enabled": true, "on_unready": REVIEW } })).await;
    team.world.configure(|config| {
        config["llm"]["local_only_label"] = json!("confidential");
        config["llm"]["roles"]["planner"] = json!(null);
        // An address that is not local, by its name.
        let far = config["llm"]["models"]["critic"]["base_url"].as_str().unwrap();
        config["llm"]["models"]["critic"]["base_url"] = json!(far.replace("127.0.0.1", "0.0.0.0"));
    });
    team
}

#[tokio::test]
async fn the_near_model_reviews_confidential_work() {
    let mut team = confidential().await;
    let near = json!({
        "provider": "openai", "base_url": team.world.model.openai_address(), "model": "scripted", "api_key": MODEL_KEY,
    });
    team.world.configure(|config| {
        config["llm"]["models"]["near"] = near;
        config["llm"]["roles"]["local_only"] = json!("near");
    });
    team.world.model.plans(good_plan()).says(&judged(true, 9.0, "Good."));
    team.works();
    team.world
        .github
        .open_issue("Greet the reader")
        .label("confidential")
        .label("coding agent");

    let ended = team.world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", team.world.story());
    assert_eq!(team.reviewer.requests().len(), 0);
    team.finish().await;
}

#[tokio::test]
async fn a_far_reviewer_is_refused_for_confidential_work() {
    let team = confidential().await;
    team.world.model.plans(good_plan());
    let issue = team
        .world
        .github
        .open_issue("Greet the reader")
        .label("confidential")
        .label("coding agent");

    let ended = team.world.run().await;

    assert_eq!(ended.code, Some(2), "{ended:?}\n{}", team.world.story());
    assert_eq!(team.reviewer.requests().len(), 0);
    let told = issue.comments_of(team.world.github.bot()).pop().unwrap();
    assert!(told.contains("othing was sent to the model"), "{told}");
    team.finish().await;
}

#[tokio::test]
async fn a_program_reviews_confidential_work_only_on_the_operators_word() {
    for is_local in [false, true] {
        let mut team = confidential().await;
        let ran = team.world.folder().join("ran");
        let answer = judged(true, 9.0, "Good.");
        let script = format!("cat > {}; echo '{answer}'", ran.display());
        team.world.configure(|config| {
            config["llm"]["models"]["critic"] =
                json!({ "provider": "command", "command": ["/bin/sh", "-c", script], "local": is_local });
        });
        team.world.model.plans(good_plan());
        if is_local {
            team.works();
        }
        team.world
            .github
            .open_issue("Greet the reader")
            .label("confidential")
            .label("coding agent");

        let ended = team.world.run().await;

        let doctor = team.world.command(&["doctor"]).await.stdout;
        assert_eq!(doctor.contains("review of confidential work"), !is_local, "{doctor}");
        let expected = if is_local { 0 } else { 2 };
        assert_eq!(ended.code, Some(expected), "{ended:?}\n{}", team.world.story());
        assert_eq!(ran.exists(), is_local);
        team.finish().await;
    }
}
