//! Signatures of what came from elsewhere, and secrets, compared in a time that does not depend on
//! where they differ.

use hmac::{Hmac, Mac};
use sha2::Sha256;

#[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::<Sha256>::new_from_slice(key).expect("a key of any length")
}

/// Returns the HMAC-SHA256 of the parts, one behind the other.
pub fn sign(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = keyed(key);
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Tells whether `signature` is the HMAC-SHA256 of the parts, one behind the other.
pub fn is_signed(key: &[u8], parts: &[&[u8]], signature: &[u8]) -> bool {
    let mut mac = keyed(key);
    for part in parts {
        mac.update(part);
    }
    mac.verify_slice(signature).is_ok()
}

/// Tells whether two secrets are the same.
pub fn is_same(known: &[u8], given: &[u8]) -> bool {
    // Digests under one key are compared, so that not even the length shows.
    let key = uuid::Uuid::new_v4();
    let mut mac = keyed(key.as_bytes());
    mac.update(known);
    let known = mac.finalize().into_bytes();
    is_signed(key.as_bytes(), &[given], &known)
}

/// Reads hexadecimal digits of either case; `None` if there is anything else among them.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}
