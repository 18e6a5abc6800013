//! The project folder as a directory handle: every path is resolved beneath it, by the kernel if it
//! can do that.
//!
//! Comparing path strings failed twice elsewhere: `/app2` begins with `/app`, and a symlink put
//! there between the check and the use leads anywhere. A handle has neither weakness. Files in
//! `.git` may be read, but never written.

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt, Permissions};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use super::suggestion;
use crate::executor::fault::Fault;

/// The project folder.
pub(in crate::executor) struct Root {
    folder: Dir,
    /// Path of the folder as the model may write it, and its real path.
    names: [PathBuf; 2],
    max_file_bytes: usize,
    /// Endings of the names of files that may be written, in lower case; empty for all.
    endings: Vec<String>,
}

/// A file that may be written, whether it exists or not. Only [`Root::target`] makes one: it is in
/// the project, not in `.git`, and its last part is no symlink.
pub(super) struct Target {
    folder: Dir,
    name: OsString,
    /// Path beneath the root, without links: the same for every way to write it.
    pub(super) path: PathBuf,
}

/// The treatment of missing parent folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parents {
    Make,
    MustExist,
}

/// The content of a [`Target`] that exists.
pub(super) struct Existing {
    pub(super) text: String,
    permissions: Permissions,
}

impl Root {
    pub(super) fn open(path: &Path, max_file_bytes: usize, endings: &[String]) -> io::Result<Self> {
        Ok(Self {
            folder: Dir::open_ambient_dir(path, ambient_authority())?,
            names: [path.to_owned(), path.canonicalize()?],
            max_file_bytes,
            endings: endings.iter().map(|ending| ending.to_lowercase()).collect(),
        })
    }

    pub(super) fn open_folder(&self, path: &str) -> Result<Dir, Fault> {
        let relative = self.relative(path)?;
        self.folder
            .open_dir(&relative)
            .map_err(|error| self.fault(path, &relative, &error))
    }

    /// Returns the path of a folder in which a process is to start.
    pub(in crate::executor) fn folder_path(&self, path: &str) -> Result<PathBuf, Fault> {
        let relative = self.relative(path)?;
        let real = self
            .folder
            .canonicalize(&relative)
            .map_err(|error| self.fault(path, &relative, &error))?;
        Ok(self.names[1].join(real))
    }

    pub(super) fn read(&self, path: &str) -> Result<String, Fault> {
        let relative = self.relative(path)?;
        let file = open_to_read(&self.folder, &relative).map_err(|error| self.fault(path, &relative, &error))?;
        Ok(self.text_of(path, file)?.text)
    }

    /// Finds the file to write for `path`; a symlink inside the project is followed.
    pub(super) fn target(&self, path: &str, parents: Parents) -> Result<Target, Fault> {
        let at_path = |error: io::Error| Fault::at(path, &error);
        let mut relative = self.relative(path)?;
        refuse_git(path, &relative)?;
        // Checked before a folder is made for it, and again below for the target of a link.
        self.check_ending(path, &relative)?;
        if self
            .folder
            .symlink_metadata(&relative)
            .is_ok_and(|metadata| metadata.is_symlink())
        {
            relative = self.folder.canonicalize(&relative).map_err(at_path)?;
        }
        let name = relative
            .file_name()
            .ok_or_else(|| Fault::Exists(format!("{path} is a folder")))?;
        let parent = Path::new(".").join(relative.parent().unwrap_or(Path::new("")));
        let folder = match self.folder.open_dir(&parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && parents == Parents::Make => {
                let made = self.folder.create_dir_all(&parent);
                made.and_then(|()| self.folder.open_dir(&parent)).map_err(at_path)?
            }
            opened => opened.map_err(|error| self.fault(path, &relative, &error))?,
        };
        let real = self.folder.canonicalize(&parent).map_err(at_path)?.join(name);
        refuse_git(path, &real)?;
        self.check_ending(path, &real)?;
        Ok(Target {
            folder,
            name: name.to_owned(),
            path: real.components().filter(|part| *part != Component::CurDir).collect(),
        })
    }

    /// Reads the file at `target`; `None` if there is none.
    pub(super) fn existing(&self, path: &str, target: &Target) -> Result<Option<Existing>, Fault> {
        match open_to_read(&target.folder, Path::new(&target.name)) {
            Ok(file) => self.text_of(path, file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Fault::at(path, &error)),
        }
    }

    /// Replaces `existing`, or makes the file: with the whole `text` or not at all. The mode stays.
    pub(super) fn put(
        &self,
        path: &str,
        target: &Target,
        existing: Option<&Existing>,
        text: &str,
    ) -> Result<(), Fault> {
        self.check_size(path, text.len())?;
        let draft = format!(".{}.draft", uuid::Uuid::now_v7());
        let written = target.write(&draft, existing, text);
        if written.is_err() {
            let _ = target.folder.remove_file(&draft);
        }
        written.map_err(|error| Fault::at(path, &error))
    }

    fn relative(&self, path: &str) -> Result<PathBuf, Fault> {
        let wanted = Path::new(if path.is_empty() { "." } else { path });
        if wanted.is_relative() {
            return Ok(self.without_repeated_root(wanted).unwrap_or(wanted).to_owned());
        }
        let beneath = self.names.iter().find_map(|root| wanted.strip_prefix(root).ok());
        beneath
            .map(|relative| Path::new(".").join(relative))
            .ok_or_else(|| Fault::escape(path))
    }

    /// Returns what is left of a path that begins with the project's own, such as
    /// `workspace/project/a.py`, if the project has no such folder.
    fn without_repeated_root<'path>(&self, wanted: &'path Path) -> Option<&'path Path> {
        let wanted = wanted.strip_prefix(".").unwrap_or(wanted);
        let first = wanted.components().next()?;
        if self.folder.symlink_metadata(first).is_ok() {
            return None;
        }
        self.names.iter().find_map(|root| {
            let parent = root.parent()?.file_name()?;
            let rest = wanted.strip_prefix(parent).ok()?.strip_prefix(root.file_name()?).ok()?;
            Some(if rest.as_os_str().is_empty() {
                Path::new(".")
            } else {
                rest
            })
        })
    }

    /// Returns the fault behind an error at `path`; if there is nothing, it names what there is.
    fn fault(&self, path: &str, relative: &Path, error: &io::Error) -> Fault {
        if error.kind() != io::ErrorKind::NotFound {
            return Fault::at(path, error);
        }
        let instead = suggestion::instead_of(&self.folder, relative);
        Fault::NotFound(format!("{path} does not exist; {instead}"))
    }

    fn text_of(&self, path: &str, file: File) -> Result<Existing, Fault> {
        let metadata = file.metadata().map_err(|error| Fault::at(path, &error))?;
        if metadata.is_dir() {
            return Err(Fault::Exists(format!(
                "{path} is a folder; look into it with list_files"
            )));
        }
        if !metadata.is_file() {
            return Err(Fault::NotFound(format!("{path} is no regular file")));
        }
        let mut bytes = Vec::new();
        let limit = self.max_file_bytes as u64 + 1;
        file.take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| Fault::at(path, &error))?;
        self.check_size(path, bytes.len())?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Fault::NotUtf8(format!("{path} is no UTF-8 text; use execute_command for it")))?;
        Ok(Existing {
            text,
            permissions: metadata.permissions(),
        })
    }

    /// Refuses a name without an allowed ending. One such as `Makefile` is allowed as a whole.
    fn check_ending(&self, path: &str, resolved: &Path) -> Result<(), Fault> {
        let name = resolved
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_lowercase();
        let fits = |ending: &String| match ending.strip_prefix('.') {
            Some(_) => name.ends_with(ending.as_str()),
            None => name == *ending,
        };
        if self.endings.is_empty() || self.endings.iter().any(fits) {
            return Ok(());
        }
        Err(Fault::Extension(format!(
            "{path} is no file that may be written: the configuration (command_executor.files.allowed_extensions) allows {}; do \
             without it",
            self.endings.join(" ")
        )))
    }

    fn check_size(&self, path: &str, bytes: usize) -> Result<(), Fault> {
        if bytes <= self.max_file_bytes {
            return Ok(());
        }
        let limit = self.max_file_bytes / 1024;
        Err(Fault::TooLarge(format!(
            "{path} is larger than {limit} KiB; use execute_command (sed, head, a script) for it"
        )))
    }
}

impl Target {
    fn write(&self, draft: &str, existing: Option<&Existing>, text: &str) -> io::Result<()> {
        let mut file = self
            .folder
            .open_with(draft, OpenOptions::new().write(true).create_new(true))?;
        file.write_all(text.as_bytes())?;
        let Some(existing) = existing else {
            // Unlike a rename, a link fails if somebody else has made the file in between.
            self.folder.hard_link(draft, &self.folder, &self.name)?;
            return self.folder.remove_file(draft);
        };
        file.set_permissions(existing.permissions.clone())?;
        self.folder.rename(draft, &self.folder, &self.name)
    }

    pub(super) fn remove(&self, path: &str) -> Result<(), Fault> {
        self.folder
            .remove_file(&self.name)
            .map_err(|error| Fault::at(path, &error))
    }
}

/// Opens a file without blocking: with a named pipe, opening would otherwise wait until somebody
/// writes to it.
fn open_to_read(folder: &Dir, path: &Path) -> io::Result<File> {
    let no_waiting = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    folder.open_with(path, OpenOptions::new().read(true).custom_flags(no_waiting))
}

/// Refuses every spelling that some file system takes for `.git`.
fn refuse_git(path: &str, resolved: &Path) -> Result<(), Fault> {
    let is_git = |part: Component<'_>| {
        let name = part.as_os_str().to_string_lossy().to_ascii_lowercase();
        let name = name.trim_end_matches(['.', ' ']);
        name == ".git" || name == "git~1"
    };
    if resolved.components().any(is_git) {
        return Err(Fault::PathEscape(format!(
            "{path} belongs to git; use git commands instead"
        )));
    }
    Ok(())
}
