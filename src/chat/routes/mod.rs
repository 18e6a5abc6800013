//! The routes of messages, a module for each kind of work.

pub(super) mod naming; // the repository that a message is about
pub(super) mod asking; // CODE: issues
pub(super) mod operating; // OPS: commands of the configured list
mod dialogue; // a conversation with a model about a message
pub(super) mod looking; // PLAN, ANALYZE, RESEARCH: workers that look at a repository
pub(super) mod evidence; // the places that workers name
pub(super) mod talking; // CHAT: the chat model
