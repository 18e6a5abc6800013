//! Numbers and texts as bytes, and back.

/// Appends a number, seven bits a byte, the lowest first.
pub(super) fn put(bytes: &mut Vec<u8>, number: u64) {
    let mut rest = number;
    while rest >= 0x80 {
        bytes.push(low(rest) | 0x80);
        rest >>= 7;
    }
    bytes.push(low(rest));
}

/// Appends a text with its length.
pub(super) fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    put(bytes, text.len() as u64);
    bytes.extend_from_slice(text);
}

/// Returns the lowest seven bits.
fn low(number: u64) -> u8 {
    u8::try_from(number & 0x7f).unwrap_or_default()
}

/// Returns a number of either sign as one without, small if it is near zero.
pub(super) fn folded(number: i64) -> u64 {
    (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned()
}

/// Returns the number that [`folded`] made of it.
pub(super) fn unfolded(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Reads what was put, in the same order.
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn text(&mut self) -> Option<&'b str> {
        let length = self.size()?;
        std::str::from_utf8(self.take(length)?).ok()
    }
}

/// Returns the id of an object of git as bytes; `None` for what is none.
pub(in crate::index) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

/// Returns bytes as hexadecimal digits.
pub(in crate::index) fn to_hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Returns the digest by which a name is looked up (FNV-1a). Two names may have the same one, so
/// that what is found by it is compared with the name, or with the lines that are shown.
pub(in crate::index) fn digest(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |digest, byte| {
        (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_read_again_and_what_is_cut_off_is_not() {
        let numbers = [0, 1, 127, 128, 300, 1 << 40, u64::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            put(&mut bytes, number);
        }
        put_text(&mut bytes, "再試行".as_bytes());
        let mut reader = Reader::new(&bytes);
        assert!(numbers.iter().all(|number| reader.number() == Some(*number)));
        assert_eq!(reader.text(), Some("再試行"));
        assert!(reader.is_at_end());
        assert_eq!(Reader::new(&bytes[bytes.len() - 3..]).text(), None);
        assert_eq!(Reader::new(&[0xff; 12]).number(), None);
        for number in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unfolded(folded(number)), number);
        }
        assert_eq!(
            from_hex("00ff1a").map(|bytes| to_hex(&bytes)),
            Some("00ff1a".to_owned())
        );
        assert_eq!((from_hex("abc"), from_hex("zz")), (None, None));
    }
}
