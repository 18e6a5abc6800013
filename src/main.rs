//! The program `coding-agent`.

use std::process::ExitCode;

fn main() -> ExitCode {
    coding_agent::cli::main()
}
