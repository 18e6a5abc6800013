//! Tar archives that are copied into and out of a container before it starts, while no process in
//! it could be asked.

use std::io::{self, Read};

use tar::{EntryType, Header};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::environment::container::certificates::CERTIFICATES;
use crate::environment::container::user::Owner;
use crate::environment::processes::{EXECUTOR, WORKSPACE};

/// Mode of the executor: its users may run it, but not read it. The kernel lets nobody but root
/// trace a program that its user may not read, or open its streams, from its first instruction on;
/// the executor itself can ask for that only some instructions later.
pub(crate) const EXECUTOR_MODE: u32 = 0o711;
const FOLDER_MODE: u32 = 0o755;
/// Mode of the certificates, which everybody reads and root alone writes.
const CERTIFICATES_MODE: u32 = 0o644;

/// Size of a tar block; entries are padded to it, and two empty blocks end the archive.
const BLOCK: usize = 512;

/// Returns a reader of the archive with the workspace, certificates where there are some, and the
/// executor, whose bytes are streamed and never held as a whole.
pub(crate) fn base_layer(
    executor: impl AsyncRead + Send + Unpin + 'static,
    size: u64,
    owner: Owner,
    certificates: Option<&str>,
) -> io::Result<impl AsyncRead + Send + Unpin + 'static> {
    let mut archive = Vec::new();
    for folder in [WORKSPACE.to_owned(), format!("{WORKSPACE}/project")] {
        let path = format!("{}/", folder.trim_start_matches('/'));
        archive.extend(header(EntryType::Directory, &path, (0, FOLDER_MODE), owner)?.as_bytes());
    }
    let root = Owner { uid: 0, gid: 0 };
    if let Some(text) = certificates {
        let (path, size) = (CERTIFICATES.trim_start_matches('/'), text.len() as u64);
        archive.extend(header(EntryType::Regular, path, (size, CERTIFICATES_MODE), root)?.as_bytes());
        archive.extend(text.as_bytes());
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    let path = EXECUTOR.trim_start_matches('/');
    archive.extend(header(EntryType::Regular, path, (size, EXECUTOR_MODE), root)?.as_bytes());
    let block = BLOCK as u64;
    let filling = size.next_multiple_of(block) - size;
    let body = AsyncReadExt::chain(io::Cursor::new(archive), executor.take(size));
    Ok(body.chain(tokio::io::repeat(0).take(filling + 2 * block)))
}

fn header(kind: EntryType, path: &str, (size, mode): (u64, u32), owner: Owner) -> io::Result<Header> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_path(path)?;
    header.set_mode(mode);
    header.set_uid(owner.uid);
    header.set_gid(owner.gid);
    header.set_size(size);
    header.set_cksum();
    Ok(header)
}

/// What stands first in an archive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// The text of a file; empty if there is none.
    Text(String),
    /// A symbolic link to this path.
    Link(String),
}

/// Returns what stands first in an archive.
pub(crate) fn first(archive: &[u8]) -> First {
    let mut text = Vec::new();
    if let Ok(mut entries) = tar::Archive::new(archive).entries()
        && let Some(Ok(mut entry)) = entries.next()
    {
        if entry.header().entry_type().is_symlink()
            && let Ok(Some(target)) = entry.link_name()
        {
            return First::Link(target.to_string_lossy().into_owned());
        }
        // A truncated file is used as far as it goes.
        let _ = entry.read_to_end(&mut text);
    }
    First::Text(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the path that the symbolic link at `link` leads to, which is below `/` whatever
/// `target` says.
pub(crate) fn linked(link: &str, target: &str) -> String {
    let folder = match link.rsplit_once('/') {
        Some((folder, _)) if !target.starts_with('/') => folder,
        _ => "",
    };
    let mut parts = Vec::new();
    for part in folder.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn whole(executor: &'static [u8], owner: Owner, certificates: Option<&str>) -> Vec<u8> {
        let mut archive = Vec::new();
        let mut layer = base_layer(executor, executor.len() as u64, owner, certificates).unwrap();
        layer.read_to_end(&mut archive).await.unwrap();
        archive
    }

    #[tokio::test]
    async fn the_workspace_is_its_users_and_the_executor_is_not() {
        let archive = whole(b"program", Owner { uid: 7, gid: 8 }, Some("certificates")).await;
        assert_eq!(archive.len() % 512, 0);
        let mut archive = tar::Archive::new(&archive[..]);
        let laid: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut text = String::new();
                Read::read_to_string(&mut entry, &mut text).unwrap();
                let (header, path) = (entry.header(), entry.path().unwrap());
                let (uid, gid, mode) = (header.uid().unwrap(), header.gid().unwrap(), header.mode().unwrap());
                format!("{} {uid}:{gid} {mode:o} {text:?}", path.display())
            })
            .collect();
        assert_eq!(
            laid,
            [
                "workspace/ 7:8 755 \"\"",
                "workspace/project/ 7:8 755 \"\"",
                "usr/local/share/coding-agent-certificates.pem 0:0 644 \"certificates\"",
                "usr/local/bin/coding-agent-executor 0:0 711 \"program\""
            ]
        );
    }

    #[tokio::test]
    async fn of_a_broken_archive_there_is_no_text() {
        assert_eq!(first(b"no archive"), First::Text(String::new()));
        let archive = whole(b"", Owner { uid: 0, gid: 0 }, None).await;
        assert_eq!(first(&archive), First::Text(String::new()), "a folder has no text");
    }

    #[test]
    fn a_link_is_told_with_its_target_however_long() {
        let target = format!("../{}/passwd", "long/".repeat(40));
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        archive.append_link(&mut header, "passwd", &target).unwrap();
        assert_eq!(first(&archive.into_inner().unwrap()), First::Link(target));
    }

    #[test]
    fn a_link_leads_to_a_path_below_the_root() {
        for (link, target, path) in [
            ("/etc/passwd", "/usr/lib/passwd", "/usr/lib/passwd"),
            ("/etc/passwd", "passwd.real", "/etc/passwd.real"),
            ("/etc/ssl/ca-bundle.pem", "../../var/lib/./ca.pem", "/var/lib/ca.pem"),
            ("/etc/passwd", "../../../etc/shadow", "/etc/shadow"),
            ("/passwd", "real", "/real"),
        ] {
            assert_eq!(linked(link, target), path, "{link} -> {target}");
        }
    }
}
