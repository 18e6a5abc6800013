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

/// File names that are tried beside the program, in this order, for the architecture of this
/// machine. `cargo build` writes a dynamic program under the second name, so a static one beside it
/// needs a name of its own.
const NAMES: [&str; 2] = ["coding-agent-executor-static", "coding-agent-executor"];

const HOW_TO_BUILD: &str = "`make build` or `make install` puts a static one beside the program, and so does `cargo install` \
     with RUSTFLAGS='-C target-feature=+crt-static' and --target; or set command_executor.executor_path";

/// The kind of processor that a container's programs are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Architecture {
    /// The name that Rust and Linux use, as in `coding-agent-executor-aarch64`.
    pub name: &'static str,
    /// The number in the header of its programs.
    machine: u16,
}

const ARCHITECTURES: [Architecture; 4] = [
    Architecture {
        name: "x86_64",
        machine: 62,
    },
    Architecture {
        name: "aarch64",
        machine: 183,
    },
    Architecture {
        name: "riscv64",
        machine: 243,
    },
    Architecture {
        name: "powerpc64le",
        machine: 21,
    },
];

impl Architecture {
    /// Parses the name that an engine or image gives, such as `amd64`; `None` if it is not known.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = match name {
            "amd64" => "x86_64",
            "arm64" => "aarch64",
            "ppc64le" => "powerpc64le",
            other => other,
        };
        ARCHITECTURES.into_iter().find(|known| known.name == name)
    }

    /// Returns the architecture of this program.
    fn here() -> Option<Self> {
        Self::named(std::env::consts::ARCH)
    }
}

/// Returns the executor to copy into containers of `architecture`, or a sentence about what is
/// wrong and how to fix it. `None` for the architecture of this program.
///
/// For another one than this program's, the file has the architecture's name at its end.
pub fn find_executor(config: &Config, architecture: Option<Architecture>) -> Result<PathBuf, String> {
    let wanted = architecture.or(Architecture::here());
    let suffixed = |path: &Path| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-{}", wanted?.name));
        Some(PathBuf::from(name)).filter(|path| path.is_file())
    };
    if let Some(path) = &config.executor_path {
        let path = suffixed(path).unwrap_or_else(|| path.clone());
        judge(&path, wanted)?;
        return Ok(path);
    }
    let program = std::env::current_exe().map_err(|error| format!("cannot tell where the program lies: {error}"))?;
    let folder = program.parent().unwrap_or(Path::new("."));
    if let Some(path) = suffixed(&folder.join(NAMES[1])) {
        judge(&path, wanted)?;
        return Ok(path);
    }
    let Some(path) = NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file()) else {
        return Err(format!(
            "there is no coding-agent-executor in {}; {HOW_TO_BUILD}",
            folder.display()
        ));
    };
    judge(&path, wanted)?;
    Ok(path)
}

fn judge(path: &Path, wanted: Option<Architecture>) -> Result<(), String> {
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(64 * 1024).read_to_end(&mut head))
        .map_err(|error| {
            format!(
                "the executor {} cannot be read: {error}; {HOW_TO_BUILD}",
                path.display()
            )
        })?;
    judge_head(&head, wanted).map_err(|reason| format!("the executor {} {reason}", path.display()))
}

/// Checks the ELF header and the program headers; accepts 64-bit little-endian programs only.
fn judge_head(head: &[u8], wanted: Option<Architecture>) -> Result<(), String> {
    const INTERPRETER: u32 = 3;
    let broken = || format!("is not a 64-bit Linux program; {HOW_TO_BUILD}");
    if head.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err(broken());
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
    let machine = short(18).ok_or_else(broken)?;
    if let Some(wanted) = wanted.filter(|wanted| wanted.machine != machine) {
        let name = wanted.name;
        let built_for = ARCHITECTURES.iter().find(|known| known.machine == machine);
        return Err(format!(
            "is for {}, and the containers are for {name}; build one with `make build TARGET={name}-unknown-linux-musl`, which puts \
             coding-agent-executor-{name} beside the program and needs that target (`rustup target add {name}-unknown-linux-musl`) and a \
             C compiler that links for it (Debian's gcc-{}-linux-gnu)",
            built_for.map_or("another kind of processor", |known| known.name),
            name.replace('_', "-")
        ));
    }
    // The table never starts beyond 4 GiB, so the lower half of its offset is enough.
    let table = word(32).ok_or_else(broken)? as usize;
    let (entry_size, entries) = (short(54).ok_or_else(broken)?, short(56).ok_or_else(broken)?);
    for entry in 0..usize::from(entries) {
        let kind = word(table.saturating_add(entry * usize::from(entry_size))).ok_or_else(broken)?;
        if kind == INTERPRETER {
            return Err(format!(
                "is linked dynamically, and would not start in most images; {HOW_TO_BUILD}"
            ));
        }
    }
    Ok(())
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
    fn only_a_static_program_for_the_container_is_taken() {
        let x86 = Architecture::named("amd64");
        assert_eq!(judge_head(&program(62, &[1, 2]), x86), Ok(()));
        assert_eq!(judge_head(&program(183, &[1, 2]), Architecture::named("arm64")), Ok(()));
        assert_eq!(judge_head(&program(7, &[1, 2]), Architecture::named("mips")), Ok(()));
        let reason = judge_head(&program(62, &[6, 3, 1]), x86).unwrap_err();
        assert!(reason.contains("dynamically"), "{reason}");
        let reason = judge_head(&program(62, &[1]), Architecture::named("aarch64")).unwrap_err();
        assert!(
            reason.contains("is for x86_64, and the containers are for aarch64")
                && reason.contains("`make build TARGET=aarch64-unknown-linux-musl`")
                && reason.contains("`rustup target add aarch64-unknown-linux-musl`")
                && reason.contains("gcc-aarch64-linux-gnu"),
            "{reason}"
        );
    }

    #[test]
    fn the_executor_with_the_architecture_in_its_name_is_preferred() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("executor");
        std::fs::write(&path, program(62, &[1])).unwrap();
        std::fs::write(folder.path().join("executor-aarch64"), program(183, &[1])).unwrap();
        let config = Config {
            executor_path: Some(path.clone()),
            ..Config::default()
        };
        let found = |name: &str| find_executor(&config, Architecture::named(name));
        assert_eq!(found("amd64"), Ok(path));
        assert_eq!(found("arm64"), Ok(folder.path().join("executor-aarch64")));
        assert!(found("riscv64").is_err());
    }

    #[test]
    fn what_is_no_program_is_refused_wherever_it_breaks_off() {
        let whole = program(62, &[1, 2]);
        for length in [0, 3, 6, 19, 40, 57, 64, 121] {
            assert!(judge_head(&whole[..length], None).is_err(), "{length}");
        }
        assert!(judge_head(b"#!/bin/sh\n", None).is_err());
    }

    #[test]
    fn a_missing_executor_is_named_with_the_way_to_build_it() {
        let config = Config {
            executor_path: Some(PathBuf::from("/nowhere/executor")),
            ..Config::default()
        };
        let reason = find_executor(&config, None).unwrap_err();
        assert!(
            reason.contains("/nowhere/executor") && reason.contains("make build"),
            "{reason}"
        );
    }
}
