//! Contents of Git LFS in the container: the worker hands them in ([`receive`]) and takes new ones
//! back ([`send`]); in between [`filter`] is the program by which git writes contents into the work
//! tree, and pointers into commits.
//!
//! The contents lie where `git lfs` has them, below `.git/lfs/objects`, so that one in the image
//! finds them, too. A filter of the image's own is not relied upon: it may be missing, and would
//! ask a server.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use sha2::{Digest, Sha256};

use crate::lfs::{self, Pointer};

/// Most bytes in a packet of git's protocol.
const LONGEST_PACKET: usize = 65516;
/// Most bytes of the attributes that the worker sends.
const LONGEST_ATTRIBUTES: u64 = 16 * 1024 * 1024;

/// Reads contents and attributes from stdin into the repository's folder `.git`. Not a byte behind
/// the last line is read: what follows there is for another program.
pub fn receive(git: &Path) -> anyhow::Result<()> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    loop {
        let line = line(&mut input)?;
        if line == lfs::END.trim_end() {
            return Ok(());
        }
        if let Some(size) = line.strip_prefix("attributes ") {
            let size: u64 = size.parse().context("the length of the attributes")?;
            ensure!(size <= LONGEST_ATTRIBUTES, "the attributes have {size} bytes");
            let folder = git.join("info");
            fs::create_dir_all(&folder)?;
            copy(&mut input, size, &mut File::create(folder.join("attributes"))?)?;
            continue;
        }
        let Some(pointer) = Pointer::of_line(&line) else {
            bail!("no content begins with {line:?}");
        };
        let place = place(git, &pointer);
        fs::create_dir_all(place.parent().unwrap_or(git))?;
        copy(&mut input, pointer.size(), &mut File::create(place)?)?;
    }
}

/// Writes the contents with these digests to stdout, each behind its line; those that are not there
/// are left out.
pub fn send(git: &Path, digests: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut output = io::stdout().lock();
    for digest in digests {
        let named = Pointer::new(&digest, 0).with_context(|| format!("{digest:?} is no digest"))?;
        let Ok(mut content) = File::open(place(git, &named)) else {
            continue;
        };
        let size = content.metadata()?.len();
        let pointer = Pointer::new(&digest, size).unwrap_or(named);
        output.write_all(pointer.line().as_bytes())?;
        copy(&mut content, size, &mut output)?;
    }
    output.write_all(lfs::END.as_bytes())?;
    output.flush()?;
    Ok(())
}

/// Serves git as the long-running filter `lfs` on stdin and stdout, for all files of one command.
pub fn filter(git: &Path) -> anyhow::Result<()> {
    let mut input = BufReader::new(io::stdin().lock());
    let mut output = BufWriter::new(io::stdout().lock());
    let greeting = list(&mut input)?.unwrap_or_default();
    ensure!(
        greeting.first().is_some_and(|first| first == "git-filter-client")
            && greeting.iter().any(|it| it == "version=2"),
        "git speaks another version of its protocol for filters"
    );
    write_list(&mut output, &["git-filter-server", "version=2"])?;
    list(&mut input)?;
    write_list(&mut output, &["capability=clean", "capability=smudge"])?;
    while let Some(request) = list(&mut input)? {
        let answer = match request.iter().find_map(|line| line.strip_prefix("command=")) {
            Some("clean") => clean(git, &mut input)?,
            Some("smudge") => smudge(git, &mut input)?,
            _ => {
                each_packet(&mut input, |_| Ok(()))?;
                Err(io::Error::other("unknown command"))
            }
        };
        match answer {
            Ok(mut content) => {
                write_list(&mut output, &["status=success"])?;
                write_content(&mut output, content.as_mut())?;
                // No other status than before.
                output.write_all(b"0000")?;
            }
            Err(_) => write_list(&mut output, &["status=error"])?,
        }
        output.flush()?;
    }
    Ok(())
}

type Content = io::Result<Box<dyn Read>>;

/// Takes a file's content from git, keeps it, and returns the pointer to it. The outer error is one
/// of the stream, the inner one of this file.
fn clean(git: &Path, input: &mut impl Read) -> io::Result<Content> {
    let mut incoming = NewContent::begin(git);
    each_packet(input, |packet| {
        incoming.add(packet);
        Ok(())
    })?;
    Ok(incoming.end(git))
}

/// Takes a pointer from git and returns the content; the pointer, where that is not here.
fn smudge(git: &Path, input: &mut impl Read) -> io::Result<Content> {
    let mut text = Vec::new();
    each_packet(input, |packet| {
        text.extend_from_slice(packet);
        Ok(())
    })?;
    let content = Pointer::read(&text).and_then(|pointer| {
        let file = File::open(place(git, &pointer)).ok()?;
        (file.metadata().ok()?.len() == pointer.size()).then_some(file)
    });
    Ok(Ok(match content {
        Some(file) => Box::new(file),
        None => Box::new(io::Cursor::new(text)),
    }))
}

/// A file's content while git sends it.
struct NewContent {
    /// Its beginning, by which a pointer is recognized.
    head: Vec<u8>,
    size: u64,
    digest: Sha256,
    path: PathBuf,
    file: io::Result<File>,
}

impl NewContent {
    fn begin(git: &Path) -> Self {
        let folder = git.join("lfs/tmp");
        let path = folder.join(std::process::id().to_string());
        let file = fs::create_dir_all(&folder).and_then(|()| File::create(&path));
        Self {
            head: Vec::new(),
            size: 0,
            digest: Sha256::new(),
            path,
            file,
        }
    }

    fn add(&mut self, packet: &[u8]) {
        let room = (lfs::LONGEST + 1).saturating_sub(self.head.len());
        self.head.extend_from_slice(&packet[..packet.len().min(room)]);
        self.size += packet.len() as u64;
        self.digest.update(packet);
        if let Ok(file) = &mut self.file
            && let Err(error) = file.write_all(packet)
        {
            self.file = Err(error);
        }
    }

    fn end(self, git: &Path) -> Content {
        let is_pointer = self.size == self.head.len() as u64 && Pointer::read(&self.head).is_some();
        if self.size == 0 || is_pointer {
            let _ = fs::remove_file(&self.path);
            return Ok(Box::new(io::Cursor::new(self.head)));
        }
        self.file?;
        let digest = format!("{:x}", self.digest.finalize());
        let pointer = Pointer::new(&digest, self.size).ok_or_else(|| io::Error::other("no digest"))?;
        let place = place(git, &pointer);
        fs::create_dir_all(place.parent().unwrap_or(git))?;
        fs::rename(&self.path, place)?;
        Ok(Box::new(io::Cursor::new(pointer.text())))
    }
}

fn place(git: &Path, pointer: &Pointer) -> PathBuf {
    git.join("lfs/objects").join(pointer.place())
}

/// Copies exactly `size` bytes.
fn copy(from: &mut impl Read, size: u64, to: &mut impl Write) -> anyhow::Result<()> {
    let copied = io::copy(&mut from.take(size), to)?;
    ensure!(copied == size, "the stream ended after {copied} bytes of {size}");
    Ok(())
}

/// Reads a line byte by byte, and nothing behind it.
fn line(input: &mut impl Read) -> anyhow::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        input.read_exact(&mut byte)?;
        if byte == [b'\n'] {
            return Ok(String::from_utf8(line)?);
        }
        line.extend(byte);
        ensure!(line.len() < 1024, "a line is too long");
    }
}

/// Reads packets up to the next flush, and calls `take` with each. Returns false at the end of the
/// stream.
fn each_packet(input: &mut impl Read, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<bool> {
    let mut packet = vec![0; LONGEST_PACKET];
    loop {
        let mut head = [0; 4];
        match input.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        let length = std::str::from_utf8(&head).ok();
        let length = length.and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let body = match length {
            Some(0) => return Ok(true),
            Some(length @ 4..) if length - 4 <= LONGEST_PACKET => &mut packet[..length - 4],
            _ => return Err(io::Error::other("git sent no packet")),
        };
        input.read_exact(body)?;
        take(body)?;
    }
}

/// Reads lines up to the next flush; `None` at the end of the stream.
fn list(input: &mut impl Read) -> io::Result<Option<Vec<String>>> {
    let mut lines = Vec::new();
    let is_there = each_packet(input, |packet| {
        lines.push(String::from_utf8_lossy(packet).trim_end_matches('\n').to_owned());
        Ok(())
    })?;
    Ok(is_there.then_some(lines))
}

fn write_packet(output: &mut impl Write, packet: &[u8]) -> io::Result<()> {
    write!(output, "{:04x}", packet.len() + 4)?;
    output.write_all(packet)
}

fn write_list(output: &mut impl Write, lines: &[&str]) -> io::Result<()> {
    for line in lines {
        write_packet(output, format!("{line}\n").as_bytes())?;
    }
    output.write_all(b"0000")?;
    output.flush()
}

fn write_content(output: &mut impl Write, content: &mut dyn Read) -> io::Result<()> {
    let mut chunk = vec![0; LONGEST_PACKET];
    loop {
        let length = content.read(&mut chunk)?;
        if length == 0 {
            return output.write_all(b"0000");
        }
        write_packet(output, &chunk[..length])?;
    }
}
