//! Requests to GitHub: the connection, who they are authorised as, and what comes back.

mod path;
pub(super) mod response;
pub(super) mod app_tokens;
mod connection;
mod redirect;
mod client;
mod lists;
pub(super) mod app;

pub(super) use app_tokens::TokenScope;
pub(super) use client::Client;
pub(super) use path::{encoded, encoded_branch, path};
