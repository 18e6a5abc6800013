//! Bodies that are written onto an item: cut to the forge's limit, with its mark, and without
//! commands of GitLab's.

use coding_agent::markdown::{marker, quick_actions};

use super::text;

/// A body of a comment or of a request.
pub fn bodies(bytes: &[u8]) {
    let body = text(bytes);
    for limit in [200, 1000, 100_000] {
        let marked = marker::marked(&body, "run:final", limit);
        assert!(
            marked.encode_utf16().count() <= limit.max(300),
            "{} of {limit}",
            marked.len()
        );
        assert!(marker::is_marked(&marked, "run:final"));
        let title = marker::short_title(&body, limit);
        assert!(!title.contains('\n') && title.encode_utf16().count() <= limit);
    }
    let disarmed = quick_actions::disarmed(&body);
    assert_eq!(quick_actions::disarmed(&disarmed), disarmed);
    assert!(disarmed.len() <= 2 * body.len() + 2);
    let is_close = |line: &str| line.trim() == "/close" || line.trim() == "/merge";
    assert!(!disarmed.split(['\n', '\r']).any(is_close), "{disarmed:?}");
}
