//! The facts that stand in the journal.

use serde_json::Value;

use crate::world::World;

/// Returns the facts of one kind from the journal.
pub fn facts(world: &World, fact: &str) -> Vec<Value> {
    let mut facts = world.journal();
    facts.retain(|entry| entry["fact"] == fact);
    facts
}

/// Waits until a fact stands so often in the journal, which a thread of its own writes a moment
/// after the deed, and returns the facts of its kind.
pub async fn until_facts(world: &World, fact: &str, times: usize) -> Vec<Value> {
    world.until(fact, || count(world, fact) >= times).await;
    facts(world, fact)
}

/// Returns how often a fact stands in the journal.
pub fn count(world: &World, fact: &str) -> usize {
    facts(world, fact).len()
}
