//! Deeds of people that many stories share.

use crate::fake::github::Item;
use crate::world::World;

/// Writes a comment and waits until the bot has seen it.
pub async fn says(world: &World, issue: &Item, author: &str, text: &str) {
    issue.comment(author, text);
    issue.last_comment().until_reaction(world.github.bot(), "eyes").await;
}
