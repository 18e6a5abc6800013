//! The program `coding-agent`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything is written or started.
    coding_agent::private::keep_to_user();
    // Tools of the configuration run as the same user, and tokens are in memory and in the
    // environment. No kernel refuses this.
    let _ = coding_agent::process::keep_private();
    if cfg!(all(target_feature = "crt-static", target_env = "gnu")) {
        coding_agent::cli::names::warn();
    }
    coding_agent::cli::main()
}
