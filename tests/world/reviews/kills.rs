//! A run that is killed around its reviews goes on, and pays for no judgement twice.

use futures_util::future::join_all;
use serde_json::json;

use super::{Team, changes, good_plan, judged};
use crate::world::facts::{count, facts};

/// Whose answer the program waits for when it is killed, and which one, counted from 0.
#[derive(Clone, Copy, Debug)]
enum Place {
    Planner(usize),
    Reviewer(usize),
    Worker(usize),
}

/// Two plans, two results and four judgements; the answer at `place` is lost and asked for again.
fn write_scripts(team: &Team, place: Place) {
    let lost = |held: bool, number: usize, at: usize| held && number == at;
    let plans = [good_plan(), good_plan().with("comment", json!("Better."))];
    for (number, plan) in plans.into_iter().enumerate() {
        let is_lost = matches!(place, Place::Planner(at) if lost(true, number, at));
        if is_lost {
            team.planner.plans(plan.clone()).holds();
        }
        team.planner.plans(plan);
    }
    let judgements = [(false, 5.0), (true, 8.0), (false, 6.0), (true, 9.0)];
    for (number, (ready, score)) in judgements.into_iter().enumerate() {
        let judgement = judged(ready, score, "So it is.");
        if matches!(place, Place::Reviewer(at) if at == number) {
            team.reviewer.says(&judgement).holds();
        }
        team.reviewer.says(&judgement);
    }
    for (number, word) in ["Hello", "Hello, reader"].into_iter().enumerate() {
        if matches!(place, Place::Worker(at) if at == number) {
            team.world.model.done("This is lost.").holds();
        }
        changes(team, &format!("echo '{word}' > README.md"), "Greeted.");
    }
}

async fn killed_at(place: Place) {
    let review = json!({
        "plan": { "enabled": true, "on_unready": "fail" },
        "result": { "enabled": true, "on_unready": "fail" },
    });
    let team = Team::start(review).await;
    team.world.model.allows_restarts();
    write_scripts(&team, place);
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let program = team.world.spawn(&["run"]);
    match place {
        Place::Planner(_) => team.planner.until_held(1).await,
        Place::Reviewer(_) => team.reviewer.until_held(1).await,
        Place::Worker(_) => team.world.model.until_held(1).await,
    }
    // The thread that writes the journal is killed as well.
    let given = match place {
        Place::Planner(at) | Place::Reviewer(at) => at,
        Place::Worker(at) => 2 + at,
    };
    let is_written = || count(&team.world, "review_given") >= given;
    team.world.until("the judgements until here", is_written).await;
    program.kill().await;
    let ended = team.world.run().await;

    let story = || format!("killed at {place:?}: {ended:?}\n{}", team.world.story());
    assert_eq!(ended.code, Some(0), "{}", story());
    assert_eq!(issue.labels(), ["coding agent done"], "{}", story());
    assert_eq!(
        team.world.github.pulls()[0].file("README.md").unwrap(),
        "Hello, reader\n"
    );
    // The last judgement that was asked for, and lost, is asked for again; no other one is.
    let lost = usize::from(matches!(place, Place::Reviewer(_)));
    assert_eq!(team.questions().len(), 4 + lost, "{}", story());
    assert_eq!(count(&team.world, "review_given"), 4, "{}", story());
    let rounds: Vec<_> = facts(&team.world, "review_given")
        .iter()
        .map(|fact| {
            (
                fact["what"].as_str().unwrap().to_owned(),
                fact["round"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = [("plan", 1), ("plan", 2), ("result", 1), ("result", 2)];
    assert_eq!(
        rounds,
        expected.map(|(what, round)| (what.to_owned(), round)),
        "{}",
        story()
    );
    assert_eq!(issue.comments_of(team.world.github.bot()).len(), 2, "{}", story());
    team.finish().await;
}

#[tokio::test]
async fn while_the_plan_is_judged_and_made_better() {
    let places = [Place::Reviewer(0), Place::Planner(1), Place::Reviewer(1)];
    join_all(places.map(killed_at)).await;
}

#[tokio::test]
async fn while_the_result_is_judged_and_made_better() {
    let places = [
        Place::Worker(0),
        Place::Reviewer(2),
        Place::Worker(1),
        Place::Reviewer(3),
    ];
    join_all(places.map(killed_at)).await;
}
