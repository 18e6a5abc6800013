//! Cuts long text in the middle, where a line says so, and estimates its tokens.

/// Returns `text` when it has at most `max_bytes`, else its head and tail with a line between them
/// that says how much was left out and, when given, where the whole is kept. Never cuts inside a
/// character.
pub fn middle_cut(text: &str, max_bytes: usize, whole_at: Option<&str>) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let place = whole_at.map_or_else(String::new, |place| format!("; the whole is in {place}"));
    // The number in the mark is known only after the cut; the length of the text has at least as
    // many digits.
    let mark_length = mark(text.len(), &place).len();
    let kept = max_bytes.saturating_sub(mark_length);
    let head_end = text.floor_char_boundary(kept.div_ceil(2));
    let tail_start = text.ceil_char_boundary(text.len() - kept / 2);
    let head = &text[..head_end];
    let tail = &text[tail_start..];
    format!("{head}{}{tail}", mark(tail_start - head_end, &place))
}

fn mark(left_out: usize, place: &str) -> String {
    format!("\n[... {left_out} bytes left out{place} ...]\n")
}

/// Returns a cautious estimate of the number of tokens in `text`, for budgets before the provider
/// has counted.
///
/// Today's vocabularies have about 4.2 bytes of source code in a token, older ones 3.5, and hardly
/// more than one character of Chinese or Japanese; the estimate takes the worse of these.
pub fn estimated_tokens(text: &str) -> u64 {
    let mut ascii = 0_u64;
    let mut other = 0_u64;
    for character in text.chars() {
        match character.len_utf8() {
            1 => ascii += 1,
            4 => other += 2,
            _ => other += 1,
        }
    }
    (ascii * 2).div_ceil(7) + other
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn head_and_tail_stay_and_the_cut_is_said() {
        assert_eq!(middle_cut("short", 5, None), "short");
        assert_eq!(
            middle_cut(&"0123456789".repeat(10), 60, None),
            "012345678901234\n[... 70 bytes left out ...]\n567890123456789"
        );
        let cut = middle_cut(&"x".repeat(500), 120, Some("logs/output-3.txt"));
        assert!(
            cut.contains("left out; the whole is in logs/output-3.txt ...]"),
            "{cut}"
        );
    }

    #[test]
    fn estimates_lie_above_what_tokenizers_count() {
        assert_eq!(estimated_tokens(""), 0);
        assert_eq!(estimated_tokens("fn main() { println!(\"Hello\"); }"), 10);
        assert_eq!(estimated_tokens("こんにちは世界"), 7);
    }

    proptest! {
        #[test]
        fn no_cut_is_longer_than_allowed_or_inside_a_character(text in "[aあ😀\n]{0,400}", max_bytes in 60_usize..400) {
            let cut = middle_cut(&text, max_bytes, None);
            prop_assert!(cut.len() <= max_bytes);
            prop_assert_eq!(cut == text, text.len() <= max_bytes);
        }

        #[test]
        fn even_an_absurd_limit_gives_a_text(text in any::<String>(), max_bytes in 0_usize..60) {
            let _ = middle_cut(&text, max_bytes, Some("there"));
        }
    }
}
