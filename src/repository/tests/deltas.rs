//! Tests with packs that unfold to many times their size.

use std::io::Write as _;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::*;

const BASE: usize = 64 * 1024;

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Encodes the head of an object in a pack: its kind and its inflated size.
fn head(kind: u8, size: usize) -> Vec<u8> {
    let mut bytes = vec![(kind << 4) | u8::try_from(size & 15).unwrap()];
    let mut left = size >> 4;
    while left > 0 {
        *bytes.last_mut().unwrap() |= 0x80;
        bytes.push(u8::try_from(left & 127).unwrap());
        left >>= 7;
    }
    bytes
}

fn length(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 127 {
        bytes.push(u8::try_from(number & 127).unwrap() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap());
    bytes
}

/// Encodes the offset of an object's delta base.
fn distance(mut back: usize) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(back & 127).unwrap()];
    back >>= 7;
    while back > 0 {
        back -= 1;
        bytes.insert(0, u8::try_from(back & 127).unwrap() | 0x80);
        back >>= 7;
    }
    bytes
}

/// Makes a pack with a file of zeros, and `count` files that repeat it until they have about `size`
/// bytes.
fn bomb(count: usize, size: usize) -> Vec<u8> {
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend(u32::try_from(count + 1).unwrap().to_be_bytes());
    let base = pack.len();
    pack.extend(head(3, BASE));
    pack.extend(deflated(&vec![0; BASE]));
    for number in 0..count {
        let copies = size / BASE - number;
        // One byte: copy 64 KiB from the beginning of the base.
        let delta = [length(BASE), length(copies * BASE), vec![0x80; copies]].concat();
        let here = pack.len();
        pack.extend(head(6, delta.len()));
        pack.extend(distance(here - base));
        pack.extend(deflated(&delta));
    }
    let mut child = Command::new("sha1sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&pack).unwrap();
    let digest = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    pack.extend((0..20).map(|at| u8::from_str_radix(&digest[2 * at..2 * at + 2], 16).unwrap()));
    pack
}

#[tokio::test]
async fn a_small_pack_that_unfolds_to_gigabytes_is_refused_at_once() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let pack = bomb(8, 1 << 30);
    assert!(pack.len() < 20_000, "{}", pack.len());
    let begun = Instant::now();
    let refused = mirror.receive(pack.as_slice()).await.unwrap_err().to_string();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(refused.contains("`max_file_bytes`"), "{refused}");
    assert_eq!(std::fs::read_dir(mirror.path().join("quarantine")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_pack_of_ordinary_deltas_is_taken() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    mirror.receive(bomb(3, 10 << 20).as_slice()).await.unwrap();
}
