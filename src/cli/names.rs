//! The warning of a program linked statically with glibc where the machine looks names up in a way
//! that may end it.
//!
//! glibc reads `/etc/hosts` and asks DNS by itself. For every other way that `nsswitch.conf` names
//! it loads a library of the machine, which brings a second glibc: of another version, that ends
//! the process without a word (`SIGSEGV`) at the first name that is looked up.

use std::path::{Path, PathBuf};

use super::session::complain;

const SWITCH: &str = "/etc/nsswitch.conf";

/// Ways that need no library.
const BUILT_IN: [&str; 2] = ["files", "dns"];

/// Warns if a library may be loaded for a name. To be called by a program that is static with
/// glibc.
pub fn warn() {
    let text = std::fs::read_to_string(SWITCH).unwrap_or_default();
    let folders = [
        PathBuf::from("/lib64"),
        PathBuf::from("/usr/lib64"),
        PathBuf::from("/lib"),
        PathBuf::from("/usr/lib"),
        PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH)),
    ];
    let loaded = loaded(&text, &folders);
    if !loaded.is_empty() {
        complain(format_args!(
            "{SWITCH} has names looked up by {}, which a static program cannot do safely: if it ends without a word, \
             take the Debian package or `make install`, or set `hosts: files dns` there",
            loaded.join(", ")
        ));
    }
}

/// Returns the ways of looking up hosts for which there is a library in one of `folders`.
fn loaded(switch: &str, folders: &[PathBuf]) -> Vec<String> {
    let hosts = switch.lines().find_map(|line| line.trim().strip_prefix("hosts:"));
    let words = hosts.unwrap_or_default().split('#').next().unwrap_or_default();
    let is_there = |way: &str| {
        let library = format!("libnss_{way}.so.2");
        folders
            .iter()
            .any(|folder: &PathBuf| Path::new(folder).join(&library).exists())
    };
    words
        .split_whitespace()
        // What to do after each answer, as in [NOTFOUND=return].
        .filter(|word| !word.contains(['[', ']', '=']))
        .filter(|way| !BUILT_IN.contains(way) && is_there(way))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ways_with_a_library_are_told() {
        let folder = tempfile::tempdir().unwrap();
        for library in ["libnss_dns.so.2", "libnss_resolve.so.2"] {
            std::fs::write(folder.path().join(library), "").unwrap();
        }
        let folders = [folder.path().to_owned()];
        let told = |text: &str| loaded(text, &folders);
        assert_eq!(
            told("passwd: files sss\nhosts: mymachines resolve [!UNAVAIL=return] files dns # resolve\n"),
            ["resolve"]
        );
        assert_eq!(told("hosts: files dns\n"), Vec::<String>::new());
        assert_eq!(told("#hosts: resolve\n"), Vec::<String>::new());
        assert_eq!(told(""), Vec::<String>::new());
    }
}
