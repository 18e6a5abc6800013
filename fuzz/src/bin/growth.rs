//! Counts the steps of each reader on a text and on one four times as long, and fails where they
//! grow faster than the text.
//!
//! No clock is read: a step is a comparison that the compiler's instrumentation reports, so the
//! numbers are the same on every machine and at every load. What the standard library compares is
//! not counted; there the fuzzers' time-out has to see it.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io};

use coding_agent_fuzz::readers::{READERS, Reader};

const SHORT: usize = 8 * 1024;
const LONG: usize = 4 * SHORT;
/// The most growth that is let pass: four for linear time, a little more for sorting, sixteen for
/// quadratic time.
const MOST_GROWTH: u64 = 8;
/// The number of steps below which the work of a reader may grow as it likes.
const FEW_STEPS: u64 = 20 * LONG as u64;

/// Pieces of text that are hard for readers: openings without ends, nesting, and near misses.
#[rustfmt::skip]
const PIECES: [&str; 48] = [
    "{", "[", "(", "<", "\"", "'", "`", "\\", "/", "*", "_", "~", "#", "-", ">", "|", "@", "&", ":", "a", " ", "\n", "\t", "日", "a ",
    "> ", "- ", "![", "[a](", "[^1]:", "<!--", "<a ", "</", "```\n", "{\"", "{\"a\":", "{'a':[", "{\"a\":\"\\", "{\"command\":1}", "<think>",
    "a: b\n", "- a\n", "? ", "!!a ", "&a [*a,", "${a", "eyJ-", "-----BEGIN PRIVATE KEY-----\na: ",
];

fn main() -> ExitCode {
    let wanted: BTreeSet<String> = env::args().skip(1).collect();
    let mut is_linear = true;
    println!("| reader | texts | most steps for a byte | of | most growth | of |\n|---|---:|---:|---|---:|---|");
    for (name, reader) in READERS {
        if wanted.is_empty() || wanted.contains(name) {
            is_linear &= report(name, reader);
        }
    }
    if is_linear {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn report(name: &str, reader: Reader) -> bool {
    let pieces = pieces(name).unwrap_or_default();
    let (mut most_steps, mut of_steps, mut most_growth, mut of_growth) = (0, String::new(), 0.0_f64, String::new());
    let mut is_linear = true;
    // What is made at the first use is not part of any text.
    reader(b"");
    for piece in &pieces {
        let (short, long) = (steps(reader, piece, SHORT), steps(reader, piece, LONG));
        if long / LONG as u64 > most_steps {
            (most_steps, of_steps) = (long / LONG as u64, shown(piece));
        }
        let growth = long as f64 / short.max(1) as f64;
        if long > FEW_STEPS && growth > most_growth {
            (most_growth, of_growth) = (growth, shown(piece));
        }
        if long > FEW_STEPS && long / short.max(1) >= MOST_GROWTH {
            is_linear = false;
            eprintln!("{name}: {long} steps after {short} for {}", shown(piece));
        }
    }
    println!(
        "| {name} | {} | {most_steps} | {of_steps} | {most_growth:.1} | {of_growth} |",
        pieces.len()
    );
    is_linear
}

/// Returns what is repeated: pieces that are hard for many, and the seeds of this reader, whole and
/// line by line.
fn pieces(name: &str) -> io::Result<BTreeSet<Vec<u8>>> {
    let mut pieces: BTreeSet<Vec<u8>> = PIECES.iter().map(|piece| piece.as_bytes().to_vec()).collect();
    for entry in fs::read_dir(format!("{}/corpus/{name}", env!("CARGO_MANIFEST_DIR")))? {
        let seed = fs::read(entry?.path())?;
        let lines = seed.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec);
        pieces.extend(
            lines
                .chain([seed.clone()])
                .filter(|piece| !piece.is_empty() && piece.len() < SHORT / 4),
        );
    }
    Ok(pieces)
}

fn steps(reader: Reader, piece: &[u8], length: usize) -> u64 {
    let text = piece.repeat(length / piece.len());
    let before = STEPS.load(Ordering::Relaxed);
    reader(&text);
    STEPS.load(Ordering::Relaxed) - before
}

fn shown(piece: &[u8]) -> String {
    let text = String::from_utf8_lossy(piece);
    let short: String = text.chars().take(40).collect();
    format!("`{}`", short.escape_debug().to_string().replace('|', "\\|"))
}

static STEPS: AtomicU64 = AtomicU64::new(0);

/// Counts a step, without a comparison of its own, which would be reported again.
#[inline(always)]
fn step() {
    STEPS.fetch_add(1, Ordering::Relaxed);
}

macro_rules! reported {
    ($($name:ident: $type:ty),*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name(_: $type, _: $type) { step(); }
    )* };
}

reported!(
    __sanitizer_cov_trace_cmp1: u8, __sanitizer_cov_trace_cmp2: u16, __sanitizer_cov_trace_cmp4: u32, __sanitizer_cov_trace_cmp8: u64,
    __sanitizer_cov_trace_const_cmp1: u8, __sanitizer_cov_trace_const_cmp2: u16, __sanitizer_cov_trace_const_cmp4: u32,
    __sanitizer_cov_trace_const_cmp8: u64
);

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_switch(_: u64, _: *const u64) {
    step();
}

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_pc_indir(_: usize) {}

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(_: *const u8, _: *const u8) {}

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_pcs_init(_: *const usize, _: *const usize) {}
