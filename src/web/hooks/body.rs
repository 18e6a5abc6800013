//! The bodies of deliveries, which strangers may send too: whose they are is known once they are
//! there.
//!
//! Guarantees: one is read for [`LONGEST`] at most and no further than [`LARGEST`], and all that
//! are being read at once have [`MOST_AT_ONCE`] together, counted as they arrive. A bound on each
//! alone would let some hundred connections fill the memory, and one that is counted when it is
//! announced would let a few that send nothing shut the door.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::web::problem::Problem;

/// Largest delivery. Larger ones are pushes of thousands of commits, which nobody waits for.
const LARGEST: usize = 4 * 1024 * 1024;
/// Bytes of a delivery that is too large which are read all the same, and not kept.
const MOST_PASSED_OVER: usize = 32 * 1024 * 1024;
/// Bytes of all deliveries that are being read.
const MOST_AT_ONCE: usize = 32 * 1024 * 1024;
/// Time for one.
const LONGEST: Duration = Duration::from_secs(10);

/// The room for deliveries that are being read.
pub(in crate::web) struct Room(Arc<Semaphore>);

/// A delivery that was read, with the room that it takes.
pub(super) struct Read {
    pub(super) bytes: Vec<u8>,
    room: OwnedSemaphorePermit,
}

impl Room {
    pub(in crate::web) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST_AT_ONCE)))
    }

    /// Reads a body to its end.
    pub(super) async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Read, Problem> {
        let announced = headers.get(header::CONTENT_LENGTH);
        let announced = announced
            .and_then(|length| length.to_str().ok()?.parse().ok())
            .unwrap_or(0);
        let reading = async {
            let mut kept = Some(Read {
                bytes: Vec::new(),
                room: self.take(0)?,
            });
            let mut came = 0;
            let mut parts = body.into_data_stream();
            while let Some(part) = parts.next().await {
                let part = part.map_err(|_| incomplete())?;
                came += part.len();
                // What is too large is read on all the same: who is still sending when the
                // connection closes never sees the answer.
                kept = kept.filter(|_| came.max(announced) <= LARGEST);
                if let Some(read) = &mut kept {
                    read.room.merge(self.take(part.len())?);
                    read.bytes.extend_from_slice(&part);
                } else if came > MOST_PASSED_OVER {
                    break;
                }
            }
            kept.filter(|_| announced <= LARGEST).ok_or_else(too_large)
        };
        timeout(LONGEST, reading).await.unwrap_or_else(|_| Err(incomplete()))
    }

    fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Problem> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.0).try_acquire_many_owned(bytes);
        room.map_err(|_| {
            let detail = "too many deliveries are being read; send it again later, the forge is looked at anyway";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        })
    }
}

fn too_large() -> Problem {
    let detail = format!("the body is larger than {} MiB", LARGEST / 1024 / 1024);
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

fn incomplete() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not come whole in time")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures_util::stream;

    fn of(parts: usize, size: usize) -> Body {
        let part = Bytes::from(vec![b'x'; size]);
        let parts = std::iter::repeat_n(part, parts).map(Ok::<_, std::io::Error>);
        Body::from_stream(stream::iter(parts))
    }

    #[tokio::test]
    async fn bodies_are_bounded_each_and_together_and_room_is_given_back() {
        let room = Room::new();
        let headers = HeaderMap::new();
        let mut held = Vec::new();
        for _ in 0..MOST_AT_ONCE / LARGEST {
            let read = room.read(&headers, of(4, LARGEST / 4)).await;
            held.push(read.unwrap_or_else(|problem| panic!("{problem:?}")));
        }
        assert_eq!(held[0].bytes.len(), LARGEST);
        let status = async |body| match room.read(&headers, body).await {
            Ok(_) => StatusCode::OK,
            Err(problem) => problem.status,
        };
        assert_eq!(status(of(1, 1)).await, StatusCode::SERVICE_UNAVAILABLE);
        held.pop();
        assert_eq!(status(of(1, 1)).await, StatusCode::OK);
        assert_eq!(status(of(5, LARGEST / 4)).await, StatusCode::PAYLOAD_TOO_LARGE);
        let mut announced = HeaderMap::new();
        announced.insert(header::CONTENT_LENGTH, header::HeaderValue::from_static("99999999"));
        let refused = room.read(&announced, Body::empty()).await.err().unwrap();
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
        // Half a body takes up what came of it, until it is given up.
        let broken = Body::from_stream(stream::iter([
            Ok(Bytes::from_static(b"x")),
            Err(std::io::Error::other("gone")),
        ]));
        assert_eq!(status(broken).await, StatusCode::REQUEST_TIMEOUT);
        drop(held);
        assert_eq!(room.0.available_permits(), MOST_AT_ONCE);
    }
}
