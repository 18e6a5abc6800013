//! The redactor: no configured value is left, and cleaning twice is cleaning once.
#![no_main]

use std::sync::LazyLock;

use coding_agent::secret::Redactor;
use libfuzzer_sys::fuzz_target;
use secrecy::SecretString;

static REDACTOR: LazyLock<Redactor> =
    LazyLock::new(|| Redactor::new(&[SecretString::from(SECRET), SecretString::from("[redacted")]));

const SECRET: &str = "s3cr3t/\"value";

fuzz_target!(|text: &str| {
    let clean = REDACTOR.clean(text);
    assert!(!clean.as_str().contains(SECRET));
    assert_eq!(REDACTOR.clean(clean.as_str()), clean);
});
