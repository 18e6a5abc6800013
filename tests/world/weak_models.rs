//! Models that are not good at this: what they are told, and when it ends.

mod edits;
mod failing_calls;
mod no_change;
mod plans;
mod prompts;
mod second_look;
mod tries;

use serde_json::json;

use crate::fake::github::Item;
use crate::fake::model::Script;
use crate::world::World;
use crate::world::normalized::last_on_github;

/// A project in Python whose only test fails, since it adds wrongly.
const ADDS_WRONGLY: [(&str, &str); 3] = [
    ("sums.py", "def add(one, other):\n    return one - other\n"),
    ("tests/__init__.py", ""),
    (
        "tests/test_sums.py",
        "import unittest\n\nfrom sums import add\n\n\nclass Sums(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n",
    ),
];

/// Opens an issue about that test, with the label.
fn adds_wrongly(world: &World) -> Item {
    let issue = world.github.open_issue("add(2, 3) in sums.py is wrong");
    issue.label("coding agent")
}

/// Returns a world whose model writes whole files as text, without a plan.
async fn writing_whole_files() -> World {
    let mut world = World::start().await;
    world.configure(|config| {
        config["llm"]["edits"] = json!("whole");
        config["llm"]["function_calling"] = json!(false);
        config["llm"]["openai"]["temperature"] = json!(0.0);
        config["planning"] = json!({ "enabled": false, "verification": { "max_tries": 1 } });
    });
    world.github.default_repository().commit("main", "Add", &ADDS_WRONGLY);
    world
}

/// The reason of a failure of a model that writes what is there.
const WROTE_THE_SAME: &str = "The model wrote the same files again and again";

/// Returns a reply that makes the sum another expression.
fn sum(words: &str, expression: &str) -> String {
    format!("{words}\n\nsums.py\n```python\ndef add(one, other):\n    return {expression}\n```")
}

/// Makes the model write, so many times, what is there.
fn writes_what_is_there(world: &World, times: u32) -> Script<'_> {
    (1..=times).fold(world.model.script(), |script, number| {
        script.says(&sum(&format!("Try {number}."), "one - other"))
    })
}

/// Runs on an issue about that test, and expects a failure whose comment has these words.
async fn fails_saying(world: World, words: &str) {
    let issue = adds_wrongly(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent failed"]);
    let last = last_on_github(&world, &issue);
    assert!(last.contains(words), "{last}");
    world.finish().await;
}
