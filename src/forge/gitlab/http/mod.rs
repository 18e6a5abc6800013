//! Requests to GitLab: the client, and endpoints that the `gitlab` crate does not have.

mod redirect;
mod client;
pub(super) mod endpoints;

pub(super) use client::Client;
