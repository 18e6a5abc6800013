//! One end of a link: what it has sent, received and taken, as counts, and the bytes in between.
//! Pure: it is told what arrived, and asked what to send.

use bytes::{Buf, BytesMut};

use super::Broken;
use super::frame::{self, Frame, MOST_BYTES};

/// Most bytes of each direction that are on their way: sent, and not taken by the other end's user.
/// Each end keeps at most so many, twice.
pub const WINDOW: usize = 1024 * 1024;

/// Bytes that may be taken before the other end is told without a reason of its own to be written
/// to.
const TOLD_AFTER: u64 = WINDOW as u64 / 4;

/// One end of a link. It lives as long as the link, over all connections.
#[derive(Debug, Default)]
pub struct LinkEnd {
    /// The bytes that were given to this end, and not taken by the other's user yet.
    kept: BytesMut,
    /// Number of bytes that the other end's user has taken: where `kept` begins.
    taken_there: u64,
    /// Number of bytes that were framed in this connection, or arrived in an earlier one.
    framed: u64,
    /// Most that `framed` ever was: more cannot have arrived.
    most_framed: u64,
    /// The bytes that arrived, and were not taken by this end's user yet.
    arrived: BytesMut,
    /// Number of bytes that arrived, taken or not.
    received: u64,
    /// The number of bytes taken here that the other end was told last.
    told: u64,
    /// A frame is due, even an empty one.
    must_speak: bool,
}

impl LinkEnd {
    /// Returns how many bytes may be given to this end now.
    pub fn room(&self) -> usize {
        WINDOW - self.kept.len()
    }

    /// Takes bytes on their way to the other end, at most [`Self::room`].
    pub fn give(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.len() <= self.room());
        self.kept.extend_from_slice(bytes);
    }

    /// Returns what arrived for this end's user.
    pub fn to_take(&self) -> &[u8] {
        &self.arrived
    }

    /// Notes that this end's user has taken the first `count` bytes.
    pub fn take(&mut self, count: usize) {
        self.arrived.advance(count);
    }

    /// Returns how many bytes have arrived, with which the next connection begins.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Begins with a new connection, in which the other end says that `received_there` bytes have
    /// arrived.
    pub fn resume(&mut self, received_there: u64) -> Result<(), Broken> {
        if !(self.taken_there..=self.most_framed).contains(&received_there) {
            return Err(self.miscounted(received_there));
        }
        self.framed = received_there;
        // What is taken is not said at the beginning.
        self.must_speak = true;
        Ok(())
    }

    /// Makes a frame due even if there is nothing to say.
    pub fn speak(&mut self) {
        self.must_speak = true;
    }

    /// Writes the next frame behind what is in `into`; returns false if none is due.
    pub fn write_frame(&mut self, into: &mut BytesMut) -> bool {
        let taken = self.received - self.arrived.len() as u64;
        let unframed = &self.kept[self.offset(self.framed)..];
        let bytes = &unframed[..unframed.len().min(MOST_BYTES)];
        if bytes.is_empty() && !self.must_speak && taken - self.told < TOLD_AFTER {
            return false;
        }
        frame::write_data(into, self.framed, taken, bytes);
        self.framed += bytes.len() as u64;
        self.most_framed = self.most_framed.max(self.framed);
        self.told = taken;
        self.must_speak = false;
        true
    }

    /// Takes a frame in; returns false if the other end has gone.
    pub fn read_frame(&mut self, frame: &Frame) -> Result<bool, Broken> {
        let (begin, taken, bytes) = match frame {
            Frame::Close => return Ok(false),
            Frame::Data { begin, taken, bytes } => (*begin, *taken, bytes),
        };
        if begin != self.received {
            let expected = self.received;
            return Err(Broken::Begin { begin, expected });
        }
        if self.arrived.len() + bytes.len() > WINDOW {
            return Err(Broken::TooMuch);
        }
        if !(self.taken_there..=self.framed).contains(&taken) {
            return Err(self.miscounted(taken));
        }
        self.kept.advance(self.offset(taken));
        self.taken_there = taken;
        self.arrived.extend_from_slice(bytes);
        self.received += bytes.len() as u64;
        Ok(true)
    }

    /// Returns where a byte stands in `kept`, which holds at most [`WINDOW`].
    #[expect(clippy::cast_possible_truncation, reason = "at most a window")]
    fn offset(&self, position: u64) -> usize {
        (position - self.taken_there) as usize
    }

    fn miscounted(&self, taken: u64) -> Broken {
        Broken::Count {
            taken,
            known: self.taken_there,
            sent: self.most_framed,
        }
    }
}
