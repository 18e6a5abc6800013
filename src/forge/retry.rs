//! Which failures are tried again, and when.
