//! Cuts long text in the middle, where a line says so, estimates its tokens, and says how much of
//! a window the outputs of tools may take.

/// Percentage of the window from which on whoever has looked at a repository looks at nothing more:
/// neither a planner nor a chat's worker has a summary, and the answer is still to be written.
pub const LOOKED_ENOUGH: u64 = 60;
/// Percentage of the window up to which the outputs of one look may fill it.
pub const LOOKED: u64 = 75;

/// Maximum bytes of one output of a tool in a conversation, whatever the window.
const MOST_BYTES: usize = 32 * 1024;
const FEWEST_BYTES: usize = 4 * 1024;
/// Percentage of the window that one output may take.
const SHARE: u64 = 10;
/// Fewest bytes of a token: a character of Chinese or Japanese has three, and a token of other text
/// has more.
const BYTES_OF_TOKEN: u64 = 3;

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

/// Returns the maximum bytes of each output when a reply calls so many tools, for a window of so
/// many tokens. The total is bounded as well, so that many calls in a reply cannot fill the window.
pub fn most_bytes_of_output(window: u64, calls: usize) -> usize {
    let of_one = bytes_of_window(window, SHARE).clamp(FEWEST_BYTES, MOST_BYTES);
    of_one.min(of_one * 5 / 2 / calls.max(1))
}

/// Returns `percent` of a window of so many tokens as bytes of text, at four bytes a token.
pub fn bytes_of_window(window: u64, percent: u64) -> usize {
    usize::try_from(window * 4 * percent / 100).unwrap_or(usize::MAX)
}

/// Returns how many bytes of text fit `percent` of a window of so many tokens, whatever its
/// language: Chinese and Japanese have the fewest bytes in a token.
fn bytes_that_fit(window: u64, percent: u64) -> usize {
    usize::try_from(window * BYTES_OF_TOKEN * percent / 100).unwrap_or(usize::MAX)
}

/// Returns how many bytes the outputs of a look may add to a conversation that fills so many
/// percent of a window of so many tokens.
pub fn bytes_of_look(window: u64, fullness: u64) -> usize {
    bytes_that_fit(window, LOOKED.saturating_sub(fullness))
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
    fn outputs_take_a_tenth_of_the_window_and_all_of_a_reply_a_quarter() {
        assert_eq!(most_bytes_of_output(32_768, 1), 13_107);
        assert_eq!(most_bytes_of_output(32_768, 8), 13_107 * 5 / 2 / 8);
        assert_eq!(most_bytes_of_output(1_000_000, 2), MOST_BYTES);
        assert_eq!(most_bytes_of_output(4_096, 1), FEWEST_BYTES);
    }

    #[test]
    fn japanese_fits_as_well_as_other_text() {
        for text in ["日本語の文章です。", "Some words of prose. "] {
            let bytes = bytes_that_fit(8_192, 50);
            let filling = text.repeat(bytes / text.len());
            assert!(estimated_tokens(&filling) <= 8_192 / 2, "{text}");
        }
        assert_eq!(bytes_that_fit(8_192, 0), 0);
    }

    #[test]
    fn a_look_fills_the_window_up_to_three_quarters() {
        assert_eq!(bytes_of_look(8_192, 25), bytes_that_fit(8_192, 50));
        assert_eq!(bytes_of_look(8_192, 75), 0);
        assert_eq!(bytes_of_look(8_192, 90), 0);
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
