//! Files that a package ships beside the program and that the program writes itself: completion
//! scripts for shells, and manual pages.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::arguments::Arguments;
use crate::cli::exit;
use crate::cli::session::complain;

const NAME: &str = "coding-agent";

/// Mode of a manual page: everybody reads it, whatever else this program writes.
const PAGE_MODE: u32 = 0o644;

/// Returns the completion script for `shell`.
pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut offered(), NAME, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Writes a manual page for the program and each of its commands into `folder`.
pub fn manual(folder: &Path) -> ExitCode {
    match pages(folder) {
        Ok(()) => exit::SUCCESS.into(),
        Err(error) => {
            complain(format_args!(
                "the manual pages cannot be written into {}: {error}",
                folder.display()
            ));
            exit::FAILED.into()
        }
    }
}

fn pages(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // Building gives each command of a command its whole name, which is its page's.
    let mut program = Arguments::command().disable_help_subcommand(true);
    program.build();
    let mut left = vec![program];
    while let Some(command) = left.pop() {
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        left.extend(shown.cloned());
        let source = concat!("coding-agent ", env!("CARGO_PKG_VERSION"));
        let page = Man::new(command).source(source).manual("coding-agent");
        let mut text = Vec::new();
        page.render(&mut text)?;
        let path = folder.join(page.get_filename());
        fs::write(&path, text)?;
        fs::set_permissions(&path, Permissions::from_mode(PAGE_MODE))?;
    }
    Ok(())
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
            let script = completions(shell);
            assert!(script.contains("doctor") && script.contains("dry-run"), "{shell}");
        }
    }

    #[test]
    fn every_command_has_a_manual_page_that_all_may_read() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("man1");
        pages(&folder).unwrap();
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let program = read("coding-agent.1");
        assert!(program.contains("coding\\-agent\\-doctor(1)"), "{program}");
        assert!(!program.contains("mcp\\-guard"), "a hidden command is shown: {program}");
        assert!(!folder.join("coding-agent-mcp-guard.1").exists());
        assert!(read("coding-agent-run.1").contains("dry\\-run"));
        let nested = read("coding-agent-config-check.1");
        assert!(
            nested.contains(concat!("coding-agent ", env!("CARGO_PKG_VERSION"))),
            "{nested}"
        );
        for page in fs::read_dir(&folder).unwrap() {
            let mode = page.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, PAGE_MODE);
        }
    }
}
