//! Texts in which there may be secrets.

use std::sync::LazyLock;

use coding_agent::secret::{Redactor, personal};

use super::text;

/// With signs that have a spelling of their own in JSON, in addresses and in base64.
const SECRET: &str = "s3cr3t/\"vält+e";
/// Stands for the secret, so that it is met often.
const STAND_IN: char = '\u{a4}';

/// Two redactors, since a value that looks like a mark asks for marks of another kind.
static REDACTORS: LazyLock<[Redactor; 2]> = LazyLock::new(|| {
    [
        Redactor::new(&[SECRET.into()]),
        Redactor::new(&[SECRET.into(), "redacted".into()]),
    ]
});

/// No configured value is left, and cleaning twice is cleaning once.
pub fn redactor(bytes: &[u8]) {
    let text = text(bytes).replace(STAND_IN, SECRET);
    for redactor in REDACTORS.iter() {
        let clean = redactor.clean(&text);
        assert!(!clean.as_str().contains(SECRET));
        assert_eq!(redactor.clean(clean.as_str()), clean);
        assert_eq!(redactor.leaks(clean.as_str()), []);
        assert_eq!(redactor.leaks(&text).is_empty(), clean.as_str() == text);
        assert!(redactor.marks(clean.as_str()).len() <= clean.as_str().len() / 3);
    }
    let masked = personal::masked(&text);
    assert!(masked.len() <= 4 * text.len());
}
