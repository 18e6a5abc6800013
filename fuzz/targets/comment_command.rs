//! The first line of a comment.
#![no_main]

use coding_agent::task::command::Command;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &str| {
    if Command::in_comment(body).is_some() {
        assert!(body.trim_start().to_ascii_lowercase().starts_with("/agent"));
    }
});
