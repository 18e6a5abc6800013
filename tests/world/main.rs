//! The real program against a faked world and a real Docker engine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod environment;
