//! What the recorded model says: the replies of a model that solves the demo's issue, one after the
//! other.
//!
//! The replies alone are recorded. What they ask for really happens: each command runs, each edit
//! is made.

use serde_json::json;

use crate::fake::model::{Model, Plan};

const NIGHT_SHIFT: &str = "echo '2026-03-02 22:30-06:15 pier' | python3 -m worktime | grep -qx 'pier    7:45'";

/// Starts a model that knows the replies.
pub(crate) async fn start() -> Model {
    let model = Model::start().await;
    plan(&model);
    work(&model);
    model
}

fn plan(model: &Model) {
    model
        .calls("repository/list_files", json!({}))
        .because("Seeing what the project consists of")
        .calls("repository/read_file", json!({ "path": "worktime/entry.py" }))
        .because("The length of a span is computed here")
        .calls("repository/read_file", json!({ "path": "tests/test_night_shift.py" }))
        .because("Reading the test that fails")
        .plans(
            Plan::of(&[
                "Let a span that ends before it begins end on the next day",
                "Test the edges: one minute past midnight, and equal times stay refused",
                "Mention night shifts in README.md and CHANGELOG.md",
            ])
            .in_environment("python")
            .verified_by("python3 -m unittest")
            .verified_by(NIGHT_SHIFT)
            .with(
                "comment",
                json!("`minutes` subtracts the times as if both were of one day. A span that ends earlier than it begins will end on the next day."),
            ),
        );
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
