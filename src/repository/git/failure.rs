//! Classifies git's error messages by who must act.
//!
//! Git distinguishes failures only by their text, which is matched here, in English (`LC_ALL=C`).

use std::sync::LazyLock;

use regex::Regex;

use crate::http::maintenance::takes_no_writes;
use crate::http::remedy::without_semicolons;
use crate::repository::RepositoryError;

/// The reason for which a connection or a whole transfer is given up.
pub(in crate::repository) const STALLED: &str = "the server sent nothing for longer than `git.stall_seconds` allows";

/// Trouble of the forge's own, in the words of GitHub, and of GitLab, whose hook then declines the
/// push.
const TROUBLED: [&str; 5] = [
    "fatal error in commit_refs",
    "(failure)",
    "failed to report status",
    "internal server error",
    "internal api unreachable",
];

/// Git's messages for failed authentication.
const UNAUTHENTICATED: [&str; 5] = [
    "authentication failed",
    "could not read username",
    "could not read password",
    "returned error: 401",
    "invalid credentials",
];

/// The branch may not be forced: GitHub's rules (GH013) and older protection (GH006), GitHub
/// Enterprise Server's setting (GH003), GitLab's protected branches, and git's own setting
/// `receive.denyNonFastForwards`. No branch has a name with a space.
const FORCE_REFUSED: [&str; 5] = [
    "cannot force-push to ",
    "force-pushing to ",
    "force push code to a protected branch",
    "denying non-fast-forward ",
    "[remote rejected] (non-fast-forward)",
];

/// The forge's rules for the branch forbid the push.
const PROTECTED: [&str; 3] = ["protected branch", "hook declined", "push declined"];

/// The remedy against rules for a branch.
const LET_PUSH: &str = "let the token's account push to such branches (branch protection, push rules, hooks)";

/// The account lacks the permission, or the repository does not exist.
const REFUSED: [&str; 8] = [
    "returned error: 403",
    "returned error: 404",
    "access denied",
    "permission denied",
    "not allowed to",
    "permission to ",
    "repository not found",
    "does not appear to be a git repository",
];

/// The server's certificate is not trusted, or not for this address, in the words of `GnuTLS` and
/// `OpenSSL`.
const UNTRUSTED: [&str; 4] = [
    "certificate verification failed",
    "certificate problem",
    "certificate subject name",
    "certificate verify failed",
];

const UNAVAILABLE: [&str; 18] = [
    "could not resolve host",
    "failed to connect",
    "couldn't connect",
    "connection refused",
    "connection reset",
    "connection timed out",
    "timed out",
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

/// Git stores branches as paths, so a branch `coding-agent` excludes `coding-agent/7-greet`.
const IN_THE_WAY: [&str; 2] = ["directory file conflict", "exists; cannot create"];

/// GitHub requires a separate permission for commits that change workflows.
const WORKFLOW: [&str; 2] = ["to create or update workflow", "without `workflow"];

const MOVED: [&str; 5] = [
    "(non-fast-forward)",
    "fetch first",
    "stale info",
    "cannot lock ref",
    "needs force",
];

/// Redirects are not followed (`http.followRedirects`).
const REDIRECTED: [&str; 3] = [
    "returned error: 30",
    "unable to update url base from redirection",
    "redirects followed",
];

/// Returns the error for a git command that failed with `complaint`.
pub(in crate::repository) fn classify(what: &str, complaint: &str) -> RepositoryError {
    let what = what.to_owned();
    let reason = in_one_line(complaint);
    let said = own_words(complaint);
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if says(&["mismatched algorithms"]) {
        let reason = format!(
            "{reason}; the repository names its objects by SHA-256, which this program cannot work with: use a repository with \
             git's usual SHA-1 names"
        );
        return RepositoryError::Refused { what, reason };
    }
    // Checked before `MOVED`, whose words it contains too, but where a retry helps.
    if says(&IN_THE_WAY) {
        let remedy = "another branch has the new one's name up to a `/`, and git cannot have both: rename or delete it";
        let reason = format!("{reason}; {remedy}");
        return RepositoryError::Refused { what, reason };
    }
    // The server closes the connection then, which is no outage.
    if says(&["does not support --atomic"]) {
        return RepositoryError::Unexpected { what, reason };
    }
    // Checked before `MOVED`: git itself says nearly the same of a branch that has moved.
    if says(&FORCE_REFUSED) {
        let reason = format!("{reason}; {LET_PUSH}");
        return RepositoryError::ForceRefused { what, reason };
    }
    // A rejected push is checked before the rest: the forge may add any text of its own.
    if says(&MOVED) {
        return RepositoryError::Moved { what, reason };
    }
    if says(&REDIRECTED) {
        let reason = format!("{reason}; the address has moved: configure the repository's present one");
        return RepositoryError::Refused { what, reason };
    }
    // Checked before the refusals, whose words it contains too, but where a retry helps.
    if says(&TROUBLED) || takes_no_writes(&said) {
        return RepositoryError::Unavailable { what, reason };
    }
    let remedies = [
        (
            &UNAUTHENTICATED[..],
            "make a new token, and see that the configuration has it",
        ),
        (
            &UNTRUSTED,
            "name the certificate of the authority that issued the server's in ca_file, and use an address that stands in it",
        ),
        (
            &WORKFLOW,
            "give the token the right to change workflows (the scope `workflow`, or the permission Workflows: write), or \
             leave these files to people",
        ),
        (&PROTECTED, LET_PUSH),
        (
            &REFUSED,
            "see that the repository is there, and give the token's account the right to write to it",
        ),
    ];
    if let Some((_, remedy)) = remedies.iter().find(|(words, _)| says(words)) {
        let reason = format!("{reason}; {remedy}");
        return RepositoryError::Refused { what, reason };
    }
    if says(&["too slow"]) {
        let reason = format!("{reason}; {STALLED}");
        return RepositoryError::Unavailable { what, reason };
    }
    if says(&UNAVAILABLE) {
        return RepositoryError::Unavailable { what, reason };
    }
    RepositoryError::Unexpected { what, reason }
}

/// Returns git's own words, in lower case. What a repository, branch or file is called may read
/// like any message, so the names in the table of refs are left out, and what stands in quotes.
#[expect(clippy::expect_used, reason = "the pattern is a constant, and a test compiles it")]
fn own_words(complaint: &str) -> String {
    // An apostrophe within a word is no quote.
    static QUOTED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\B'.*?'\B").expect("a constant pattern compiles"));
    let lines = complaint.lines().map(|line| told_of_ref(line).unwrap_or(line));
    let words = lines.collect::<Vec<_>>().join("\n");
    QUOTED.replace_all(&words, "''").to_lowercase()
}

/// Returns what a line of the table of refs (`--porcelain`) tells of its ref; `None` for any other
/// line.
fn told_of_ref(line: &str) -> Option<&str> {
    let (_, told) = line.split_once('\t').filter(|(flag, _)| flag.len() <= 1)?;
    told.rsplit('\t').next()
}

/// Returns the useful part of git's messages on one line: without prefixes, addresses and the table
/// of refs. It has no semicolon between sentences.
fn in_one_line(complaint: &str) -> String {
    let told = complaint.lines().filter_map(|line| {
        let line = line.trim();
        if let Some(rejected) = line.strip_prefix('!') {
            // What was rejected with another reference alone says nothing of why.
            let told = rejected.rsplit('\t').next();
            return told
                .filter(|told| !told.contains("(atomic push fail"))
                .map(str::to_owned);
        }
        // An older git says the last one of each check of objects that it does not know.
        let is_noise = line == "Done"
            || line.starts_with("To ")
            || line.starts_with("error: failed to push some refs")
            || line.starts_with("warning: Skipping unknown msg id");
        let words = ["remote:", "fatal:", "error:"]
            .iter()
            .fold(line, |words, prefix| words.strip_prefix(prefix).unwrap_or(words).trim());
        (!is_noise && !words.is_empty()).then(|| words.to_owned())
    });
    let told = without_semicolons(&told.collect::<Vec<_>>().join(", "));
    if told.is_empty() {
        return "git failed without a message".to_owned();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::remedy::Reason;

    fn kind(complaint: &str) -> &'static str {
        match classify("fetching", complaint) {
            RepositoryError::Refused { .. } => "refused",
            RepositoryError::ForceRefused { .. } => "force refused",
            RepositoryError::Unavailable { .. } => "unavailable",
            RepositoryError::Moved { .. } => "moved",
            RepositoryError::Unacceptable(_) => "unacceptable",
            RepositoryError::TooSlow(_) => "too slow",
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
            ("!\tabc:refs/heads/x\t[rejected] (non-fast-forward)", "moved"),
            (
                "fatal: unable to update url base from redirection:\n  asked for: https://forge.example/a.git/info/refs\n   \
                 redirect: https://forge.example/sign_in",
                "refused",
            ),
            (
                "remote: error: cannot lock ref 'refs/heads/coding-agent/7-x': 'refs/heads/coding-agent' exists; cannot create \
                 'refs/heads/coding-agent/7-x'\n!\tabc:refs/heads/coding-agent/7-x\t[remote rejected] (failed to update ref)",
                "refused",
            ),
            (
                "!\tabc:refs/heads/coding-agent/7-x\t[remote rejected] (directory file conflict)",
                "refused",
            ),
            (
                "!\tabc:refs/heads/x\t[remote rejected] (refusing to allow a Personal Access Token to create or update workflow \
                 `.github/workflows/ci.yml` without `workflow` scope)",
                "refused",
            ),
            (
                "fatal: unable to access 'https://forge.example/': server certificate verification failed. CAfile: none CRLfile: none",
                "refused",
            ),
            (
                "fatal: unable to access 'https://forge.example/': SSL certificate problem: self-signed certificate",
                "refused",
            ),
            (
                "remote: fatal error in commit_refs\n!\tabc:refs/heads/x\t[remote rejected] (failure)",
                "unavailable",
            ),
            (
                "remote: Internal Server Error\n!\tabc:refs/heads/x\t[remote failure] (remote failed to report status)",
                "unavailable",
            ),
            (
                "remote: GitLab: 500 Internal Server Error\n\
                 !\tabc:refs/heads/x\t[remote rejected] (pre-receive hook declined)",
                "unavailable",
            ),
            (
                "remote: GitLab: Internal API unreachable\n\
                 !\tabc:refs/heads/x\t[remote rejected] (pre-receive hook declined)",
                "unavailable",
            ),
            (
                "remote: Git push is not allowed because this GitLab instance is currently in (read-only) maintenance mode.\n\
                 fatal: unable to access 'https://forge.example/': The requested URL returned error: 403",
                "unavailable",
            ),
            (
                "!\tabc:refs/coding-agent/claims/item-1\t[remote rejected] (atomic push failure)\n\
                 !\tabc:refs/heads/fix(failure)\t[remote rejected] (hook declined)",
                "refused",
            ),
            ("fatal: bad object HEAD", "unexpected"),
            ("", "unexpected"),
        ] {
            assert_eq!(kind(complaint), expected, "{complaint}");
        }
    }

    #[test]
    fn a_branch_that_may_not_be_forced_is_told_from_one_that_moved_and_one_that_takes_no_push() {
        for (complaint, expected) in [
            (
                "remote: error: GH013: Repository rule violations found for refs/heads/x.        \nremote: Review all repository rules \
                 at https://github.com/a/b/rules?ref=refs%2Fheads%2Fx        \nremote: \nremote: - Cannot force-push to this branch    \
                 \nremote: \n!\tabc:refs/heads/x\t[remote rejected] (push declined due to repository rule violations)",
                "force refused",
            ),
            (
                "remote: error: GH006: Protected branch update failed for refs/heads/x.\nremote: error: Cannot force-push to a \
                 protected branch\n!\tabc:refs/heads/x\t[remote rejected] (protected branch hook declined)",
                "force refused",
            ),
            (
                "remote: error: GH003: Sorry, force-pushing to x is not allowed.\n\
                 !\tabc:refs/heads/x\t[remote rejected] (pre-receive hook declined)",
                "force refused",
            ),
            (
                "remote: GitLab: You are not allowed to force push code to a protected branch on this project.\n\
                 !\tabc:refs/heads/x\t[remote rejected] (pre-receive hook declined)",
                "force refused",
            ),
            (
                "remote: error: denying non-fast-forward refs/heads/x (you should pull first)\n\
                 !\tabc:refs/heads/x\t[remote rejected] (non-fast-forward)",
                "force refused",
            ),
            (
                "!\tabc:refs/coding-agent/claims/item-1\t[remote rejected] (atomic push failure)\n\
                 !\tabc:refs/heads/x\t[remote rejected] (non-fast-forward)",
                "force refused",
            ),
            (
                "remote: error: GH013: Repository rule violations found for refs/heads/x.\nremote: - Changes must be made through a \
                 pull request.\n!\tabc:refs/heads/x\t[remote rejected] (push declined due to repository rule violations)",
                "refused",
            ),
            (
                "remote: GitLab: You are not allowed to push code to protected branches on this project.\n\
                 !\tabc:refs/heads/x\t[remote rejected] (pre-receive hook declined)",
                "refused",
            ),
            (
                "remote: error: hook declined to update refs/heads/7-force-pushing-to-x\n\
                 !\tabc:refs/heads/7-force-pushing-to-x\t[remote rejected] (hook declined)",
                "refused",
            ),
            ("!\tabc:refs/heads/x\t[rejected] (stale info)", "moved"),
        ] {
            assert_eq!(kind(complaint), expected, "{complaint}");
        }
    }

    #[test]
    fn names_that_read_like_a_message_are_none() {
        for (complaint, expected) in [
            (
                "fatal: unable to access 'https://forge.example/acme/redirector.git/': Could not resolve host: forge.example",
                "unavailable",
            ),
            (
                "error: RPC failed; curl 56 Recv failure: Connection reset by peer\n\
                 !\tabc:refs/heads/coding-agent/7-fix-redirects-followed\t[remote failure] (remote failed to report status)",
                "unavailable",
            ),
            (
                "!\tabc:refs/heads/fix(non-fast-forward)\t[remote rejected] (hook declined)",
                "refused",
            ),
            ("error: invalid path 'connection refused/a'", "unexpected"),
            ("fatal: bad object 'it's/hung up'", "unexpected"),
            ("fatal: it's gone: couldn't connect to 'forge.example'", "unavailable"),
        ] {
            assert_eq!(kind(complaint), expected, "{complaint}");
        }
    }

    #[test]
    fn people_are_told_the_words_without_what_is_around_them() {
        for (complaint, expected) in [
            (
                "remote: error: GH006: Protected branch update failed   \nremote: \nerror: failed to push some refs to 'http://a/'\n\n\
                 To http://a/\n!\t1f:refs/heads/x\t[remote rejected] (hook declined)\nDone\n",
                "GH006: Protected branch update failed, [remote rejected] (hook declined)",
            ),
            ("fatal: bad object HEAD\n", "bad object HEAD"),
            (
                "warning: Skipping unknown msg id 'badgpgsig'\nfatal: early EOF\n",
                "early EOF",
            ),
            (
                "!\t1f:refs/coding-agent/claims/item-1\t[remote rejected] (atomic push failure)\n\
                 !\t1f:refs/heads/x\t[remote rejected] (hook declined)\n",
                "[remote rejected] (hook declined)",
            ),
            ("  \n", "git failed without a message"),
        ] {
            assert_eq!(in_one_line(complaint), expected);
        }
    }

    #[test]
    fn what_git_says_is_taken_for_no_remedy() {
        for (complaint, expected) in [
            (
                "remote: HTTP Basic: Access denied.\nfatal: Authentication failed for 'https://forge.example/a.git/'",
                Reason::with(
                    "fetching: access refused: HTTP Basic: Access denied., Authentication failed for \
                     'https://forge.example/a.git/'",
                    "make a new token, and see that the configuration has it",
                ),
            ),
            (
                "error: RPC failed; curl 56 Recv failure: reset",
                Reason::from("fetching: RPC failed, curl 56 Recv failure: reset".to_owned()),
            ),
        ] {
            let said = classify("fetching", complaint).to_string();
            assert_eq!(Reason::of_own_words(&said), expected);
        }
    }
}
