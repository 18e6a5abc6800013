//! What git's complaints mean: who must act.
//!
//! Git tells the kinds of failure apart only in words, so they are read here, in English (`LC_ALL=C`).

use super::RepositoryError;

const REFUSED: [&str; 16] = [
    "authentication failed",
    "could not read username",
    "could not read password",
    "returned error: 401",
    "returned error: 403",
    "returned error: 404",
    "access denied",
    "permission denied",
    "not allowed to",
    "permission to ",
    "repository not found",
    "does not appear to be a git repository",
    "protected branch",
    "hook declined",
    "push declined",
    "invalid credentials",
];

const UNAVAILABLE: [&str; 19] = [
    "could not resolve host",
    "failed to connect",
    "couldn't connect",
    "connection refused",
    "connection reset",
    "connection timed out",
    "timed out",
    "too slow",
    "returned error: 5",
    "returned error: 429",
    "returned error: 408",
    "rpc failed",
    "early eof",
    "unexpected disconnect",
    "hung up",
    "empty reply",
    "transfer closed",
    "recv failure",
    "network is unreachable",
];

const MOVED: [&str; 5] = [
    "non-fast-forward",
    "fetch first",
    "stale info",
    "cannot lock ref",
    "needs force",
];

/// Returns the error for a git command that said `complaint`.
pub(super) fn classify(what: &str, complaint: &str) -> RepositoryError {
    let what = what.to_owned();
    let reason = if complaint.trim().is_empty() {
        "git failed without a word".to_owned()
    } else {
        complaint.trim().to_owned()
    };
    let said = reason.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    // A rejected push is looked for first: the forge may add any words of its own.
    if says(&MOVED) {
        return RepositoryError::Moved { what, reason };
    }
    if says(&["returned error: 30", "redirect"]) {
        let reason = format!("{reason}; the address has moved: configure the repository's present one");
        return RepositoryError::Refused { what, reason };
    }
    if says(&REFUSED) {
        return RepositoryError::Refused { what, reason };
    }
    if says(&UNAVAILABLE) {
        return RepositoryError::Unavailable { what, reason };
    }
    RepositoryError::Unexpected { what, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(complaint: &str) -> &'static str {
        match classify("fetching", complaint) {
            RepositoryError::Refused { .. } => "refused",
            RepositoryError::Unavailable { .. } => "unavailable",
            RepositoryError::Moved { .. } => "moved",
            RepositoryError::Unacceptable(_) => "unacceptable",
            RepositoryError::Unexpected { .. } => "unexpected",
        }
    }

    #[test]
    fn what_git_says_names_who_must_act() {
        for (complaint, expected) in [
            (
                "fatal: Authentication failed for 'https://forge.example/a.git/'",
                "refused",
            ),
            (
                "fatal: could not read Username for 'https://forge.example': terminal prompts disabled",
                "refused",
            ),
            (
                "fatal: unable to access 'https://forge.example/': The requested URL returned error: 403",
                "refused",
            ),
            (
                "remote: error: GH006: Protected branch update failed for refs/heads/main.",
                "refused",
            ),
            (
                "fatal: unable to access 'https://forge.example/': The requested URL returned error: 301",
                "refused",
            ),
            (
                "fatal: unable to access 'https://forge.example/': Could not resolve host: forge.example",
                "unavailable",
            ),
            (
                "fatal: unable to access 'https://forge.example/': The requested URL returned error: 502",
                "unavailable",
            ),
            (
                "error: RPC failed; curl 56 Recv failure: Connection reset by peer",
                "unavailable",
            ),
            ("!\tabc:refs/heads/x\t[rejected] (fetch first)", "moved"),
            ("fatal: bad object HEAD", "unexpected"),
            ("", "unexpected"),
        ] {
            assert_eq!(kind(complaint), expected, "{complaint}");
        }
    }
}
