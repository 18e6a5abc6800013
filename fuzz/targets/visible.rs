//! Markdown that strangers wrote: nothing without a glyph is left, and nothing is added.
#![no_main]

use coding_agent::conversation::visible;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let seen = visible::markdown(text);
    assert!(!seen.contains(['\u{200B}', '\u{202E}', '\u{E0041}', '\u{0}']));
    let _ = visible::plain(text);
    assert!(!visible::line(text).contains('\n'));
});
