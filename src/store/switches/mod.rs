//! Switches for the whole installation, whichever machine its workers are on.

mod pause; // all runs are set aside
mod automatic_approval; // whether results may pass without a person at this moment
