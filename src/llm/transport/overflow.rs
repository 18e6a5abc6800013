//! Recognises the errors by which servers say that a prompt does not fit: each in words of its own,
//! and most with the size of their window.

use std::sync::LazyLock;

use regex::Regex;

/// The sizes that a server names, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) needed: Option<u64>,
    pub(super) window: Option<u64>,
}

/// Words, in lower case, of which one is in each of these refusals.
const PHRASES: [&str; 25] = [
    "context_length_exceeded",
    "exceed_context_size",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "maximum context length",
    "maximum model length",
    "maximum prompt length",
    "maximum number of tokens allowed",
    "exceeds the context",
    "exceeds the available context",
    "exceeds context",
    "exceed context",
    "context length exceeded",
    "context window",
    "context the overflows",
    "context overflow",
    "longer than the context",
    "longer than the model's context",
    "exceeded model token limit",
    "range of input length should be",
    "greater than the context length",
    "model_context_window_exceeded",
    "reduce the length of the messages",
    "request too large for model",
];

/// Patterns of the sizes in errors of LM Studio (both), vLLM (both), OpenAI and those that repeat
/// its words, Anthropic, Gemini, xAI, Mistral, llama.cpp, Together, Kimi, Alibaba, and limits of
/// tokens per minute.
static SIZES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        r"n_keep: (?<needed>\d+)\s*>=\s*n_ctx: (?<window>\d+)",
        r"keep the first (?<needed>\d+) tokens.*?context length of only (?<window>\d+)",
        r"\(length (?<needed>\d+)\) is longer than the maximum model length of (?<window>\d+)",
        r"contains (?<needed>\d+) tokens.*?model with (?<window>\d+) maximum context length",
        r"maximum context length is (?<window>\d+) tokens.*?(?:resulted in|requested|request has) (?:about )?(?<needed>\d+)",
        r"maximum context length is (?<window>\d+)",
        r"(?<needed>\d+) tokens > (?<window>\d+)",
        r"exceed context limit: .*?> (?<window>\d+)",
        r"token count \(?(?<needed>\d+)\)? exceeds the maximum number of tokens allowed \(?(?<window>\d+)",
        r"maximum prompt length is (?<window>\d+) but the request contains (?<needed>\d+)",
        r"request \((?<needed>\d+) tokens\) exceeds the available context size \((?<window>\d+) tokens\)",
        r"input \((?<needed>\d+) tokens\) is longer than the model's context length \((?<window>\d+) tokens\)",
        r"model token limit:? (?<window>\d+) \(requested:? (?<needed>\d+)\)",
        r"range of input length should be \[\d+, ?(?<window>\d+)\]",
        r"limit:? (?<window>\d+), requested:? (?<needed>\d+)",
        r"context length of (?<window>\d+)",
    ];
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

/// Tells whether `words`, in lower case, say that the prompt does not fit.
pub(super) fn is_overflow(words: &str) -> bool {
    PHRASES.iter().any(|phrase| words.contains(phrase))
}

/// Tells whether `words`, in lower case, say that the request alone exceeds what the provider
/// allows in a minute. A limit that others have used up is refused in other words.
pub(super) fn is_above_rate(words: &str) -> bool {
    let is_rate = ["tokens per min", "(tpm)"].iter().any(|unit| words.contains(unit));
    is_rate && words.contains("request too large")
}

/// Returns the sizes that `words` name.
pub(super) fn sizes(words: &str) -> Sizes {
    let found = SIZES.iter().find_map(|pattern| pattern.captures(words));
    let Some(found) = found else {
        return Sizes::default();
    };
    let size = |name: &str| found.name(name).and_then(|size| size.as_str().parse().ok());
    Sizes {
        needed: size("needed"),
        window: size("window"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_is_understood_in_its_own_words() {
        let known = |needed, window| Sizes {
            needed: Some(needed),
            window: Some(window),
        };
        let only = |window| Sizes {
            needed: None,
            window: Some(window),
        };
        for (words, expected) in [
            (
                "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 10247>= n_ctx: 4096). Try to load the model with a larger context length",
                known(10_247, 4_096),
            ),
            (
                "Trying to keep the first 10247 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
                known(10_247, 4_096),
            ),
            (
                "The decoder prompt (length 5039) is longer than the maximum model length of 4096. Make sure that max_model_len is no smaller",
                known(5_039, 4_096),
            ),
            (
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).",
                known(5_000, 4_096),
            ),
            (
                "'max_tokens' is too large: 8192. This model's maximum context length is 4096 tokens and your request has 100 input tokens",
                known(100, 4_096),
            ),
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
                known(130_001, 128_000),
            ),
            (
                "prompt is too long: 210000 tokens > 200000 maximum",
                known(210_000, 200_000),
            ),
            (
                "input length and `max_tokens` exceed context limit: 199000 + 21333 > 200000, decrease input length",
                only(200_000),
            ),
            (
                "The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).",
                known(1_050_000, 1_048_576),
            ),
            (
                "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
                known(537_812, 131_072),
            ),
            (
                "Prompt contains 40012 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                known(40_012, 32_768),
            ),
            (
                "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
                known(5_000, 4_096),
            ),
            (
                "Request too large for model `llama` on tokens per minute (TPM): Limit 12000, Requested 15000, please reduce your message size",
                known(15_000, 12_000),
            ),
            (
                "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
                known(516_368, 262_144),
            ),
            (
                "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
                known(291_351, 262_144),
            ),
            (
                "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
                only(204_800),
            ),
            ("the prompt is too long for the context length of 4096", only(4_096)),
            ("input length exceeds maximum context length", Sizes::default()),
            ("Input is too long for requested model.", Sizes::default()),
            (
                "the request exceeds the available context size, try increasing it",
                Sizes::default(),
            ),
        ] {
            let words = words.to_lowercase();
            assert!(is_overflow(&words), "{words}");
            assert_eq!(sizes(&words), expected, "{words}");
        }
        assert_eq!(SIZES.len(), 16);
        assert!(!is_overflow("model not found"));
    }
}
