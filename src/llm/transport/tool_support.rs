//! Recognises the errors by which servers say that a model takes no native tool calls, and those by
//! which they say that they could not read the calls of one reply.
//!
//! Only words about support count. "Tool" alone stands in errors that pass (a gateway's page, a
//! call that could not be parsed) and in those that a form without tools does not mend (the id of a
//! call, a missing signature); a run that gave up native calls for one of them would not get them
//! back.

use std::sync::LazyLock;

use http::StatusCode;
use regex::Regex;

/// Pattern of the names that these errors have for native calls.
const NAMES: &str = r"(?:tools|tool[ _-](?:use|calls?|calling|choice)|functions|function[ _-]call(?:s|ing)?)";

/// Patterns, for words in lower case, of Ollama, Bedrock and `DeepSeek` ("does not support tools");
/// of `LiteLLM`; of OpenAI, Groq, Mistral and Gemini ("is not supported", "is not enabled"); of
/// OpenAI and those that repeat its words (the parameter is unsupported, or unknown); of servers
/// made with pydantic (the field is not permitted); of `OpenRouter`; of vLLM; of llama.cpp; and of
/// OpenAI, some of whose models take no tools while they think.
static UNSUPPORTED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        format!(r"(?:not|n't) support (?:native |openai |any |the |this )?{NAMES}\b"),
        r"(?:not|n't) support (?:the |these |this )?(?:parameters?|params?|arguments?|fields?)[^a-z]{0,8}tools\b".to_owned(),
        format!(r#"\b{NAMES}[`'"\\]* (?:is|are)(?: not|n't) (?:yet |currently )?(?:supported|enabled)"#),
        format!(r#"unsupported (?:parameters?|arguments?|fields?|features?)?[: `'"\\]*{NAMES}(?:[`'"\\\s,]|$)"#),
        r#"(?:unknown|unrecogni[sz]ed|unexpected|incompatible)(?: request| keyword)? (?:parameter|argument|field|key|name)s?(?: supplied)?[: `'"\\]*tools(?:[`'"\\\s,]|$)"#
            .to_owned(),
        r#""loc": ?\["body", ?"tools"\].{0,40}not permitted"#.to_owned(),
        r"not permitted[^a-z]{1,8}tools\b".to_owned(),
        r"\btools: extra (?:inputs|fields) are not permitted".to_owned(),
        format!(r"(?:endpoints?|providers?|models?) (?:were )?found that supports? {NAMES}\b"),
        r"--enable-auto-tool-choice|--tool-call-parser".to_owned(),
        format!(r"\btool\w* {JINJA}"),
        r"\bfunction tools with reasoning_effort are not supported".to_owned(),
    ];
    let built = patterns.iter().filter_map(|pattern| Regex::new(pattern).ok());
    built.collect()
});

/// Words of llama.cpp's server, which some versions send as a fault of their own, with 500.
const JINJA: &str = "param requires --jinja";

/// Words, in lower case, of which one is in each error about the calls of one reply: of Groq (all
/// but the last two), llama.cpp and Ollama.
const UNREAD: [&str; 5] = [
    "tool_use_failed",
    "failed to call a function",
    "tool call validation failed",
    "failed to parse tool call",
    "error parsing tool call",
];

/// Tells whether an error with these words, in lower case, means that the model takes no native
/// calls.
pub(super) fn is_unsupported(status: StatusCode, words: &str) -> bool {
    match status.as_u16() {
        // OpenRouter finds no server behind it, with 404.
        400 | 404 | 422 => !is_unread(words) && UNSUPPORTED.iter().any(|pattern| pattern.is_match(words)),
        500 => words.contains(JINJA),
        _ => false,
    }
}

/// Tells whether an error with these words, in lower case, blames the calls that the model wrote,
/// and not the request. The same request may go well the next time.
pub(super) fn is_unread(words: &str) -> bool {
    UNREAD.iter().any(|unread| words.contains(unread))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsupported(status: u16, words: &str) -> bool {
        is_unsupported(StatusCode::from_u16(status).unwrap(), &words.to_lowercase())
    }

    #[test]
    fn each_server_is_understood_in_its_own_words() {
        for (status, words) in [
            (
                400,
                r#"{"error":"registry.ollama.ai/library/gemma:2b does not support tools"}"#,
            ),
            (
                500,
                r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"tools param requires --jinja flag"}}"#,
            ),
            (400, "tool_choice param requires --jinja flag"),
            (
                400,
                r#"{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"}"#,
            ),
            (
                404,
                r#"{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs","code":404}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"`tool calling` is not supported with this model","type":"invalid_request_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'tools' is not supported with this model."}}"#,
            ),
            (400, r#"{"error":{"message":"tools is not supported in this model."}}"#),
            (
                400,
                r#"{"error":{"message":"Unrecognized request argument supplied: tools"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Model incompatible request argument supplied: tools"}}"#,
            ),
            (400, "Unknown parameter: 'tools'."),
            (
                400,
                r#"{"object":"error","message":"Function calling is not enabled for this model"}"#,
            ),
            (400, "Function calling is not enabled for models/gemma-3-27b-it"),
            (400, "This model doesn't support tool use."),
            (
                400,
                "litellm.UnsupportedParamsError: ollama does not support parameters: ['tools'], for model=x",
            ),
            (400, "deepseek-reasoner does not support Function Calling"),
            (
                422,
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","tools"],"msg":"Extra inputs are not permitted"}]}"#,
            ),
            (400, "tools: Extra inputs are not permitted"),
            (
                400,
                "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function \
                 tools, use /v1/responses or set reasoning_effort to 'none'.",
            ),
            (
                400,
                "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use \
                 /v1/responses instead.",
            ),
        ] {
            assert!(unsupported(status, words), "{status}: {words}");
        }
        assert_eq!(UNSUPPORTED.len(), 12);
    }

    #[test]
    fn an_error_that_only_mentions_tools_says_nothing_of_their_support() {
        for (status, words) in [
            (
                400,
                r#"{"error":{"message":"Failed to call a function. Please adjust your prompt.","code":"tool_use_failed","failed_generation":"x does not support tools"}}"#,
            ),
            (
                500,
                "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]",
            ),
            (502, "<html>The tool behind this gateway does not support tools</html>"),
            (400, "Invalid 'messages[2].tool_calls[0].id': string too long"),
            (
                400,
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly",
            ),
            (
                400,
                "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
            ),
            (
                400,
                "An assistant message with 'tool_calls' must be followed by tool messages",
            ),
            (400, "Invalid schema for function 'bash': 'oneOf' is not supported"),
            (400, "Unsupported value: 'tools[0].function.strict'"),
            (400, "tools.0.custom.name: String should match pattern"),
            (401, "this key does not support tools"),
            (503, "tool calling is not enabled yet"),
        ] {
            assert!(!unsupported(status, words), "{status}: {words}");
        }
    }

    #[test]
    fn what_blames_the_reply_is_told_from_what_blames_the_request() {
        for words in [
            r#"{"error":{"code":"tool_use_failed"}}"#,
            "Failed to parse tool call arguments as JSON",
            r#"{"error":"error parsing tool call: raw='{'"}"#,
        ] {
            assert!(is_unread(&words.to_lowercase()), "{words}");
        }
        assert!(!is_unread("does not support tools"));
    }
}
