//! The files of a commit as bytes: what a path shares with the one before is not repeated.

use super::bytes::{Reader, folded, put, put_text, unfolded};

/// Returns the paths of a commit with the ids of their contents as bytes.
pub(in crate::index) fn written<'f>(files: impl Iterator<Item = (&'f str, u64)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut before, mut content) = ("", 0_u64);
    for (path, id) in files {
        let shared = before
            .bytes()
            .zip(path.bytes())
            .take_while(|(one, other)| one == other)
            .count();
        put(&mut bytes, shared as u64);
        put_text(&mut bytes, path.as_bytes().get(shared..).unwrap_or_default());
        put(&mut bytes, folded(id.wrapping_sub(content).cast_signed()));
        (before, content) = (path, id);
    }
    bytes
}

/// Calls `take` with each path and the id of its content; `None` if the bytes are damaged.
pub(in crate::index) fn each(bytes: &[u8], mut take: impl FnMut(&str, u64)) -> Option<()> {
    let mut reader = Reader::new(bytes);
    let (mut path, mut content) = (Vec::new(), 0_u64);
    while !reader.is_at_end() {
        let shared = reader.size().filter(|shared| *shared <= path.len())?;
        path.truncate(shared);
        let length = reader.size()?;
        path.extend_from_slice(reader.take(length)?);
        content = content.wrapping_add(unfolded(reader.number()?).cast_unsigned());
        take(std::str::from_utf8(&path).ok()?, content);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_they_were_written() {
        // The second and third share half of a letter.
        let files = [
            ("src/a.py", 70),
            ("src/net/あ.py", 1),
            ("src/net/い.py", 9_000),
            ("z", 0),
        ];
        let bytes = written(files.into_iter());
        let mut read = Vec::new();
        assert!(each(&bytes, |path, id| read.push((path.to_owned(), id))).is_some());
        assert_eq!(read, files.map(|(path, id)| (path.to_owned(), id)));
        assert!(bytes.len() < 50, "{}", bytes.len());
        assert_eq!(each(&bytes[..bytes.len() - 1], |_, _| {}), None);
        assert_eq!(each(&[9], |_, _| {}), None);
    }
}
