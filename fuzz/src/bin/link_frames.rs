#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| coding_agent_fuzz::readers::frames::link(bytes));
