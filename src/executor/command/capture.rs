//! Keeps output that may be endless in bounded memory: its head, its tail, and the number of bytes
//! missing between them.

/// The output of a command so far.
#[derive(Debug)]
pub(super) struct Capture {
    half: usize,
    head: Vec<u8>,
    /// Grows to twice `half` before its front is dropped, so that a byte is moved once and not with
    /// every read.
    tail: Vec<u8>,
    total: u64,
}

impl Capture {
    /// Creates a capture that keeps at most about `limit` bytes, one half from each end.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            half: (limit / 2).max(1),
            head: Vec::new(),
            tail: Vec::new(),
            total: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(first);
        let last = &rest[rest.len().saturating_sub(self.half)..];
        self.tail.extend_from_slice(last);
        if self.tail.len() > 2 * self.half {
            self.tail.drain(..self.tail.len() - self.half);
        }
    }

    /// Returns the text and the number of bytes left out. Invalid UTF-8 is shown as `�`, and so is
    /// NUL, which several databases and model servers refuse.
    pub(super) fn into_text(mut self) -> (String, u64) {
        let surplus = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..surplus);
        let kept = (self.head.len() + self.tail.len()) as u64;
        if kept == self.total {
            self.head.append(&mut self.tail);
            return (readable(&self.head), 0);
        }
        let head = &self.head[..self.head.len() - unfinished_character(&self.head)];
        let orphans = self.tail.iter().take(3).take_while(|byte| is_continuation(**byte));
        let tail = &self.tail[orphans.count()..];
        let cut = self.total - (head.len() + tail.len()) as u64;
        let text = format!("{}\n[... {cut} bytes cut ...]\n{}", readable(head), readable(tail));
        (text, cut)
    }
}

fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

/// Returns the number of bytes at the end that belong to a character that was cut.
fn unfinished_character(bytes: &[u8]) -> usize {
    let starts_one = |count: &usize| {
        std::str::from_utf8(&bytes[bytes.len() - count..])
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..=bytes.len().min(3)).find(starts_one).unwrap_or(0)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: usize, pieces: &[&[u8]]) -> (String, u64) {
        let mut capture = Capture::new(limit);
        for piece in pieces {
            capture.push(piece);
        }
        capture.into_text()
    }

    #[test]
    fn short_output_is_kept_whole() {
        assert_eq!(captured(10, &[b"01234", b"56789"]), ("0123456789".to_owned(), 0));
        assert_eq!(captured(10, &[]), (String::new(), 0));
    }

    #[test]
    fn long_output_keeps_head_and_tail_and_says_what_is_cut() {
        let text = "01234\n[... 3 bytes cut ...]\n89abc".to_owned();
        assert_eq!(captured(10, &[b"0123456789abc"]), (text.clone(), 3));
        let bytes: Vec<&[u8]> = b"0123456789abc".chunks(1).collect();
        assert_eq!(captured(10, &bytes), (text, 3));
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        let (text, cut) = captured(8, &["äxäxäx日本語".as_bytes()]);
        assert_eq!(text, "äx\n[... 12 bytes cut ...]\n語");
        assert_eq!(cut, 12);
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such() {
        assert_eq!(captured(100, &[b"a\xff\0b"]), ("a\u{fffd}\u{fffd}b".to_owned(), 0));
    }

    #[test]
    fn endless_output_stays_in_bounded_memory() {
        let mut capture = Capture::new(1000);
        for _ in 0..1000 {
            capture.push(&[b'x'; 4096]);
            assert!(capture.head.capacity() + capture.tail.capacity() < 4 * 4096);
        }
        assert_eq!(capture.into_text().1, 1000 * 4096 - 1000);
    }
}
