//! Frames: pieces of the stream, each with its place in it.
//!
//! A frame says where its bytes begin and, behind them, where they end. What was lost in the
//! middle, or put in the place of a rest that broke off, does not fit both.

use bytes::{Buf, BufMut, BytesMut};

use super::Broken;

/// Most bytes of the stream in one frame.
pub const MOST_BYTES: usize = 16 * 1024;

/// Bytes of a frame before those of the stream: kind, their number, where they begin, and how many
/// of the other direction were taken.
const HEAD: usize = 1 + 2 + 8 + 8;
/// Bytes of a frame behind those of the stream: where they end.
const TAIL: usize = 8;

const DATA: u8 = 1;
const CLOSE: u8 = 2;

/// The content of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A piece of the stream, which may be empty.
    Data {
        /// Number of bytes before these.
        begin: u64,
        /// Number of bytes of the other direction that this end has taken.
        taken: u64,
        bytes: BytesMut,
    },
    /// The other end goes away and comes back no more.
    Close,
}

/// Reads frames out of whatever parts a connection delivers.
#[derive(Debug, Default)]
pub struct Decoder {
    unread: BytesMut,
}

impl Decoder {
    /// Returns the buffer into which a connection is read, with room for a frame.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.unread.reserve(HEAD + MOST_BYTES + TAIL);
        &mut self.unread
    }

    /// Returns the next frame; `None` until more was read.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Broken> {
        let mut head = &self.unread[..];
        if head.len() < HEAD {
            // The kind is judged as soon as it is there: no other byte may follow a wrong one.
            return match head.first() {
                None | Some(&(DATA | CLOSE)) => Ok(None),
                Some(_) => Err(Broken::Form),
            };
        }
        let (kind, length) = (head.get_u8(), usize::from(head.get_u16()));
        let (begin, taken) = (head.get_u64(), head.get_u64());
        if !matches!(kind, DATA | CLOSE) || length > MOST_BYTES || (kind == CLOSE && length > 0) {
            return Err(Broken::Form);
        }
        if self.unread.len() < HEAD + length + TAIL {
            return Ok(None);
        }
        self.unread.advance(HEAD);
        let bytes = self.unread.split_to(length);
        if begin.checked_add(length as u64) != Some(self.unread.get_u64()) {
            return Err(Broken::End);
        }
        Ok(Some(match kind {
            CLOSE => Frame::Close,
            _ => Frame::Data { begin, taken, bytes },
        }))
    }
}

/// Writes a piece of the stream, of at most [`MOST_BYTES`], behind what is in `into`.
pub fn write_data(into: &mut BytesMut, begin: u64, taken: u64, bytes: &[u8]) {
    write(into, DATA, (begin, taken), bytes);
}

/// Writes that this end goes away.
pub fn write_close(into: &mut BytesMut) {
    write(into, CLOSE, (0, 0), &[]);
}

#[expect(clippy::cast_possible_truncation, reason = "a piece has at most 16 KiB")]
fn write(into: &mut BytesMut, kind: u8, (begin, taken): (u64, u64), bytes: &[u8]) {
    debug_assert!(bytes.len() <= MOST_BYTES);
    into.reserve(HEAD + bytes.len() + TAIL);
    into.put_u8(kind);
    into.put_u16(bytes.len() as u16);
    into.put_u64(begin);
    into.put_u64(taken);
    into.put_slice(bytes);
    into.put_u64(begin + bytes.len() as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Result<Option<Frame>, Broken> {
        let mut decoder = Decoder::default();
        decoder.buffer().extend_from_slice(bytes);
        decoder.next_frame()
    }

    #[test]
    fn a_frame_is_read_when_it_is_whole_and_not_before() {
        let mut written = BytesMut::new();
        write_data(&mut written, 7, 3, b"seven");
        write_close(&mut written);
        let mut decoder = Decoder::default();
        let mut frames = Vec::new();
        for byte in written {
            decoder.buffer().extend_from_slice(&[byte]);
            frames.extend(decoder.next_frame().unwrap());
        }
        let data = Frame::Data {
            begin: 7,
            taken: 3,
            bytes: BytesMut::from(&b"seven"[..]),
        };
        assert_eq!(frames, [data, Frame::Close]);
    }

    #[test]
    fn what_cannot_begin_a_frame_is_told_at_its_first_byte() {
        assert_eq!(decoded(&[0xff]), Err(Broken::Form));
        assert_eq!(decoded(b"multiplexing"), Err(Broken::Form));
    }

    #[test]
    fn a_frame_that_broke_off_is_not_completed_by_what_comes_then() {
        let mut written = BytesMut::new();
        write_data(&mut written, 0, 0, &[b'a'; 100]);
        for length in 1..written.len() {
            let mut bytes = written[..length].to_vec();
            bytes.resize(32 * 1024, 0xff);
            assert!(decoded(&bytes).is_err(), "{length}");
        }
    }
}
