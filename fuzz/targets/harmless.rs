//! A model's words in a comment: nobody is called and nothing is hidden.
#![no_main]

use coding_agent::agent::harmless::{harmless, harmless_line};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let safe = harmless(text);
    assert!(!safe.contains("<!--") || text.contains('`') || text.contains('~'));
    let line = harmless_line(text, 80);
    assert!(line.len() < 4096);
});
