//! Processes and all their descendants.
