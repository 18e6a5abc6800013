//! Only the guard, until the command line is there.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.as_slice() {
        [_, subcommand, dashes, command @ ..] if subcommand == "mcp-guard" && dashes == "--" => {
            coding_agent::tool::guard::run(command)
        }
        _ => ExitCode::from(64),
    }
}
