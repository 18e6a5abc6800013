//! Servers that are read but take no writes for a while.

/// GitLab's words in its Maintenance Mode: of git, of the API, and of Git LFS.
const READ_ONLY: [&str; 3] = ["maintenance mode", "read-only instance", "read-only gitlab instance"];

/// Tells whether a refusal says that the server takes no writes for now, whoever asks.
pub fn takes_no_writes(said: &str) -> bool {
    let said = said.to_lowercase();
    READ_ONLY.iter().any(|words| said.contains(words))
}
