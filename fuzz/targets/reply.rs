//! A model's reply: whatever is read out of it is a turn or a fault in words, and reading it takes linear time.
#![no_main]

use coding_agent::conversation::{Reply, decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let reply = Reply {
        text: text.to_owned(),
        ..Reply::default()
    };
    if let Err(unreadable) = decode::turn(&reply) {
        assert!(!unreadable.to_string().is_empty());
    }
    let _ = decode::objects(text);
    let _ = decode::arguments(text);
    let _ = decode::without_thinking(text);
});
