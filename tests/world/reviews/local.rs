//! Local tasks are reviewed like others, and wait for nobody.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Team, changes, good_plan, judged};
use crate::world::Ended;
use crate::world::facts::count;

/// Has a folder worked on where everything is reviewed, and everything would wait for approval.
async fn worked(team: &mut Team) -> (PathBuf, Ended) {
    team.world
        .configure(|config| config["approval"] = json!({ "required_by_default": true }));
    let folder = team.world.folder().join("project");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("README.md"), "widgets\n").unwrap();
    let root = folder.to_str().unwrap();
    let ended = team
        .world
        .command(&["run", "--task", "Greet the reader", "--root", root])
        .await;
    (folder, ended)
}

fn review(on_unready: &str) -> Value {
    json!({
        "plan": { "enabled": true },
        "result": { "enabled": true, "max_rounds": 2, "on_unready": on_unready },
    })
}

#[tokio::test]
async fn plan_and_result_are_judged_and_made_better_without_a_question() {
    let mut team = Team::start(review("ask")).await;
    team.planner
        .plans(good_plan())
        .plans(good_plan().with("comment", json!("Better.")));
    changes(&team, "echo Hello > README.md", "Greeted.");
    changes(&team, "echo 'Hello, reader' > README.md", "Greeted the reader.");
    for (ready, score) in [(false, 4.0), (true, 8.0), (false, 5.0), (true, 9.0)] {
        team.reviewer.says(&judged(ready, score, "So it is."));
    }

    let (folder, ended) = worked(&mut team).await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", team.world.story());
    let text = std::fs::read_to_string(folder.join("README.md")).unwrap();
    assert_eq!(text, "Hello, reader\n");
    for words in ["Review of the plan: 4.0, 8.0", "Review of the result: 5.0, 9.0"] {
        assert!(ended.stderr.contains(words), "{words}: {ended:?}");
    }
    for fact in ["approval_requested", "approval_granted", "approval_auto_approved"] {
        assert_eq!(count(&team.world, fact), 0, "{fact}");
    }
    team.finish().await;
}

#[tokio::test]
async fn a_result_that_is_not_ready_is_applied_and_said_and_no_success() {
    for (on_unready, is_applied) in [("ask", true), ("draft", true), ("fail", false)] {
        let mut team = Team::start(review(on_unready)).await;
        team.planner.plans(good_plan());
        changes(&team, "echo Hello > README.md", "Greeted.");
        changes(&team, "echo 'Hello!' > README.md", "Greeted again.");
        for (ready, score) in [(true, 9.0), (false, 3.0), (false, 4.0)] {
            team.reviewer.says(&judged(ready, score, "So it is."));
        }

        let (folder, ended) = worked(&mut team).await;

        assert_eq!(ended.code, Some(1), "{on_unready}: {ended:?}\n{}", team.world.story());
        let text = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let expected = if is_applied { "Hello!\n" } else { "widgets\n" };
        assert_eq!(text, expected, "{on_unready}: {ended:?}");
        assert!(
            ended.stderr.contains("did not pass its review"),
            "{on_unready}: {ended:?}"
        );
        team.finish().await;
    }
}
