//! Paths of the REST API.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Returns a name as one segment of a path or value of a query.
pub(crate) fn encoded(name: &str) -> String {
    const OTHERS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(name, OTHERS).to_string()
}

/// Returns the name of a branch as the rest of a path, in which its slashes stay.
pub(crate) fn encoded_branch(name: &str) -> String {
    let parts: Vec<String> = name.split('/').map(encoded).collect();
    parts.join("/")
}

/// Returns the path of a repository's part, e.g. `/repos/owner/repo/issues/1`.
pub(crate) fn path(repository: &str, part: &str) -> String {
    let name: Vec<String> = repository.split('/').map(encoded).collect();
    format!("/repos/{}{part}", name.join("/"))
}
