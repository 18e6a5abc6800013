//! A project's rules, in each of the names they may have.
#![no_main]

use coding_agent::rules::Settings;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for name in Settings::names() {
        if let Err(malformed) = Settings::read(name, text) {
            assert!(!malformed.to_string().is_empty());
        }
    }
});
