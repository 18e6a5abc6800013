//! Pointers of Git LFS: the few lines that a commit holds in the place of a large file's content.
//!
//! A pointer names the content by its SHA-256 digest and size. Worker and executor read and write
//! them with this, so that both take the same text for a pointer.

use std::fmt::Write as _;

/// A longer text is no pointer.
pub const LONGEST: usize = 1024;

/// First lines of pointers, the present one first; the others stand in old histories.
const VERSIONS: [&str; 3] = [
    "version https://git-lfs.github.com/spec/v1",
    "version http://git-media.io/v/2",
    "version https://hawser.github.com/spec/v1",
];

/// The name of a large file's content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer {
    digest: String,
    size: u64,
}

impl Pointer {
    /// Returns the pointer to the content with this SHA-256 digest; `None` unless that is 64 lower
    /// case hexadecimal digits.
    pub fn new(digest: &str, size: u64) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (digest.len() == 64 && digest.bytes().all(is_digit)).then(|| Self {
            digest: digest.to_owned(),
            size,
        })
    }

    /// Reads a file's content; `None` if it is no pointer. An empty file is its own content.
    pub fn read(content: &[u8]) -> Option<Self> {
        if content.len() > LONGEST {
            return None;
        }
        let mut lines = std::str::from_utf8(content).ok()?.lines();
        let version = lines.next()?;
        if !VERSIONS.contains(&version.trim_end()) {
            return None;
        }
        let (mut digest, mut size) = (None, None);
        for line in lines {
            match line.trim_end().split_once(' ')? {
                ("oid", value) => digest = Some(value.strip_prefix("sha256:")?),
                ("size", value) if value.bytes().all(|byte| byte.is_ascii_digit()) => size = value.parse().ok(),
                (key, _) if key.starts_with("ext-") => {}
                _ => return None,
            }
        }
        Self::new(digest?, size?)
    }

    pub fn digest(&self) -> &str {
        &self.digest
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the content of the file that stands for this pointer in a commit.
    pub fn text(&self) -> String {
        let [version, ..] = VERSIONS;
        let mut text = String::new();
        let _ = write!(text, "{version}\noid sha256:{}\nsize {}\n", self.digest, self.size);
        text
    }

    /// Returns where the content lies below a folder of contents, as `git lfs` lays it out.
    pub fn place(&self) -> String {
        format!("{}/{}/{}", &self.digest[..2], &self.digest[2..4], self.digest)
    }

    /// Returns the line that precedes the content in a stream between worker and container.
    pub fn line(&self) -> String {
        format!("content {} {}\n", self.digest, self.size)
    }

    /// Reads [`Self::line`], without its line end.
    pub fn of_line(line: &str) -> Option<Self> {
        let (digest, size) = line.strip_prefix("content ")?.split_once(' ')?;
        Self::new(digest, size.parse().ok()?)
    }
}

/// The line after the last content in a stream between worker and container.
pub const END: &str = "end\n";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIGEST: &str = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";

    #[test]
    fn a_pointer_is_read_as_it_is_written() {
        let pointer = Pointer::new(DIGEST, 12_345).unwrap();
        insta::assert_snapshot!(pointer.text(), @r"
        version https://git-lfs.github.com/spec/v1
        oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
        size 12345
        ");
        assert_eq!(Pointer::read(pointer.text().as_bytes()), Some(pointer.clone()));
        assert_eq!(Pointer::of_line(pointer.line().trim_end()), Some(pointer.clone()));
        assert!(pointer.place().starts_with("4d/7a/4d7a2146"));
    }

    #[test]
    fn what_is_nearly_a_pointer_is_a_file() {
        let text = Pointer::new(DIGEST, 1).unwrap().text();
        for wrong in [
            String::new(),
            text.replace("git-lfs", "git-lsf"),
            text.replace("sha256", "md5"),
            text.replace("4d7a", "4D7A"),
            text.replace("4d7a", "../.."),
            text.replace("size 1", "size -1"),
            text.replace("size 1", "size 99999999999999999999"),
            text.replace("size 1\n", ""),
            format!("{text}more\n"),
            format!("{text}{}", "ext-0-x y\n".repeat(200)),
        ] {
            assert_eq!(Pointer::read(wrong.as_bytes()), None, "{wrong}");
        }
        let extended = text.replace("oid", "ext-0-foo sha256:abc\noid");
        assert!(Pointer::read(extended.as_bytes()).is_some());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fall_over(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Pointer::read(&bytes);
            let _ = Pointer::of_line(&String::from_utf8_lossy(&bytes));
        }
    }
}
