//! Producer, consumers, recovery.
