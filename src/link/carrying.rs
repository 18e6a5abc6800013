//! One connection of a link, until it is lost or the link ends.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

use super::frame::{self, Decoder};
use super::{Broken, LinkEnd};

/// Bytes that are framed before the connection has taken the earlier ones.
const FRAMED_AHEAD: usize = 64 * 1024;

/// Bytes that are taken from the user at once.
const AT_ONCE: usize = 16 * 1024;

/// Time for the last frame to go out.
const CLOSING: Duration = Duration::from_secs(5);

/// How long an end is silent, and how long it bears silence.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// An end that had nothing to say for so long says that: proxies cut connections that are idle,
    /// and a connection that was cut without a word shows in nothing else.
    pub speaks_after: Duration,
    /// An end that has heard nothing for so long takes the connection for lost.
    pub waits: Duration,
}

impl Patience {
    /// Load balancers cut what is idle for a minute and more; three words may be late or lost.
    pub const USUAL: Self = Self {
        speaks_after: Duration::from_secs(15),
        waits: Duration::from_secs(45),
    };
}

/// How a connection ended.
#[derive(Debug)]
pub enum Parted {
    /// It is lost; another one may go on.
    Lost(String),
    /// The other end has gone, and the link ends.
    Closed,
    /// This end's user has gone, which the other end was told if possible.
    Dropped,
    /// The link cannot go on.
    Broken(Broken),
}

/// Carries what the user at `near` writes and reads over the connection `far`.
///
/// May be dropped at any moment, and another connection can go on with `link` after that.
pub async fn carry(
    link: &mut LinkEnd,
    (near_reader, near_writer): (&mut (impl AsyncRead + Unpin), &mut (impl AsyncWrite + Unpin)),
    (far_reader, far_writer): (&mut (impl AsyncRead + Unpin), &mut (impl AsyncWrite + Unpin)),
    patience: Patience,
) -> Parted {
    let mut decoder = Decoder::default();
    let mut framed = BytesMut::new();
    let mut piece = vec![0; AT_ONCE];
    let mut must_flush = false;
    let (mut heard, mut said) = (Instant::now(), Instant::now());
    let mut alarm = std::pin::pin!(sleep_until(said + patience.speaks_after));
    loop {
        while framed.len() < FRAMED_AHEAD && link.write_frame(&mut framed) {}
        let room = link.room().min(AT_ONCE);
        let (has_framed, has_arrived) = (!framed.is_empty(), !link.to_take().is_empty());
        tokio::select! {
            sent = send(far_writer, &mut framed), if has_framed || must_flush => match sent {
                Ok(is_flushed) => (said, must_flush) = (Instant::now(), !is_flushed),
                Err(error) => return Parted::Lost(error.to_string()),
            },
            read = far_reader.read_buf(decoder.buffer()) => match read {
                Ok(0) => return Parted::Lost("it has ended".to_owned()),
                Ok(_) => {
                    heard = Instant::now();
                    match read_frames(link, &mut decoder) {
                        Ok(true) => {}
                        Ok(false) => return Parted::Closed,
                        Err(broken) => return Parted::Broken(broken),
                    }
                }
                Err(error) => return Parted::Lost(error.to_string()),
            },
            given = near_reader.read(&mut piece[..room]), if room > 0 => if let Ok(count @ 1..) = given {
                link.give(&piece[..count]);
            } else {
                say_goodbye(far_writer, framed).await;
                return Parted::Dropped;
            },
            taken = near_writer.write(link.to_take()), if has_arrived => if let Ok(count @ 1..) = taken {
                link.take(count);
            } else {
                // It is read no more, and the other side tells that it is gone.
                say_goodbye(far_writer, framed).await;
                return Parted::Dropped;
            },
            () = &mut alarm => {
                let now = Instant::now();
                if now >= heard + patience.waits {
                    return Parted::Lost(format!("nothing was heard for {} s", patience.waits.as_secs()));
                }
                // What waits to be written says that this end is there, once it is.
                if has_framed || now >= said + patience.speaks_after {
                    said = now;
                    if !has_framed {
                        link.speak();
                    }
                }
                let next = (heard + patience.waits).min(said + patience.speaks_after);
                alarm.as_mut().reset(next);
            }
        }
    }
}

/// Writes a part of what is framed, or flushes what was written; returns whether it was the latter.
async fn send(far_writer: &mut (impl AsyncWrite + Unpin), framed: &mut BytesMut) -> io::Result<bool> {
    if framed.is_empty() {
        far_writer.flush().await?;
        return Ok(true);
    }
    match far_writer.write_buf(framed).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        _ => Ok(false),
    }
}

fn read_frames(link: &mut LinkEnd, decoder: &mut Decoder) -> Result<bool, Broken> {
    while let Some(frame) = decoder.next_frame()? {
        if !link.read_frame(&frame)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Tells the other end that this one goes, behind what is on its way already.
async fn say_goodbye(far_writer: &mut (impl AsyncWrite + Unpin), mut framed: BytesMut) {
    frame::write_close(&mut framed);
    let saying = async {
        far_writer.write_all_buf(&mut framed).await?;
        far_writer.flush().await
    };
    // An end that does not hear it waits for a while, and then ends as well.
    let _ = timeout(CLOSING, saying).await;
}
