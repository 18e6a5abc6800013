//! Code that the programs of this folder share. Each puts the real `coding-agent`, started as a
//! process, between the fakes of the world tests and the real Docker engine:
//!
//! - `demo` shows a run from the label to the pull request (`make demo`),
//! - `bench` measures the program's own time, memory and requests (`make bench`),
//! - `chaos` kills and disturbs it, and counts what was lost (`make chaos`, `make soak`),
//! - `attack` plays hostile people, repositories and models, and counts what got through
//!   (`make attack`),
//! - `real_model` has it work with a real small model (`make test-model`),
//! - `bench_index` measures the code index (`make bench-index`), without any of the fakes,
//! - `histories` takes real repositories with their whole histories through it (`make histories`),
//! - `replay` plays what other agents were recorded doing through it (`make replay`),
//! - `solve_rate` counts the tasks that are solved with a model of your own (`make solve-rate`).
//!
//! They are a package of their own, so that neither `cargo build` nor `cargo nextest run` links
//! them, and the fakes are compiled for all of them at once.

#[path = "../../tests/world/fake/mod.rs"]
pub mod fake; // forges and model
#[path = "../../tests/world/world/journal_files.rs"]
pub mod journal_files; // the journal as it lies on the disk

use std::process::ExitCode;

pub mod archive; // several files in one text
pub mod build; // the programs that were built in the same profile
pub mod containers; // what the engine itself says of an installation's containers
pub mod history; // repositories with their whole histories
pub mod installation; // the program, configured in a folder of its own
pub mod llama; // llama.cpp's server
pub mod machine; // the machine and the build that figures come from
pub mod memory; // the memory of a process
pub mod peer; // mini-swe-agent, where it is installed
pub mod postgres; // a database on a server that can crash

/// Does the work of a program that counts faults, and returns its exit code. `sentence` follows the
/// number.
pub fn run(program: &str, work: impl Future<Output = anyhow::Result<usize>>, sentence: &str) -> ExitCode {
    // One TLS provider for all clients; a second call finds it there already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let counted = tokio::runtime::Runtime::new()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(work));
    exit_code(program, counted, sentence)
}

/// Returns the exit code of a program that counts faults, and prints what it counted or why it
/// broke off. `sentence` follows the number.
pub fn exit_code(program: &str, counted: anyhow::Result<usize>, sentence: &str) -> ExitCode {
    match counted {
        Ok(0) => return ExitCode::SUCCESS,
        Ok(count) => eprintln!("{program}: {count} {sentence}"),
        Err(error) => eprintln!("{program}: {error:#}"),
    }
    ExitCode::FAILURE
}
