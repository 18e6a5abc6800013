//! Links whose connections are cut anywhere, and ends that say what is not so.

use std::sync::LazyLock;
use std::time::Duration;

use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::time::timeout;

use super::carrying::{Parted, Patience, carry};
use super::end::WINDOW;
use super::frame::{Decoder, Frame, write_close, write_data};
use super::session::{Failed, SessionKey, Visit, ask_to_end};
use super::{Broken, LinkEnd};

/// Bytes that a stream repeats. Their number is prime, so that no part that is sent at once or kept
/// has the same place among them as the next one.
const REPEATED: usize = 65_521;

/// Returns the bytes of a stream from `begin` on.
#[expect(clippy::cast_possible_truncation, reason = "the lowest byte is meant")]
fn stream(begin: usize, count: usize) -> Vec<u8> {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let byte = |at: usize| (at ^ (at >> 8).wrapping_mul(31)) as u8;
        (0..REPEATED).map(byte).collect()
    });
    let mut bytes = Vec::with_capacity(count + REPEATED);
    bytes.extend_from_slice(&BYTES[begin % REPEATED..]);
    while bytes.len() < count {
        bytes.extend_from_slice(&BYTES);
    }
    bytes.truncate(count);
    bytes
}

/// One end with what surrounds it: what its user gave and took, and what is on its way from it.
#[derive(Default)]
struct Side {
    link: LinkEnd,
    given: usize,
    taken: Vec<u8>,
    wire: BytesMut,
    /// Reads what comes from the other side.
    decoder: Decoder,
}

impl Side {
    fn give(&mut self, count: usize) {
        let count = count.min(self.link.room());
        self.link.give(&stream(self.given, count));
        self.given += count;
    }

    fn take(&mut self, count: usize) {
        let count = count.min(self.link.to_take().len());
        self.taken.extend_from_slice(&self.link.to_take()[..count]);
        self.link.take(count);
    }

    /// Receives the first bytes that are on their way from `other`.
    fn hear(&mut self, other: &mut Self, count: usize) {
        let count = count.min(other.wire.len());
        let part = other.wire.split_to(count);
        self.decoder.buffer().extend_from_slice(&part);
        while let Some(frame) = self.decoder.next_frame().unwrap() {
            assert!(self.link.read_frame(&frame).unwrap());
            assert!(self.link.to_take().len() <= WINDOW);
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Give(usize),
    Frame,
    Speak,
    Hear(usize),
    Take(usize),
    /// The connection is lost; so many bytes of either direction still arrive.
    Cut(usize, usize),
}

fn step() -> impl Strategy<Value = (bool, Step)> {
    let count = prop_oneof![8 => 0..200_usize, 8 => 0..40_000_usize, 1 => Just(2 * WINDOW)];
    let of_count = |make: fn(usize) -> Step| count.clone().prop_map(make);
    let cut = (count.clone(), count.clone()).prop_map(|(one, other)| Step::Cut(one, other));
    let step = prop_oneof![
        3 => of_count(Step::Give),
        4 => Just(Step::Frame),
        1 => Just(Step::Speak),
        4 => of_count(Step::Hear),
        3 => of_count(Step::Take),
        1 => cut,
    ];
    (any::<bool>(), step)
}

fn reconnect(one: &mut Side, other: &mut Side) {
    for side in [&mut *one, &mut *other] {
        (side.wire, side.decoder) = Default::default();
    }
    let (here, there) = (one.link.received(), other.link.received());
    one.link.resume(there).unwrap();
    other.link.resume(here).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn wherever_it_is_cut_each_byte_arrives_once_and_in_order(steps in vec(step(), 0..120)) {
        let (mut one, mut other) = (Side::default(), Side::default());
        for (is_one, step) in steps {
            let (this, that) = if is_one { (&mut one, &mut other) } else { (&mut other, &mut one) };
            match step {
                Step::Give(count) => this.give(count),
                Step::Frame => {
                    this.link.write_frame(&mut this.wire);
                }
                Step::Speak => this.link.speak(),
                Step::Hear(count) => this.hear(that, count),
                Step::Take(count) => this.take(count),
                Step::Cut(here, there) => {
                    this.hear(that, here);
                    that.hear(this, there);
                    reconnect(this, that);
                }
            }
        }
        // Whatever was left undone, the rest arrives, also through a window that was full.
        reconnect(&mut one, &mut other);
        while one.taken.len() < other.given || other.taken.len() < one.given {
            for _ in 0..2 {
                std::mem::swap(&mut one, &mut other);
                while one.link.write_frame(&mut one.wire) {}
                other.hear(&mut one, usize::MAX);
                other.take(usize::MAX);
            }
        }
        prop_assert!(one.taken == stream(0, other.given));
        prop_assert!(other.taken == stream(0, one.given));
    }
}

#[test]
fn what_cannot_be_true_is_not_taken() {
    let data = |begin, taken, count| Frame::Data {
        begin,
        taken,
        bytes: BytesMut::from(&vec![0; count][..]),
    };
    let mut link = LinkEnd::default();
    link.give(b"twelve bytes");
    link.write_frame(&mut BytesMut::new());
    assert_eq!(link.read_frame(&data(0, 12, 10)), Ok(true));
    let wrong_begin = |begin| Err(Broken::Begin { begin, expected: 10 });
    assert_eq!(link.read_frame(&data(0, 12, 10)), wrong_begin(0));
    assert_eq!(link.read_frame(&data(11, 12, 0)), wrong_begin(11));
    let wrong_count = |taken| {
        let (known, sent) = (12, 12);
        Broken::Count { taken, known, sent }
    };
    assert_eq!(link.read_frame(&data(10, 13, 0)), Err(wrong_count(13)));
    assert_eq!(link.read_frame(&data(10, 11, 0)), Err(wrong_count(11)));
    assert_eq!(link.resume(13), Err(wrong_count(13)));
    assert_eq!(link.resume(11), Err(wrong_count(11)));
    assert_eq!(link.read_frame(&data(10, 12, WINDOW)), Err(Broken::TooMuch));
    // What was given and never sent cannot have arrived either.
    link.give(b"more");
    assert_eq!(link.resume(16), Err(wrong_count(16)));
    assert_eq!(link.resume(12), Ok(()));
}

const LONG: Duration = Duration::from_secs(20);
const PATIENT: Patience = Patience {
    speaks_after: LONG,
    waits: LONG,
};

/// Carries `link` for the user at the other end of `near`.
async fn carried(link: &mut LinkEnd, near: &mut DuplexStream, far: DuplexStream, patience: Patience) -> Parted {
    let (mut near_reader, mut near_writer) = split(near);
    let (mut far_reader, mut far_writer) = split(far);
    let near = (&mut near_reader, &mut near_writer);
    carry(link, near, (&mut far_reader, &mut far_writer), patience).await
}

/// Carries a stream there and back over connections of which each is cut after some bytes.
#[tokio::test]
async fn over_a_hundred_connections_the_stream_is_whole() {
    const BYTES: usize = 3 * WINDOW;
    let (user, mut near) = duplex(1000);
    let (mirror, mut far) = duplex(1000);
    let carrying = async {
        let (mut here, mut there) = (LinkEnd::default(), LinkEnd::default());
        let mut connections = 0;
        loop {
            connections += 1;
            let (one, other) = duplex(5000);
            let ((mut here_reader, mut here_writer), (there_reader, mut there_writer)) = (split(one), split(other));
            let mut cut = there_reader.take(1000 + 997 * connections);
            let (mut near_reader, mut near_writer) = split(&mut near);
            let (mut far_reader, mut far_writer) = split(&mut far);
            let (near, far) = ((&mut near_reader, &mut near_writer), (&mut far_reader, &mut far_writer));
            let parted = tokio::select! {
                parted = carry(&mut here, near, (&mut here_reader, &mut here_writer), PATIENT) => parted,
                parted = carry(&mut there, far, (&mut cut, &mut there_writer), PATIENT) => parted,
            };
            match parted {
                Parted::Lost(_) => {}
                Parted::Dropped => return connections,
                other => panic!("{other:?}"),
            }
            here.resume(there.received()).unwrap();
            there.resume(here.received()).unwrap();
        }
    };
    let using = async {
        let (mut reader, mut writer) = split(user);
        let writing = async {
            writer.write_all(&stream(0, BYTES)).await.unwrap();
        };
        let mut read = vec![0; BYTES];
        let (_, ()) = tokio::join!(reader.read_exact(&mut read), writing);
        assert!(read == stream(0, BYTES));
        drop(reader.unsplit(writer));
    };
    let mirroring = async {
        let (mut reader, mut writer) = split(mirror);
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
    };
    let all = async {
        tokio::select! {
            (connections, ()) = async { tokio::join!(carrying, using) } => connections,
            () = mirroring => 0,
        }
    };
    let connections = timeout(Duration::from_mins(1), all).await.unwrap();
    assert!(connections >= 50, "{connections}");
}

#[tokio::test]
async fn silence_is_noticed_and_an_idle_end_is_not_silent() {
    let (_user, mut near) = duplex(100);
    let (far, mut other) = duplex(10_000);
    let patience = Patience {
        speaks_after: Duration::from_millis(20),
        waits: Duration::from_secs(2),
    };
    let mut link = LinkEnd::default();
    let parted = timeout(LONG, carried(&mut link, &mut near, far, patience))
        .await
        .unwrap();
    assert!(
        matches!(&parted, Parted::Lost(why) if why.starts_with("nothing was heard")),
        "{parted:?}"
    );
    let mut decoder = Decoder::default();
    other.read_buf(decoder.buffer()).await.unwrap();
    for _ in 0..3 {
        let said = decoder.next_frame().unwrap();
        let (begin, taken, bytes) = (0, 0, BytesMut::new());
        assert_eq!(said, Some(Frame::Data { begin, taken, bytes }));
    }
}

#[tokio::test]
async fn an_end_that_goes_says_so_and_one_that_lies_ends_the_link() {
    for says in ["goes", "lies"] {
        let (_user, mut near) = duplex(100);
        let (far, mut other) = duplex(1000);
        let mut written = BytesMut::new();
        match says {
            "goes" => write_close(&mut written),
            _ => write_data(&mut written, 1, 0, b"from the middle"),
        }
        other.write_all(&written).await.unwrap();
        let mut link = LinkEnd::default();
        let parted = timeout(LONG, carried(&mut link, &mut near, far, PATIENT))
            .await
            .unwrap();
        match says {
            "goes" => assert!(matches!(parted, Parted::Closed), "{parted:?}"),
            _ => assert!(matches!(parted, Parted::Broken(Broken::Begin { .. })), "{parted:?}"),
        }
    }
    let (user, mut near) = duplex(100);
    let (far, mut other) = duplex(1000);
    drop(user);
    let parted = carried(&mut LinkEnd::default(), &mut near, far, PATIENT).await;
    assert!(matches!(parted, Parted::Dropped), "{parted:?}");
    let mut decoder = Decoder::default();
    other.read_buf(decoder.buffer()).await.unwrap();
    assert_eq!(decoder.next_frame(), Ok(Some(Frame::Close)));
}

/// Returns a key, and what the executor got of it.
async fn key() -> (SessionKey, SessionKey) {
    let key = SessionKey::new().unwrap();
    let (here, there) = duplex(1000);
    let ((mut here_reader, mut here_writer), (mut there_reader, mut there_writer)) = (split(here), split(there));
    let giving = key.give((&mut here_reader, &mut here_writer));
    let receiving = SessionKey::receive((&mut there_reader, &mut there_writer));
    let (given, received) = tokio::join!(giving, receiving);
    given.unwrap();
    (key, received.unwrap())
}

/// Receives a visitor as the executor, and lets it go on at byte 7.
async fn receive(key: &SessionKey, stream: DuplexStream) -> Result<Option<u64>, Failed> {
    let (mut reader, mut writer) = split(stream);
    match key.visit((&mut reader, &mut writer)).await? {
        Visit::Resume(resumption) => {
            let received = resumption.received;
            key.welcome(&mut writer, resumption, 7).await?;
            Ok(Some(received))
        }
        Visit::End => Ok(None),
    }
}

#[tokio::test]
async fn only_who_has_the_key_goes_on_and_only_with_who_has_it() {
    let visited = async |of_worker: &SessionKey, of_executor: &SessionKey| {
        let (here, there) = duplex(1000);
        let (mut reader, mut writer) = split(here);
        let resuming = of_worker.resume((&mut reader, &mut writer), 5);
        tokio::join!(resuming, receive(of_executor, there))
    };
    let (worker, executor) = key().await;
    let (resumed, received) = visited(&worker, &executor).await;
    assert_eq!((resumed.unwrap(), received.unwrap()), (7, Some(5)));

    let (stranger, _) = key().await;
    let (resumed, received) = visited(&stranger, &executor).await;
    assert!(matches!(received, Err(Failed::Broken(Broken::Key))));
    assert!(matches!(resumed, Err(Failed::Lost(_))));

    // One who took the executor's place, and says what the executor has said before.
    let (here, there) = duplex(1000);
    let (mut reader, mut writer) = split(there);
    let impostor = async {
        writer.write_all(&[&[0x10][..], &[3; 32]].concat()).await.unwrap();
        let mut said = [0; 1 + 32 + 8 + 32];
        reader.read_exact(&mut said).await.unwrap();
        writer
            .write_all(&[&[0x11][..], &said[41..], &[0; 8]].concat())
            .await
            .unwrap();
        said
    };
    let (mut reader, mut writer) = split(here);
    let (resumed, said) = tokio::join!(worker.resume((&mut reader, &mut writer), 5), impostor);
    assert!(matches!(resumed, Err(Failed::Broken(Broken::Key))));
    // What it heard is of no use to it.
    let (mut here, there) = duplex(1000);
    here.write_all(&said).await.unwrap();
    let received = receive(&executor, there).await;
    assert!(matches!(received, Err(Failed::Broken(Broken::Key))));

    for (says, is_final) in [(&[0xff; 100][..], true), (b"OCI runtime exec failed", false)] {
        let mut given = Vec::new();
        let resumed = worker.resume((&mut &says[..], &mut given), 5).await;
        assert_eq!(
            matches!(resumed, Err(Failed::Broken(Broken::Nobody))),
            is_final,
            "{resumed:?}"
        );
        assert!(resumed.is_err() && given.is_empty());
    }

    let (mut here, there) = duplex(1000);
    let (asked, received) = tokio::join!(ask_to_end(&mut here), receive(&executor, there));
    assert!(asked.is_ok() && matches!(received, Ok(None)));
}
