//! Completion scripts for shells.

use std::io;
use std::io::Write;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::arguments::Arguments;

const NAME: &str = "coding-agent";

/// Writes the script for `shell`.
pub fn write(shell: Shell, output: &mut dyn Write) -> io::Result<()> {
    // The generator panics when it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut offered(), NAME, &mut script);
    output.write_all(&script)
}

/// Returns the command line without hidden commands, which only the program itself calls:
/// generators would offer them, too.
fn offered() -> Command {
    let all = Arguments::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new(NAME)
        .args(all.get_arguments().cloned())
        .subcommands(shown.cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            write(shell, &mut script).unwrap();
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("doctor") && script.contains("dry-run"), "{shell}");
        }
    }
}
