//! How a connection begins, and who may go on with a link.
//!
//! The first connection is the stream of the executor's process, the container's own or one that
//! only the worker opened. Nobody in the container can reach it: over it the worker gives a key.
//! Whoever comes later proves that they have it, and so does the executor; the key itself is never
//! sent again. Every process of the container can reach the executor's address, and once the
//! executor has ended, take it: neither gets anywhere without the key. The kernel keeps processes
//! apart from a connection that is open, so that frames need no proof.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Broken;
use crate::signature::{is_signed, sign};

/// Bytes of a key, of a challenge and of a proof.
const LENGTH: usize = 32;

/// First byte of the executor's challenge, and of its answer; no frame begins with either.
const CHALLENGE: u8 = 0x10;
const RESUMED: u8 = 0x11;
/// First byte of what comes in answer to a challenge.
const RESUME: u8 = 0x12;
const END: u8 = 0x13;

/// The byte that is sent once the key is known.
const KNOWN: u8 = 0x14;

/// The byte that is sent where there is no executor any more. No connection and no frame begins
/// with it.
pub const NOBODY: u8 = 0xff;

/// The words that each end's proof covers, so that none can be sent back to the end that made it.
const OF_WORKER: &[u8] = b"worker";
const OF_EXECUTOR: &[u8] = b"executor";

/// The key of a session, which the worker makes and only the executor gets.
pub struct SessionKey([u8; LENGTH]);

/// Why a connection did not begin.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Another connection may.
    #[error("the connection was lost: {0}")]
    Lost(#[from] io::Error),
    /// No other connection will.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// A request to the executor by somebody who has the right to it.
pub enum Visit {
    /// The worker, to go on with the link.
    Resume(Resumption),
    /// Anybody, to end the session.
    End,
}

/// A worker that has proved to have the key, and has not heard yet that it may go on.
pub struct Resumption {
    /// Number of bytes that have arrived at the worker.
    pub received: u64,
    said: Vec<u8>,
}

impl SessionKey {
    /// Makes a new key.
    pub fn new() -> io::Result<Self> {
        Ok(Self(random()?))
    }

    /// Gives the key to the executor at the other end of the first connection. Fails if it may not
    /// have arrived: without it nobody could go on.
    pub async fn give(
        &self,
        (reader, writer): (&mut (impl AsyncRead + Unpin), &mut (impl AsyncWrite + Unpin)),
    ) -> io::Result<()> {
        writer.write_all(&self.0).await?;
        writer.flush().await?;
        match reader.read_u8().await? {
            KNOWN => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Receives the key over the first connection, and says so.
    pub async fn receive(
        (reader, writer): (&mut (impl AsyncRead + Unpin), &mut (impl AsyncWrite + Unpin)),
    ) -> io::Result<Self> {
        let mut key = [0; LENGTH];
        reader.read_exact(&mut key).await?;
        writer.write_all(&[KNOWN]).await?;
        writer.flush().await?;
        Ok(Self(key))
    }

    /// Goes on with the link over a new connection, as the worker. `received` is how many bytes
    /// have arrived here; returns how many have arrived at the executor.
    pub async fn resume(
        &self,
        (reader, writer): (&mut (impl AsyncRead + Unpin), &mut (impl AsyncWrite + Unpin)),
        received: u64,
    ) -> Result<u64, Failed> {
        let challenge = after(CHALLENGE, reader).await?;
        let mut said = challenge.to_vec();
        said.extend(random::<LENGTH>()?);
        said.extend(received.to_be_bytes());
        let mut answer = vec![RESUME];
        answer.extend(&said[LENGTH..]);
        answer.extend(sign(&self.0, &[OF_WORKER, &said]));
        writer.write_all(&answer).await?;
        writer.flush().await?;
        let proof = after(RESUMED, reader).await?;
        let received_there = reader.read_u64().await?;
        said.extend(received_there.to_be_bytes());
        self.require(OF_EXECUTOR, &said, &proof)?;
        Ok(received_there)
    }

    /// Receives somebody who came to the executor's address, as the executor.
    pub async fn visit(
        &self,
        (reader, writer): (&mut (impl AsyncRead + Unpin), &mut (impl AsyncWrite + Unpin)),
    ) -> Result<Visit, Failed> {
        let challenge: [u8; LENGTH] = random()?;
        writer.write_all(&[&[CHALLENGE][..], &challenge].concat()).await?;
        writer.flush().await?;
        match reader.read_u8().await? {
            RESUME => {}
            END => return Ok(Visit::End),
            _ => return Err(Broken::Form.into()),
        }
        let mut said = challenge.to_vec();
        said.resize(2 * LENGTH, 0);
        reader.read_exact(&mut said[LENGTH..]).await?;
        let received = reader.read_u64().await?;
        said.extend(received.to_be_bytes());
        let mut proof = [0; LENGTH];
        reader.read_exact(&mut proof).await?;
        self.require(OF_WORKER, &said, &proof)?;
        Ok(Visit::Resume(Resumption { received, said }))
    }

    /// Tells a worker that it may go on, and that `received` bytes have arrived at the executor.
    pub async fn welcome(
        &self,
        writer: &mut (impl AsyncWrite + Unpin),
        resumption: Resumption,
        received: u64,
    ) -> io::Result<()> {
        let Resumption { mut said, .. } = resumption;
        said.extend(received.to_be_bytes());
        let mut answer = vec![RESUMED];
        answer.extend(sign(&self.0, &[OF_EXECUTOR, &said]));
        answer.extend(received.to_be_bytes());
        writer.write_all(&answer).await?;
        writer.flush().await
    }

    fn require(&self, of: &[u8], said: &[u8], proof: &[u8]) -> Result<(), Broken> {
        is_signed(&self.0, &[of, said], proof).then_some(()).ok_or(Broken::Key)
    }
}

/// Asks the executor at the other end to end its session.
pub async fn ask_to_end(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Result<(), Failed> {
    after(CHALLENGE, stream).await?;
    stream.write_all(&[END]).await?;
    stream.flush().await?;
    Ok(())
}

/// Reads what stands behind `first`.
async fn after(first: u8, reader: &mut (impl AsyncRead + Unpin)) -> Result<[u8; LENGTH], Failed> {
    match reader.read_u8().await? {
        NOBODY => return Err(Broken::Nobody.into()),
        heard if heard == first => {}
        // Such as the engine's own words about a process that it could not start now.
        _ => return Err(io::Error::from(io::ErrorKind::InvalidData).into()),
    }
    let mut read = [0; LENGTH];
    reader.read_exact(&mut read).await?;
    Ok(read)
}

fn random<const COUNT: usize>() -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}
