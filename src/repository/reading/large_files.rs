//! The files of a commit that are kept in Git LFS, by its `.gitattributes` as git itself reads
//! them.
//!
//! The mirror's own attributes hide those of the commits, so that nothing of them takes effect on
//! this machine. Here git is asked with another folder for its settings, and with an index that
//! holds nothing but the files with attributes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::lfs::{self, Pointer};
use crate::repository::git::command::Git;
use crate::repository::git::lock;
use crate::repository::mirror::Mirror;
use crate::repository::reading::contents::INDEX;
use crate::repository::reading::objects::{BatchReader, Object};
use crate::repository::{CommitId, RepositoryError};

const ATTRIBUTES: &[u8] = b".gitattributes";

/// A file of a commit that is kept in Git LFS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeFile {
    /// The path; a name that is not UTF-8 has replacement characters.
    pub path: String,
    pub pointer: Pointer,
}

/// A commit's use of Git LFS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LargeFiles {
    /// True if some file may be kept there, by the attributes.
    pub is_used: bool,
    /// The files that are kept there, in the order of their paths.
    pub pointers: Vec<LargeFile>,
    /// Attributes, in git's form, for files that should be kept there and whose contents stand in
    /// the commit. With these they stay as they are.
    pub exceptions: Vec<u8>,
}

/// How git is asked about the objects of one repository, or of a quarantine beside it.
pub(in crate::repository) struct Asking<'a> {
    pub(in crate::repository) mirror: &'a Mirror,
    pub(in crate::repository) git: &'a (dyn Fn(&str) -> Git<'static> + Send + Sync),
}

/// The attributes of one commit, as far as they concern Git LFS.
pub(in crate::repository) struct Tracking {
    /// Mode and id of each file with attributes, and its path.
    listed: Vec<(String, Vec<u8>)>,
}

impl Mirror {
    /// Returns true if there is a server that could keep contents. A local task has none: its
    /// folder holds the contents.
    pub fn may_use_lfs(&self) -> bool {
        self.own_address().is_ok()
    }

    /// Returns the files of a commit that are kept in Git LFS; none where no server can keep them.
    pub async fn large_files(&self, commit: &CommitId) -> Result<LargeFiles, RepositoryError> {
        if !self.may_use_lfs() {
            return Ok(LargeFiles::default());
        }
        let git = |what: &str| self.git_beside(what);
        Asking {
            mirror: self,
            git: &git,
        }
        .large_files(commit)
        .await
    }

    /// Returns the files kept in Git LFS that `commit` adds to what is on the forge's branches.
    pub(in crate::repository) async fn new_large_files(
        &self,
        commit: &CommitId,
    ) -> Result<Vec<LargeFile>, RepositoryError> {
        let git = |what: &str| self.git_beside(what);
        let asking = Asking {
            mirror: self,
            git: &git,
        };
        match asking.tracking_of(commit).await? {
            Some(tracking) => asking.added(&tracking, None, commit).await,
            None => Ok(Vec::new()),
        }
    }

    /// Prepares a git command that finds the mirror's objects also with another folder of settings.
    fn git_beside(&self, what: &str) -> Git<'static> {
        self.git(what).env("GIT_OBJECT_DIRECTORY", self.path().join("objects"))
    }
}

impl Asking<'_> {
    async fn large_files(&self, commit: &CommitId) -> Result<LargeFiles, RepositoryError> {
        let Some(tracking) = self.tracking_of(commit).await? else {
            return Ok(LargeFiles::default());
        };
        let listed = self.list(commit, &["--long"]).await?;
        let files = listed.iter().filter(|file| file.is_file && file.size != Some(0));
        let tracked = self
            .tracked(&tracking, files.clone().map(|file| file.path.as_slice()))
            .await?;
        let files: Vec<&Listed> = files.filter(|file| tracked.contains(&file.path)).collect();
        let small = files.iter().filter(|file| file.may_be_pointer());
        let known = self.pointers(small.map(|file| file.id.as_str())).await?;
        let mut found = LargeFiles {
            is_used: true,
            ..LargeFiles::default()
        };
        for file in files {
            match known.get(&file.id) {
                Some(pointer) => found.pointers.push(LargeFile {
                    path: shown(&file.path),
                    pointer: pointer.clone(),
                }),
                None => found.exceptions.extend(exception(&file.path)),
            }
        }
        Ok(found)
    }

    /// Returns the files kept in Git LFS that `head`, whose attributes these are, adds to `base`
    /// and to the forge's branches.
    pub(in crate::repository) async fn added(
        &self,
        tracking: &Tracking,
        base: Option<&CommitId>,
        head: &CommitId,
    ) -> Result<Vec<LargeFile>, RepositoryError> {
        let objects = (self.git)("listing the new files")
            .args(["rev-list", "--objects", head.as_str(), "--not", "--branches"])
            .args(base.map(CommitId::as_str))
            .bytes()
            .await?;
        let mut paths: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
        for line in objects.split(|byte| *byte == b'\n') {
            if let Some((id, path)) = id_and_path(line) {
                paths.entry(id).or_default().push(path);
            }
        }
        let known = self.pointers(paths.keys().map(String::as_str)).await?;
        if known.is_empty() {
            return Ok(Vec::new());
        }
        // That list has one path for each pointer. The same one may stand at others as well, and
        // the first may be an example that the attributes do not name.
        for file in self.list(head, &[]).await? {
            if file.is_file && known.contains_key(&file.id) {
                paths.entry(file.id).or_default().push(file.path);
            }
        }
        let candidates = known.keys().filter_map(|id| paths.get(id)).flatten();
        let candidates: Vec<&[u8]> = candidates.map(Vec::as_slice).collect();
        let tracked = self.tracked(tracking, candidates.into_iter()).await?;
        let mut added: Vec<LargeFile> = known
            .into_iter()
            .filter_map(|(id, pointer)| {
                let path = paths.get(&id)?.iter().find(|path| tracked.contains(*path))?;
                Some(LargeFile {
                    path: shown(path),
                    pointer,
                })
            })
            .collect();
        added.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(added)
    }

    /// Returns the attributes of a commit; `None` if none of them is about Git LFS.
    pub(in crate::repository) async fn tracking_of(
        &self,
        commit: &CommitId,
    ) -> Result<Option<Tracking>, RepositoryError> {
        let listed = self.list(commit, &[]).await?;
        let named = listed.iter().filter(|file| {
            let name = file.path.rsplit(|byte| *byte == b'/').next();
            file.is_file && name == Some(ATTRIBUTES)
        });
        let named: Vec<&Listed> = named.collect();
        let mut is_used = false;
        self.each(named.iter().map(|file| file.id.as_str()), |object| {
            is_used |= object.content.windows(10).any(|word| word == b"filter=lfs");
        })
        .await?;
        let listed = named
            .into_iter()
            .map(|file| (format!("100644 {}", file.id), file.path.clone()));
        Ok(is_used.then(|| Tracking {
            listed: listed.collect(),
        }))
    }

    /// Returns those of `paths` to which the attributes give the filter `lfs`.
    pub(in crate::repository) async fn tracked<'path>(
        &self,
        tracking: &Tracking,
        paths: impl Iterator<Item = &'path [u8]>,
    ) -> Result<HashSet<Vec<u8>>, RepositoryError> {
        let folder = self.mirror.path().join("lfs");
        let beside = folder.join("attributes.git");
        make_beside(&beside).map_err(|error| lock::at(&beside, &error))?;
        let index = Index(folder.join(format!("{INDEX}{}", Uuid::now_v7())));
        let git = |what: &str| {
            let git = (self.git)(what).args(["-c", "core.bare=true"]).arg("--git-dir");
            git.arg(&beside).env("GIT_INDEX_FILE", &index.0)
        };
        let entries: Vec<u8> = tracking
            .listed
            .iter()
            .flat_map(|(head, path)| [head.as_bytes(), b"\t", path, b"\0"].concat())
            .collect();
        git("noting the attributes")
            .args(["update-index", "-z", "--index-info"])
            .input(entries)
            .bytes()
            .await?;
        let asked: Vec<u8> = paths.flat_map(|path| [path, b"\0"].concat()).collect();
        let told = git("asking which files are kept in Git LFS")
            .args(["check-attr", "--cached", "-z", "--stdin", "filter"])
            .input(asked)
            .bytes()
            .await?;
        let mut fields = told.split(|byte| *byte == 0);
        let mut tracked = HashSet::new();
        while let (Some(path), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next()) {
            if value == b"lfs" {
                tracked.insert(path.to_owned());
            }
        }
        Ok(tracked)
    }

    /// Returns those of the objects that are pointers. Large ones are not read.
    pub(in crate::repository) async fn pointers<'id>(
        &self,
        ids: impl Iterator<Item = &'id str>,
    ) -> Result<HashMap<String, Pointer>, RepositoryError> {
        let wanted: Vec<&str> = ids.collect();
        let sizes = (self.git)("measuring files")
            .args(["cat-file", "--batch-check=%(objecttype) %(objectsize) %(objectname)"])
            .input(wanted.join("\n"))
            .text()
            .await?;
        let small: Vec<&str> = sizes
            .lines()
            .filter_map(|line| {
                let (size, id) = line.strip_prefix("blob ")?.split_once(' ')?;
                (size.parse::<usize>().ok()? <= lfs::LONGEST).then_some(id)
            })
            .collect();
        let mut pointers = HashMap::new();
        self.each(small.into_iter(), |object| {
            if let Some(pointer) = Pointer::read(object.content) {
                pointers.insert(object.path.to_owned(), pointer);
            }
        })
        .await?;
        Ok(pointers)
    }

    /// Calls `look` with each of the files, whose id stands in the place of its path.
    async fn each<'id>(
        &self,
        ids: impl Iterator<Item = &'id str>,
        mut look: impl FnMut(Object<'_>) + Send,
    ) -> Result<(), RepositoryError> {
        let wanted: Vec<String> = ids.map(|id| format!("{id} {id}\n")).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut reading = BatchReader::default();
        let ended = (self.git)("reading files")
            .args(["cat-file", "--batch=%(objecttype) %(objectsize) %(rest)"])
            .input(wanted.concat())
            .each(|chunk| {
                reading.take(chunk, &mut look);
                std::ops::ControlFlow::Continue(())
            })
            .await?;
        if ended.code == Some(0) {
            return Ok(());
        }
        Err(RepositoryError::Unexpected {
            what: "reading files".to_owned(),
            reason: ended.complaint,
        })
    }

    async fn list(&self, commit: &CommitId, options: &[&str]) -> Result<Vec<Listed>, RepositoryError> {
        let listed = (self.git)("listing the files")
            .args(["ls-tree", "-r", "-z", "--full-tree"])
            .args(options)
            .arg(commit.as_str())
            .bytes()
            .await?;
        let lines = listed.split(|byte| *byte == 0);
        Ok(lines.filter_map(Listed::read).collect())
    }
}

/// A line of git's list of a commit's files.
struct Listed {
    id: String,
    size: Option<u64>,
    is_file: bool,
    path: Vec<u8>,
}

impl Listed {
    /// Parses `mode type id size<TAB>path`, where the size may be left out.
    fn read(line: &[u8]) -> Option<Self> {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let head = std::str::from_utf8(&line[..tab]).ok()?;
        let mut fields = head.split_whitespace();
        let (mode, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Self {
            id: id.to_owned(),
            size: fields.next().and_then(|size| size.parse().ok()),
            is_file: mode.starts_with("100"),
            path: line[tab + 1..].to_owned(),
        })
    }

    fn may_be_pointer(&self) -> bool {
        self.size.is_some_and(|size| size <= lfs::LONGEST as u64)
    }
}

/// An index in use, which is removed when dropped.
struct Index(PathBuf);

impl Drop for Index {
    fn drop(&mut self) {
        // What a killed process leaves is removed by a later fetch.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Makes the folder that git takes for a repository, unless it is there.
fn make_beside(folder: &Path) -> std::io::Result<()> {
    let head = folder.join("HEAD");
    if head.is_file() {
        return Ok(());
    }
    std::fs::create_dir_all(folder.join("objects"))?;
    std::fs::create_dir_all(folder.join("refs"))?;
    std::fs::write(head, "ref: refs/heads/none\n")
}

/// Parses `id path`; `None` for a commit or the root folder.
fn id_and_path(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let id = std::str::from_utf8(&line[..space]).ok()?;
    let path = &line[space + 1..];
    (!path.is_empty()).then(|| (id.to_owned(), path.to_owned()))
}

/// Returns a line of attributes that takes the filter from exactly one path.
fn exception(path: &[u8]) -> Vec<u8> {
    let mut line = b"\"/".to_vec();
    for byte in path {
        match byte {
            // Escaped for the pattern, and the escape once more for the quotes.
            b'*' | b'?' | b'[' => line.extend([b'\\', b'\\', *byte]),
            b'\\' => line.extend([b'\\'; 4]),
            b'"' => line.extend(b"\\\""),
            0..0x20 | 0x7f => line.extend(format!("\\{byte:03o}").bytes()),
            _ => line.push(*byte),
        }
    }
    line.extend(b"\" -filter\n");
    line
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_for_one_path_alone() {
        for (path, expected) in [
            ("a b/logo.png", "\"/a b/logo.png\" -filter\n"),
            ("a*[b]?", "\"/a\\\\*\\\\[b]\\\\?\" -filter\n"),
            ("a\\b\"c", "\"/a\\\\\\\\b\\\"c\" -filter\n"),
            ("a\nb", "\"/a\\012b\" -filter\n"),
        ] {
            assert_eq!(String::from_utf8(exception(path.as_bytes())).unwrap(), expected);
        }
    }
}
