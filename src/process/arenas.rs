//! Bounds the memory that glibc's allocator keeps.
//!
//! glibc gives groups of threads arenas of their own, up to eight for each processor. What is freed
//! in one is of no use to the others and mostly not given back either, so a service grew for
//! hundreds of tasks although what it had in use did not. glibc reads the number before `main`, and
//! changing it later takes unsafe code, so the program is replaced by itself with the number set.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The environment variable that glibc reads.
pub const VARIABLE: &str = "MALLOC_ARENA_MAX";

/// Two keep threads from waiting for each other at the allocator: most of a service's time is spent
/// waiting for the model, the forge and the containers.
const MOST_ARENAS: &str = "2";

/// Replaces this process by the same program with few arenas. Its process id, arguments, streams
/// and environment stay. To be called before any thread is started, and not where [`VARIABLE`] is
/// set, which would never end.
///
/// Returns only if that fails, with the reason. Then this process can go on: it needs more memory.
pub fn restart_with_few() -> io::Error {
    match std::env::current_exe() {
        Ok(program) => with_few(Command::new(program), std::env::args_os()).exec(),
        Err(error) => error,
    }
}

fn with_few(mut program: Command, mut arguments: impl Iterator<Item = std::ffi::OsString>) -> Command {
    if let Some(name) = arguments.next() {
        program.arg0(name);
    }
    program.args(arguments).env(VARIABLE, MOST_ARENAS);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_keeps_its_name_its_arguments_and_its_environment() {
        // A shell knows the name that it was called by, and what it was handed.
        let mut arguments = vec!["of/its/own".into()];
        arguments.extend(
            [
                "-c",
                "echo \"$0\" \"$1\" $MALLOC_ARENA_MAX \"$KEPT\"",
                "one two",
                "three",
            ]
            .map(Into::into),
        );
        let mut program = Command::new("/bin/sh");
        program.env("KEPT", "kept");

        let output = with_few(program, arguments.into_iter()).output().unwrap();

        assert_eq!(String::from_utf8_lossy(&output.stdout), "one two three 2 kept\n");
        let mut program = with_few(
            Command::new("/bin/sh"),
            [
                "of/its/own".into(),
                "-c".into(),
                "tr '\\0' '\\n' </proc/$$/cmdline | head -n 1".into(),
            ]
            .into_iter(),
        );
        assert_eq!(
            String::from_utf8_lossy(&program.output().unwrap().stdout),
            "of/its/own\n"
        );
    }
}
