//! A difference between two commits, and what it shows besides.
#![no_main]

use coding_agent::evidence::difference;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|diff: &str| {
    let findings = difference::inspect(diff);
    if !findings.is_empty() {
        assert!(difference::question(&findings).len() < 64 * 1024);
    }
});
