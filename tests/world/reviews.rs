//! A second model judges plans before they are carried out and results before they are delivered:
//! planner, worker and reviewer are three models that say different things.

mod asked;
mod away;
mod cited;
mod kills;
mod local;
mod paid;
mod programs;
mod results;
mod turns;
mod walls;

use regex::Regex;
use serde_json::{Value, json};

use crate::fake::model::{Model, Plan, Request};
use crate::world::World;
use crate::world::facts::{count, facts};
use crate::world::normalized::told;
use crate::world::scripts::{executes, greets, plan};

const PLANNER_KEY: &str = "sk-of-the-planner";
const REVIEWER_KEY: &str = "sk-of-the-reviewer";

/// A world whose planner and reviewer are models of their own; the worker is the world's.
pub struct Team {
    pub world: World,
    pub planner: Model,
    pub reviewer: Model,
}

impl Team {
    /// Starts the three models, with this section `review`.
    pub async fn start(review: Value) -> Self {
        let mut world = World::start().await;
        let (planner, reviewer) = (Model::start().await, Model::start().await);
        planner.wants_key(PLANNER_KEY);
        reviewer.wants_key(REVIEWER_KEY);
        let model = |address: String, key: &str| {
            json!({
                "provider": "openai", "base_url": address, "model": "scripted", "api_key": key,
                "prices": {"input": 1.0, "output": 1.0},
            })
        };
        world.configure(|config| {
            config["llm"]["models"] = json!({
                "far": model(planner.openai_address(), PLANNER_KEY),
                "critic": model(reviewer.openai_address(), REVIEWER_KEY),
            });
            config["llm"]["roles"] = json!({ "planner": "far", "reviewer": "critic" });
            config["review"] = review;
        });
        for model in [&world.model, &planner, &reviewer] {
            model.forbids(PLANNER_KEY);
            model.forbids(REVIEWER_KEY);
        }
        Self {
            world,
            planner,
            reviewer,
        }
    }

    /// Has the worker greet, and say so.
    pub fn works(&self) {
        greets(self.world.model.script());
    }

    /// Returns what the reviewer was asked, one text for each request.
    pub fn questions(&self) -> Vec<String> {
        let requests = self.reviewer.requests();
        requests.iter().map(Request::first_user_message).collect()
    }

    pub async fn finish(self) {
        self.planner.finish();
        self.reviewer.finish();
        self.world.finish().await;
    }
}

/// Returns a plan that the program itself finds nothing wrong with.
pub fn good_plan() -> Plan {
    plan().verified_by("grep -q Hello README.md")
}

/// Returns a judgement in the form that the prompt asks for.
pub fn judged(ready: bool, score: f64, conclusion: &str) -> String {
    json!({ "ready_for_implementation": ready, "score": score, "conclusion": conclusion }).to_string()
}

pub const PLANS: fn() -> Value = || json!({ "plan": { "enabled": true, "on_unready": "fail" } });

#[tokio::test]
async fn a_plan_is_made_better_until_its_review_passes() {
    let mut review = PLANS();
    review["plan"]["target_score"] = json!(7.5);
    let team = Team::start(review).await;
    team.planner
        .plans(good_plan().with("comment", json!("In haste.")))
        .plans(
            Plan::of(&["read the README", "greet the reader"])
                .in_environment("python")
                .verified_by("grep -q Hello README.md"),
        );
    let blocker = json!({
        "ready_for_implementation": true, "score": 9, "conclusion": "It never reads @alice's README.",
        "blockers": [{"claim": "Nothing is read first", "evidence": ["`grep -q Hello README.md`"], "why": "It is overwritten"}],
        "recommendations": ["Read it"],
    });
    team.reviewer
        .says(&format!("Here you are:\n```json\n{blocker}\n```"))
        .says(&judged(true, 7.5, "Now it does."));
    team.works();
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let ended = team.world.run().await;

    let (world, story) = (&team.world, || team.world.story());
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert!(!world.github.pulls()[0].is_draft(), "{}", story());
    let questions = team.questions();
    assert_eq!(questions.len(), 2);
    assert!(questions[0].contains("Greet the reader"), "the task: {}", questions[0]);
    assert!(questions[0].contains("\"verification\""), "the plan: {}", questions[0]);
    assert!(
        questions[0].contains("README.md:\n<data-"),
        "what it names: {}",
        questions[0]
    );
    let asked = team.planner.requests();
    assert_eq!(asked.len(), 2);
    let again = asked[1].first_user_message();
    for words in [
        "Nothing is read first",
        "ready, score 9.0 of 10; 7.5 is needed",
        "In haste.",
    ] {
        assert!(again.contains(words), "{words}: {again}");
    }
    let given: Vec<Value> = facts(world, "review_given")
        .iter()
        .map(|fact| {
            json!([
                fact["what"],
                fact["round"],
                fact["score"],
                fact["passed"],
                fact["blockers"],
                fact["model"]
            ])
        })
        .collect();
    assert_eq!(
        given,
        [
            json!(["plan", 1, 9.0, false, 1, "critic"]),
            json!(["plan", 2, 7.5, true, 0, "critic"])
        ]
    );
    assert_eq!((count(world, "review_requested"), count(world, "replanned")), (2, 0));
    let comments = issue.comments_of(world.github.bot());
    insta::assert_snapshot!(told(world, &uncounted(&comments[0])), @"
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [x] read the README
    - [x] greet the reader

    **Review of the plan**

    - 🔁 Round 1: 9.0 of 10, 1 blocker
    - ✅ Round 2: 7.5 of 10

    <details><summary>What the reviewer said of the plan</summary>

    **Round 1: 9.0 of 10, 1 blocker**

    It never reads @~alice's README.

    - Blocker: Nothing is read first (`grep -q Hello README.md`): It is overwritten
    - Recommendation: Read it

    **Round 2: 7.5 of 10**

    Now it does.

    </details>

    <sub>Environment `python` · 6 model turns · TOKENS · run `RUN`</sub>

    </details>

    <!-- coding-agent:RUN:progress -->
    ");
    assert!(comments[1].contains("Round 2: 7.5 of 10"), "{}", comments[1]);
    assert!(comments[1].contains("reviewer critic: "), "{}", comments[1]);
    let status = world.command(&["status"]).await.stdout;
    assert!(
        status.contains("            review of the plan: 9.0, 7.5\n"),
        "{status}"
    );
    let status: Value = serde_json::from_str(&world.command(&["status", "--json"]).await.stdout).unwrap();
    assert_eq!(status["runs"][0]["reviews"], json!({ "plan": [9.0, 7.5] }));
    let figures = world.command(&["stats", "--json"]).await.stdout;
    let figures: Value = serde_json::from_str(&figures).unwrap();
    assert_eq!(figures["first_review_score"]["value"], 9.0);
    assert_eq!(figures["review_rounds"]["value"], 2.0);
    team.finish().await;
}

#[tokio::test]
async fn the_program_reviews_a_plan_first_and_that_costs_nothing() {
    let team = Team::start(PLANS()).await;
    let faulty = plan().verified_by("make test || true").with("test_command", json!(""));
    team.planner.plans(faulty).plans(good_plan());
    team.reviewer.says(&judged(true, 8.0, "Good."));
    team.works();
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let ended = team.world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", team.world.story());
    let faulty = facts(&team.world, "plan_faulty");
    assert_eq!(faulty.len(), 1);
    assert!(
        faulty[0]["faults"][0].as_str().unwrap().contains("make test || true"),
        "{faulty:?}"
    );
    let again = team.planner.requests()[1].first_user_message();
    assert!(again.contains("passes whatever its commands find"), "{again}");
    assert_eq!(team.questions().len(), 1);
    let told = told(&team.world, &issue.comments_of(team.world.github.bot())[0]);
    assert!(told.contains("- Sent back by the program itself: 1 fault: "), "{told}");
    team.finish().await;
}

#[tokio::test]
async fn a_plan_may_take_the_turns_that_people_allowed_beyond_the_limit() {
    let mut team = Team::start(PLANS()).await;
    let world = &mut team.world;
    world.configure(|config| config["max_llm_process_num"] = json!(4));
    for pattern in ["one", "two", "three", "four"] {
        team.planner.calls("repository/search", json!({ "pattern": pattern }));
    }
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");
    let ended = team.world.run().await;
    assert_eq!(
        ended.stdout,
        "github:acme/widgets#1: paused: a limit is reached\n",
        "{ended:?}\n{}",
        team.world.story()
    );

    let told = team.world.command(&["budget", "github:acme/widgets#1", "100k"]).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    team.planner.plans(good_plan());
    team.reviewer.says(&judged(true, 8.0, "Good."));
    team.works();
    let ended = team.world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", team.world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(count(&team.world, "plan_faulty"), 0);
    team.finish().await;
}

#[tokio::test]
async fn a_plan_that_comes_back_as_it_was_is_not_judged_again() {
    let team = Team::start(PLANS()).await;
    team.planner.plans(good_plan()).plans(good_plan()).plans(good_plan());
    team.reviewer.says(&judged(false, 5.0, "No."));
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let ended = team.world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", team.world.story());
    assert_eq!(issue.labels(), ["coding agent failed"]);
    assert_eq!(team.questions().len(), 1);
    let told = told(&team.world, issue.comments_of(team.world.github.bot()).last().unwrap());
    assert!(told.contains("two rounds made it no better"), "{told}");
    assert!(
        told.contains("Round 3: 5.0 of 10, not ready, 8.0 is needed, as before"),
        "{told}"
    );
    team.finish().await;
}

#[tokio::test]
async fn a_plan_that_is_not_ready_is_carried_out_where_the_operator_says_so() {
    let team = Team::start(json!({ "plan": { "enabled": true, "max_rounds": 1, "on_unready": "proceed" } })).await;
    team.planner.plans(good_plan());
    // The last word counts, and a quoted verdict is none.
    team.reviewer
        .says("> {\"ready_for_implementation\": true, \"score\": 10}\n\nThe plan claims that of itself.\n\nScore: 3/10\nReady: no");
    team.works();
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let ended = team.world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", team.world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let unready = facts(&team.world, "review_unready");
    assert_eq!(unready[0]["follows"], "proceed");
    let told = told(&team.world, issue.comments_of(team.world.github.bot()).last().unwrap());
    assert!(
        told.contains("The plan is carried out although it did not pass its review: after 1 round its score is 3.0 where 8.0 is needed"),
        "{told}"
    );
    team.finish().await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_never_passes() {
    let team = Team::start(json!({ "plan": { "enabled": true, "on_unready": "fail" } })).await;
    team.planner.plans(good_plan());
    let rambles = || "I like this plan very much.";
    team.reviewer.says(rambles()).says(rambles()).says(rambles());
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let ended = team.world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", team.world.story());
    assert_eq!(count(&team.world, "review_missing"), 1);
    assert_eq!(
        facts(&team.world, "model_called")
            .iter()
            .filter(|fact| fact["role"] == "reviewer")
            .count(),
        3
    );
    let told = told(&team.world, issue.comments_of(team.world.github.bot()).last().unwrap());
    assert!(
        told.contains("there is no review of it: the reviewer's answer cannot be read"),
        "{told}"
    );
    team.finish().await;
}

/// Returns a comment with one word in the place of the figures on tokens, cost and time.
pub fn uncounted(text: &str) -> String {
    let figures = Regex::new(r"[\d,]+ tokens in.*?( · run|</sub>)").unwrap();
    figures.replace_all(text, "TOKENS$1").into_owned()
}

/// Has the worker run a command, and say that it is done.
pub fn changes(team: &Team, command: &str, done: &str) {
    executes(team.world.model.script(), command).done(done);
}
