//! Decodes the content of a file: as UTF-8, and as UTF-16 and UTF-32 if it may be one of these.

use std::borrow::Cow;

/// Number of ASCII letters with zero bytes between them that are no coincidence.
const TELLING: usize = 8;

/// Returns the texts that `content` can be read as. The first is read as UTF-8.
///
/// The encoding of other content cannot be known: the byte order mark may be missing or lie, and
/// files can be joined. So if some letters are separated by zero bytes, all of it is read in
/// both byte orders and from the first and from the second byte on. The zeros that UTF-32 leaves
/// then are dropped.
pub(super) fn texts(content: &[u8]) -> Vec<Cow<'_, str>> {
    let mut texts = vec![String::from_utf8_lossy(content)];
    if may_be_wide(content) {
        let ways: [fn([u8; 2]) -> u16; 2] = [u16::from_le_bytes, u16::from_be_bytes];
        for content in [content, content.get(1..).unwrap_or_default()] {
            texts.extend(ways.map(|unit| Cow::Owned(decoded(content, unit))));
        }
    }
    texts
}

fn may_be_wide(content: &[u8]) -> bool {
    let (mut rest, mut run) = (content, 0);
    while let [first, others @ ..] = rest {
        rest = others;
        match others {
            [0, behind @ ..] if first.is_ascii_graphic() || *first == 0 => {
                run += usize::from(*first != 0);
                rest = behind;
            }
            _ => run = 0,
        }
        if run >= TELLING {
            return true;
        }
    }
    false
}

fn decoded(content: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = content.as_chunks::<2>();
    let letters = char::decode_utf16(pairs.iter().copied().map(unit));
    let letters = letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER));
    letters.filter(|letter| *letter != '\0').collect()
}

#[cfg(test)]
mod tests {
    use super::super::Redactor;

    /// Built from parts, so that no scanner takes this file for a leak.
    fn token() -> String {
        format!("ghp_{}", "Ab3dEf6hIj9lMn2p".repeat(3))
    }

    fn found(content: &[u8]) -> Vec<(usize, Option<String>)> {
        let redactor = Redactor::new(&["pass-wörd-of-ours".into()]);
        let leaks = redactor.leaks_in(content).into_iter();
        let mut found: Vec<_> = leaks.map(|leak| (leak.line, leak.kind)).collect();
        found.sort();
        found.dedup();
        found
    }

    #[test]
    fn a_secret_is_found_in_both_orders_with_and_without_a_mark_and_off_by_a_byte() {
        let text = format!("first\n乡{}\npass-wörd-of-ours", token());
        let expected = [(2, Some("github-token".to_owned())), (3, None)];
        for bytes_of in [u16::to_le_bytes, u16::to_be_bytes] {
            for begin in ["", "\u{feff}", "乡"] {
                let text = format!("{begin}{text}");
                let mut bytes: Vec<u8> = text.encode_utf16().flat_map(bytes_of).collect();
                assert_eq!(found(&bytes), expected, "{begin:?}");
                bytes.insert(0, b'x');
                let kinds: Vec<_> = found(&bytes).into_iter().map(|(_, kind)| kind).collect();
                assert_eq!(kinds, expected.clone().map(|(_, kind)| kind), "{begin:?}, off by one");
            }
        }
        for bytes_of in [u32::to_le_bytes, u32::to_be_bytes] {
            let bytes: Vec<u8> = text.chars().flat_map(|letter| bytes_of(u32::from(letter))).collect();
            assert_eq!(found(&bytes), expected, "UTF-32");
        }
    }

    #[test]
    fn what_is_no_wide_text_is_read_once() {
        assert_eq!(super::texts(b"plain text\n").len(), 1);
        assert_eq!(super::texts(&[0; 1000]).len(), 1);
        assert_eq!(super::texts(b"a\0b\0c\0\x01\x02\0d\0").len(), 1);
        assert_eq!(found(token().as_bytes()), [(1, Some("github-token".to_owned()))]);
    }
}
