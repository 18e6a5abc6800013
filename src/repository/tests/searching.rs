//! Tests of searching a commit's text files.

use std::sync::Arc;

use super::*;
use crate::repository::reading::search::Pattern;

#[tokio::test]
async fn of_a_secret_where_a_matching_line_is_cut_nothing_is_shown() {
    let world = World::with_a_commit();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    world.upstream_commit("long.txt", &format!("needle {} {token}\n", "word ".repeat(77)));
    let mirror = world.mirror().await;
    let commit = mirror.branch("main").await.unwrap().unwrap();
    let pattern = Pattern::read("needle").unwrap();
    let found = mirror.search(&commit, &pattern, |_| true, 9, &Arc::default()).await;
    let lines = found.unwrap().lines;
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].ends_with("word  [redact") && !lines[0].contains("ghp_"),
        "{lines:?}"
    );
}
