//! The program decides by evidence: what the checks say, what the project's own tests say, and what
//! the difference shows.

mod delivered;
mod differences;
mod earlier_work;
mod hostile_checks;
mod project_tests;
mod repairs;

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::scripts::{executes, writes};

const NODE: &str = "coding-agent-executor-node:latest";

const ADD: &str = "export const add = (one, other) => one + other;\n";
const TEST: &str = "import { test } from 'node:test';
import assert from 'node:assert';
import { add } from '../add.mjs';

test('adds', () => {
  assert.strictEqual(add(1, 2), 3);
});
";
const PACKAGE: &str = r#"{ "name": "widgets", "scripts": { "test": "node --test test/" } }"#;

/// A project for node with a test.
const PROJECT: [(&str, &str); 3] = [("package.json", PACKAGE), ("add.mjs", ADD), ("test/add.test.mjs", TEST)];

/// Starts a world whose tasks are worked on with node.
async fn node() -> World {
    let mut world = World::start().await;
    world.configure(|config| {
        config["command_executor"]["environments"] = json!({ "node": NODE });
        config["command_executor"]["default_environment"] = json!("node");
    });
    world
}

/// A plan that names no check.
fn plan() -> Plan {
    Plan::of(&["change how widgets are added"]).in_environment("node")
}
