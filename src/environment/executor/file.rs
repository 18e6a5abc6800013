//! Locates the file that is copied into containers as `coding-agent-executor`, and checks that it
//! can run there.
//!
//! It must be linked statically: an image may have an older libc or none. The ELF header is checked
//! before a container is created, because inside the only symptom would be "no such file or
//! directory".

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::environment::config::Config;

/// File names that are tried beside the program, in this order. `cargo build` writes a dynamic
/// program under the second name, so a static one beside it needs a name of its own.
const NAMES: [&str; 2] = ["coding-agent-executor-static", "coding-agent-executor"];

const HOW_TO_BUILD: &str = "`make build` or `make install` puts a static one beside the program; or set \
     command_executor.executor_path";

/// Returns the executor to copy in, or a sentence about what is wrong and how to fix it.
pub fn find_executor(config: &Config) -> Result<PathBuf, String> {
    if let Some(path) = &config.executor_path {
        judge(path)?;
        return Ok(path.clone());
    }
    let program = std::env::current_exe().map_err(|error| format!("cannot tell where the program lies: {error}"))?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let Some(path) = NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file()) else {
        return Err(format!(
            "there is no coding-agent-executor in {}; {HOW_TO_BUILD}",
            folder.display()
        ));
    };
    judge(&path)?;
    Ok(path)
}

fn judge(path: &Path) -> Result<(), String> {
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(64 * 1024).read_to_end(&mut head))
        .map_err(|error| {
            format!(
                "the executor {} cannot be read: {error}; {HOW_TO_BUILD}",
                path.display()
            )
        })?;
    judge_head(&head).map_err(|reason| format!("the executor {} {reason}; {HOW_TO_BUILD}", path.display()))
}

/// Checks the ELF header and the program headers; accepts 64-bit little-endian programs only.
fn judge_head(head: &[u8]) -> Result<(), String> {
    const BROKEN: &str = "is not a Linux program";
    const INTERPRETER: u32 = 3;
    if head.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err(BROKEN.to_owned());
    }
    let short = |at: usize| {
        head.get(at..at + 2)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u16::from_le_bytes)
    };
    let word = |at: usize| {
        head.get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u32::from_le_bytes)
    };
    let machine = short(18).ok_or(BROKEN)?;
    if machine_here().is_some_and(|here| here != machine) {
        return Err(format!(
            "was built for another kind of processor than this machine's ({})",
            std::env::consts::ARCH
        ));
    }
    // The table never starts beyond 4 GiB, so the lower half of its offset is enough.
    let table = word(32).ok_or(BROKEN)? as usize;
    let (entry_size, entries) = (short(54).ok_or(BROKEN)?, short(56).ok_or(BROKEN)?);
    for entry in 0..usize::from(entries) {
        let kind = word(table.saturating_add(entry * usize::from(entry_size))).ok_or(BROKEN)?;
        if kind == INTERPRETER {
            return Err("is linked dynamically, and would not start in most images".to_owned());
        }
    }
    Ok(())
}

/// Returns the ELF machine number of this processor, if it is known.
fn machine_here() -> Option<u16> {
    match std::env::consts::ARCH {
        "x86_64" => Some(62),
        "aarch64" => Some(183),
        "riscv64" => Some(243),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(machine: u16, headers: &[u32]) -> Vec<u8> {
        let mut file = vec![0; 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[18..20].copy_from_slice(&machine.to_le_bytes());
        file[32] = 64;
        file[54] = 56;
        file[56] = u8::try_from(headers.len()).unwrap();
        for kind in headers {
            let mut header = vec![0; 56];
            header[..4].copy_from_slice(&kind.to_le_bytes());
            file.extend(header);
        }
        file
    }

    #[test]
    fn only_a_static_program_for_this_machine_is_taken() {
        let here = machine_here().unwrap_or(62);
        assert_eq!(judge_head(&program(here, &[1, 2])), Ok(()));
        assert!(
            judge_head(&program(here, &[6, 3, 1]))
                .unwrap_err()
                .contains("dynamically")
        );
        assert!(
            judge_head(&program(here + 1, &[1]))
                .unwrap_err()
                .contains("another kind of processor")
        );
    }

    #[test]
    fn what_is_no_program_is_refused_wherever_it_breaks_off() {
        let whole = program(machine_here().unwrap_or(62), &[1, 2]);
        for length in [0, 3, 6, 19, 40, 57, 64, 121] {
            assert!(judge_head(&whole[..length]).is_err(), "{length}");
        }
        assert!(judge_head(b"#!/bin/sh\n").is_err());
    }

    #[test]
    fn a_missing_executor_is_named_with_the_way_to_build_it() {
        let config = Config {
            executor_path: Some(PathBuf::from("/nowhere/executor")),
            ..Config::default()
        };
        let reason = find_executor(&config).unwrap_err();
        assert!(
            reason.contains("/nowhere/executor") && reason.contains("make build"),
            "{reason}"
        );
    }
}
