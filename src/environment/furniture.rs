//! What is laid into a container before it starts, and what is read out of it then: archives, because nothing runs in
//! there yet that could be asked.

use std::io::{self, Read};

use super::specification::{EXECUTOR, WORKSPACE};
use super::user::Owner;

/// Returns the archive that is laid over the container's files before it starts.
pub(super) fn furniture(executor: &[u8], owner: Owner) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for folder in [WORKSPACE.to_owned(), format!("{WORKSPACE}/project")] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o755);
        header.set_uid(owner.uid);
        header.set_gid(owner.gid);
        header.set_size(0);
        archive.append_data(&mut header, format!("{}/", folder.trim_start_matches('/')), io::empty())?;
    }
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o755);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(executor.len() as u64);
    archive.append_data(&mut header, EXECUTOR.trim_start_matches('/'), executor)?;
    archive.into_inner()
}

/// Returns the text of the first file of an archive, and nothing where there is none.
pub(super) fn first_file(archive: &[u8]) -> String {
    let mut text = Vec::new();
    if let Ok(mut entries) = tar::Archive::new(archive).entries()
        && let Some(Ok(mut entry)) = entries.next()
    {
        // What breaks off in the middle is searched as far as it goes.
        let _ = entry.read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_its_users_and_the_executor_is_not() {
        let archive = furniture(b"program", Owner { uid: 7, gid: 8 }).unwrap();
        let mut archive = tar::Archive::new(&archive[..]);
        let laid: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let (header, path) = (entry.header(), entry.path().unwrap());
                let (uid, gid, mode) = (header.uid().unwrap(), header.gid().unwrap(), header.mode().unwrap());
                format!("{} {uid}:{gid} {mode:o}", path.display())
            })
            .collect();
        assert_eq!(
            laid,
            [
                "workspace/ 7:8 755",
                "workspace/project/ 7:8 755",
                "usr/local/bin/coding-agent-executor 0:0 755"
            ]
        );
    }

    #[test]
    fn of_a_broken_archive_there_is_no_text() {
        assert_eq!(first_file(b"no archive"), "");
        let archive = furniture(b"", Owner { uid: 0, gid: 0 }).unwrap();
        assert_eq!(first_file(&archive), "", "a folder has no text");
    }
}
