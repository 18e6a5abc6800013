//! Git's raw difference, on which the judge of a container's commits decides.
#![no_main]

use coding_agent::repository::judge;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|raw: &[u8]| {
    if let Ok((changes, total)) = judge::changes(raw) {
        assert!(changes.len() <= total);
        for change in changes {
            assert!(!change.path.starts_with(b"/") && !change.path.split(|byte| *byte == b'/').any(|name| name == b".."));
        }
    }
    let (path, target) = raw.split_at(raw.len() / 2);
    let _ = judge::judge_link(path, target);
    assert!(!judge::shown(raw).chars().any(char::is_control));
});
