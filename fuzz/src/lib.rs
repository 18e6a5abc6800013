//! The readers that meet strangers' bytes, and what must hold whatever these are. The programs in
//! `bin` feed them with libFuzzer; `tests/strangers` feeds the same ones with the committed corpus
//! and with changed pieces of it.

pub mod readers;
