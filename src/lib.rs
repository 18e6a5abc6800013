//! A self-hosted coding agent: from a label on an issue to a verified pull request.
//!
//! The modules are listed from the bottom up. Reading order is import order: a module imports only
//! what stands above it here, and the neighbours do not import one another. `tests/architecture.rs`
//! fails on an arrow that points the other way.

// The language: plain data and decisions. No I/O, no async.
pub mod spelling; // what a name that does not exist may have been meant for
pub mod plain; // counts, paths and texts on one line
pub mod picture; // pictures that people send, without metadata
pub mod conversation; // messages, turns and how they are read out of a model's reply
pub mod plan; // the plan a model makes, and what makes one valid
pub mod rules; // what a project asks of whoever works on it
pub mod evidence; // what speaks for a change and against it
pub mod egress; // what a container may reach
pub mod finding; // what `doctor` says of one thing
pub mod secret; // what must not be shown, and text that may be
pub mod approval; // what people are asked to allow
pub mod markdown; // what people wrote as the model reads it, and what the bot writes
pub mod lfs; // pointers of Git LFS, as commits hold them
pub mod syntax; // how a file of source falls into places
pub mod task; // what is worked on: ids, states, labels
pub mod review; // a second model's judgement, and what follows from it
pub mod routing; // what a message from a chat asks for

// What neighbours share.
pub mod process; // processes and all their descendants
pub mod certificates; // whom HTTP clients trust
pub mod http; // HTTP clients: building, retries, limits
pub mod private; // who may read what this program writes
pub mod file_lock; // a file that one process at a time has
pub mod signature; // who signed what came from elsewhere
pub mod link; // a byte stream that outlives the connections that carry it
pub mod reach; // what is reached from here, tried

// The neighbours: one module for each part of the outside world.
pub mod environment; // containers, through Docker or in a cluster
pub mod executor; // the program inside the container
pub mod gateway; // the way out of a container
pub mod forge; // GitHub and GitLab
pub mod llm; // language models
pub mod messenger; // Slack and LINE
pub mod queue; // wakes consumers
pub mod repository; // the bare mirror, what goes in and what comes out
pub mod store; // which runs there are, and who works on them
pub mod tool; // MCP servers

// What is known of a repository.
pub mod index; // the places of a commit, found by the words of a question

// What is told of the work.
pub mod journal; // every fact once, in the store and in a file; and the log files

// What is told of the work to others.
pub mod traces; // runs as traces, for OpenTelemetry

// The workspace.
pub mod workspace; // where a run works: the project in a container, with tools

pub mod reviewer; // asks a second model, or a program, for its judgement

// The work.
pub mod agent; // one run, from plan to delivery

// The service.
pub mod config; // config.yaml
pub mod service; // producer, consumers, recovery
pub mod chat; // what people ask for in messengers, and what they are told
pub mod doctor; // is everything there that a run needs?
pub mod evaluation; // evaluates documents for other programs, over MCP
pub mod web; // dashboard, API, metrics, webhooks
pub mod cli; // the command line
