//! Parses sizes such as `4g`, `512m` or plain bytes, in powers of 1024 as Docker does.

/// Returns the number of bytes, or a sentence about what is wrong with `text`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("'{text}' is not a size; write a number of bytes, or a number with k, m, g or t, such as 4g");
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let factor: u64 = match text[digits.len()..].as_ref() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.trim_end().parse().map_err(|_| wrong())?;
    number
        .checked_mul(factor)
        // The engine's API takes signed 64-bit numbers.
        .filter(|bytes| i64::try_from(*bytes).is_ok())
        .ok_or_else(|| format!("'{text}' is more than any machine has; write a smaller size"))
}

/// The engine's own minimum for the memory of a container.
const LEAST_MEMORY: u64 = 6 * 1024 * 1024;

/// Returns a sentence about what is wrong with a limit of memory, if anything is.
pub(super) fn fault_of_memory(text: &str) -> Option<String> {
    match parse_size(text) {
        Ok(bytes) if bytes < LEAST_MEMORY => Some(format!(
            "'{text}' is less than a container can start with; write at least 6m"
        )),
        Ok(_) => None,
        Err(reason) => Some(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_docker_reads_them() {
        for (text, bytes) in [
            ("4g", 4 << 30),
            ("512m", 512 << 20),
            ("512 MiB", 512 << 20),
            ("1048576", 1 << 20),
            ("7b", 7),
            ("2K", 2048),
            ("1t", 1 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_an_example() {
        for text in ["", "g", "4x", "-4g", "4.5g", "4 g g", "４g", "9999999999t"] {
            assert!(
                parse_size(text).is_err_and(|reason| reason.contains("write a ")),
                "{text}"
            );
        }
    }
}
