//! The folders of local tasks: made, looked at and compared.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lists everything a folder holds, its `.git` included: type, mode, time of change and content of
/// each path.
pub type Picture = BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)>;

pub fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

pub fn picture(folder: &Path) -> Picture {
    let mut picture = Picture::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if metadata.is_symlink() {
            path.read_link().unwrap().into_os_string().into_encoded_bytes()
        } else {
            std::fs::read(&path).unwrap()
        };
        let entry = (metadata.mode(), metadata.mtime(), metadata.mtime_nsec(), content);
        picture.insert(path.strip_prefix(folder).unwrap().to_owned(), entry);
    }
    picture
}

/// Like [`picture`] without the times, for folders that are compared with one another.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let is_git = |path: &PathBuf| path.starts_with(".git");
    let entries = picture(folder).into_iter().filter(|(path, _)| !is_git(path));
    entries
        .map(|(path, (mode, _, _, content))| (path, (mode, content)))
        .collect()
}

pub fn is_executable(path: &Path) -> bool {
    path.metadata().unwrap().permissions().mode() & 0o100 != 0
}

/// Applies a patch the way a person would.
pub fn apply(folder: &Path, patch: &str) {
    let file = folder.with_added_extension("x.patch");
    std::fs::write(&file, patch).unwrap();
    git(folder, &["apply", "--whitespace=nowarn", file.to_str().unwrap()]);
}

pub fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(status.unwrap().success());
}

pub fn git(folder: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.com"])
        .args(["-c", "init.defaultBranch=main"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap())
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
}
