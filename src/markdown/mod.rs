//! Markdown that people wrote, as the model reads it, and Markdown that the bot writes.
//!
//! All decisions about Markdown are made in this module; the rest of the program passes texts
//! through it. Nothing here does I/O.

pub mod visible; // what a reader sees of a page
pub mod fence; // where a block of code begins and ends
pub mod code; // spans and blocks that nothing inside can close
mod escape; // text that is shown as it is
mod inline; // what stands on a line
mod block; // paragraphs, lists and the like
mod sanitize; // what a model or a stranger wrote, written again so that it does nothing
pub mod compose; // comments, put together of parts
pub mod marker; // the bot's own comments, and the length of a body
pub mod quick_actions; // GitLab's commands

#[cfg(test)]
mod tests;
