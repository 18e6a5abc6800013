//! What a test run printed, and what the model is told of it: bounded, whatever it was.
#![no_main]

use coding_agent::evidence::check::{Checked, Ended};
use coding_agent::evidence::digest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|output: &str| {
    let ended = Ended::new(Some(1), output.to_owned(), "/workspace/project");
    let checked = Checked::new("make test", 0, &ended);
    assert!(digest::digest(&[checked]).len() < 64 * 1024);
});
