//! The replies of a model that solves the demo's issue, one after the other.
//!
//! The replies alone are recorded. Their calls really happen: each command runs, each edit is made.

use serde_json::json;

use crate::fake::model::{Model, Plan};

const NIGHT_SHIFT: &str = "echo '2026-03-02 22:30-06:15 pier' | python3 -m worktime | grep -qx 'pier    7:45'";

/// The plan that a reviewer does not let pass: nothing of it checks what the issue asks for besides.
const HASTY: [&str; 1] = ["Let a span that ends before it begins end on the next day"];
const WHOLE: [&str; 3] = [
    HASTY[0],
    "Test the edges: one minute past midnight, and equal times stay refused",
    "Mention night shifts in README.md and CHANGELOG.md",
];

/// Starts a model that knows the replies; with a reviewer its first plan is hasty.
pub(crate) async fn start(is_reviewed: bool) -> Model {
    let model = Model::start().await;
    look(&model);
    if is_reviewed {
        model.plans(planned(&HASTY));
    }
    model.plans(planned(&WHOLE).verified_by(NIGHT_SHIFT));
    work(&model);
    model
}

/// Starts the model that judges the plans and the result.
pub(crate) async fn reviewer() -> Model {
    let model = Model::start().await;
    let hasty = json!({
        "ready_for_implementation": false,
        "score": 6,
        "conclusion": "It mends the total, and nothing keeps the rest of what was asked for.",
        "blockers": [{
            "claim": "Equal times must stay an error, and no check would notice if they did not",
            "evidence": ["`python3 -m unittest`"],
            "why": "jonas asks for it in the issue",
        }],
        "recommendations": ["Mention night shifts in the README, as mara asks"],
    });
    let whole = json!({
        "ready_for_implementation": true,
        "score": 9,
        "conclusion": "Each wish of the issue is a step, and the checks would fail without them.",
    });
    let result = json!({
        "ready_for_implementation": true,
        "score": 9.5,
        "conclusion": "It does what the issue asks for, and nothing else.",
        "analysis": { "strengths": ["Midnight itself is tested"] },
    });
    for judgement in [hasty, whole, result] {
        model.says(&judgement.to_string());
    }
    model
}

fn planned(steps: &[&str]) -> Plan {
    Plan::of(steps).in_environment("python").verified_by("python3 -m unittest").with(
        "comment",
        json!("`minutes` subtracts the times as if both were of one day. A span that ends earlier than it begins will end on the next day."),
    )
}

fn look(model: &Model) {
    model
        .calls("repository/list_files", json!({}))
        .because("Seeing what the project consists of")
        .calls("repository/read_file", json!({ "path": "worktime/entry.py" }))
        .because("The length of a span is computed here")
        .calls("repository/read_file", json!({ "path": "tests/test_night_shift.py" }))
        .because("Reading the test that fails");
}

fn work(model: &Model) {
    model
        .calls("handbook/look_up", json!({ "topic": "changes" }))
        .because("The team's handbook says how a change is written down")
        .calls("workspace/execute_command", json!({ "command": "python3 -m unittest" }))
        .because("Seeing the test fail before anything is changed")
        .calls("workspace/read_file", json!({ "path": "worktime/entry.py" }))
        .because("Reading the code before the edit")
        .calls(
            "workspace/str_replace",
            json!({
                "path": "worktime/entry.py",
                "old": "    \"\"\"Returns the length of a span such as `09:00-12:30`, in minutes.\"\"\"\n",
                "new": "    \"\"\"Returns the length of a span such as `09:00-12:30`, in minutes.\n\n    \
                        A span that ends before it begins ends on the next day.\n    \"\"\"\n",
            }),
        )
        .because("Saying what holds now")
        .calls(
            "workspace/str_replace",
            json!({
                "path": "worktime/entry.py",
                "old": "    return end - begin\n",
                "new": "    return (end - begin) % MINUTES_OF_A_DAY\n",
            }),
        )
        .because("A span that ends before it begins ends on the next day")
        .calls(
            "workspace/str_replace",
            json!({
                "path": "worktime/entry.py",
                "old": "from datetime import date\n\n",
                "new": "from datetime import date\n\nMINUTES_OF_A_DAY = 24 * 60\n\n",
            }),
        )
        .because("Giving the number a name")
        .calls(
            "workspace/insert",
            json!({
                "path": "tests/test_night_shift.py",
                "line": 8,
                "text": "\n    def test_midnight_belongs_to_both_days(self):\n        \
                         self.assertEqual(minutes(\"23:59-00:00\"), 1)\n        \
                         self.assertEqual(minutes(\"00:00-00:01\"), 1)\n",
            }),
        )
        .because("Testing the edges")
        .calls_all([
            (
                "workspace/str_replace",
                json!({
                    "path": "CHANGELOG.md",
                    "old": "when no file is named.\n",
                    "new": "when no file is named.\n- Fixed: a shift that goes past midnight is counted to its end on the next day (#1).\n",
                }),
            ),
            (
                "workspace/str_replace",
                json!({
                    "path": "README.md",
                    "old": "Run the tests",
                    "new": "A span that ends before it begins, such as `22:30-06:15`, ends on the next day.\n\nRun the tests",
                }),
            ),
        ])
        .because("Writing it down, as the handbook and the issue ask")
        .calls("workspace/execute_command", json!({ "command": "python3 -m unittest" }))
        .because("All tests again")
        .calls("workspace/execute_command", json!({ "command": "git diff --stat" }))
        .because("A last look at what has changed")
        .done(
            "A span that ends before it begins now ends on the next day, so `22:30-06:15` counts as 7:45. Equal times are \
             still refused. The test on main passes, midnight itself has a test, and README and changelog mention night shifts.",
        );
}
