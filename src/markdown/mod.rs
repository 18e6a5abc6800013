//! Markdown: what the model reads of people's texts, and what the bot writes.
//!
//! All decisions about Markdown are made here; the rest of the program passes its texts through
//! this module. Does no I/O.

pub mod visible; // the visible part of a text
pub mod fence; // fenced code blocks
pub mod code; // writes code spans and blocks
mod escape; // plain text as Markdown
mod inline; // inline content
mod block; // paragraphs, lists, quotes, tables
mod sanitize; // text of models and strangers, rewritten without effect
pub mod compose; // builds comments from parts
pub mod marker; // invisible marks, and limits of length
pub mod owned; // the sections of a change request that the program owns
pub mod quick_actions; // escapes GitLab's quick actions

#[cfg(test)]
mod tests;
