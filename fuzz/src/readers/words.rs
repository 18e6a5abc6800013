//! Single words with a form: sizes, branches, commits, tasks.

use coding_agent::environment::config::size::parse_size;
use coding_agent::repository::{CommitId, branch_name};
use coding_agent::task::id::TaskId;

use super::text;

/// A word in each of its meanings.
pub fn words(bytes: &[u8]) {
    let word = text(bytes);
    match parse_size(&word) {
        Ok(bytes) => assert!(i64::try_from(bytes).is_ok()),
        Err(sentence) => assert!(sentence.contains("write a ")),
    }
    if let Ok(branch) = branch_name(&word) {
        assert!(!branch.starts_with('-') && !branch.contains("..") && !branch.contains(char::is_control));
        assert!(!branch.split('/').any(|part| part.is_empty() || part.starts_with('.')));
    }
    if let Ok(commit) = word.parse::<CommitId>() {
        assert_eq!(commit.as_str(), word);
    }
    if let Ok(task) = word.parse::<TaskId>() {
        assert_eq!(task.to_string().parse().as_ref(), Ok(&task));
    }
}
