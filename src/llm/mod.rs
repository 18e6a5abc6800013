//! Language models behind one chat session: the agent calls `send_system_prompt`,
//! `send_user_message` and `get_response`, and knows nothing of providers.
//!
//! In reading order, which is import order. Only `transport` uses the network, and may receive a
//! reply as a stream; callers get whole replies, because nothing can act on half of one.

pub mod config; // the section `llm`
pub mod error; // why no reply came
mod local_only; // confidential work, and the resolver that keeps it in private networks
mod transport; // requests, retries, and what an HTTP error means
mod provider; // the protocols: OpenAI's, Ollama's, Anthropic's
mod connection; // the way to one model
mod calls_as_json; // native calls as JSON text
mod replies; // a server's answer as a reply
mod window_estimate; // size of a conversation; whether a prompt was cut
pub mod chat; // one conversation
pub mod model; // the model of a role
pub mod models; // all models, by role
mod embeddings; // texts as vectors
pub mod window_measurement; // how much of a long prompt arrives
