//! Signatures of what came over HTTP, compared in a time that does not depend on where they differ.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Tells whether `signature` is the HMAC-SHA256 of the parts, one behind the other.
#[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
pub(super) fn is_signed(key: &[u8], parts: &[&[u8]], signature: &[u8]) -> bool {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac.verify_slice(signature).is_ok()
}
