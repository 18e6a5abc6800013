//! The readers that meet strangers' bytes, fed with the corpus of the fuzzers and with changed
//! pieces of it. `make fuzz` feeds the same readers for longer and looks at what they run through;
//! what it finds is added to the corpus, and so is read here for ever.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "what fails here is the test")]
#![expect(unreachable_pub, reason = "the readers are a library elsewhere")]

#[path = "../../fuzz/src/readers/mod.rs"]
mod readers;

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use readers::READERS;

/// The most bytes that one piece of a seed may have.
const LONGEST_PIECE: usize = 200;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    entries.map(|entry| name(&entry.unwrap().path())).collect()
}

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(fuzz().join("corpus").join(name)).unwrap();
    entries.map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn every_reader_has_a_fuzzer_and_a_corpus() {
    let names: BTreeSet<String> = READERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names_in(&fuzz().join("corpus")), names);
    let mut programs = names_in(&fuzz().join("src/bin"));
    assert!(programs.remove("growth"));
    assert_eq!(programs, names);
    for name in &names {
        assert!(seeds(name).len() >= 2, "{name} has too few seeds");
    }
}

#[test]
fn the_corpus_is_read() {
    for (name, read) in READERS {
        for seed in seeds(name) {
            let is_read = catch_unwind(|| read(&seed)).is_ok();
            assert!(is_read, "{name} does not take {:?}", String::from_utf8_lossy(&seed));
        }
    }
}

#[test]
fn no_bytes_are_too_strange() {
    for (name, read) in READERS {
        let mut runner = TestRunner::new(Config {
            cases: 100,
            failure_persistence: None,
            ..Config::default()
        });
        let fed = runner.run(&changed(seeds(name)), |bytes| {
            read(&bytes);
            Ok(())
        });
        assert_eq!(fed.map_err(|error| format!("{name}: {error}")), Ok(()));
    }
}

/// Returns texts of pieces of the seeds, with other bytes between them.
fn changed(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let piece = (select(seeds), any::<[u16; 2]>()).prop_map(|(seed, [start, length])| {
        let start = usize::from(start) % (seed.len() + 1);
        let length = usize::from(length) % (LONGEST_PIECE + 1);
        seed[start..].iter().copied().take(length).collect::<Vec<u8>>()
    });
    let other = prop_oneof![vec(any::<u8>(), 0..4), "\\PC{0,3}".prop_map(String::into_bytes)];
    vec(prop_oneof![3 => piece, 1 => other], 0..12).prop_map(|pieces| pieces.concat())
}
