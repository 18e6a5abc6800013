//! File systems on which the store must not lie, or does not last.

use std::path::Path;

use rustix::fs::statfs;

/// File systems that other machines can write to, by the number that the kernel gives them.
const SHARED: [(u32, &str); 8] = [
    (0x0000_6969, "NFS"),
    (0x0000_517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6573_5546, "FUSE"),
];
const OVERLAY: u32 = 0x794c_7630;

/// Returns a warning about the file system of a state folder and, after a semicolon, what to do.
///
/// `SQLite`'s write-ahead log is memory that its processes share, and its locks are the kernel's:
/// neither reaches other machines.
pub fn doubt(state_dir: &Path) -> Option<String> {
    doubt_about(u32::try_from(statfs(state_dir).ok()?.f_type).ok()?)
}

fn doubt_about(kind: u32) -> Option<String> {
    if kind == OVERLAY {
        return Some(
            "it lies in a container's own layer and is lost with the container; put a volume there".to_owned(),
        );
    }
    let (_, name) = SHARED.iter().find(|(known, _)| *known == kind)?;
    Some(format!(
        "it lies on {name}, where the store is not safe: its log and its locks do not reach other machines; let state_dir name a \
         folder on a disk of this machine"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_trusted_and_networks_are_not() {
        // ext4, xfs, btrfs, tmpfs
        for kind in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994] {
            assert_eq!(doubt_about(kind), None);
        }
        assert!(doubt_about(0x6969).unwrap().starts_with("it lies on NFS"));
        assert!(doubt_about(0xff53_4d42).unwrap().starts_with("it lies on CIFS"));
        assert!(doubt_about(OVERLAY).unwrap().ends_with("put a volume there"));
    }

    #[test]
    fn a_temporary_folder_is_asked_for_its_file_system() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(doubt(&folder.path().join("nowhere")), None);
        assert!(statfs(folder.path()).is_ok());
    }
}
